"""Locks on files: writers one at a time, readers together, and no lock remains."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import Busy
from clew.team.runtime.file_locks import EVERYTHING, LOCK, FileLocks, with_locks
from clew.tools.content import GuidedContent, as_content
from clew.tools.files.folder import WorkingFolder
from clew.tools.tool import Tool, ToolContext
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import PATIENCE


@pytest.fixture
async def locks(trail: Trail, clock: ManualClock, me: Principal) -> FileLocks:
    await bootstrap(trail, me)
    return FileLocks(trail, clock, by=me)


async def until(locks: FileLocks, count: int) -> None:
    """Return when there are so many locks."""
    async with asyncio.timeout(PATIENCE):
        while len(await locks.read()) != count:
            await asyncio.sleep(0)


@pytest.mark.req("SYL-66")
async def test_two_sessions_write_one_file_one_after_the_other(locks: FileLocks) -> None:
    inside, order, let = 0, [], asyncio.Event()

    async def write(session: str) -> None:
        nonlocal inside
        async with locks.hold("write", ["maths.py"], session=session, task="merge"):
            inside += 1
            assert inside == 1
            order.append(session)
            await let.wait()
            inside -= 1

    async with asyncio.TaskGroup() as group:
        group.create_task(write("a"))
        await until(locks, 1)
        group.create_task(write("b"))
        await until(locks, 2)
        group.create_task(write("c"))
        await until(locks, 3)
        assert [(each.session, each.waits_for) for each in await locks.read()] == [
            ("a", ()),
            ("b", ("a",)),
            ("c", ("a", "b")),
        ]
        let.set()
    assert order == ["a", "b", "c"]
    assert list(await locks.read()) == []


async def test_a_cancelled_call_leaves_no_lock(locks: FileLocks) -> None:
    async def hold() -> None:
        async with locks.hold("write", ["maths.py"], session="a", task="merge"):
            await asyncio.Event().wait()

    for turns in range(20):
        holding = asyncio.create_task(hold())
        for _ in range(turns):
            await asyncio.sleep(0)
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
    assert await locks.read() == []


@pytest.mark.req("SYL-66")
async def test_readers_proceed_together_and_a_writer_waits_for_them(locks: FileLocks) -> None:
    async with (
        locks.hold("read", ["maths.py"], session="a", task="open"),
        locks.hold("read", [EVERYTHING], session="b", task="open"),
    ):
        with pytest.raises(Busy, match=r"open of session a is reading maths\.py"):
            async with locks.hold("write", ["maths.py"], session="c", task="merge", patience=0.0):
                raise AssertionError("two sessions read it")
        async with locks.hold("read", ["maths.py"], session="c", task="open"):
            pass


async def test_locks_on_other_files_do_not_wait_and_a_folder_covers_its_files(locks: FileLocks) -> None:
    async with locks.hold("write", ["src"], session="a", task="merge"):
        async with locks.hold("write", ["src.py"], session="b", task="merge", patience=0.0):
            pass
        with pytest.raises(Busy, match="is writing src/x"):
            async with locks.hold("write", ["docs/a", "src/x"], session="b", task="merge", patience=0.0):
                raise AssertionError("the folder is locked")


@pytest.mark.req("SYL-66")
async def test_two_that_need_the_same_files_in_another_order_do_not_wait_for_each_other(locks: FileLocks) -> None:
    async def write(session: str, *paths: str) -> None:
        async with locks.hold("write", paths, session=session, task="merge"):
            await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for at in range(10):
            group.create_task(write(f"s{at}", *(("one", "two") if at % 2 else ("two", "one"))))
    assert await locks.read() == []


@pytest.mark.req("SYL-66")
async def test_a_dead_process_and_a_lease_that_ended_hold_nothing(
    trail: Trail, clock: ManualClock, me: Principal, locks: FileLocks
) -> None:
    async with locks.hold("write", ["a.py"], session="a", task="merge"):
        (record,) = (await trail.records.list(Selector(schema_name=LOCK), by=me)).items
        host = str(record.context["worker"]).rpartition(":")[0].rpartition(":")[0]
        await leave(trail, me, {**record.context, "paths": ["b.py"], "worker": f"{host}:999999999:1"})
        await leave(trail, me, {**record.context, "paths": ["c.py"], "worker": "elsewhere:1:1"})
        with pytest.raises(Busy, match=r"c\.py"):
            async with locks.hold("write", ["b.py", "c.py"], session="b", task="merge", patience=0.0):
                raise AssertionError("c.py is locked on another machine")
        clock.advance(minutes=16)
        async with locks.hold("write", ["b.py", "c.py"], session="b", task="merge", patience=0.0):
            pass


async def leave(trail: Trail, me: Principal, context: dict[str, Any]) -> None:
    await trail.records.create(Draft(title="Lock", schema_name=LOCK, context=context, embed="never"), by=me)


@pytest.mark.req("SYL-66")
async def test_two_processes_lock_over_one_trail(tmp_path: Path, clock: ManualClock, me: Principal) -> None:
    first = await open_trail(f"sqlite://{tmp_path / 'trail.db'}", clock)
    second = await open_trail(f"sqlite://{tmp_path / 'trail.db'}", clock)
    await bootstrap(first, me)
    done = []

    async def write(trail: Trail, session: str) -> None:
        async with FileLocks(trail, clock, by=me).hold("write", ["maths.py"], session=session, task="merge"):
            done.append(session)

    async with asyncio.timeout(PATIENCE):
        async with FileLocks(first, clock, by=me).hold("write", ["maths.py"], session="a", task="merge"):
            waiting = asyncio.create_task(write(second, "b"))
            await until(FileLocks(first, clock, by=me), 2)
            assert done == []
        await waiting
    assert done == ["b"]
    await first.close()
    await second.close()


@pytest.mark.req("SYL-66")
async def test_the_tools_that_write_hold_the_lock_of_their_file(
    tmp_path: Path, locks: FileLocks, me: Principal
) -> None:
    seen: list[tuple[str, ...]] = []

    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        seen.extend(each.paths for each in await locks.read())
        return as_content("written")

    plain = Tool(name="write-file", description="Write.", call=call, check=dict, schema={})
    (tool,) = with_locks([plain], locks, WorkingFolder(tmp_path), ["write-file"])
    context = ToolContext(by=msgspec.structs.replace(me, session="chat"))
    await tool.call({"file_path": "./maths.py"}, context)
    assert seen == [("maths.py",)]
