"""Runs at a place: only workers that announce it call their tools."""

from __future__ import annotations

import asyncio

import pytest

from clew.access import Principal
from clew.agents.workers import placement
from clew.agents.workers.placement import PlaceWatch
from clew.agents.workers.worker_records import WorkerRecords
from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.tools.tool import Effects, Tool, tool
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.event import Consumer, ConsumerState
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import PATIENCE, Running, running
from tests.agents.whole_runs import CLERK, hire
from tests.agents.workers.test_roles import TOOLS_ONLY, ask
from tests.faults.processes import eventually, is_settled

SHOP, AT_SHOP = ("place:shop",), "worker-place:shop"
QUEUE = "tools-runner@shop"


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


def watch(run: Running) -> PlaceWatch:
    return run.runtime._place_watch()


async def responses(run: Running) -> list[Breadcrumb]:
    return await run.written(None, run.flow.response)


@pytest.fixture
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "GRACE", 0.0)


async def test_a_call_is_made_by_the_worker_that_has_the_place(trail: Trail, clock: ManualClock, me: Principal) -> None:
    await announce(trail, clock, me, *SHOP)
    async with (
        running(trail, clock, me, [], tools=[where("anywhere")], roles=TOOLS_ONLY) as run,
        running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=SHOP),
    ):
        await ask(run, "where", AT_SHOP)
        (answered,) = await run.until(Selector(schema_name=run.flow.response))
        await eventually(lambda: is_settled(trail, "tools-runner", me), "nobody looks at the call any more")
    assert (answered.context["output"], AT_SHOP in answered.tags) == ("shop", True)


async def test_a_message_to_a_place_has_the_tools_of_its_run_called_there(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    await announce(trail, clock, me, *SHOP)
    script = [{"call": {"where": {}}}, {"say": "There."}]
    agents = frozenset({"context", "agents", "tools"})
    async with (
        running(trail, clock, me, script, tools=[where("anywhere")], roles=agents) as run,
        running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=SHOP),
    ):
        await hire(run, capabilities={"tools": ["where"]})
        await run.say("Where?", agent=CLERK, place="shop")
        answered = [each for each in await run.written(None, run.flow.response) if each.context["tool"] == "where"]
    assert [each.context.get("output") for each in answered] == ["shop"]


async def test_a_tag_that_a_user_may_have_steers_nothing(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with running(trail, clock, me, [], tools=[where("anywhere")], roles=TOOLS_ONLY) as run:
        await ask(run, "where", "place:home")
        (answered,) = await run.until(Selector(schema_name=run.flow.response))
    assert answered.context["output"] == "anywhere"


async def test_a_call_at_a_place_that_no_worker_ever_had_is_refused_at_once_and_not_made_later(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [], tools=[where("anywhere")], roles=TOOLS_ONLY) as run:
        await ask(run, "where", AT_SHOP)
        (answered,) = await run.until(Selector(schema_name=run.flow.response))
        assert answered.context["status"] == "error"
        assert "clew up --role tools --tag place:shop" in answered.context["error"]
        async with running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=SHOP):
            await eventually(lambda: is_settled(trail, QUEUE, me), "the worker has looked")
        assert len(await responses(run)) == 1


async def test_a_call_made_before_the_first_worker_of_its_place_is_refused_although_that_one_lives(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [], tools=[where("anywhere")], roles=frozenset({"context"})) as asking:
        await ask(asking, "where", AT_SHOP)
        async with running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=SHOP) as run:
            await announce(trail, clock, me, *SHOP)
            (answered,) = await run.until(Selector(schema_name=run.flow.response))
    assert answered.context["error_type"] == "placement"


@pytest.mark.parametrize("earlier", [1, 2])
async def test_a_call_that_is_made_while_the_first_workers_of_its_place_start_has_one_response(
    trail: Trail, clock: ManualClock, me: Principal, monkeypatch: pytest.MonkeyPatch, earlier: int
) -> None:
    """The first worker starts before the call, the second one after it. Each registers the queue when the other one is
    about to, in both orders."""
    register, numbers, states = trail.deliveries.register, iter((1, 2)), []
    are_there = {1: asyncio.Event(), 2: asyncio.Event()}
    have_registered = {1: asyncio.Event(), 2: asyncio.Event()}
    has_response = asyncio.Event()

    async def register_in_order(consumer: Consumer, *, by: Principal) -> ConsumerState:
        if consumer.name != QUEUE:
            return await register(consumer, by=by)
        if not (mine := next(numbers, 0)):
            return states[-1]
        are_there[mine].set()
        await are_there[2].wait()
        if mine != earlier:
            await have_registered[earlier].wait()
        states.append(await register(consumer, by=by))
        have_registered[mine].set()
        await have_registered[3 - mine].wait()
        return states[-1]

    @tool(name="where", effects=Effects(reads_only=True))
    async def late() -> str:
        """Answer after the others have checked the call."""
        await eventually(lambda: is_settled(trail, "tools-runner", me), "the others have looked")
        return "shop"

    async def start_first() -> None:
        async with running(trail, clock, me, [], tools=[late], roles=TOOLS_ONLY, worker_tags=SHOP):
            await has_response.wait()

    monkeypatch.setattr(trail.deliveries, "register", register_in_order)
    async with (
        asyncio.timeout(PATIENCE),
        running(trail, clock, me, [], tools=[], roles=frozenset({"context"})) as asking,
    ):
        first = asyncio.create_task(start_first())
        await are_there[1].wait()
        await ask(asking, "where", AT_SHOP)
        async with running(trail, clock, me, [], tools=[late], roles=TOOLS_ONLY, worker_tags=SHOP) as run:
            await run.until(Selector(schema_name=run.flow.response))
            await eventually(lambda: is_settled(trail, "tools-runner", me), "the others have looked")
            await eventually(lambda: is_settled(trail, QUEUE, me), "the workers have looked")
            has_response.set()
            await first
        assert len(await responses(asking)) == 1


@pytest.mark.usefixtures("no_grace")
async def test_calls_at_a_place_whose_worker_has_gone_are_refused_once(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [], tools=[where("anywhere")], roles=TOOLS_ONLY) as run:
        async with running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=SHOP):
            """From now on the queue of the place exists."""
        await ask(run, "where", AT_SHOP)
        await asyncio.gather(watch(run).look(), watch(run).look())
        await run.until(Selector(schema_name=run.flow.response))
        async with running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=SHOP):
            await eventually(lambda: is_settled(trail, QUEUE, me), "the worker has looked")
        assert [each.context["error_type"] for each in await responses(run)] == ["placement"]


async def test_an_old_call_waits_for_a_worker_of_its_place_that_starts_anew(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [], tools=[where("anywhere")], roles=TOOLS_ONLY) as run:
        async with running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=SHOP):
            """From now on the queue of the place exists."""
        await ask(run, "where", AT_SHOP)
        clock.advance(hours=5)
        looking = watch(run)
        for _ in range(3):
            await looking.look()
        assert await responses(run) == [], "it was refused by its age"
        async with running(trail, clock, me, [], tools=[where("shop")], roles=TOOLS_ONLY, worker_tags=SHOP):
            (answered,) = await run.until(Selector(schema_name=run.flow.response))
    assert answered.context["output"] == "shop"


@pytest.mark.usefixtures("no_grace")
@pytest.mark.parametrize("end", ["draining", "silent"])
async def test_a_call_under_way_is_not_refused_while_its_worker_drains_or_is_thought_dead(
    trail: Trail, clock: ManualClock, me: Principal, end: str
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool(name="where", effects=Effects(reads_only=True))
    async def slow() -> str:
        """Wait."""
        begun.set()
        await may_end.wait()
        return "shop"

    records = await announce(trail, clock, me, *SHOP)
    async with (
        asyncio.timeout(PATIENCE),
        running(trail, clock, me, [], tools=[where("anywhere")], roles=TOOLS_ONLY) as run,
        running(trail, clock, me, [], tools=[slow], roles=TOOLS_ONLY, worker_tags=SHOP),
    ):
        await ask(run, "where", AT_SHOP)
        await begun.wait()
        await (records.write("draining") if end == "draining" else records.withdraw())
        for _ in range(3):
            await watch(run).look()
        assert await responses(run) == []
        may_end.set()
        (answered,) = await run.until(Selector(schema_name=run.flow.response))
        await watch(run).look()
        assert [each.id for each in await responses(run)] == [answered.id]
    assert answered.context["output"] == "shop"


async def test_a_message_to_a_place_without_a_worker_is_refused_at_the_door(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [{"say": "Yes."}]) as run:
        await hire(run)
        with pytest.raises(InvalidInput, match="no live worker has the place 'shop'"):
            await run.talk.send("hello", by=me, place="shop")
        await announce(trail, clock, me, *SHOP)
        sent = await run.talk.send("hello", by=me, place="shop")
        assert AT_SHOP in (await trail.records.get(sent.id, by=me)).tags
