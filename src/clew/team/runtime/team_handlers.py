"""The handlers of the team for one runtime: the coordinator, the results of runs, and the timers."""

from __future__ import annotations

from clew.access import Principal
from clew.agents.assembly import RuntimeAdditions
from clew.agents.budgets.budget_tree import Budgets
from clew.agents.conversations.conversation import Conversations
from clew.agents.runtime import NeedsModel
from clew.clock import Clock
from clew.team.machines.pipeline import Gate
from clew.team.messages.conversation import find_conversation
from clew.team.runtime.coordinator import Coordinator
from clew.team.runtime.effect_drafts import TEAM, EffectDrafts
from clew.team.runtime.run_results import RunResultForwarder
from clew.team.runtime.session_budgets import SessionBudgets
from clew.team.runtime.status_records import StatusRecords
from clew.team.runtime.team_states import TeamStates
from clew.team.runtime.timers import timer_handler
from clew.team.sessions.session_manager import SessionManager
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

RETIRED = ("team/answers",)
"""Consumers that earlier versions registered."""


def team_additions(
    trail: Trail, conversations: Conversations, clock: Clock, gate: Gate, *, by: Principal
) -> RuntimeAdditions:
    """The handlers and the budgets of the team, for `build_runtime`. `gate` decides whether work counts as done."""
    budgets = SessionBudgets(Budgets(trail, conversations.flow, clock), clock, by=by)
    status = StatusRecords(trail, clock, by=by)
    coordinator = Coordinator(
        TeamStates(trail, gate, by=by),
        EffectDrafts(conversations.flow, conversations.sessions, clock, by=by),
        SessionManager(trail, conversations, clock),
        status,
        budgets,
        clock,
        by=by,
    )
    results = RunResultForwarder(trail, conversations, clock, by=by)
    return RuntimeAdditions(
        handlers=(coordinator.handler(), *results.handlers(), timer_handler(clock, by=by)),
        find_budget=budgets.of_run,
        needs_model=_needs_model(trail, conversations.flow, by),
        complete=results.complete,
        flush=status.flush,
        retired=RETIRED,
        unlinked=(TEAM,),
    )


def _needs_model(trail: Trail, flow: Flow, by: Principal) -> NeedsModel:
    """A function that says whether a step must wait for a process with a model: steps of members do, unless a
    breadcrumb configures a model."""
    configs = Selector(schema_name=flow.tool_config, all_tags=(f"tool:{flow.model_tool}",))

    async def needs_model(event: Event) -> bool:
        record = event.breadcrumb
        if record is None or find_conversation(record.session) is None:
            return False
        return not (await trail.records.list(configs, by=by, limit=1)).items

    return needs_model
