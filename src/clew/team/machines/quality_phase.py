"""Inspection and testing of the whole session: defects go to the Architect, who plans corrections."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.errors import IllegalState
from clew.team.machines import prompts
from clew.team.machines.effects import AskAgent, Effects, send
from clew.team.machines.phases import Phase
from clew.team.machines.pipeline import NOT_PASSED, failed_commands, read_tests
from clew.team.machines.pipeline_state import PipelineStatus, TaskPipeline
from clew.team.machines.planning_phase import ask_architect
from clew.team.machines.team_end import Moved, call_tool, end_completed, end_failed
from clew.team.machines.team_state import MAX_FIX_ROUNDS, TeamStage, TeamState
from clew.team.messages.conversation import conversation_id
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ARCHITECT, INSPECTOR, TESTER, USER, MessageType
from clew.team.messages.payloads import (
    CallResult,
    CheckIssue,
    Findings,
    PipelineChoice,
    RunEnd,
    TeamQuestion,
    TestReport,
    TextPayload,
    UserOverride,
)

_T = MessageType
CHECK = "check"
"""The purpose of a call that checks the whole session."""
_WHOLE = "All tasks are merged. Inspect the whole work."


def begin(state: TeamState, message: TeamMessage) -> Moved:
    """Inspect the merged work. If a pipeline has already checked exactly this tree, its verdicts are used."""
    state = msgspec.structs.replace(state, phase=Phase.INSPECTION)
    checked = _checked_pipeline(state)
    if checked is not None:
        state = msgspec.structs.replace(state, findings=checked.inspector_result, tests=checked.tester_result)
        told = send(_T.VALIDATION_FULL, INSPECTOR, USER, checked.inspector_result or Findings(passed=True))
        state, effects = _complete(state)
        return state, (told, *effects)
    asked = send(_T.INSPECTION_REQUEST, ARCHITECT, INSPECTOR, TextPayload(text=_WHOLE))
    state, effects = _check(state, TeamStage.LINT, "lint")
    return state, (asked, *effects)


def _checked_pipeline(state: TeamState) -> TaskPipeline | None:
    """The completed pipeline that tested the tree of the session's head without overrides; None if there is none."""
    for each in state.pipelines.values():
        is_whole = each.state is PipelineStatus.COMPLETED and not each.overrides and each.tester_result is not None
        if is_whole and each.tree and each.tree == state.tree:
            return each
    return None


def _check(state: TeamState, stage: TeamStage, kind: str) -> Moved:
    """Check the merged work. The result of an earlier check that is still running is ignored."""
    waiting = {call: each for call, each in state.waiting_calls.items() if each != CHECK}
    state = msgspec.structs.replace(state, stage=stage, waiting_calls=waiting)
    input = {
        "session": state.session,
        "pipeline": "",
        "kind": kind,
        "scope": "all",
        "commands": [],
        "base_commit": state.base_commit,
    }
    return call_tool(state, CHECK, "team-check", input)


def checked(state: TeamState, result: CallResult, message: TeamMessage) -> Moved:
    """Handle the end of a check of the whole session."""
    if result.status == "interrupted":
        return _check(state, state.stage, "lint" if state.stage is TeamStage.LINT else "test")
    if result.status != "success":
        return end_failed(state, f"the checks of the session cannot run: {result.error}")
    output = result.output
    ids = tuple(str(each.get("id")) for each in output.get("receipts") or () if each.get("id"))
    state = msgspec.structs.replace(state, receipts=(*state.receipts, *ids))
    if state.stage is TeamStage.LINT:
        return _after_lint(state, output, message)
    if state.stage is TeamStage.TESTS:
        report = read_tests(output, "", state.fix_rounds + 1, message)
        state = msgspec.structs.replace(state, tests=report)
        if report.passed:
            return _complete(state)
        told = send(_T.TEST_CORRECTIONS, TESTER, ARCHITECT, report)
        state, effects = _correct(state, prompts.findings_text((), report.failures) or report.note)
        return state, (told, *effects)
    return state, ()


def _after_lint(state: TeamState, output: dict[str, Any], message: TeamMessage) -> Moved:
    passed = bool(output.get("passed"))
    issues = tuple(msgspec.convert(each, CheckIssue) for each in output.get("issues") or ())
    note = "" if passed or issues else failed_commands(output)
    loop = state.fix_rounds + 1
    findings = Findings(passed=passed, issues=issues, loop=loop, timestamp=message.timestamp, note=note)
    state = msgspec.structs.replace(state, findings=findings)
    if not passed:
        return _correct_findings(state, findings)
    assert state.request is not None
    conversation = conversation_id(state.session, "", INSPECTOR)
    prompt = prompts.full_judge_prompt(state.request.request, state.changed_files())
    state = msgspec.structs.replace(state, stage=TeamStage.JUDGE, findings=None, was_asked_again=False)
    return state, (AskAgent(role=INSPECTOR, conversation=conversation, prompt=prompt),)


def take_findings(state: TeamState, message: TeamMessage) -> Moved:
    """Record the Inspector's report on the whole session. The verdict is applied when the run of the Inspector ends."""
    if state.stage is not TeamStage.JUDGE:
        return state, ()
    return msgspec.structs.replace(state, findings=msgspec.convert(message.payload, Findings)), ()


def on_run_end(state: TeamState, run: RunEnd, message: TeamMessage) -> Moved:
    """Handle the end of the Inspector's run. Without a verdict the Inspector is asked again once; after that the user
    decides."""
    if state.stage is not TeamStage.JUDGE:
        return state, ()
    findings = state.findings
    if findings is None or run.status != "answered":
        if state.was_asked_again:
            return _ask_user(state, f"the Inspector gave no verdict ({run.error or run.status})")
        state = msgspec.structs.replace(state, was_asked_again=True, findings=None)
        conversation = conversation_id(state.session, "", INSPECTOR)
        return state, (AskAgent(role=INSPECTOR, conversation=conversation, prompt=prompts.judge_again()),)
    if not findings.passed or any(each.severity == "error" for each in findings.issues):
        note = findings.note or NOT_PASSED
        return _correct_findings(state, msgspec.structs.replace(findings, passed=False, note=note))
    return _test(state)


def _correct_findings(state: TeamState, findings: Findings) -> Moved:
    told = send(_T.VALIDATION_CORRECTIONS, INSPECTOR, ARCHITECT, findings)
    state = msgspec.structs.replace(state, findings=findings)
    state, effects = _correct(state, f"{prompts.findings_text(findings.issues, ())}\n{findings.note}".strip())
    return state, (told, *effects)


def _test(state: TeamState) -> Moved:
    findings = state.findings or Findings(passed=True)
    told = send(_T.VALIDATION_FULL, INSPECTOR, USER, findings)
    state, effects = _check(msgspec.structs.replace(state, phase=Phase.TESTING), TeamStage.TESTS, "test")
    return state, (told, *effects)


def _correct(state: TeamState, text: str) -> Moved:
    """Ask the Architect for a plan of corrections, or the user after too many rounds."""
    if state.fix_rounds >= MAX_FIX_ROUNDS:
        return _ask_user(state, f"findings are open after {state.fix_rounds} rounds of corrections")
    state = msgspec.structs.replace(state, stage=TeamStage.FIX, fix_rounds=state.fix_rounds + 1)
    return ask_architect(state, prompts.fix_prompt(text))


def _ask_user(state: TeamState, why: str) -> Moved:
    text = f"The work is merged, but {why}. Ignore it, let the work fail, or try again?"
    state = msgspec.structs.replace(state, stage=TeamStage.CHOICE)
    return state, (send(_T.CLARIFICATION_REQUEST, ARCHITECT, USER, TeamQuestion(question=text, origin=ARCHITECT)),)


def choose(state: TeamState, message: TeamMessage) -> Moved:
    """Handle the user's decision about open findings of the session."""
    if state.stage is not TeamStage.CHOICE:
        raise IllegalState("choose", "for the session", state.stage or state.phase, ("name a task",))
    given = msgspec.convert(message.payload, PipelineChoice)
    if given.choice == "fail":
        return end_failed(state, given.reason or "the user let it fail")
    if given.choice == "retry":
        return _check(state, TeamStage.LINT, "lint") if state.phase is Phase.INSPECTION else _test(state)
    return _go_on(state, given.reason or "ignored by the user")


def override(state: TeamState, message: TeamMessage) -> Moved:
    """Handle the user's override, which accepts the open findings of the phase."""
    given = msgspec.convert(message.payload, UserOverride)
    if given.what != state.phase:
        raise IllegalState(f"override {given.what}", "of the session", f"in the phase {state.phase}", (state.phase,))
    return _go_on(state, given.reason)


def _go_on(state: TeamState, reason: str) -> Moved:
    note = f"{state.phase}: {reason}"
    left = {id: each for id, each in state.questions.items() if each.pipeline}
    state = msgspec.structs.replace(state, overrides=(*state.overrides, note), questions=left)
    return _test(state) if state.phase is Phase.INSPECTION else _complete(state)


def _complete(state: TeamState) -> Moved:
    report = state.tests or TestReport(passed=False, note="not tested")
    effects: Effects = (send(_T.TEST_RESULTS, TESTER, USER, report),)
    state, more = end_completed(msgspec.structs.replace(state, phase=Phase.TESTING))
    return state, (*effects, *more)
