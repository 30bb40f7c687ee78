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
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.selector import Selector
from tests.servers import PATIENCE, give_key

PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.servers import serve

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


class Traffic:
    """One client that writes while a server is up, and one that follows all along."""

    def __init__(self) -> None:
        self.acknowledged: list[str] = []
        self.received: list[str] = []
        self.up = asyncio.Event()
        self.ending = False
        self._arrived = asyncio.Event()

    async def write(self, client: Client) -> None:
        while not self.ending:
            await self.up.wait()
            try:
                made = await client.create(Draft(title="w", context={"n": len(self.acknowledged)}))
            except ClewError:
                continue
            self.acknowledged.append(made.id)
        self.acknowledged.append((await client.create(Draft(title="w", context={"last": True}))).id)

    async def read(self, client: Client) -> None:
        async with aclosing(client.events(after=0)) as events:
            async for event in events:
                self.received.append(event.breadcrumb_id)
                self._arrived.set()
                if event.context == {"last": True}:
                    return

    async def wait_for(self, count: int) -> None:
        """Return once so many more events have arrived."""
        wanted = len(self.received) + count
        while len(self.received) < wanted:
            self._arrived.clear()
            await self._arrived.wait()


@pytest.mark.req("RCR-21")
@pytest.mark.req("BEY-07")
async def test_killing_the_server_mid_stream_loses_no_acknowledged_event(tmp_path: Path) -> None:
    server, traffic = Process(tmp_path), Traffic()
    url = await server.start()
    async with (
        Client(url, credential=server.credential, owner_id="ada", jitter=lambda: 0.0) as writer,
        Client(url, credential=server.credential, owner_id="ada", jitter=lambda: 0.0) as reader,
        asyncio.timeout(3 * PATIENCE),
    ):
        writing, reading = asyncio.create_task(traffic.write(writer)), asyncio.create_task(traffic.read(reader))
        for _ in range(2):
            traffic.up.set()
            await traffic.wait_for(10)
            traffic.up.clear()
            await server.kill()
            await server.start()
        traffic.ending = True
        traffic.up.set()
        await writing
        await reading
    await server.kill()
    assert len(traffic.received) == len(set(traffic.received))
    assert set(traffic.acknowledged) <= set(traffic.received)


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
async def test_changing_a_setting_keeps_versions_and_notifies_listeners(tmp_path: Path) -> None:
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
