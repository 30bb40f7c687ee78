"""An agent and its tools, over HTTP, while the server dies under them."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from clew.client import Client
from clew.errors import ClewError
from clew.trail.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.selector import Selector
from tests.serving import PATIENCE, give_key

PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.serving import serve

async def main():
    async with serve(Path(sys.argv[1]), port=int(sys.argv[2])) as served:
        print(served.url.rsplit(":", 1)[1], flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


class Process:
    """A server in a process of its own, which can be killed and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        give_key(folder)

    async def start(self) -> str:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, str(self.folder), str(self.port), stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        self.port = int(await asyncio.wait_for(self._process.stdout.readline(), PATIENCE))
        return f"http://127.0.0.1:{self.port}"

    async def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        await asyncio.wait_for(self._process.communicate(), PATIENCE)

    @property
    def credential(self) -> str:
        return (self.folder / "credential").read_text().strip()


@pytest.mark.req("RCR-21")
@pytest.mark.req("BEY-07")
async def test_killing_the_server_mid_stream_loses_no_acknowledged_event(tmp_path: Path) -> None:
    server = Process(tmp_path)
    url = await server.start()
    acknowledged: list[str] = []
    received: list[str] = []

    async def write(client: Client, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                made = await client.create(Draft(title="w", context={"n": len(acknowledged)}))
                acknowledged.append(made.id)
            except ClewError:
                await asyncio.sleep(0.05)

    async def read(client: Client, upto: asyncio.Event) -> None:
        async with aclosing(client.events(after=0)) as events:
            async for event in events:
                received.append(event.breadcrumb_id)
                if upto.is_set() and set(acknowledged) <= set(received):
                    return

    stop = asyncio.Event()
    async with (
        Client(url, credential=server.credential, owner_id="ada", jitter=lambda: 0.0) as writer,
        Client(url, credential=server.credential, owner_id="ada", jitter=lambda: 0.0) as reader,
        asyncio.timeout(3 * PATIENCE),
    ):
        writing, reading = asyncio.create_task(write(writer, stop)), asyncio.create_task(read(reader, stop))
        for _ in range(3):
            before = len(received)
            while len(received) < before + 20:
                await asyncio.sleep(0.01)
            await server.kill()
            await server.start()
        stop.set()
        await writing
        await writer.create(Draft(title="last", context={}))
        await reading
    await server.kill()
    assert len(received) == len(set(received))
    assert set(acknowledged) <= set(received)


@pytest.mark.req("RCR-29")
async def test_an_answer_that_comes_after_a_restart_still_finds_its_request(tmp_path: Path) -> None:
    server = Process(tmp_path)
    url = await server.start()
    async with Client(url, credential=server.credential, owner_id="ada") as agent:
        asked = await agent.create(
            Draft(
                title="Run the tests",
                schema_name="tool.request.v1",
                context={"tool": "tests", "request_id": "r-1"},
                tags=("request:r-1", "session:s1", "workspace:tools"),
            )
        )
    await server.kill()
    await server.start()
    async with Client(url, credential=server.credential, owner_id="ada", agent_id="runner") as runner:
        requests = [each async for each in runner.list(Selector(schema_name="tool.request.v1"))]
        assert [each.id for each in requests] == [asked.id]
        await runner.create(
            Draft(
                title="Tests passed",
                schema_name="tool.response.v1",
                context={"request_id": requests[0].context["request_id"], "status": "success"},
                tags=("request:r-1", *requests[0].session_tags),
            )
        )
    async with Client(url, credential=server.credential, owner_id="ada") as agent:
        wanted = Selector(schema_name="tool.response.v1", all_tags=("request:r-1",))
        [answer] = [each async for each in agent.list(wanted)]
        assert answer.context["status"] == "success"
    await server.kill()


@pytest.mark.req("RCR-02")
async def test_changing_a_setting_leaves_versions_and_tells_whoever_listens(tmp_path: Path) -> None:
    server = Process(tmp_path)
    url = await server.start()

    def darker(found: Breadcrumb) -> Change:
        return Change(context=found.context | {"theme": "dark"})

    async with Client(url, credential=server.credential, owner_id="ada") as client, asyncio.timeout(PATIENCE):
        setting = await client.create(
            Draft(title="Settings", schema_name="extension.settings.v1", context={"theme": "light", "tabs": 3})
        )
        async with aclosing(client.events(Selector(schema_name="extension.settings.v1"), after=0)) as events:
            assert (await anext(events)).context == {"theme": "light", "tabs": 3}
            changed = await client.edit(setting.id, darker)
            told = await anext(events)
        assert (changed.version, told.version, told.context) == (2, 2, {"theme": "dark", "tabs": 3})
        assert (await client.search("settings")).hits[0].breadcrumb.id == setting.id
    await server.kill()
