"""The end of a team's work: the summary, and a clear reason if the work did not succeed."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.team.machines.effects import CallTool, CancelRun, Effects, EndSession, send
from clew.team.machines.phases import Phase
from clew.team.machines.pipeline_state import PipelineStatus, TaskPipeline
from clew.team.machines.team_state import Outcome, TeamStage, TeamState
from clew.team.messages.conversation import conversation_id
from clew.team.messages.message_types import ACADEMIC, ARCHITECT, INSPECTOR, USER, MessageType
from clew.team.messages.payloads import CompletionSummary

Moved = tuple[TeamState, Effects]
_TESTED = "All tasks passed inspection and tests, and are merged."
_UNTESTED = "All tasks passed inspection and are merged. No tests ran."
_AT_WORK = {
    TeamStage.RESEARCH: ACADEMIC,
    TeamStage.PLAN: ARCHITECT,
    TeamStage.FIX: ARCHITECT,
    TeamStage.JUDGE: INSPECTOR,
}


def call_tool(
    state: TeamState, purpose: str, tool: str, input: dict[str, Any]
) -> tuple[TeamState, tuple[CallTool, ...]]:
    """Call a tool for the whole team."""
    call = state.next_call(purpose)
    waiting = {**state.waiting_calls, call: purpose}
    state = msgspec.structs.replace(state, calls=state.calls + 1, waiting_calls=waiting)
    return state, (CallTool(call=call, tool=tool, input=input),)


def end_completed(state: TeamState) -> Moved:
    """Complete the work with a summary."""
    has_tests = state.tests is not None and state.tests.tests_run > 0
    summary = summarise(state, _TESTED if has_tests else _UNTESTED)
    state = msgspec.structs.replace(
        state, phase=Phase.COMPLETE, stage=TeamStage.OVER, outcome=Outcome.COMPLETED, summary=summary, questions={}
    )
    told = send(MessageType.WORKFLOW_COMPLETE, ARCHITECT, USER, summary)
    return state, (told, EndSession(success=True, summary=summary.text))


def end_failed(state: TeamState, reason: str, outcome: Outcome = Outcome.FAILED) -> Moved:
    """End the work without success. Everything that was committed stays on its branches."""
    summary, cancelled = summarise(state, f"Not completed: {reason}"), _cancel_runs(state, reason)
    state = msgspec.structs.replace(
        state,
        phase=Phase.COMPLETE,
        stage=TeamStage.OVER,
        outcome=outcome,
        reason=reason,
        summary=summary,
        questions={},
    )
    told = send(MessageType.WORKFLOW_COMPLETE, ARCHITECT, USER, summary)
    return state, (*cancelled, told, EndSession(success=False, summary=summary.text))


def _cancel_runs(state: TeamState, reason: str) -> Effects:
    """Cancel the run that the whole team waits for."""
    role = _AT_WORK.get(state.stage)
    return (CancelRun(conversation=conversation_id(state.session, "", role), reason=reason),) if role else ()


def summarise(state: TeamState, text: str) -> CompletionSummary:
    """The summary of the work so far."""
    passed = [each for each in state.pipelines.values() if each.state is PipelineStatus.COMPLETED]
    created = {path for each in passed for path in each.context.created_files}
    deleted = {path for each in passed for path in each.context.deleted_files}
    modified = {path for each in passed for path in each.context.modified_files} - created - deleted
    tests = state.tests
    return CompletionSummary(
        text=text,
        created=tuple(sorted(created)),
        modified=tuple(sorted(modified)),
        deleted=tuple(sorted(deleted)),
        tests_run=tests.tests_run if tests else 0,
        tests_passed=tests.tests_passed if tests else 0,
        validation=_validation(state),
        deferred_overrides=(*(note for each in passed for note in each.overrides), *state.overrides),
        branch=state.branch,
        head=state.head,
        receipts=tuple(id for each in passed for id in _receipt_ids(each)) + state.receipts,
        tokens=state.tokens,
    )


def _validation(state: TeamState) -> str:
    if state.findings is None:
        return "not inspected"
    open_issues = len(state.findings.issues)
    return "passed" if state.findings.passed else f"{open_issues} open findings"


def _receipt_ids(pipeline: TaskPipeline) -> list[str]:
    return [str(each.get("id")) for each in pipeline.receipts if each.get("id")]
