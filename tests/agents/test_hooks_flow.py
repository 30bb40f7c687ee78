"""Hooks and failures as a running agent meets them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.conversations.steps import Answered
from clew.agents.hooks.hook_points import PromptData, ToolData
from clew.clock import ManualClock
from clew.errors import Abort, ConfigError, ToolFailure
from clew.tools.hook_chain import Hook, HookPriority
from clew.tools.tool import Effects, ToolLimits, tool
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running
from tests.agents.test_default_hooks import ORDER
from tests.agents.whole_runs import let_time_pass

READS = Effects(reads_only=True)


@tool(effects=READS)
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


GREETING: list[dict[str, Any]] = [
    {"user": "greet Ann", "call": {"greet": {"name": "Ann"}}},
    {"expect": "hello Ann", "say": "I greeted her."},
]


async def ask(run: Running, text: str) -> Answered:
    trigger = {"schema_name": run.flow.message, "all_tags": ["consumer:host"]}
    await run.define(run.flow.agent, agent_id="host", system_prompt="You greet.", context_trigger=trigger)
    [answer] = [step for step in await run.say(text, agent="host") if isinstance(step, Answered)]
    return answer


@pytest.mark.req("SYL-30")
async def test_a_cached_result_is_the_answer_and_no_model_is_called(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async def remember(data: PromptData) -> PromptData:
        return msgspec.structs.replace(data, cached_result="I know that one.")

    hook = Hook(name="cache", point="pre_prompt", priority=HookPriority.EARLY, function=remember)
    async with running(trail, clock, me, GREETING, tools=[greet], hooks=[hook]) as run:
        answer = await ask(run, "greet Ann")

        assert (answer.text, answer.status) == ("I know that one.", "done")
        assert run.model.requests == []


@pytest.mark.req("SYL-30")
async def test_an_abort_ends_the_run_with_its_reason(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async def refuse(data: PromptData) -> PromptData:
        raise Abort("the office is closed")

    hook = Hook(name="hours", point="pre_prompt", function=refuse)
    async with running(trail, clock, me, GREETING, tools=[greet], hooks=[hook]) as run:
        answer = await ask(run, "greet Ann")
        [stopped] = await run.until(Selector(schema_name=run.flow.stopped))

        assert answer.status == "stopped"
        assert run.model.requests == []
        assert "the office is closed" in stopped.context["detail"]


@pytest.mark.req("SYL-31")
async def test_a_turn_runs_all_thirteen_hook_points_in_order(trail: Trail, clock: ManualClock, me: Principal) -> None:
    seen: list[str] = []

    async def note(data: Any) -> Any:
        seen.extend(name for name in data.trace if name not in (*seen, "note"))
        return data

    points: tuple[Any, ...] = ("pre_prompt", "post_prompt", "pre_tool", "post_tool")
    hooks = [Hook(name="note", point=point, priority=HookPriority.LAST, function=note) for point in points]
    async with running(trail, clock, me, GREETING, tools=[greet], hooks=hooks) as run:
        assert (await ask(run, "greet Ann")).text == "I greeted her."

    assert tuple(seen) == ORDER


async def test_hooks_change_the_arguments_and_the_result_of_a_tool(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async def rename(data: ToolData) -> ToolData:
        return msgspec.structs.replace(data, arguments={"name": "Bob"})

    async def shout(data: ToolData) -> ToolData:
        return msgspec.structs.replace(data, result=str(data.result).upper())

    hooks = [
        Hook(name="rename", point="pre_tool", function=rename),
        Hook(name="shout", point="post_tool", function=shout),
    ]
    script = [GREETING[0], {"expect": "HELLO BOB", "say": "Done."}]
    async with running(trail, clock, me, script, tools=[greet], hooks=hooks) as run:
        assert (await ask(run, "greet Ann")).text == "Done."


@tool(effects=READS)
async def refused() -> str:
    """Ask for more than is allowed."""
    raise ToolFailure("permission", "no network here")


@tool(effects=READS)
async def broken() -> str:
    """Fall over."""
    raise ZeroDivisionError("division by zero")


@tool(effects=READS)
async def unset() -> str:
    """Need a setting that is not there."""
    raise ConfigError("no address is set")


@tool(effects=READS, limits=ToolLimits(seconds=0.01))
async def slow() -> str:
    """Take too long."""
    raise TimeoutError("it took too long")


FAILING = {
    "refused": "permission",
    "broken": "runtime",
    "unset": "config",
    "slow": "timeout",
    "greet": "validation",
}


@pytest.mark.req("RCR-44")
async def test_five_failures_of_a_running_agent_leave_the_five_tags_and_both_breadcrumbs(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    script = [
        {"user": "try all", "call": [{name: {}} for name in FAILING]},
        {"expect": ["no network here", "division by zero", "no address is set"], "say": "All failed."},
    ]
    tools = [refused, broken, unset, slow, greet]
    async with running(trail, clock, me, script, tools=tools) as run:
        answer = await ask_and_wait(run, clock)

        errors = await run.until(Selector(schema_name=run.flow.error), 5)
        assert answer.text == "All failed."
        for record in errors:
            name = record.context["tool_name"]
            assert {"tool:error", f"tool:{name}", f"error:{FAILING[name]}", "workspace:tools"} <= set(record.tags)
            request = f"request:{record.context['request_id']}"
            [response] = await run.until(Selector(schema_name=run.flow.response, all_tags=(request,)))
            assert (response.context["status"], response.context["tool"]) == ("error", name)
        assert {each.context["tool_name"] for each in errors} == set(FAILING)


async def ask_and_wait(run: Running, clock: ManualClock) -> Answered:
    """The answer after a retry of a transient failure; the clock is advanced for it."""

    async def tick() -> None:
        while True:
            await let_time_pass(run, clock)
            await asyncio.sleep(0.02)

    ticking = asyncio.create_task(tick())
    try:
        return await ask(run, "try all")
    finally:
        ticking.cancel()
