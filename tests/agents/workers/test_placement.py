"""Runs at a place: only workers that announce it call their tools."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.agents.workers.placement import GRACE
from clew.agents.workers.worker_records import LIFETIME, WorkerRecords, list_workers
from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.tools.tool import Effects, Tool, tool
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import running
from tests.agents.whole_runs import CLERK, hire
from tests.agents.workers.test_roles import TOOLS_ONLY, ask
from tests.faults.processes import eventually, is_settled


def where(name: str) -> Tool:
    @tool(name="where", effects=Effects(reads_only=True))
    async def tell() -> str:
        """Tell where this runs."""
        return name

    return tell


async def announce(trail: Trail, clock: ManualClock, me: Principal, *tags: str) -> WorkerRecords:
    records = WorkerRecords(trail, clock, by=me, roles=["tools"])
    await records.announce(tags)
    return records


async def test_a_call_is_made_by_the_worker_that_has_the_place(trail: Trail, clock: ManualClock, me: Principal) -> None:
    await announce(trail, clock, me, "place:shop")
    async with (
        running(trail, clock, me, [], tools=[where("anywhere")], roles=TOOLS_ONLY) as run,
        running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=("place:shop",)),
    ):
        await ask(run, "where", "place:shop")
        (answered,) = await run.until(Selector(schema_name=run.flow.response))
    assert (answered.context["output"], "place:shop" in answered.tags) == ("shop", True)


async def test_a_message_to_a_place_has_the_tools_of_its_run_called_there(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    await announce(trail, clock, me, "place:shop")
    script = [{"call": {"where": {}}}, {"say": "There."}]
    agents = frozenset({"context", "agents", "tools"})
    async with (
        running(trail, clock, me, script, tools=[where("anywhere")], roles=agents) as run,
        running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=("place:shop",)),
    ):
        await hire(run, capabilities={"tools": ["where"]})
        await run.say("Where?", agent=CLERK, place="shop")
        answered = [each for each in await run.written(None, run.flow.response) if each.context["tool"] == "where"]
    assert [each.context.get("output") for each in answered] == ["shop"]


async def test_a_call_at_a_place_that_no_live_worker_has_is_refused_and_not_made_later(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [], tools=[where("anywhere")], roles=TOOLS_ONLY) as run:
        async with running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=("place:shop",)):
            """The queue of the place is there from now on."""
        await ask(run, "where", "place:shop")
        clock.advance(seconds=GRACE.total_seconds() + 1)
        (answered,) = await run.until(Selector(schema_name=run.flow.response))
        assert answered.context["status"] == "error"
        assert "clew up --role tools --tag place:shop" in answered.context["error"]
        async with running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=("place:shop",)):
            await eventually(lambda: is_settled(trail, "tools-runner@shop", me), "the worker has seen the call")
        assert len(await run.written(None, run.flow.response)) == 1


async def test_a_message_to_a_place_without_a_worker_is_refused_at_the_door(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [{"say": "Yes."}]) as run:
        await hire(run)
        with pytest.raises(InvalidInput, match="no live worker has the place 'shop'"):
            await run.talk.send("hello", by=me, place="shop")
        await announce(trail, clock, me, "place:shop")
        sent = await run.talk.send("hello", by=me, place="shop")
        assert "place:shop" in (await trail.records.get(sent.id, by=me)).tags


async def test_a_worker_is_listed_until_it_ends_or_is_silent_for_too_long(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    records = await announce(trail, clock, me, "place:shop")
    (before,) = await list_workers(trail, clock, by=me)
    assert (before.roles, before.tags, before.state, before.held) == (("tools",), ("place:shop",), "working", ())
    await records.write("draining")
    (after,) = await list_workers(trail, clock, by=me)
    assert (after.name, after.state) == (before.name, "draining")
    clock.advance(seconds=LIFETIME.total_seconds() + 1)
    assert await list_workers(trail, clock, by=me) == []
    await records.write()
    assert len(await list_workers(trail, clock, by=me)) == 1
    await records.withdraw()
    assert await list_workers(trail, clock, by=me) == []
