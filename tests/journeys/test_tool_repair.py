"""The debugger repairs a tool with a bug while a conversation continues, and gives up on one that it cannot repair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.agents.conversations.steps import Answered
from clew.agents.repairs.policy import GAVE_UP, WANTED
from clew.agents.tools.builtin_tools import code_tools
from clew.clock import Clock, ManualClock
from clew.tools.sandbox import open_sandbox
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.agents.records import shipped_reliability
from tests.agents.runtimes import Running, running

FIX = shipped_reliability().repairs.fix
BUG = "def run(input, context):\n    return input['first'] + input['secnd']\n"
GOOD = "def run(input, context):\n    return input['first'] + input['second']\n"
ADDER: dict[str, Any] = {
    "name": "adder",
    "description": "Add two numbers.",
    "language": "python",
    "code": BUG,
    "input_schema": {"type": "object", "properties": {"first": {"type": "number"}, "second": {"type": "number"}}},
    "effects": {"reads_only": True},
}
ASKING: list[dict[str, Any]] = [
    {"user": "add one and two", "call": {"adder": {"first": 1, "second": 2}}},
    {"expect": "secnd", "say": "The adder is broken."},
]
AGAIN: list[dict[str, Any]] = [
    {"user": "once more", "call": {"adder": {"first": 1, "second": 2}}},
    {"expect": "3", "say": "It is three."},
]


def repairing(code: str) -> list[dict[str, Any]]:
    """The script of the debugger: it reads the code, and writes new code."""
    return [
        {"user": "adder failed", "call": {"read-failed-tool": {}}, "tools": ["read-failed-tool", "fix-tool"]},
        {"expect": "def run", "call": {"fix-tool": {"code": code, "explanation": "A name was misspelt."}}},
        {"expect": "version", "say": "The name of a field was misspelt; it is mended."},
    ]


def healing(trail: Trail, clock: Clock, me: Principal, folder: Path, script: list[dict[str, Any]]) -> Any:
    made = code_tools(trail, folder, open_sandbox(production=False), by=me)
    return running(trail, clock, me, script, from_record=made)


async def tries(run: Running, count: int, status: str) -> list[Breadcrumb]:
    """The responses to requests that try a repair."""
    match = (ContextMatch(path="status", value=status),)
    found = await run.until(Selector(schema_name=run.flow.request, all_tags=("repair:try",)), count)
    tags = tuple(f"request:{each.context['requestId']}" for each in found)
    return await run.until(Selector(schema_name=run.flow.response, any_tags=tags, context_match=match), count)


async def adder(run: Running) -> Breadcrumb:
    [found] = await run.until(
        Selector(schema_name=run.flow.tool, context_match=(ContextMatch(path="name", value="adder"),))
    )
    return found


def said(steps: list[Any]) -> str:
    [answer] = [step for step in steps if isinstance(step, Answered)]
    return answer.text


@pytest.mark.req("RCR-45")
async def test_a_seeded_bug_is_repaired_and_the_tool_passes_on_retry(
    trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path
) -> None:
    async with healing(trail, clock, me, tmp_path, [*ASKING, *repairing(GOOD), *AGAIN]) as run:
        await run.define(run.flow.tool, **ADDER)
        await define_asker(run)
        assert said(await run.say("add one and two", agent="asker")) == "The adder is broken."

        [passed] = await tries(run, 1, "success")

        assert "3" in str(passed.context["output"])
        mended = await adder(run)
        assert (mended.version, mended.context["code"]) == (2, GOOD)
        assert said(await run.say("once more", agent="asker")) == "It is three."
        [error] = await run.until(Selector(schema_name=run.flow.error))
        assert {WANTED, "tool:error", "tool:adder", "error:runtime"} <= set(error.tags)


@pytest.mark.req("RCR-45")
async def test_the_debugger_sees_the_error_a_guide_and_the_tool(
    trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path
) -> None:
    async with healing(trail, clock, me, tmp_path, [*ASKING, *repairing(GOOD)]) as run:
        tool = await run.define(run.flow.tool, **ADDER)
        await define_asker(run)
        await run.say("add one and two", agent="asker")
        [error] = await run.until(Selector(schema_name=run.flow.error))
        [context] = await run.until(
            Selector(schema_name=run.flow.context, all_tags=("consumer:tool-debugger", f"run:{error.id}"))
        )

        items = {each["id"]: each for each in context.context["receipt"]["items"]}
        guides = (await trail.records.list(Selector(all_tags=("guide", "error:runtime")), by=me)).items
        assert error.id in items
        assert tool.id in items
        assert {each.id for each in guides} <= set(items)


HIDDEN = {
    "a hidden file": "open('/etc/shadow')",
    "a relative path": "open('../../../../etc/shadow')",
    "the network": "__import__('socket').create_connection(('127.0.0.1', 9), timeout=5)",
}


@pytest.mark.req("RCR-42")
@pytest.mark.req("RCR-45")
@pytest.mark.parametrize("denied", HIDDEN)
async def test_a_denial_of_the_sandbox_is_error_permission_and_no_repair_starts(
    trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path, denied: str
) -> None:
    asking: list[dict[str, Any]] = [{**ASKING[0]}, {"say": "The adder may not do that."}]
    async with healing(trail, clock, me, tmp_path, asking) as run:
        await run.define(run.flow.tool, **{**ADDER, "code": f"def run(input, context):\n    {HIDDEN[denied]}\n"})
        await define_asker(run)
        await run.say("add one and two", agent="asker")
        [error] = await run.until(Selector(schema_name=run.flow.error))
        assert "error:permission" in error.tags
        assert WANTED not in error.tags


@pytest.mark.req("RCR-45")
@pytest.mark.req("O16")
async def test_repair_stops_at_the_limit_of_attempts(
    trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path
) -> None:
    bad = [f"def run(input, context):\n    raise ValueError('still broken {at}')\n" for at in range(5)]
    script = [*ASKING]
    for at, (code, pattern) in enumerate(zip(bad, ("secnd", "still broken 0", "still broken 1"), strict=False)):
        script += [
            {"user": f"/failed: [^\\n]*{pattern}/", "call": {"read-failed-tool": {}}},
            {"call": {"fix-tool": {"code": code, "explanation": f"Attempt {at}."}}},
            {"say": "I tried."},
        ]
    async with healing(trail, clock, me, tmp_path, script) as run:
        await run.define(run.flow.tool, **ADDER)
        await define_asker(run)
        await run.say("add one and two", agent="asker")

        [gave_up] = await run.until(Selector(schema_name=FIX, all_tags=(f"repair:{GAVE_UP}",)))

        assert "3 attempts" in gave_up.context["explanation"]
        restored = Selector(
            schema_name=run.flow.tool,
            context_match=(ContextMatch(path="name", value="adder"), ContextMatch(path="code", value=BUG)),
        )
        [back] = await run.until(restored)
        assert back.version == 5
        assert len(await run.until(Selector(schema_name=run.flow.error, all_tags=(WANTED,)), 3)) == 3


async def define_asker(run: Running) -> None:
    trigger = {"schema_name": run.flow.message, "all_tags": ["consumer:asker"]}
    await run.define(
        run.flow.agent,
        agent_id="asker",
        system_prompt="You add.",
        context_trigger=trigger,
        capabilities={"tools": ["adder"]},
    )
