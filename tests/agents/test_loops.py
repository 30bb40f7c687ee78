"""Runs that start one another end at the limit, in every constellation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clew.access import Principal
from clew.agents.runs import run_limits
from clew.agents.runs.run_limits import MAX_HOPS, begun
from clew.agents.runs.workflow_runner import read_workflow
from clew.agents.runtime import CONCURRENCY
from clew.clock import ManualClock
from clew.context.definition import definition_of
from clew.errors import InvalidInput
from clew.tools.tool import Effects, tool
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import ConsumerState
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import find_hop, find_root, hop_tags, inherited_tags
from tests.agents.runtimes import PATIENCE, Running, running

STEP = {"id": "a", "tool": "count", "input": {}}
SAYS: list[dict[str, Any]] = [{"say": "Yes."}]


@tool(effects=Effects(reads_only=True))
async def count() -> str:
    """Count."""
    return "one"


async def write(run: Running, schema: str, context: dict[str, Any], *tags: str) -> Breadcrumb:
    draft = Draft(title="A trigger", schema_name=schema, context=context, tags=tags)
    return await run.trail.records.create(draft, by=run.me)


async def answer(run: Running, author: str, *tags: str, status: str = "done") -> Breadcrumb:
    context = {"message": "go", "creator": {"type": "agent", "agent_id": author}, "status": status}
    return await write(run, run.flow.answer, context, f"agent:{author}", *tags)


async def define(run: Running, name: str, trigger: dict[str, Any], **more: Any) -> None:
    given = {"system_prompt": "x", "capabilities": {"tools": []}, "context_trigger": trigger, **more}
    await run.define(run.flow.agent, agent_id=name, **given)


async def is_idle(run: Running, state: ConsumerState) -> bool:
    """Whether a consumer has nothing to do. It does not handle events that are not addressed to it."""
    meant, _ = await run.trail.log.read(state.cursor, by=run.me, selector=state.consumer.selector, limit=1)
    return not (state.pending or state.claimed or meant)


async def settle(run: Running, clock: ManualClock) -> None:
    """Until no consumer has anything left to do. A call without a seat waits until the clock advances."""
    async with asyncio.timeout(PATIENCE):
        while True:
            head = await run.trail.log.head()
            states = await run.trail.deliveries.consumers(by=run.me)
            if all([await is_idle(run, each) for each in states]):
                if head == await run.trail.log.head():
                    return
            elif not any(each.claimed for each in states):
                clock.advance(seconds=0.3)
            await run.trail.log.wait(head, 0.05)


async def test_a_workflow_is_never_started_by_its_own_result(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with running(trail, clock, me, SAYS, tools=[count]) as run:
        trigger = {"schema_name": run.flow.workflow_result}
        await run.define(run.flow.workflow, workflow_id="w", trigger=trigger, steps=[STEP])
        await write(run, run.flow.workflow_result, {"workflow_id": "x", "status": "success", "steps": {}})
        await run.until(Selector(schema_name=run.flow.workflow_result, all_tags=("workflow:w",)))
        await settle(run, clock)
        results = await run.written(None, run.flow.workflow_result)
        assert [each.context["workflow_id"] for each in results] == ["x", "w"]


async def test_two_workflows_that_start_each_other_end_with_one_result_that_says_why(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, SAYS, tools=[count]) as run:
        for one, other in (("a", "b"), ("b", "a")):
            trigger = {"schema_name": run.flow.workflow_result, "all_tags": [f"workflow:{other}"]}
            await run.define(run.flow.workflow, workflow_id=one, trigger=trigger, steps=[STEP])
        first = {"workflow_id": "a", "status": "success", "steps": {}}
        await write(run, run.flow.workflow_result, first, "workflow:a")
        await run.until(Selector(schema_name=run.flow.workflow_result, all_tags=(f"hop:{MAX_HOPS}",)))
        await settle(run, clock)
        results = await run.written(None, run.flow.workflow_result)
        assert [find_hop(each) for each in results] == [0, 0, *range(1, MAX_HOPS + 1)]
        assert len({find_root(each) for each in results[1:]}) == 1
        assert results[-1].context["status"] == "error"
        assert f"limit of {MAX_HOPS} runs that start one another" in results[-1].context["reason"]


async def test_workflows_on_each_others_responses_start_a_bounded_number_of_runs(
    trail: Trail, clock: ManualClock, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_limits, "MAX_RUNS", 10)
    steps = [{**STEP, "id": f"s{at}", "parallel_group": "g"} for at in range(4)]
    async with running(trail, clock, me, SAYS, tools=[count]) as run:
        for name, tags in (("a", ["seed:x", "consumer:workflow:b"]), ("b", ["consumer:workflow:a"])):
            trigger = {"schema_name": run.flow.response, "any_tags": tags}
            await run.define(run.flow.workflow, workflow_id=name, trigger=trigger, steps=steps)
        await write(run, run.flow.response, {"request_id": "q", "tool": "x", "status": "success"}, "seed:x")
        told = await run.until(Selector(schema_name=run.flow.workflow_result, all_tags=(f"hop:{MAX_HOPS}",)))
        await settle(run, clock)
        results = await run.written(None, run.flow.workflow_result)
        ended = [each for each in results if "did not start" in each.context.get("reason", "")]
        assert "limit of 10 runs from one message" in told[0].context["reason"]
        assert 1 <= len(ended) <= 2, "once for each workflow"
        assert len(results) - len(ended) <= 10 + 2 * CONCURRENCY


async def test_agents_that_answer_each_other_end_with_one_word_on_why(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, SAYS) as run:
        for one, other in (("ping", "pong"), ("pong", "ping")):
            await define(run, one, {"schema_name": run.flow.answer, "all_tags": [f"agent:{other}"]})
        await answer(run, "ping")
        (stopped,) = await run.until(Selector(schema_name=run.flow.stopped))
        await settle(run, clock)
        assert len(await run.written(None, run.flow.stopped)) == 1
        assert len(await run.written(None, run.flow.answer)) == 1 + MAX_HOPS
        assert "runs that start one another" in stopped.context["detail"]
        assert stopped.context["how_to_go_on"]


async def test_an_agent_is_not_started_by_its_own_answers_nor_by_runs_that_were_ended(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, SAYS) as run:
        await define(run, "echo", {"schema_name": run.flow.answer})
        await answer(run, "me", status="stopped")
        await answer(run, "me", status="cancelled")
        await answer(run, "echo")
        await answer(run, "me", "run:r1")
        await run.until(Selector(schema_name=run.flow.answer, all_tags=("hop:1",)))
        await settle(run, clock)
        mine = Selector(schema_name=run.flow.answer, all_tags=("agent:echo",))
        assert len((await trail.records.list(mine, by=me)).items) == 2  # the one above, and the one it gave
        await answer(run, "me", "consumer:echo", status="stopped")
        await run.until(mine, 3)


async def test_a_budget_without_a_session_holds_over_all_runs_that_came_of_one(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, SAYS) as run:
        for one, other in (("ping", "pong"), ("pong", "ping")):
            trigger = {"schema_name": run.flow.answer, "all_tags": [f"agent:{other}"]}
            await define(run, one, trigger, budget={"calls": 2})
        await answer(run, "ping", "run:first")
        await run.until(Selector(schema_name=run.flow.stopped))
        await settle(run, clock)
        budgets = await run.written(None, run.flow.budget)
        assert sorted(each.context["name"] for each in budgets) == ["ping/first", "pong/first"]
        assert all(each.context["spent"]["calls"] <= 2 for each in budgets)


@pytest.mark.parametrize(
    "trigger", [{}, {"except_schemas": ["note.v1"]}, {"context_match": [{"path": "x", "op": "ne", "value": 1}]}]
)
def test_a_trigger_that_means_everything_is_refused(trigger: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="matches everything"):
        definition_of({"agent_id": "a", "context_trigger": trigger})
    with pytest.raises(InvalidInput, match="matches everything"):
        definition_of({"agent_id": "a", "subscriptions": {"selectors": [{**trigger, "role": "trigger"}]}})
    definition_of({"agent_id": "a", "subscriptions": {"selectors": [{**trigger, "role": "context"}]}})


async def test_a_workflow_on_everything_is_refused_and_runs_nothing(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, SAYS, tools=[count]) as run:
        record = await run.define(run.flow.workflow, workflow_id="w", trigger={}, steps=[STEP])
        await write(run, "note.v1", {"content": "one note"})
        await settle(run, clock)
        assert await run.written(None, run.flow.workflow_result, run.flow.request) == []
        with pytest.raises(InvalidInput, match="matches everything"):
            read_workflow(record)


async def test_all_records_of_a_run_inherit_its_origin(trail: Trail, clock: ManualClock, me: Principal) -> None:
    first = await trail.records.create(Draft(title="x", context={}, tags=("run:r", "session:s")), by=me)
    assert hop_tags(first) == ("hop:1", "root:r")
    (draft, other) = begun([Draft(title="y", context={}), Draft(title="z", context={})], first)
    assert draft.tags == ("hop:1", "root:r", "begun:r")
    assert other.tags == ("hop:1", "root:r")
    second = await trail.records.create(Draft(title="z", context={}, tags=(*draft.tags, "run:q")), by=me)
    assert inherited_tags(second) == ("hop:1", "root:r", "run:q")
    assert hop_tags(second) == ("hop:2", "root:r")
    own = await trail.records.create(Draft(title="m", context={}, tags=("hop:x", "hop:²")), by=me)
    assert (find_hop(own), hop_tags(own), find_root(own)) == (0, (), own.id)
