"""Records with scopes stay hidden from callers without them, even through an agent."""

from __future__ import annotations

import msgspec
import pytest

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.clock import ManualClock
from clew.errors import AccessDenied
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.selector import EVERYTHING, Selector
from clew.trail.store import Trail
from tests.agents.runtimes import running
from tests.agents.test_chat_flow import define

SCRIPT = [{"user": "salary", "say": "I looked."}]
SECRET = "the salary of the captain is ninety doubloons"


async def contexts(trail: Trail, by: Principal, schema: str) -> list[str]:
    found = await trail.records.list(Selector(schema_name=schema), by=by)
    return [each.context["formatted_context"] for each in found.items]


@pytest.mark.req("BEY-04")
async def test_a_context_has_only_records_that_readers_of_its_trigger_may_see(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    keeper = msgspec.structs.replace(me, scopes=frozenset({"hr"}))
    note = Draft(title="Pay", schema_name="note.v1", context={"text": SECRET}, scopes=["hr"])
    async with running(trail, clock, keeper, SCRIPT) as run:
        await define(run)
        await trail.records.create(note, by=keeper)
        open_to_all = Conversations(trail, run.flow, clock)
        await run.rest_of(await open_to_all.send("what salary has the captain?", agent="counter", by=me))
        scoped = Conversations(trail, run.flow, clock, scopes=frozenset({"hr"}))
        await run.rest_of(await scoped.send("what salary has the captain?", agent="counter", by=keeper))
    seen = (await trail.records.list(EVERYTHING, by=me, limit=1000)).items
    assert not [each.schema_name for each in seen if "doubloons" in str(each)]
    assert any("doubloons" in each for each in await contexts(trail, keeper, run.flow.context))


@pytest.mark.parametrize("schema", ["agent.def.v1", "tool.code.v1", "tool.request.v1", "tool.response.v1", "budget.v1"])
async def test_only_curators_write_definitions_and_run_records(trail: Trail, me: Principal, schema: str) -> None:
    visitor = msgspec.structs.replace(me, roles=frozenset({"emitter", "subscriber"}))
    with pytest.raises(AccessDenied, match=schema):
        await trail.records.create(Draft(title="x", schema_name=schema, context={}), by=visitor)
