"""The state machine of the whole team: `step` dispatches each message to its phase or its pipeline."""

from __future__ import annotations

from typing import Literal

import msgspec

from clew.errors import IllegalState
from clew.team.machines import execution_phase, handoff, pipeline, planning_phase, quality_phase, user_text
from clew.team.machines.effects import Effects
from clew.team.machines.phases import require_allowed
from clew.team.machines.pipeline import Gate
from clew.team.machines.pipeline_state import Stage
from clew.team.machines.team_state import TeamState
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import (
    ACADEMIC,
    ARCHITECT,
    INSPECTOR,
    ORCHESTRATOR,
    USER,
    MessageType,
    read_payload,
)
from clew.team.messages.payloads import CallResult, RunEnd, TeamQuestion, UserInterrupt

_T = MessageType
Stepped = tuple[TeamState, Effects]
_SESSION_KINDS: dict[MessageType, Literal["suspend", "continue", "stop"]] = {
    _T.SESSION_SUSPEND: "suspend",
    _T.SESSION_RESUME: "continue",
    _T.SESSION_COMPLETE: "stop",
}
"""The effect of a message about the session on the work in it."""


def step(state: TeamState, message: TeamMessage, gate: Gate) -> Stepped:
    """The state after a message, and the effects. Raises IllegalState for a user action that is not possible now, and
    InvalidInput for a payload that does not match the message type."""
    read_payload(message.type, message.payload)
    if message.source == USER:
        require_allowed(state.phase, message.type, f"session {state.session[-8:]}")
    state = msgspec.structs.replace(state, messages=state.messages + 1)
    if state.is_over:
        return state, ()
    state, effects = _dispatch(state, message, gate)
    return _without_settled(state), effects


def _dispatch(state: TeamState, message: TeamMessage, gate: Gate) -> Stepped:
    name = str(message.payload.get("pipeline") or "")
    match message.type:
        case _T.PLAN_REQUEST | _T.PLAN_RESPONSE | _T.PLAN_APPROVED | _T.PLAN_MODIFIED:
            return planning_phase.step(state, message)
        case _T.USER_INPUT | _T.USER_RESPONSE:
            return state, (user_text.understand(state, message),)
        case _T.DAG_EXECUTE:
            return execution_phase.execute(state, message)
        case _T.PIPELINE_COMPLETE | _T.PIPELINE_FAILED:
            return execution_phase.on_pipeline_end(state, message)
        case _T.CALL_RESULT:
            return _on_call(state, message, gate)
        case _T.RUN_ENDED:
            return _on_run_end(state, message, gate)
        case _T.TIMER_DUE:
            return _on_timer(state, message, gate)
        case _T.USER_INTERRUPT:
            return execution_phase.interrupt(state, msgspec.convert(message.payload, UserInterrupt), message)
        case _T.SESSION_SUSPEND | _T.SESSION_RESUME | _T.SESSION_COMPLETE if state.request is not None:
            return execution_phase.interrupt(state, UserInterrupt(kind=_SESSION_KINDS[message.type]), message)
        case _T.USER_OVERRIDE:
            return quality_phase.override(state, message)
        case _T.CLARIFICATION_REQUEST:
            return _on_question(state, message), ()
        case _T.CLARIFICATION_RESPONSE if message.source == USER:
            state = _without_question(state, message)
            return _to_pipeline(state, name, message, gate) if name else planning_phase.answer(state, message)
        case _T.INSPECTION_RESULTS:
            return quality_phase.take_findings(state, message)
        case _T.VALIDATION_RESULT if not name:
            return quality_phase.take_findings(state, message)
        case _T.USER_CHOICE if not name:
            return quality_phase.choose(_without_question(state, message), message)
        case _T.HANDOFF_REQUEST | _T.CREATE_PIPELINE_WITH_STATE:
            return handoff.step(state, message)
    return _to_pipeline(_without_question(state, message), name, message, gate) if name else (state, ())


def _on_call(state: TeamState, message: TeamMessage, gate: Gate) -> Stepped:
    result = msgspec.convert(message.payload, CallResult)
    owner = result.call.partition("/")[0]
    if owner in state.pipelines:
        return _to_pipeline(state, owner, message, gate)
    purpose = state.waiting_calls.get(result.call)
    if purpose is None:
        return state, ()
    waiting = {call: each for call, each in state.waiting_calls.items() if call != result.call}
    state = msgspec.structs.replace(state, waiting_calls=waiting)
    kind, _, subject = purpose.partition(":")
    match kind:
        case "open":
            return planning_phase.opened(state, result, message)
        case "merge":
            return execution_phase.merged(state, result, message)
        case handoff.PURPOSE:
            return handoff.committed(state, subject, result, message)
    return quality_phase.checked(state, result, message)


def _on_run_end(state: TeamState, message: TeamMessage, gate: Gate) -> Stepped:
    run = msgspec.convert(message.payload, RunEnd)
    state = msgspec.structs.replace(state, tokens=state.tokens + run.tokens)
    if run.pipeline:
        return _to_pipeline(state, run.pipeline, message, gate)
    match run.role:
        case role if role == ACADEMIC:
            return planning_phase.on_research(state, run, message)
        case role if role == ARCHITECT:
            return planning_phase.on_run_end(state, run, message)
        case role if role == INSPECTOR:
            return quality_phase.on_run_end(state, run, message)
    return state, ()


def _on_timer(state: TeamState, message: TeamMessage, gate: Gate) -> Stepped:
    owner = str(message.payload["key"]).partition("/")[0]
    if owner in state.pipelines:
        return _to_pipeline(state, owner, message, gate)
    return execution_phase.on_timer(state, message)


def _to_pipeline(state: TeamState, name: str, message: TeamMessage, gate: Gate) -> Stepped:
    found = state.pipelines.get(name)
    if found is None:
        if message.source == USER:
            raise IllegalState("reach", f"task {name}", "unknown", tuple(state.pipelines) or ("none has started",))
        return state, ()
    node = state.find_node(found.task_id)
    assert node is not None  # a pipeline belongs to a plan
    changed, effects = pipeline.step(found, message, node, gate)
    state = msgspec.structs.replace(state, pipelines={**state.pipelines, name: changed})
    state, more = handoff.close_predecessor(state, found, changed, message)
    return state, (*effects, *more)


def _on_question(state: TeamState, message: TeamMessage) -> TeamState:
    """Remember a question that is addressed to the user."""
    if message.target != USER or message.source not in (ARCHITECT, ORCHESTRATOR):
        return state
    question = msgspec.convert(message.payload, TeamQuestion)
    return msgspec.structs.replace(state, questions={**state.questions, message.id: question})


def _without_settled(state: TeamState) -> TeamState:
    """Remove the questions of pipelines that no longer wait for an answer."""
    waiting = {name for name, each in state.pipelines.items() if each.stage in (Stage.QUESTION, Stage.CHOICE)}
    left = {id: each for id, each in state.questions.items() if not each.pipeline or each.pipeline in waiting}
    return state if len(left) == len(state.questions) else msgspec.structs.replace(state, questions=left)


def _without_question(state: TeamState, message: TeamMessage) -> TeamState:
    """Remove the question that a message answers: the question that the message names, else all questions of its
    pipeline."""
    request, name = str(message.payload.get("request") or ""), str(message.payload.get("pipeline") or "")
    if message.source != USER or message.type not in (_T.CLARIFICATION_RESPONSE, _T.USER_CHOICE):
        return state
    left = {
        id: each
        for id, each in state.questions.items()
        if id != request and (request in state.questions or each.pipeline != name)
    }
    return msgspec.structs.replace(state, questions=left)
