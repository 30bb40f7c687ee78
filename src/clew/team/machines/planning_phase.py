"""Research and planning: from a request of the user to a plan that the user approved."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.errors import IllegalState
from clew.team.machines import prompts
from clew.team.machines.effects import AskAgent, send
from clew.team.machines.phases import Phase
from clew.team.machines.team_end import Moved, call_tool, end_failed
from clew.team.machines.team_state import TeamStage, TeamState
from clew.team.messages.conversation import MAIN, QUERY, conversation_id
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ACADEMIC, ARCHITECT, ORCHESTRATOR, RUNTIME, USER, MessageType
from clew.team.messages.payloads import (
    CallResult,
    PlanApproval,
    PlanProposal,
    PlanRequest,
    QuestionAnswer,
    RunEnd,
    TaskText,
    TeamReply,
)
from clew.team.planning.plan import Plan
from clew.team.planning.preflight import preflight

_T = MessageType


def step(state: TeamState, message: TeamMessage) -> Moved:
    """Take a message about the request or the plan."""
    match message.type:
        case _T.PLAN_REQUEST:
            return _begin(state, msgspec.convert(message.payload, PlanRequest))
        case _T.PLAN_RESPONSE:
            return _propose(state, msgspec.convert(message.payload, PlanProposal).plan, message)
        case _T.PLAN_MODIFIED:
            text = str(message.payload["text"])
            state = msgspec.structs.replace(state, plan=None, preflight=None, stage=TeamStage.PLAN)
            return ask_architect(state, prompts.modify_prompt(text))
        case _:
            return _approve(state, msgspec.convert(message.payload, PlanApproval), message)


def ask_architect(state: TeamState, prompt: str) -> Moved:
    """Prompt the Architect in the conversation of the session."""
    conversation = conversation_id(state.session, "", ARCHITECT)
    state = msgspec.structs.replace(state, was_asked_again=False)
    return state, (AskAgent(role=ARCHITECT, conversation=conversation, prompt=prompt),)


def _begin(state: TeamState, request: PlanRequest) -> Moved:
    """Start the request of a session: open its branch, and ask for research or for a plan."""
    state = TeamState(session=state.session, request=request, messages=state.messages)
    input: dict[str, Any] = {"session": state.session, "base": request.base, "take_changes": request.takes_changes}
    if request.branch:
        input["branch"] = request.branch
    state, opening = call_tool(state, "open", "team-open", input)
    if request.research:
        state = msgspec.structs.replace(state, phase=Phase.RESEARCH, stage=TeamStage.RESEARCH)
        conversation = conversation_id(state.session, "", ACADEMIC)
        return state, (*opening, AskAgent(role=ACADEMIC, conversation=conversation, prompt=request.request))
    state, asked = _ask_for_plan(state, "")
    return state, (*opening, *asked)


def _ask_for_plan(state: TeamState, findings: str) -> Moved:
    request = state.request.request if state.request else ""
    state = msgspec.structs.replace(state, phase=Phase.PLANNING, stage=TeamStage.PLAN)
    return ask_architect(state, prompts.plan_prompt(request, findings))


def on_research(state: TeamState, run: RunEnd, message: TeamMessage) -> Moved:
    """Handle the end of the Academic's run. The plan is requested even without findings."""
    if state.stage is not TeamStage.RESEARCH:
        return state, ()
    told = send(_T.RESEARCH_RESPONSE, RUNTIME, ARCHITECT, TeamReply(text=run.text or run.error))
    state, asked = _ask_for_plan(state, run.text)
    return state, (told, *asked)


def opened(state: TeamState, result: CallResult, message: TeamMessage) -> Moved:
    """Handle the result of creating the branch of the session."""
    output = result.output
    if result.status != "success":
        return end_failed(state, f"the work tree cannot be made: {result.error or result.status}")
    state = msgspec.structs.replace(
        state,
        branch=str(output.get("branch") or ""),
        folder=str(output.get("folder") or ""),
        base_commit=str(output.get("base_commit") or ""),
        head=str(output.get("head") or output.get("base_commit") or ""),
        notes=tuple(output.get("notes") or ()),
    )
    return _execute(state) if state.is_approved else (state, ())


def _propose(state: TeamState, plan: Plan, message: TeamMessage) -> Moved:
    """Handle a plan from the Architect. During execution it changes the running plan."""
    if state.phase is Phase.EXECUTION and state.dag is not None:
        return state, (send(_T.DAG_EXECUTE, ARCHITECT, ORCHESTRATOR, PlanProposal(plan=plan)),)
    if state.phase is not Phase.PLANNING or state.request is None:
        return state, ()
    request = state.request
    plan = msgspec.structs.replace(plan, id=plan.id or message.id, session_id=state.session, prompt=request.request)
    checked = preflight(plan, budget=request.budget, max_agents=request.max_agents)
    state = msgspec.structs.replace(state, plan=checked.plan, preflight=checked, stage=TeamStage.APPROVAL)
    if request.approves_plan and not checked.exceeds_budget:
        return state, (send(_T.PLAN_APPROVED, RUNTIME, ARCHITECT, PlanApproval(plan_id=plan.id)),)
    return state, ()


def _approve(state: TeamState, approval: PlanApproval, message: TeamMessage) -> Moved:
    if state.plan is None or state.preflight is None or state.stage is not TeamStage.APPROVAL:
        if message.source != USER:
            return state, ()
        raise IllegalState("approve", "the plan", "not there yet", ("wait for the plan", "interrupt"))
    if approval.plan_id and approval.plan_id != state.plan.id:
        if message.source != USER:
            return state, ()
        raise IllegalState("approve", f"plan {approval.plan_id}", "replaced", (f"approve plan {state.plan.id}",))
    if state.preflight.exceeds_budget and not approval.over_budget:
        assert state.request is not None
        estimate = f"{state.preflight.chosen.tokens:,} tokens are estimated, {state.request.budget:,} are allowed"
        allowed = ("approve it over budget", "modify the plan", "stop")
        raise IllegalState("approve", "the plan", "over budget", allowed, reason=estimate)
    state = msgspec.structs.replace(state, is_approved=True)
    return _execute(state) if state.is_opened else (state, ())


def _execute(state: TeamState) -> Moved:
    assert state.plan is not None  # it was approved
    order = send(_T.DAG_EXECUTE, ARCHITECT, ORCHESTRATOR, PlanProposal(plan=state.plan))
    return msgspec.structs.replace(state, phase=Phase.EXECUTION, stage=TeamStage.BUILD), (order,)


def answer(state: TeamState, message: TeamMessage) -> Moved:
    """Handle the user's answer to a question of the Architect."""
    reply = msgspec.convert(message.payload, QuestionAnswer)
    return ask_architect(state, prompts.answer_prompt("", reply.text))


def on_run_end(state: TeamState, run: RunEnd, message: TeamMessage) -> Moved:
    """Handle the end of the Architect's run. Without a plan or a question the Architect is asked again once."""
    if run.conversation.endswith(f".{QUERY}"):
        answer = TaskText(pipeline=MAIN, text=run.text or f"No answer: {run.error or run.status}")
        return state, (send(_T.TASK_ANSWER, RUNTIME, USER, answer),)
    if state.stage not in (TeamStage.PLAN, TeamStage.FIX):
        return state, ()
    if any(not each.pipeline for each in state.questions.values()):
        return state, ()
    why = run.error or "You ended without a plan."
    if run.status == "answered" and not state.was_asked_again:
        state, effects = ask_architect(state, prompts.plan_again(why))
        return msgspec.structs.replace(state, was_asked_again=True), effects
    if run.status == "cancelled":
        return state, ()
    return end_failed(state, f"the Architect made no plan: {run.error or 'it ended twice without one'}")
