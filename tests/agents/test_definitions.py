"""Budgets and permissions of a definition: invalid ones are reported at once, and changes apply to later calls."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.conversations.agent_status import AgentStatuses
from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.tools.tool import Effects, tool
from clew.trail.store import Trail
from tests.agents.runtimes import PATIENCE, running
from tests.agents.whole_runs import CLERK, answer_of, hire


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"budget": {"calls": -1}}, "budget.calls"),
        ({"budget": {"tokens": "many"}}, "budget.tokens"),
        ({"budget": {"wishes": 3}}, "budget"),
        ({"permissions": {"deny": "exec"}}, "deny"),
        ({"permissions": {"allow": ["exec("]}}, "exec("),
    ],
)
async def test_an_agent_with_a_budget_or_permissions_of_no_sense_cannot_be_used_and_says_why(
    trail: Trail, clock: ManualClock, me: Principal, wrong: dict[str, Any], field: str
) -> None:
    async with running(trail, clock, me, []) as run:
        await hire(run, **wrong)
        with pytest.raises(InvalidInput) as refused:
            await run.say("hello", agent=CLERK)
        assert field in str(refused.value)
        (told,) = [each for each in await AgentStatuses(trail, run.flow, clock).call(by=me) if each.agent_id == CLERK]
        assert told.problem == str(refused.value)
        assert await trail.dead_letters.list(by=me) == []


async def test_a_session_whose_budget_is_used_up_goes_on_when_the_definition_gives_more(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [{"say": "Yes."}] * 50) as run:
        await hire(run, budget={"calls": 1})
        first = await run.talk.send("one", by=me, agent=CLERK)
        assert answer_of(await run.rest_of(first)).status == "done"
        stopped = answer_of(await run.say("two", agent=CLERK, session=first.session))
        assert (stopped.status, "higher budget.calls" in stopped.text) == ("stopped", True)
        await hire(run, budget={"calls": 2})
        async with asyncio.timeout(PATIENCE):  # until the runtime has read the new one
            while answer_of(await run.say("three", agent=CLERK, session=first.session)).status != "done":
                pass
        spent = answer_of(await run.say("four", agent=CLERK, session=first.session))
        assert spent.status == "stopped", "spent amounts stay spent"


async def test_an_agent_that_asks_for_no_tool_is_told_of_those_that_it_may_call(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    @tool(effects=Effects(reads_only=True))
    async def look() -> str:
        """Look."""
        return "seen"

    hidden = msgspec.structs.replace(look, name="repair-it", searchable=False)
    script = [{"user": "go", "call": {"spawn": {}}}, {"say": "Done."}]
    async with running(trail, clock, me, script, tools=[look, hidden]) as run:
        await hire(run)
        await run.say("go", agent=CLERK)
        (told,) = [each for each in await run.written(None, run.flow.response) if each.context["tool"] == "spawn"]
        assert "'spawn' does not exist" in told.context["error"]
        assert "look" in told.context["error"]
        assert "repair-it" not in told.context["error"]
        assert "spawn-agent" not in told.context["error"]
