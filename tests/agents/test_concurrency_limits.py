"""Nobody who asks for much keeps the others waiting."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from clew.access import Principal
from clew.agents.runs.concurrency_limits import PRESENT, RUNNING, ConcurrencyLimits
from clew.agents.runs.requests import request_draft
from clew.clock import ManualClock
from clew.tools.tool import Effects, Tool, tool
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import NotNow
from tests.agents.runtimes import Running, running
from tests.agents.whole_runs import answer_of, hire


class Gate:
    """A tool that ends when it is let, and how many run."""

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


async def test_a_session_has_a_limit_and_others_are_served_meanwhile(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    gate = Gate()
    async with running(trail, clock, me, [{"say": "Here."}], tools=[gate.as_tool()]) as run:
        await ask(run, PRESENT + 20, "session:greedy")
        for _ in range(RUNNING):
            await gate.entered.acquire()
        await hire(run)
        assert answer_of(await run.say("hello", agent="clerk")).text == "Here.", "models have a queue of their own"
        await ask(run, 1, "session:modest", tool="no-such")
        await run.until(Selector(schema_name=run.flow.response, all_tags=("session:modest",)))
        assert gate.most == RUNNING
        gate.opened.set()
        await run.until(Selector(schema_name=run.flow.response, all_tags=("session:greedy",)), PRESENT)
        clock.advance(seconds=2)
        done = await run.until(Selector(schema_name=run.flow.response, all_tags=("session:greedy",)), PRESENT + 20)
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


async def test_a_call_over_the_limit_is_refused_and_a_finished_one_makes_room() -> None:
    seats, inside, leave = ConcurrencyLimits(running=1, present=2), asyncio.Event(), asyncio.Event()

    async def sit() -> None:
        async with seats.taken(("a", "b")):
            inside.set()
            await leave.wait()

    first = asyncio.create_task(sit())
    await inside.wait()
    second = asyncio.create_task(sit())
    await asyncio.sleep(0)
    with pytest.raises(NotNow):
        async with seats.taken(("b",)):
            raise AssertionError("there is no seat")
    async with seats.taken(("c",)):
        leave.set()
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    async with seats.taken(("a", "b")):
        pass
