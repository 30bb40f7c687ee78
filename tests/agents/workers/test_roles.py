"""Roles of processes: the events that each claims, and no lost events while a role has no process."""

from __future__ import annotations

import asyncio

import pytest

from clew.access import OWN_CONSUMERS, Principal
from clew.agents.assembly import RuntimeAdditions
from clew.agents.runs.model_hosts import KIND as HOST
from clew.agents.workers.roles import CONSUMERS, EVERY_ROLE, ROLES, read_roles, role_of
from clew.agents.workers.worker_records import KIND as WORKER
from clew.clock import ManualClock
from clew.errors import ConfigError
from clew.team.runtime.team_handlers import RETIRED
from clew.tools.tool import Effects, tool
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Consumer
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import PATIENCE, Running, running
from tests.faults.processes import eventually

TOOLS_ONLY = frozenset({"tools"})


@tool(effects=Effects(reads_only=True))
async def count(to: int = 1) -> str:
    """Count up to a number."""
    return " ".join(str(number) for number in range(1, to + 1))


async def ask(run: Running, name: str = "count", *tags: str) -> None:
    context = {"tool": name, "input": {}, "requestId": "r1"}
    draft = Draft(title="r", schema_name=run.flow.request, tags=("workspace:tools", *tags), context=context)
    await run.trail.records.create(draft, by=run.me)


def test_every_consumer_of_the_runtime_has_a_role_that_exists() -> None:
    assert {role_of(prefix) for prefix in OWN_CONSUMERS} <= set(ROLES)
    assert {prefix for prefix, _ in CONSUMERS} | {f"{WORKER}/", f"{HOST}/"} == set(OWN_CONSUMERS)


def test_roles_are_names_or_lists_of_names_and_none_means_all() -> None:
    assert read_roles(()) == read_roles(["all"]) == read_roles(["tools", "all"]) == EVERY_ROLE
    assert read_roles(["tools,agents", "server"]) == {"tools", "agents", "server"}
    with pytest.raises(ConfigError, match="there is no role 'cook'"):
        read_roles(["cook"])


@pytest.mark.req("RCR-28")
async def test_a_request_waits_for_a_process_that_has_its_role(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with running(trail, clock, me, [], tools=[count], roles=frozenset({"agents"})) as run:
        await ask(run)
        held = await trail.deliveries.claim("tools-runner", by=me, worker="test")
        assert [each.attempt for each in held] == [1], "a process without the role took the request"
        await trail.deliveries.release(held[0], by=me)
        async with running(trail, clock, me, [], tools=[count], roles=TOOLS_ONLY) as other:
            (answered,) = await other.until(Selector(schema_name=run.flow.response))
    assert answered.context["output"] == "1"


async def test_a_drained_runtime_finishes_what_it_holds_and_claims_nothing_more(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool(effects=Effects(reads_only=True))
    async def slow() -> str:
        """Wait."""
        begun.set()
        await may_end.wait()
        return "done"

    async with asyncio.timeout(PATIENCE), running(trail, clock, me, [], tools=[slow, count], roles=TOOLS_ONLY) as run:
        await ask(run, "slow")
        await begun.wait()
        assert [each.consumer for each in run.runtime.held] == ["tools-runner"]
        draining = asyncio.create_task(run.runtime.drain(PATIENCE))
        await asyncio.sleep(0)
        await ask(run)
        may_end.set()
        assert await draining
        assert run.runtime.held == []
        assert [each.context["tool"] for each in await run.written(None, run.flow.response)] == ["slow"]
        left = await trail.deliveries.claim("tools-runner", by=me, worker="test")
        assert [each.attempt for each in left] == [1]


async def test_unfinished_claims_are_released_without_an_attempt(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    begun = asyncio.Event()

    @tool(effects=Effects(reads_only=True))
    async def endless() -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    async with asyncio.timeout(PATIENCE), running(trail, clock, me, [], tools=[endless]) as run:
        await ask(run, "endless")
        await begun.wait()
        assert not await run.runtime.drain(0.0)
    left = await trail.deliveries.claim("tools-runner", by=me, worker="test")
    assert [each.attempt for each in left] == [1]


async def test_the_consumers_of_a_deleted_agent_are_forgotten_by_a_process_that_does_not_run_it(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [], roles=TOOLS_ONLY) as run:
        trigger = {"schema_name": run.flow.message, "all_tags": ["consumer:clerk"]}
        agent = await run.define(run.flow.agent, agent_id="clerk", system_prompt="Help.", context_trigger=trigger)

        async def has_consumers() -> bool:
            return bool(await consumers_of(trail, me, "clerk"))

        async def has_none() -> bool:
            return not await has_consumers()

        await eventually(has_consumers, "the agent is known")
        await trail.records.delete(agent.id, by=me)
        await eventually(has_none, "its consumers are gone")


async def consumers_of(trail: Trail, me: Principal, agent: str) -> list[str]:
    return [each.consumer.name for each in await trail.deliveries.consumers(by=me) if agent in each.consumer.name]


async def test_consumers_of_earlier_versions_are_forgotten_at_the_start(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    await trail.deliveries.register(Consumer(name="team/answers"), by=me)
    await trail.deliveries.register(Consumer(name="mine"), by=me)
    async with running(trail, clock, me, [], additions=RuntimeAdditions(retired=RETIRED)):
        names = {each.consumer.name for each in await trail.deliveries.consumers(by=me)}
    assert "team/answers" not in names
    assert "mine" in names


async def test_deferred_records_are_written_when_a_runtime_drains_or_ends(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    flushed = []

    async def flush() -> None:
        flushed.append(len(flushed))

    async with running(trail, clock, me, [], additions=RuntimeAdditions(flush=flush)) as run:
        assert await run.runtime.drain(PATIENCE)
        assert flushed == [0]
    assert flushed == [0, 1]
