"""From a message to an answer, as separate steps on the trail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clew.access import Principal
from clew.agents.conversations.steps import Answered
from clew.agents.runs.prompts import rebuild_prompt
from clew.clock import ManualClock
from clew.tools.tool import Effects, tool
from clew.trail.model.breadcrumb import Change
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import run_tag
from tests.agents.runtimes import Running, running

READS = Effects(reads_only=True)


@tool(effects=READS)
async def count(to: int) -> str:
    """Count up to a number."""
    return " ".join(str(number) for number in range(1, to + 1))


COUNTING: list[dict[str, Any]] = [
    {"user": "count", "say": "Let me see.", "call": {"count": {"to": 3}}, "tools": ["count"]},
    {"expect": "1 2 3", "say": "There are three."},
]


async def define(run: Running, name: str = "counter", **more: Any) -> None:
    """An agent that answers messages addressed to it."""
    trigger = {"schema_name": run.flow.message, "all_tags": [f"consumer:{name}"]}
    given = {"system_prompt": "You count.", "context_trigger": trigger, **more}
    await run.define(run.flow.agent, agent_id=name, **given)


def answer_of(steps: list[Any]) -> Answered:
    (found,) = [step for step in steps if isinstance(step, Answered)]
    return found


@pytest.mark.req("RCR-40")
@pytest.mark.req("RCR-30")
@pytest.mark.req("RCR-25")
async def test_a_message_becomes_an_answer_in_separate_steps_of_one_session(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, COUNTING, tools=[count]) as run:
        await define(run)
        steps = await run.say("please count to three", agent="counter")
        answer = answer_of(steps)
        flow = run.flow
        chain = (flow.message, flow.context, flow.request, flow.response, flow.answer)
        written = await run.written(None, *chain)
        assert answer.text == "There are three."
        assert [each.schema_name for each in written] == [
            flow.message,
            flow.context,
            flow.request,  # to the model
            flow.response,
            flow.request,  # for the tool
            flow.response,
            flow.request,  # to the model
            flow.response,
            flow.answer,
        ]
        assert {each.session_tags for each in written} == {(f"session:{answer.session}",)}
        assert all(run_tag(answer.run) in each.tags for each in written[1:])


@pytest.mark.req("RCR-41")
async def test_the_records_of_a_run_have_the_fields_that_others_rely_on(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, COUNTING, tools=[count]) as run:
        await define(run)
        await run.say("please count to three", agent="counter")
        requests = await run.written(None, run.flow.request)
        responses = await run.written(None, run.flow.response)
        (answer,) = await run.written(None, run.flow.answer)
    asked = requests[1].context
    assert (asked["tool"], asked["input"], asked["requestedBy"]) == ("count", {"to": 3}, "counter")
    told = responses[1].context
    assert (told["request_id"], told["tool"], told["status"], told["output"]) == (
        asked["requestId"],
        "count",
        "success",
        "1 2 3",
    )
    assert told["execution_time_ms"] >= 0
    assert answer.context["creator"] == {"type": "agent", "agent_id": "counter"}
    assert answer.context["tool_requests"] == [requests[1].id]


@pytest.mark.req("RCR-39")
async def test_an_agent_works_from_the_moment_that_its_breadcrumb_is_written_until_it_is_deleted(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    script = [{"user": "hello", "say": "One."}]
    async with running(trail, clock, me, script) as run:
        await define(run)
        # immediately: the runtime has not noticed yet
        assert answer_of(await run.say("hello", agent="counter")).text == "One."
        (made,) = [each for each in await run.written(None, run.flow.agent) if each.context["agent_id"] == "counter"]
        changed = {**made.context, "system_prompt": "You count backwards."}
        await trail.records.update(made.id, Change(context=changed), expect=1, by=me)
        while (found := await run.runtime.parts.registry.find_agent("counter")) and found.version == 1:
            await asyncio.sleep(0)
        await run.say("hello again", agent="counter")
        assert run.model.requests[-1].messages[0].content.startswith("You count backwards.")
        await trail.records.delete(made.id, by=me)
        while any(each.consumer.agent_id == "counter" for each in await trail.deliveries.consumers(by=me)):
            await asyncio.sleep(0)


@pytest.mark.req("BEY-04")
async def test_every_prompt_of_a_run_can_be_had_again_byte_for_byte(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, COUNTING, tools=[count]) as run:
        await define(run)
        await run.say("please count to three", agent="counter")
        flow, sent = run.flow, run.model.requests
    requests = (await trail.records.list(Selector(schema_name=flow.request), by=me, oldest_first=True)).items
    asked = [each for each in requests if each.context["tool"] == "llm"]
    assert len(asked) == len(sent) == 2
    for record, request in zip(asked, sent, strict=True):
        prompt = await rebuild_prompt(trail, flow, record, by=me)
        assert (prompt.messages, prompt.tools) == (request.messages, request.tools)
        selector = Selector(schema_name=flow.response, all_tags=(f"request:{record.context['requestId']}",))
        (response,) = (await trail.records.list(selector, by=me)).items
        assert response.context["output"]["prompt_digest"] == prompt.digest


async def test_the_model_gets_an_error_for_an_unknown_tool(trail: Trail, clock: ManualClock, me: Principal) -> None:
    script = [
        {"user": "count", "call": {"cuont": {"to": 3}}},
        {"expect": "'cuont' does not exist", "say": "I misspelled it."},
    ]
    async with running(trail, clock, me, script, tools=[count]) as run:
        await define(run)
        assert answer_of(await run.say("count", agent="counter")).text == "I misspelled it."


async def test_a_tool_that_the_agent_may_not_call_is_refused(trail: Trail, clock: ManualClock, me: Principal) -> None:
    script = [{"user": "count", "call": {"count": {"to": 3}}}, {"expect": "may not call count", "say": "I may not."}]
    async with running(trail, clock, me, script, tools=[count]) as run:
        await define(run, capabilities={"tools": ["other"]})
        assert answer_of(await run.say("count", agent="counter")).text == "I may not."
        (error,) = await run.written(None, run.flow.error)
    assert "error:permission" in error.tags


@pytest.mark.req("BEY-09")
async def test_a_loop_of_identical_turns_stops_and_says_how_to_go_on(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    script = [{"user": "count", "call": {"count": {"to": 3}}}, *[{"call": {"count": {"to": 3}}}] * 10]
    async with running(trail, clock, me, script, tools=[count]) as run:
        await define(run)
        answer = answer_of(await run.say("count", agent="counter"))
        (stopped,) = await run.written(None, run.flow.stopped)
    assert answer.status == "stopped"
    assert len(run.model.requests) == 3
    assert stopped.context["why"] == "no_progress"
    assert stopped.context["how_to_go_on"]


async def test_a_model_that_fails_for_good_ends_the_run_with_its_reason(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    script = [{"user": "hello", "fault": "auth", "times": 9, "say": "never"}]
    async with running(trail, clock, me, script) as run:
        await define(run)
        answer = answer_of(await run.say("hello", agent="counter"))
    assert answer.status == "stopped"
    assert len(run.model.requests) == 1


@pytest.mark.req("RCR-48")
async def test_an_agent_that_may_calls_another_and_gets_its_answer(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    script = [
        {"user": "big task", "call": {"spawn-agent": {"task": "small task: count", "tools": ["count"]}}},
        {"expect": "a part is done", "say": "All is done."},
        {"user": "small task", "call": {"count": {"to": 2}}},
        {"expect": "1 2", "say": "a part is done"},
    ]
    async with running(trail, clock, me, script, tools=[count]) as run:
        await define(run, capabilities={"can_spawn_agents": True})
        answer = answer_of(await run.say("big task", agent="counter"))
        defined = [each.context["agent_id"] for each in await run.written(None, run.flow.agent)]
    assert answer.text == "All is done."
    assert len([name for name in defined if name.startswith("counter.")]) == 1


@pytest.mark.req("RCR-48")
async def test_an_agent_without_the_capability_may_not_call_another(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    script = [
        {"user": "big task", "call": {"spawn-agent": {"task": "small task"}}},
        {"expect": "may not call spawn-agent", "say": "I do it myself."},
    ]
    async with running(trail, clock, me, script) as run:
        await define(run)
        assert answer_of(await run.say("big task", agent="counter")).text == "I do it myself."
        defined = [each.context["agent_id"] for each in await run.written(None, run.flow.agent)]
    assert not [name for name in defined if name.startswith("counter.")]


@pytest.mark.req("RCR-48")
async def test_an_agent_lends_only_tools_that_it_has(trail: Trail, clock: ManualClock, me: Principal) -> None:
    script = [
        {"user": "big task", "call": {"spawn-agent": {"task": "small task", "tools": ["count"]}}},
        {"expect": "may not give count", "say": "I see."},
    ]
    async with running(trail, clock, me, script, tools=[count]) as run:
        await define(run, capabilities={"can_spawn_agents": True, "tools": ["spawn-agent"]})
        assert answer_of(await run.say("big task", agent="counter")).text == "I see."


@pytest.mark.req("BEY-09")
async def test_an_agent_whose_budget_is_used_up_stops_and_says_so(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    script = [{"user": "count", "call": {"count": {"to": number}}} for number in range(1, 2)]
    script += [{"call": {"count": {"to": number}}} for number in range(2, 9)]
    async with running(trail, clock, me, script, tools=[count]) as run:
        await define(run, budget={"calls": 3})
        answer = answer_of(await run.say("count", agent="counter"))
        (stopped,) = await run.written(None, run.flow.stopped)
    assert len(run.model.requests) == 3
    assert answer.status == "stopped"
    assert stopped.context["why"] == "budget"


async def test_tools_of_one_turn_run_side_by_side(trail: Trail, clock: ManualClock, me: Principal) -> None:
    both = asyncio.Barrier(2)

    @tool(effects=READS)
    async def meet(who: str) -> str:
        """Wait for the other one."""
        await both.wait()
        return f"{who} was there"

    script = [
        {"user": "meet", "call": [{"meet": {"who": "ann"}}, {"meet": {"who": "bob"}}]},
        {"expect": ["ann was there", "bob was there"], "say": "They met."},
    ]
    async with running(trail, clock, me, script, tools=[meet]) as run:
        await define(run)
        assert answer_of(await run.say("meet", agent="counter")).text == "They met."


@pytest.mark.req("RCR-47")
@pytest.mark.req("O7")
async def test_a_workflow_runs_its_groups_one_after_the_other_and_their_steps_side_by_side(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    both, order = asyncio.Barrier(2), []

    @tool(effects=READS)
    async def work(name: str, meets: bool = False) -> str:
        """Do one step."""
        if meets:
            await both.wait()
        order.append(name)
        return name.upper()

    steps = [
        {"id": "a", "tool": "work", "parallel_group": "first", "input": {"name": "a", "meets": True}},
        {"id": "b", "tool": "work", "parallel_group": "first", "input": {"name": "b", "meets": True}},
        {"id": "c", "tool": "work", "input": {"name": {"$from": "steps.a.output"}}},
    ]
    async with running(trail, clock, me, [], tools=[work]) as run:
        await run.define(run.flow.workflow, workflow_id="w", trigger={"schema_name": "note.v1"}, steps=steps)
        await run.define("note.v1", text="start")
        (result,) = await run.until(Selector(schema_name=run.flow.workflow_result))
    assert result.context["status"] == "success"
    assert {id: step["output"] for id, step in result.context["steps"].items()} == {"a": "A", "b": "B", "c": "A"}
    assert sorted(order[:2]) == ["a", "b"]
    assert order[2:] == ["A"]


@pytest.mark.req("RCR-47")
async def test_a_workflow_ends_with_the_step_that_failed(trail: Trail, clock: ManualClock, me: Principal) -> None:
    @tool(effects=READS)
    async def fail() -> str:
        """Fail."""
        raise ValueError("no")

    steps = [{"id": "a", "tool": "fail"}, {"id": "b", "tool": "fail"}]
    async with running(trail, clock, me, [], tools=[fail]) as run:
        await run.define(run.flow.workflow, workflow_id="w", trigger={"schema_name": "note.v1"}, steps=steps)
        await run.define("note.v1", text="start")
        (result,) = await run.until(Selector(schema_name=run.flow.workflow_result))
    assert result.context["status"] == "error"
    assert list(result.context["steps"]) == ["a"]
