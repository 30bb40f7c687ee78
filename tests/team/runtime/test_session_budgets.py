"""Budgets of sessions: unspent tokens of a run are returned, however the run ends."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.agents.budgets.budget_tree import Budgets
from clew.agents.conversations.conversation import Conversations
from clew.clock import ManualClock
from clew.team.guide import build_message
from clew.team.machines.effects import AskAgent
from clew.team.messages.message import SCHEMA
from clew.team.runtime.completion_gate import completion_gate
from clew.team.runtime.coordinator import NAME as COORDINATOR
from clew.team.runtime.effect_drafts import EffectDrafts
from clew.team.runtime.run_results import RUNS
from clew.team.runtime.session_budgets import SessionBudgets, root_name
from clew.team.runtime.team_handlers import team_additions
from clew.trail.bootstrap import bootstrap
from clew.trail.model.flow import read_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail


@pytest.mark.req("BEY-09")
async def test_a_run_that_can_never_end_gives_its_part_back(trail: Trail, clock: ManualClock, me: Principal) -> None:
    await bootstrap(trail, me)
    flow = await read_flow(trail, by=me)
    conversations, tree = Conversations(trail, flow, clock), Budgets(trail, flow, clock)
    budgets = SessionBudgets(tree, clock, by=me)
    await budgets.open("s", 400_000)
    cause = build_message("PLAN_REQUEST", {"request": "add"}, source="user", session_id="s", clock=clock)
    ask = AskAgent(role="architect", conversation="s.main.architect", prompt="Plan it.")
    drafts = await EffectDrafts(flow, conversations.sessions, clock, by=me).drafts(cause, 0, ask)
    prompt = await trail.records.create(drafts[0], by=me)
    assert await budgets.of_run(ask.conversation, prompt.id) != root_name("s")
    assert (await tree.remaining(root_name("s"), by=me)).tokens == 300_000

    events, _ = await trail.log.read(0, by=me, selector=Selector(schema_name=flow.message))
    team = team_additions(trail, conversations, clock, completion_gate, by=me)
    handlers = {each.name: each for each in team.handlers}
    (ended,) = await handlers[RUNS].function(events[-1], None)
    assert ended.context["payload"]["status"] == "failed"
    assert (await tree.remaining(root_name("s"), by=me)).tokens == 300_000, "the end is not on the trail yet"

    await trail.records.create(ended, by=me)
    events, _ = await trail.log.read(0, by=me, selector=Selector(schema_name=SCHEMA))
    await handlers[COORDINATOR].function(events[-1], None)
    assert (await tree.remaining(root_name("s"), by=me)).tokens == 400_000
