"""Permissions of a session apply to the agents that are called in it, if the user who gave them started the chain."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.agents.tools.toolbox import SPAWN
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.selector import Selector
from tests.agents.payments import PAYING, Bank, answer, asked
from tests.agents.whole_runs import hire

BOSS = "boss"
SCRIPT: list[dict[str, Any]] = [
    *PAYING,
    {"user": "delegate", "call": {SPAWN: {"task": "pay"}}},
    {"expect": "Done.", "say": "It is paid."},
]


@pytest.mark.parametrize(("writer", "questions"), [("ann", 1), ("mallory", 2)])
async def test_session_permissions_reach_called_agents_only_for_messages_of_their_user(
    bank: Bank, writer: str, questions: int
) -> None:
    async with bank.asking(SCRIPT) as (run, sent, question):
        await answer(run, question, "session")
        await run.rest_of(sent)
        await hire(run, BOSS, capabilities={"can_spawn_agents": True})
        message = Draft(
            title="A message",
            schema_name=run.flow.message,
            tags=(f"consumer:{BOSS}", f"session:{sent.session}"),
            context={"message": "delegate"},
        )
        await bank.trail.records.create(message, by=msgspec.structs.replace(bank.me, agent_id=writer))
        if questions == 2:
            assert (await asked(run, 2)).session == sent.session
        else:
            await run.until(Selector(schema_name=run.flow.answer), 3)
        assert len(await run.written(None, run.flow.permission_request)) == questions
    assert len(bank.paid) == 3 - questions
