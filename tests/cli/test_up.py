"""Serving."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.client import Client
from clew.trail.model.breadcrumb import Draft
from tests.cli.conftest import PATIENCE, Clew, start
from tests.servers import give_key


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`clew up` in a process of its own, once it answers."""
    with start("up", "--port", "0", "--json", *arguments) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.req("RCR-54")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_command_serves_a_new_folder_and_a_signal_ends_it_cleanly(clew: Clew, folder: Path, number: int) -> None:
    with running() as (process, serving):
        assert process.stderr is not None
        assert (folder / "config.toml").exists()
        assert serving["trail"] == str(folder / "trail.db")
        assert serving["pid"] == process.pid
        assert httpx.get(f"{serving['url']}/ready", timeout=PATIENCE).json()["status"] == "ready"
        assert "<html" in httpx.get(serving["docs"], timeout=PATIENCE).text
        headers = {"Authorization": f"Bearer {clew('token').out.strip()}"}
        draft = {"title": "over HTTP", "context": {}, "tags": ["mine"]}
        answer = httpx.post(f"{serving['url']}/breadcrumbs", json=draft, headers=headers, timeout=PATIENCE)
        assert answer.status_code == 201
        assert clew("trail", "ls", "--tag", "mine").rows[0][3] == "over HTTP"
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""
    assert not (folder / "trail.db-wal").exists()
    assert clew("trail", "ls", "--tag", "mine").out


def test_writes_of_the_command_line_reach_a_client_of_the_server(clew: Clew, folder: Path) -> None:
    give_key(folder)

    async def listen(url: str) -> str:
        async with Client(url, credential=(folder / "credential").read_text().strip()) as client:
            first = await client.create(Draft(title="from the client", context={}, tags=["mine"]))
            events = client.events(after=0)
            async with asyncio.timeout(PATIENCE):
                async for event in events:
                    if event.breadcrumb_id == first.id:
                        await asyncio.to_thread(clew, "trail", "put", "--title", "from the shell", "--tag", "mine")
                    elif "mine" in event.tags:
                        await events.aclose()
                        return event.type
        return "nothing"

    with running() as (_, serving):
        assert asyncio.run(listen(serving["url"])) == "breadcrumb.created"


@pytest.mark.req("RCR-12")
def test_expired_breadcrumbs_go_while_it_serves(clew: Clew, folder: Path) -> None:
    give_key(folder)
    clew("trail", "put", "--title", "old", "--ttl", "2020-01-01T00:00:00Z", "--tag", "mine")
    with running():
        clew("trail", "tail", "--schema", "system.hygiene.v1", "--count", "1")
        assert clew("hygiene", "stats", "--json").json["total_breadcrumbs_purged"] == 1


METRICS = (
    "http_requests_total",
    "http_request_duration_seconds",
    "webhook_delivery_total",
    "webhook_delivery_duration_seconds",
)


class Receiver(BaseHTTPRequestHandler):
    """Keeps what is posted to it."""

    received: queue.Queue[dict[str, Any]] = queue.Queue()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()
        self.received.put(json.loads(body))

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.mark.req("RCR-54")
def test_webhooks_are_delivered_and_counted_while_it_serves(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_key(folder)
    monkeypatch.setenv("CLEW_WEBHOOKS_ALLOW", "127.0.0.0/8")
    clew("secret", "put", "signing", stdin=b"key")
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    with running() as (_, serving):
        headers = {"Authorization": f"Bearer {clew('token').out.strip()}"}
        with httpx.Client(base_url=serving["url"], headers=headers, timeout=PATIENCE) as http:
            webhook = {"url": f"http://127.0.0.1:{receiver.server_port}/", "secret": "signing"}
            body = {"name": "hook", "selector": {"all_tags": ["mine"]}, "webhook": webhook}
            assert http.post("/subscriptions", json=body).status_code in (200, 201)
            id = clew("trail", "put", "--title", "told", "--tag", "mine").out.strip()
            assert Receiver.received.get(timeout=PATIENCE)["breadcrumb_id"] == id
            metrics = http.get("/metrics").text
    receiver.shutdown()
    receiver.server_close()
    for name in METRICS:
        assert f"# HELP {name} " in metrics


def test_a_port_in_use_is_one_line_that_names_the_option(clew: Clew, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = clew("up", "--port", str(port))
    assert (result.code, result.out) == (1, "")
    assert (
        result.err
        == f"clew: cannot listen on 127.0.0.1:{port} (Address already in use). Choose another with --port or --host\n"
    )
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "code"), [("--host no.such.host.invalid", 1), ("--port 70000", 2), ("--host 192.0.2.1", 1)]
)
def test_an_address_that_cannot_be_is_one_line(clew: Clew, folder: Path, arguments: str, code: int) -> None:
    result = clew("up", *arguments.split())
    assert (result.code, len(result.err.splitlines())) == (code, 1)
    assert not folder.exists()


def test_it_tells_people_what_it_serves_and_how_to_get_a_token(clew: Clew, folder: Path) -> None:
    give_key(folder)
    with start("up", "--port", "0", "--owner", "ann", env=os.environ | {"PYTHONUNBUFFERED": "1"}) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline() for _ in range(9)]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        ending = process.stderr.read()
    url = lines[0].split()[-1]
    assert url.startswith("http://127.0.0.1:")
    assert lines[1].split()[-1] == f"{url}/docs"
    assert lines[2].split() == ["MCP", f"{url}/mcp"]
    assert lines[3] == f"  folder     {folder}\n"
    assert lines[4].startswith(f"  trail      {folder / 'trail.db'} (")
    assert "0 edges" in lines[4]
    assert lines[5].split() == ["owner", "ann"]
    assert lines[6].strip() == f"token      clew token --folder {folder} --owner ann"
    assert "Ctrl-C" in lines[8]
    assert ending == "Stopped. All accepted requests are on the trail.\n"


@pytest.mark.req("RCR-53")
def test_the_first_call_of_another_owner_sets_its_trail_up(clew: Clew, folder: Path) -> None:
    """Schemas, TTL policies and hints hold for every owner, not only for the one that runs the server."""
    give_key(folder)
    code = {"title": "t", "schema_name": "tool.code.v1", "tags": ["mine"]}
    ping = {"title": "p", "schema_name": "system.ping.v1", "tags": [], "context": {}}
    with running() as (_, serving):
        headers = {"Authorization": f"Bearer {clew('token', '--owner', 'bob').out.strip()}"}
        with httpx.Client(base_url=serving["url"], headers=headers, timeout=PATIENCE) as http:
            assert http.post("/breadcrumbs", json=code | {"context": {}}).json()["error"]["code"] == "schema_violation"
            made = http.post("/breadcrumbs", json=code | {"context": {"name": "t", "code": "HIDDEN"}})
            assert made.status_code == 201, made.text
            assert "HIDDEN" not in http.get(f"/breadcrumbs/{made.json()['id']}").text
            assert http.post("/breadcrumbs", json=ping).json()["ttl"]["kind"] == "datetime"


def test_a_chat_of_an_owner_whose_agents_do_not_run_here_is_refused(clew: Clew, folder: Path) -> None:
    give_key(folder)
    with running() as (_, serving):
        headers = {"Authorization": f"Bearer {clew('token', '--owner', 'bob').out.strip()}"}
        answer = httpx.post(f"{serving['url']}/chat", json={"message": "hi"}, headers=headers, timeout=PATIENCE)
    assert answer.status_code == 403
    assert answer.json()["error"]["message"] == "may not chat: agents of bob do not run on this server"
    assert "clew up --owner bob" in answer.json()["error"]["hint"]
