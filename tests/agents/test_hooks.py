from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from clew.agents.hooks.hook_points import Point, PromptData, agent_hooks
from clew.errors import Abort, InvalidInput
from clew.llm.messages import Message
from clew.tools.hook_chain import Hook, HookPriority

DATA = PromptData(agent_id="guide", session="s1", messages=(Message(role="user", content="hello"),))

Function = Callable[[PromptData], Awaitable[PromptData]]


def hook(
    name: str, priority: int = HookPriority.NORMAL, function: Function | None = None, *, required: bool = False
) -> Hook:
    async def nothing(data: PromptData) -> PromptData:
        return data

    return Hook(name=name, point="pre_prompt", priority=priority, function=function or nothing, required=required)


@pytest.mark.req("SYL-30")
@pytest.mark.req("O14")
async def test_hooks_run_by_priority_and_equals_as_they_were_added() -> None:
    chain = agent_hooks([hook("last", HookPriority.LAST), hook("normal 1"), hook("first", HookPriority.FIRST)])
    chain = chain.add(hook("late", HookPriority.LATE), hook("normal 2"), hook("early", HookPriority.EARLY))

    done = await chain.run("pre_prompt", DATA)

    assert done.trace == ("first", "early", "normal 1", "normal 2", "late", "last")
    assert [int(each) for each in HookPriority] == [0, 25, 50, 75, 100]
    assert (await chain.run("post_prompt", DATA)).trace == ()


@pytest.mark.req("SYL-30")
async def test_a_hook_may_change_what_the_next_one_gets() -> None:
    async def shout(data: PromptData) -> PromptData:
        said = tuple(msgspec.structs.replace(each, content=each.content.upper()) for each in data.messages)
        return msgspec.structs.replace(data, messages=said)

    async def cheer(data: PromptData) -> PromptData:
        said = tuple(msgspec.structs.replace(each, content=each.content + "!") for each in data.messages)
        return msgspec.structs.replace(data, messages=said)

    done = await agent_hooks([hook("cheer", function=cheer), hook("shout", 0, shout)]).run("pre_prompt", DATA)

    assert [each.content for each in done.messages] == ["HELLO!"]
    assert [each.content for each in DATA.messages] == ["hello"]


@pytest.mark.req("SYL-30")
async def test_a_cached_result_ends_the_preparation_at_once() -> None:
    async def remember(data: PromptData) -> PromptData:
        return msgspec.structs.replace(data, cached_result="42")

    done = await agent_hooks([hook("cache", 25, remember), hook("later")]).run("pre_prompt", DATA)

    assert (done.cached_result, done.trace) == ("42", ("cache",))


@pytest.mark.req("SYL-30")
async def test_a_hook_may_abort_with_a_reason() -> None:
    async def refuse(data: PromptData) -> PromptData:
        raise Abort("not on a Sunday")

    with pytest.raises(Abort, match="not on a Sunday"):
        await agent_hooks([hook("sabbath", function=refuse)]).run("pre_prompt", DATA)


async def test_a_failing_hook_is_reported_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async def break_down(data: PromptData) -> PromptData:
        raise ValueError("half a thought")

    async def forget(data: PromptData) -> PromptData:
        return None  # type: ignore[return-value]  # what a careless hook does

    chain = agent_hooks([hook("broken", function=break_down), hook("careless", function=forget), hook("well")])
    with caplog.at_level(logging.WARNING):
        done = await chain.run("pre_prompt", DATA)

    assert done.trace == ("well",)
    assert done.messages == DATA.messages
    assert [each.partition(":")[0] for each in done.failures] == ["broken", "careless"]
    assert "the hook broken failed at pre_prompt" in caplog.text


async def test_a_failing_required_hook_stops_the_call() -> None:
    async def break_down(data: PromptData) -> PromptData:
        raise ValueError("half a thought")

    async def refuse(data: PromptData) -> PromptData:
        raise InvalidInput("prompt", "is empty")

    with pytest.raises(Abort, match="half a thought"):
        await agent_hooks([hook("guard", function=break_down, required=True)]).run("pre_prompt", DATA)
    with pytest.raises(InvalidInput):
        await agent_hooks([hook("guard", function=refuse, required=True)]).run("pre_prompt", DATA)


async def test_chains_do_not_change_and_names_are_taken_once() -> None:
    chain = agent_hooks([hook("a")])
    longer = chain.add(hook("b"))

    assert [each.name for each in chain.hooks] == ["a"]
    assert [each.name for each in longer.without("a").hooks] == ["b"]
    with pytest.raises(InvalidInput, match="two are named 'b'"):
        longer.add(hook("b", HookPriority.LAST))


@pytest.mark.parametrize(("point", "priority"), [("before", 50), ("pre_tool", -1), ("pre_tool", 101)])
def test_a_hook_at_no_point_or_out_of_order_is_refused(point: Point, priority: int) -> None:
    async def nothing(data: PromptData) -> PromptData:
        return data

    with pytest.raises(InvalidInput):
        agent_hooks([Hook(name="x", point=point, priority=priority, function=nothing)])
