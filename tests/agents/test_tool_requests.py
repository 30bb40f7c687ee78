"""Forged requests, configurations of other tools, and agents that want more rights than their caller: each gets one
response with the reason, and nothing runs twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.tools.tool import Effects, Tool, tool
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.event import MAX_DEATHS
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running
from tests.agents.whole_runs import answer_of, hire, is_done_with


@tool(effects=Effects(reads_only=True))
async def count(to: int = 1) -> str:
    """Count up to a number."""
    return " ".join(str(number) for number in range(1, to + 1))


@tool(name="hidden", searchable=False, effects=Effects(reads_only=True))
async def hidden() -> str:
    """A tool for agents whose definition names it."""
    return "seen"


async def request(run: Running, tool: str, **context: Any) -> Breadcrumb:
    draft = Draft(title="r", schema_name=run.flow.request, tags=("workspace:tools",), context={"tool": tool, **context})
    return await run.trail.records.create(draft, by=run.me)


async def response(run: Running, count: int = 1) -> Breadcrumb:
    return (await run.until(Selector(schema_name=run.flow.response), count))[-1]


@pytest.mark.parametrize("name", ["x" * 400, "a\nb", " outer "])
async def test_a_request_under_a_name_that_cannot_be_a_tag_gets_one_error_and_no_call(
    trail: Trail, clock: ManualClock, me: Principal, name: str
) -> None:
    async with running(trail, clock, me, [{"say": "Yes."}]) as run:
        asked = await request(
            run, run.flow.model_tool, input={"messages": [{"role": "user", "content": "x"}]}, requestId=name
        )
        answered = await response(run)
        await is_done_with(run, "models-runner", asked)
        assert run.model.requests == []
        assert len(await run.written(None, run.flow.response)) == 1
        assert (answered.context["status"], answered.context["request_id"]) == ("error", asked.id)
        assert "request_id" in answered.context["error"]
        assert not await trail.dead_letters.list(by=me)


async def test_a_result_that_cannot_be_written_is_reported_and_the_call_is_not_repeated(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    calls = []

    @tool(name="odd", effects=Effects(reads_only=True))
    async def odd() -> Any:
        """Give back what no record can hold."""
        calls.append(1)
        value: Any = "deep"
        for _ in range(80):
            value = [value]
        return value

    async with running(trail, clock, me, [], tools=[odd]) as run:
        asked = await request(run, "odd", requestId="r1", input={})
        answered = await response(run)
        await is_done_with(run, "tools-runner", asked)
        assert (answered.context["status"], answered.context["request_id"], len(calls)) == ("error", "r1", 1)
        assert "cannot be stored" in answered.context["error"]
        assert not await trail.dead_letters.list(by=me)


@pytest.mark.req("SYL-113")
async def test_a_model_call_with_which_every_worker_died_gets_one_error_and_is_not_repeated(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [], roles=frozenset({"tools"})) as run:
        messages = [{"role": "user", "content": "x"}]
        asked = await request(run, run.flow.model_tool, input={"messages": messages}, requestId="r1")
        for at in range(MAX_DEATHS):
            assert len(await trail.deliveries.claim("models-runner", by=me, worker=f"w{at}")) == 1
            await trail.deliveries.abandon(f"w{at}", by=me)
    async with running(trail, clock, me, [{"say": "Yes."}]) as run:
        answered = await response(run)
        await is_done_with(run, "models-runner", asked)
        assert len(await run.written(None, run.flow.response)) == 1
        assert run.model.requests == []
    assert answered.context["request_id"] == "r1"
    assert answered.context["error"] == f"it was given up: {MAX_DEATHS} workers died with it"
    assert not await trail.dead_letters.list(by=me)


async def test_a_configuration_is_one_and_for_this_tool_or_is_refused(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    given: list[Mapping[str, Any]] = []

    async def made(record: Breadcrumb, config: Mapping[str, Any]) -> Tool:
        given.append(config)
        return count

    secrets = {"secrets": {"KEY": {"$secret": "bank"}}}
    cases: list[tuple[str, dict[str, Any], tuple[str, ...], str]] = [
        ("note.v1", {"content": "x", **secrets}, ("tool:mine",), "is not a configuration"),
        ("tool.config.v1", {"tool": "bank", **secrets}, ("tool:mine",), "is not for mine"),
        ("tool.config.v1", {"name": "mine", **secrets}, (), "is not for mine"),
        ("tool.config.v1", dict(secrets), ("tool:bank",), "is not for mine"),
        ("tool.config.v1", {"tool": "mine", **secrets}, (), ""),
        ("tool.config.v1", dict(secrets), ("tool:mine",), ""),
        ("tool.config.v1", {"name": "mine"}, (), ""),
    ]
    async with running(trail, clock, me, [], from_record=made) as run:
        await run.define(run.flow.tool, name="mine", description="x", code="x")
        for at, (schema, context, tags, said) in enumerate(cases, 1):
            draft = Draft(title="c", schema_name=schema, context=context, tags=tags)
            config = await trail.records.create(draft, by=me)
            await request(run, "mine", input={}, requestId=f"r{at}", config_id=config.id)
            answered = await response(run, at)
            assert said in str(answered.context.get("error", "")), answered.context
            assert answered.context["status"] == ("error" if said else "success"), answered.context
    assert len([each for each in given if each]) == 3


@pytest.mark.parametrize(
    ("tools", "lent", "said"),
    [
        (None, "hidden", "give hidden"),
        (["[!c]*"], "?ount", "'?ount' does not exist"),
        (None, "*", "'*' does not exist"),
        (None, "no-such", "'no-such' does not exist"),
    ],
)
async def test_an_agent_lends_single_tools_that_it_has_and_no_patterns(
    trail: Trail, clock: ManualClock, me: Principal, tools: list[str] | None, lent: str, said: str
) -> None:
    script: list[dict[str, Any]] = [
        {"user": "big task", "call": {"spawn-agent": {"task": "small task", "tools": [lent]}}},
        {"expect": said, "say": "I do it myself."},
    ]
    async with running(trail, clock, me, script, tools=[count, hidden]) as run:
        await hire(run, capabilities={"can_spawn_agents": True, **({"tools": tools} if tools else {})})
        assert answer_of(await run.say("big task", agent="clerk")).text == "I do it myself."
        agents = await run.written(None, run.flow.agent)
        assert not [each for each in agents if each.context["agent_id"].startswith("clerk.")]


async def test_a_called_agent_has_no_more_than_its_caller_has_at_that_moment(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [], tools=[count]) as run:
        caller = await hire(run)
        metadata = {"called_by": {"agent": "clerk", "request": "", "budget": None}}
        await run.define(run.flow.agent, agent_id="clerk.1", capabilities={"tools": ["count"]}, metadata=metadata)
        await request(run, "count", input={}, requestId="r1", requestedBy="clerk.1")
        assert (await response(run)).context["status"] == "success"
        change = Change(context={**caller.context, "capabilities": {"tools": []}})
        changed = await trail.records.update(caller.id, change, expect=caller.version, by=me)
        while (await run.runtime.parts.registry.find_agent("clerk")).version != changed.version:  # type: ignore[union-attr]
            await trail.log.wait(await trail.log.head(), 0.01)
        await request(run, "count", input={}, requestId="r2", requestedBy="clerk.1")
        answered = await response(run, 2)
        assert (answered.context["status"], answered.context["request_id"]) == ("error", "r2")
        assert "the caller of clerk.1 may not call count" in answered.context["error"]
