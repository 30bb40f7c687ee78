"""Start, end and unexpected errors of the server."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.access import Principal
from clew.adapters.rest import build_app, open_keys, run_server
from clew.clock import SystemClock
from clew.errors import Busy, ConfigError, Corrupted, StorageFull
from clew.trail import open_trail
from clew.trail.work.hygiene import Hygiene
from tests.servers import PATIENCE, give_key, serve

PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.servers import serve

async def main():
    from clew.adapters.rest import run_server
    async with serve(Path(sys.argv[1])) as served:
        ready = lambda host, port: print(port, flush=True)
        await run_server(served.app, "127.0.0.1", 0, ready=ready)
    print("closed", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_streams_and_lets_the_program_close_its_trail(tmp_path: Path, number: int) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    port = int(await asyncio.wait_for(process.stdout.readline(), PATIENCE))
    keys = open_keys(tmp_path, SystemClock())
    token = keys.issue(Principal(owner_id="ada", agent_id="a")).token
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(verify=False, base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=PATIENCE) as http,
        http.stream("GET", "/events/stream") as stream,
    ):
        chunks = stream.aiter_raw()
        assert b"ping" in await anext(chunks)
        process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            assert b"".join([chunk async for chunk in chunks]).endswith(b": the server is closing\n\n")
    assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"closed\n"
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


async def test_a_port_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with serve(tmp_path) as served:
            with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
                await run_server(served.app, "127.0.0.1", port)


async def test_a_server_listens_on_ipv6_as_well(tmp_path: Path) -> None:
    async with serve(tmp_path) as served:
        stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
        second = asyncio.create_task(
            run_server(served.app, "::1", 0, ready=lambda *at: address.set_result(at), stop=stop)
        )
        done, _ = await asyncio.wait({second, address}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if second in done:
            pytest.skip("this machine has no IPv6")
        async with httpx.AsyncClient(verify=False) as http:
            assert (await http.get(f"http://[::1]:{address.result()[1]}/health")).status_code == 200
        stop.set()
        await asyncio.wait_for(second, PATIENCE)


class Broken:
    """Stands for a part that fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        async def fail(*args: Any, **kwargs: Any) -> None:
            raise self.error

        return fail


async def ask_broken(tmp_path: Path, error: Exception, **request: Any) -> httpx.Response:
    """The answer of an application whose records raise a given error."""
    give_key(tmp_path)
    clock = SystemClock()
    keys = open_keys(tmp_path, clock)
    trail = await open_trail("sqlite://:memory:", clock)
    try:
        trail.records = Broken(error)  # type: ignore[assignment]  # the failure is the point
        app = build_app(trail, keys, Hygiene(trail, by=Principal(owner_id="l"), clock=clock), clock=clock)
        token = keys.issue(Principal(owner_id="ada", agent_id="a")).token
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            http.headers["Authorization"] = f"Bearer {token}"
            return await http.request(**{"method": "GET", "url": "/breadcrumbs"} | request)
    finally:
        await trail.close()


async def test_an_unforeseen_failure_is_500_and_tells_neither_caller_nor_log_what_was_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = {"title": "my password is hunter2", "context": {"password": "hunter2"}}
    failing = ValueError("could not store 'hunter2'")
    with caplog.at_level(logging.DEBUG):
        response = await ask_broken(tmp_path, failing, method="POST", json=secret)
    assert response.status_code == 500
    error = response.json()["error"]
    assert error["code"] == "internal"
    assert response.headers["x-request-id"] in error["hint"]
    assert "hunter2" not in response.text
    assert "ValueError" not in response.text
    assert response.headers["x-request-id"] in caplog.text
    assert "ValueError" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Busy("the queue is full"), 503, "busy"),
        (StorageFull("no space left"), 507, "storage_full"),
        (Corrupted("checksum of x"), 500, "corrupted"),
    ],
)
async def test_a_failing_engine_says_which_failure_and_what_to_do(
    tmp_path: Path, error: Exception, status: int, code: str
) -> None:
    response = await ask_broken(tmp_path, error)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert response.json()["error"]["hint"]
    assert ("retry-after" in response.headers) == (status == 503)
