"""The worker pool: a session with many calls does not block the others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.runs.call_limits import WORK_LANE, CallLimits, read_loads
from clew.agents.runs.requests import request_draft
from clew.clock import ManualClock
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail import open_trail
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import PATIENCE, Running, running
from tests.agents.whole_runs import answer_of, hire

RUNNING = CallLimits().session
MANY = 50
SMALL = CallLimits(tools=4, session=2)


class Gate:
    """A tool that waits for a permission to end, and counts its running calls."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.inside = self.most = 0
        self.entered = asyncio.Semaphore(0)

    def as_tool(self) -> Tool:
        @tool(effects=Effects(reads_only=True))
        async def hold() -> str:
            """Wait until it is let."""
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.entered.release()
            await self.opened.wait()
            self.inside -= 1
            return "held"

        return hold


async def ask(run: Running, number: int, *tags: str, by: Principal | None = None, tool: str = "hold") -> None:
    drafts = [
        request_draft(run.flow, tool, {}, request_id=f"{tags}-{at}", requested_by="", tags=tags) for at in range(number)
    ]
    await run.trail.records.create_many(drafts, by=by or run.me)


async def test_a_session_has_a_limit_and_does_not_block_others(trail: Trail, clock: ManualClock, me: Principal) -> None:
    gate = Gate()
    async with running(trail, clock, me, [{"say": "Here."}], tools=[gate.as_tool()]) as run:
        await ask(run, MANY, "session:greedy")
        for _ in range(RUNNING):
            await gate.entered.acquire()
        await hire(run)
        assert answer_of(await run.say("hello", agent="clerk")).text == "Here.", "models have a queue of their own"
        await ask(run, 1, "session:modest", tool="no-such")
        await run.until(Selector(schema_name=run.flow.response, all_tags=("session:modest",)))
        assert gate.most == RUNNING
        gate.opened.set()
        done = await run.until(Selector(schema_name=run.flow.response, all_tags=("session:greedy",)), MANY)
        assert {each.context["status"] for each in done} == {"success"}
        assert gate.most == RUNNING


@pytest.mark.req("SYL-67")
async def test_the_conversations_of_one_team_share_the_limit_of_its_session(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    gate = Gate()
    async with running(trail, clock, me, [{"say": "Here."}], tools=[gate.as_tool()]) as run:
        for task in range(RUNNING):
            await ask(run, 2, f"session:team.task-{task}.1.engineer")
        for _ in range(RUNNING):
            await gate.entered.acquire()
        await ask(run, 1, "session:modest", tool="no-such")
        await run.until(Selector(schema_name=run.flow.response, all_tags=("session:modest",)))
        assert gate.most == RUNNING
        gate.opened.set()
        await run.until(Selector(schema_name=run.flow.response), 2 * RUNNING + 1)
        assert gate.most == RUNNING


async def test_many_sessions_of_one_writer_share_its_limit(trail: Trail, clock: ManualClock, me: Principal) -> None:
    gate = Gate()
    other = msgspec.structs.replace(me, agent_id="mallory")
    async with running(trail, clock, me, [{"say": "Here."}], tools=[gate.as_tool()]) as run:
        for at in range(RUNNING + 4):
            await ask(run, 1, f"session:s{at}", by=other)
        for _ in range(RUNNING):
            await gate.entered.acquire()
        await ask(run, 1, "session:mine")
        await gate.entered.acquire()
        assert gate.most == RUNNING + 1
        gate.opened.set()
        await run.until(Selector(schema_name=run.flow.response), RUNNING + 5)


class Order:
    """A tool that records its callers; with one seat in the pool, one call at a time."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def as_tool(self) -> Tool:
        @tool(effects=Effects(reads_only=True))
        async def note(ctx: ToolContext) -> str:
            """Note the session."""
            self.called.append(ctx.by.session or "")
            return "noted"

        return note


async def wait_in_line(run: Running, count: int) -> None:
    """Return when this number of calls waits in the queue of tools."""
    async with asyncio.timeout(PATIENCE):
        while dict(await read_loads(run.trail, by=run.me))["tools"].waiting < count:
            await asyncio.sleep(0)


@pytest.mark.req("SYL-67")
async def test_sessions_take_turns_and_the_lane_of_the_user_overtakes(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    gate, order = Gate(), Order()
    limits = CallLimits(tools=1, session=1)
    async with running(trail, clock, me, [], tools=[gate.as_tool(), order.as_tool()], limits=limits) as run:
        await ask(run, 1, "session:first")
        await gate.entered.acquire()
        for name, count in (("a", 6), ("b", 3), ("c", 3)):
            await ask(run, count, f"session:{name}", WORK_LANE, tool="note")
        await ask(run, 2, "session:chat", tool="note")
        await wait_in_line(run, 14)
        gate.opened.set()
        await run.until(Selector(schema_name=run.flow.response), 15)
    assert order.called == ["chat", "chat", *"abc", *"abc", *"abc", *"aaa"]


@pytest.mark.req("SYL-67")
async def test_the_limits_hold_over_two_runtimes_and_a_seat_that_ends_in_one_wakes_the_other(
    tmp_path: Path, clock: ManualClock, me: Principal
) -> None:
    gate = Gate()
    first = await open_trail(f"sqlite://{tmp_path / 'trail.db'}", clock)
    second = await open_trail(f"sqlite://{tmp_path / 'trail.db'}", clock)
    parts: dict[str, Any] = {"tools": [gate.as_tool()], "limits": SMALL}
    async with running(first, clock, me, [], **parts) as run, running(second, clock, me, [], **parts):
        for name in "abcd":
            await ask(run, 3, f"session:{name}")
        for _ in range(SMALL.tools - SMALL.tools // 8):
            await gate.entered.acquire()
        load = dict(await read_loads(first, by=me))["tools"]
        gate.opened.set()
        await run.until(Selector(schema_name=run.flow.response), 12)
        assert gate.most == SMALL.tools
        assert max(each.running for each in load.groups) <= SMALL.session
    await first.close()
    await second.close()


@pytest.mark.req("SYL-67")
async def test_work_cannot_take_the_last_seats_of_the_user(trail: Trail, clock: ManualClock, me: Principal) -> None:
    gate = Gate()
    limits = CallLimits(tools=8, session=8)
    async with running(trail, clock, me, [], tools=[gate.as_tool()], limits=limits) as run:
        await ask(run, 8, "session:a", WORK_LANE)
        await ask(run, 8, "session:b", WORK_LANE)
        for _ in range(7):
            await gate.entered.acquire()
        await ask(run, 1, "session:chat", tool="no-such")
        await run.until(Selector(schema_name=run.flow.response, all_tags=("session:chat",)))
        assert gate.most == 7
        gate.opened.set()
        await run.until(Selector(schema_name=run.flow.response), 17)
