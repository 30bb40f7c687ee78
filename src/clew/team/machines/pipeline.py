"""The state machine of a pipeline: a builder works, the Inspector checks, the Tester tests, and feedback goes straight
back to the builder. After three rounds of inspection or of testing the user decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from clew.errors import IllegalState
from clew.team.machines import prompts
from clew.team.machines.effects import AskAgent, Effects, StartTimer, send
from clew.team.machines.pipeline_moves import (
    Moved,
    ask_builder,
    ask_inspector,
    begin_tests,
    call_id,
    call_tool,
    cancel_run,
    complete,
    complete_untested,
    fail,
    run_check,
    take_failed_tests,
    take_inspection,
)
from clew.team.machines.pipeline_state import FOR_USER, PipelineStatus, Stage, TaskPipeline, move
from clew.team.messages.conversation import QUERY, conversation_id
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ARCHITECT, INSPECTOR, ORCHESTRATOR, RUNTIME, USER, MessageType
from clew.team.messages.payloads import (
    CallResult,
    CheckIssue,
    Dispatch,
    Findings,
    PipelineChoice,
    QuestionAnswer,
    RunEnd,
    TaskReference,
    TaskText,
    TeamQuestion,
    TestFailure,
    TestReport,
)
from clew.team.planning.plan import PlanNode

Gate = Callable[[TaskPipeline, PlanNode], tuple[str, ...]]
"""The reasons why the work of a pipeline does not count as done; none if it does."""
NOT_PASSED = "The Inspector does not let it pass."
_T, _S = MessageType, PipelineStatus


def start(pipeline: TaskPipeline) -> Moved:
    """Ask for the work tree of a new pipeline."""
    return call_tool(pipeline, Stage.TREE, "team-worktree", {"start": pipeline.start_from})


def step(pipeline: TaskPipeline, message: TeamMessage, node: PlanNode, gate: Gate) -> Moved:
    """The pipeline after a message, and the effects. A late message changes nothing. Raises IllegalState for a user
    action that the state does not allow."""
    changed, effects = _step(pipeline, message, node, gate)
    if not changed.is_time_up or changed.is_over or changed.stage in FOR_USER:
        return changed, effects
    return msgspec.structs.replace(changed, is_time_up=False), (*effects, *_time_limit(changed, node))


def _step(pipeline: TaskPipeline, message: TeamMessage, node: PlanNode, gate: Gate) -> Moved:
    payload = message.payload
    if pipeline.is_over:
        if message.source == USER and message.type in _USER:
            raise _refused(message, pipeline)
        return pipeline, ()
    match message.type:
        case _T.CALL_RESULT:
            return _on_call(pipeline, msgspec.convert(payload, CallResult), node, gate, message)
        case _T.RUN_ENDED:
            return _on_run_end(pipeline, msgspec.convert(payload, RunEnd), node, message)
        case _T.TASK_COMPLETE if pipeline.stage in (Stage.BUILD, Stage.QUESTION, Stage.PAUSED):
            summary = str(payload.get("summary") or "")
            return msgspec.structs.replace(pipeline, is_claimed=True, engineer_result=summary), ()
        case _T.TASK_HELP if pipeline.stage is Stage.BUILD:
            return _on_help(pipeline, msgspec.convert(payload, TeamQuestion), message)
        case _T.TASK_FAILED:
            return fail(pipeline, str(payload.get("reason") or "the agent gave up"), message, retryable=True)
        case _T.VALIDATION_RESULT if pipeline.stage is Stage.JUDGE:
            found = msgspec.convert(payload, Findings)
            return msgspec.structs.replace(pipeline, inspector_result=found), ()
        case _T.TIMER_DUE:
            return _on_timer(pipeline, str(payload.get("key")), message)
    return _on_user(pipeline, message, node, gate)


# -- calls of tools ------------------------------------------------------------------------------------------------


def _on_call(pipeline: TaskPipeline, result: CallResult, node: PlanNode, gate: Gate, message: TeamMessage) -> Moved:
    if result.call != call_id(pipeline):
        return pipeline, ()
    if result.status != "success":
        return fail(pipeline, f"{_FAILED_CALLS[pipeline.stage]}: {_reason(result)}", message, retryable=True)
    match pipeline.stage:
        case Stage.TREE:
            return _on_tree(pipeline, result.output, node)
        case Stage.COMMIT:
            return _on_commit(pipeline, result.output, node, message)
        case Stage.LINT:
            return _on_lint(pipeline, result.output, node, message)
        case Stage.DIFF:
            return _on_diff(pipeline, result.output, node)
        case Stage.COVERING | Stage.SUITE:
            return _on_tests(pipeline, result.output, node, gate, message)
    return pipeline, ()


_FAILED_CALLS = {
    Stage.TREE: "its work tree cannot be made",
    Stage.COMMIT: "its work cannot be committed",
    Stage.LINT: "its files cannot be checked",
    Stage.DIFF: "its changes cannot be read",
    Stage.COVERING: "its tests cannot run",
    Stage.SUITE: "its tests cannot run",
}
"""The wording of a failed call of each stage in reasons."""


def _reason(result: CallResult) -> str:
    return result.error or f"the call was {result.status}"


def _on_tree(pipeline: TaskPipeline, output: dict[str, Any], node: PlanNode) -> Moved:
    pipeline = move(pipeline, _S.RUNNING, base_commit=str(output.get("base_commit") or ""))
    task = Dispatch(pipeline=pipeline.id, task=pipeline.task_id, prompt=pipeline.context.task_prompt)
    dispatch = send(_T.TASK_DISPATCH, ORCHESTRATOR, pipeline.builder, task)
    pipeline, effects = ask_builder(pipeline, prompts.build_prompt(node, pipeline))
    return pipeline, (dispatch, *effects, *_time_limit(pipeline, node))


def _on_commit(pipeline: TaskPipeline, output: dict[str, Any], node: PlanNode, message: TeamMessage) -> Moved:
    context = msgspec.structs.replace(
        pipeline.context,
        modified_files=tuple(output.get("changed") or ()),
        created_files=tuple(output.get("created") or ()),
        deleted_files=tuple(output.get("deleted") or ()),
    )
    pipeline = move(
        pipeline,
        _S.INSPECTING,
        context=context,
        commit=str(output.get("commit") or ""),
        tree=str(output.get("tree") or ""),
        committed_at=message.timestamp,
        check_calls=(),
        receipts=(),
    )
    if output.get("is_empty"):
        issue = CheckIssue(file="", category="compliance", message="no file has changed, so the task is not done")
        return take_inspection(pipeline, (issue,), message)
    outside = [] if pipeline.skips_inspector else list(output.get("outside") or ())
    if outside:
        issues = [
            CheckIssue(file=path, category="compliance", message="the task may not change this file")
            for path in outside
        ]
        return take_inspection(pipeline, tuple(issues), message)
    if pipeline.skips_inspector:
        return begin_tests(pipeline, message)
    asked = send(_T.VALIDATE_TASK, ORCHESTRATOR, INSPECTOR, TaskReference(pipeline=pipeline.id))
    pipeline, effects = run_check(pipeline, Stage.LINT, "lint", "changed")
    return pipeline, (asked, *effects)


def _on_lint(pipeline: TaskPipeline, output: dict[str, Any], node: PlanNode, message: TeamMessage) -> Moved:
    pipeline = _with_receipts(pipeline, output)
    issues = tuple(msgspec.convert(each, CheckIssue) for each in output.get("issues") or ())
    if not output.get("passed"):
        note = "" if issues else failed_commands(output)
        return take_inspection(pipeline, issues, message, note)
    if not pipeline.context.compliance_criteria:
        return take_inspection(pipeline, (), message)
    return call_tool(pipeline, Stage.DIFF, "team-diff", {})


def _on_diff(pipeline: TaskPipeline, output: dict[str, Any], node: PlanNode) -> Moved:
    pipeline = msgspec.structs.replace(
        pipeline,
        diff=str(output.get("diff") or ""),
        stage=Stage.JUDGE,
        inspector_result=None,
        was_asked_again=False,
        inspector_id=conversation_id(pipeline.session_id, pipeline.id, INSPECTOR),
    )
    return pipeline, (ask_inspector(pipeline, prompts.judge_prompt(node, pipeline)),)


def _on_tests(
    pipeline: TaskPipeline, output: dict[str, Any], node: PlanNode, gate: Gate, message: TeamMessage
) -> Moved:
    pipeline = _with_receipts(pipeline, output)
    report = read_tests(output, pipeline.id, pipeline.tester_loops + 1, message)
    pipeline = msgspec.structs.replace(pipeline, tester_result=report)
    if not report.passed:
        return take_failed_tests(pipeline, report)
    if pipeline.stage is Stage.COVERING and not output.get("covers_all"):
        return run_check(pipeline, Stage.SUITE, "test", "all", node.checks)
    reasons = gate(pipeline, node)
    if reasons:
        refused = msgspec.structs.replace(report, passed=False, note="Not accepted: " + "; ".join(reasons))
        return take_failed_tests(msgspec.structs.replace(pipeline, tester_result=refused), refused)
    return complete(pipeline, message)


def read_tests(output: dict[str, Any], pipeline: str, loop: int, message: TeamMessage) -> TestReport:
    """The report of a test run, from the output of `team-check`."""
    failures = tuple(msgspec.convert(each, TestFailure) for each in output.get("failures") or ())
    counts = [each.get("tests") or {} for each in output.get("receipts") or ()]
    passed = bool(output.get("passed"))
    note = str(output.get("skipped_reason") or "") or ("" if passed or failures else failed_commands(output))
    return TestReport(
        passed=passed,
        tests_run=sum(int(each.get("run") or 0) for each in counts),
        tests_passed=sum(int(each.get("passed") or 0) for each in counts),
        failures=failures,
        pipeline=pipeline,
        loop=loop,
        timestamp=message.timestamp,
        note=note,
    )


def failed_commands(output: dict[str, Any]) -> str:
    """The commands of a check that failed, each with the end of its output."""
    failed = [each for each in output.get("receipts") or () if each.get("exit_code")]
    lines = [f"`{each.get('command')}` exited with {each.get('exit_code')}: {_tail(each)}" for each in failed]
    return "\n".join(lines) or "the check did not pass"


def _tail(receipt: dict[str, Any]) -> str:
    return str(receipt.get("log") or "").strip()[-2_000:]


def _with_receipts(pipeline: TaskPipeline, output: dict[str, Any]) -> TaskPipeline:
    return msgspec.structs.replace(
        pipeline,
        receipts=(*pipeline.receipts, *(output.get("receipts") or ())),
        has_tests=pipeline.has_tests or bool(output.get("has_tests")),
        has_linters=pipeline.has_linters or bool(output.get("has_linters")),
    )


# -- runs of agents ------------------------------------------------------------------------------------------------


def _on_run_end(pipeline: TaskPipeline, run: RunEnd, node: PlanNode, message: TeamMessage) -> Moved:
    pipeline = msgspec.structs.replace(pipeline, tokens=pipeline.tokens + run.tokens)
    if run.conversation.endswith(f".{QUERY}"):
        answer = TaskText(pipeline=pipeline.id, text=run.text or f"No answer: {run.error or run.status}")
        return pipeline, (send(_T.TASK_ANSWER, RUNTIME, USER, answer),)
    if run.role == INSPECTOR:
        return _on_judgement(pipeline, run, node, message)
    pipeline = msgspec.structs.replace(pipeline, is_run_active=False)
    if pipeline.stage is not Stage.BUILD:
        return pipeline, ()
    if run.status == "failed" or (run.status == "cancelled" and not pipeline.waiting_prompts):
        return fail(pipeline, _why(run), message, retryable=run.cause != "budget")
    if pipeline.waiting_prompts:
        prompt, *rest = pipeline.waiting_prompts
        return ask_builder(msgspec.structs.replace(pipeline, waiting_prompts=tuple(rest)), prompt)
    if pipeline.is_claimed:
        pipeline = msgspec.structs.replace(pipeline, was_asked_again=False)
        return call_tool(pipeline, Stage.COMMIT, "team-commit", {"message": node.label, "files": list(node.files)})
    if pipeline.was_asked_again:
        return fail(pipeline, "the agent ended twice without saying that the task is done", message, retryable=True)
    return ask_builder(msgspec.structs.replace(pipeline, was_asked_again=True), prompts.build_again())


def _on_judgement(pipeline: TaskPipeline, run: RunEnd, node: PlanNode, message: TeamMessage) -> Moved:
    """Handle the end of the Inspector's run. Without a verdict the Inspector is asked again once; after that the
    pipeline fails."""
    if pipeline.stage is not Stage.JUDGE:
        return pipeline, ()
    found = pipeline.inspector_result
    if found is not None and run.status == "answered":
        note = "" if found.passed else found.note or NOT_PASSED
        return take_inspection(pipeline, found.issues, message, note)
    if run.cause == "budget" or pipeline.was_asked_again:
        return fail(pipeline, f"the Inspector gave no verdict: {_why(run)}", message, retryable=run.cause != "budget")
    again = msgspec.structs.replace(pipeline, was_asked_again=True, inspector_result=None)
    return again, (ask_inspector(again, prompts.judge_again()),)


def _why(run: RunEnd) -> str:
    return run.error or f"its run was {run.status}"


def _on_help(pipeline: TaskPipeline, asked: TeamQuestion, message: TeamMessage) -> Moved:
    """Pass a question on: from the builder over the Orchestrator and the Architect to the user."""
    question = msgspec.structs.replace(asked, pipeline=pipeline.id, origin=pipeline.builder, request=message.id)
    pipeline = msgspec.structs.replace(pipeline, stage=Stage.QUESTION, question=asked.question)
    return pipeline, (
        send(_T.CLARIFICATION_REQUEST, ORCHESTRATOR, ARCHITECT, question),
        send(_T.CLARIFICATION_REQUEST, ARCHITECT, USER, question),
    )


# -- time and the user ---------------------------------------------------------------------------------------------


def _time_limit(pipeline: TaskPipeline, node: PlanNode) -> Effects:
    seconds = node.metadata.timeout_ms / 1_000
    return (StartTimer(key=f"{pipeline.id}/timeout", seconds=seconds),) if seconds else ()


def _on_timer(pipeline: TaskPipeline, key: str, message: TeamMessage) -> Moved:
    if key != f"{pipeline.id}/timeout":
        return pipeline, ()
    if (
        pipeline.stage in FOR_USER
    ):  # the time that the user takes is not counted: the limit starts again after the answer
        return msgspec.structs.replace(pipeline, is_time_up=True), ()
    return fail(pipeline, "it took longer than its time limit", message, retryable=True)


_USER = (
    _T.CLARIFICATION_RESPONSE,
    _T.USER_TASK_PROMPT,
    _T.USER_TASK_QUERY,
    _T.USER_TASK_INTERRUPT,
    _T.USER_IGNORE_INSPECTOR,
    _T.USER_IGNORE_TESTER,
    _T.USER_CHOICE,
)


def _on_user(pipeline: TaskPipeline, message: TeamMessage, node: PlanNode, gate: Gate) -> Moved:
    text = str(message.payload.get("text") or "")
    match message.type:
        case _T.CLARIFICATION_RESPONSE if pipeline.stage is Stage.QUESTION:
            answer = msgspec.convert(message.payload, QuestionAnswer)
            passed_on = send(_T.CLARIFICATION_RESPONSE, ORCHESTRATOR, pipeline.builder, answer)
            prompt = prompts.answer_prompt(pipeline.question, answer.text)
            pipeline, effects = _prompt(msgspec.structs.replace(pipeline, question="", stage=Stage.BUILD), prompt)
            return pipeline, (passed_on, *effects)
        case _T.USER_TASK_PROMPT if pipeline.state is _S.RUNNING and pipeline.stage in (Stage.BUILD, Stage.PAUSED):
            return _prompt(msgspec.structs.replace(pipeline, stage=Stage.BUILD), f"The user says: {text}")
        case _T.USER_TASK_QUERY:
            conversation = conversation_id(pipeline.session_id, pipeline.id, QUERY)
            prompt = prompts.query_prompt(pipeline, text)
            return pipeline, (AskAgent(role=INSPECTOR, conversation=conversation, prompt=prompt, pipeline=pipeline.id),)
        case _T.USER_TASK_INTERRUPT if pipeline.stage is Stage.BUILD:
            return msgspec.structs.replace(pipeline, stage=Stage.PAUSED), cancel_run(
                pipeline, "interrupted by the user"
            )
        case _T.USER_IGNORE_INSPECTOR:
            note = f"{pipeline.task_id}: findings of the Inspector were ignored by the user"
            return _ignore(pipeline, note, message, is_inspector=True)
        case _T.USER_IGNORE_TESTER:
            return _ignore(pipeline, "", message, is_inspector=False)
        case _T.USER_CHOICE if pipeline.stage is Stage.CHOICE or message.payload.get("choice") == "fail":
            return _on_choice(pipeline, msgspec.convert(message.payload, PipelineChoice), message)
    if message.source == USER and message.type in _USER:
        raise _refused(message, pipeline)
    return pipeline, ()


def _prompt(pipeline: TaskPipeline, prompt: str) -> Moved:
    """Prompt the builder now, or after its present run."""
    if pipeline.is_run_active:
        return msgspec.structs.replace(pipeline, waiting_prompts=(*pipeline.waiting_prompts, prompt)), ()
    return ask_builder(pipeline, prompt)


def _ignore(pipeline: TaskPipeline, note: str, message: TeamMessage, *, is_inspector: bool) -> Moved:
    """Skip the Inspector or the Tester from now on, for this pipeline only."""
    if not is_inspector:
        pipeline = msgspec.structs.replace(pipeline, skips_tester=True)
        waits = pipeline.state is _S.TESTING
        return complete_untested(pipeline, message) if waits else (pipeline, ())
    pipeline = msgspec.structs.replace(pipeline, skips_inspector=True, overrides=(*pipeline.overrides, note))
    return begin_tests(pipeline, message) if pipeline.state is _S.INSPECTING else (pipeline, ())


def _on_choice(pipeline: TaskPipeline, choice: PipelineChoice, message: TeamMessage) -> Moved:
    if choice.choice == "fail":
        return fail(pipeline, choice.reason or "the user let it fail", message)
    if choice.choice == "retry":
        pipeline = move(pipeline, _S.RUNNING, max_loops=pipeline.max_loops + 1)
        return ask_builder(
            pipeline, "The user wants another attempt. " + prompts.findings_text(*_open_findings(pipeline))
        )
    reason = choice.reason or "ignored by the user"
    if pipeline.state is _S.INSPECTING:
        note = f"{pipeline.task_id}: findings of the Inspector: {reason}"
        return _ignore(pipeline, note, message, is_inspector=True)
    note = f"{pipeline.task_id}: failed tests: {reason}"
    pipeline = msgspec.structs.replace(pipeline, overrides=(*pipeline.overrides, note))
    return complete(pipeline, message)


def _open_findings(pipeline: TaskPipeline) -> tuple[tuple[CheckIssue, ...], tuple[TestFailure, ...]]:
    issues = pipeline.inspector_result.issues if pipeline.inspector_result else ()
    failures = pipeline.tester_result.failures if pipeline.tester_result else ()
    return issues, failures


_VERBS = {
    _T.USER_CHOICE: "decide on",
    _T.USER_TASK_PROMPT: "prompt",
    _T.USER_TASK_QUERY: "ask about",
    _T.USER_TASK_INTERRUPT: "interrupt",
    _T.USER_IGNORE_INSPECTOR: "ignore the Inspector of",
    _T.USER_IGNORE_TESTER: "ignore the Tester of",
    _T.HANDOFF_REQUEST: "hand over",
}
"""The wording of each message type about a task in refusals."""


def _refused(message: TeamMessage, pipeline: TaskPipeline) -> IllegalState:
    waits = f"{pipeline.state}, waiting for {pipeline.stage}" if pipeline.stage else str(pipeline.state)
    allowed = [] if pipeline.is_over else ["query", "ignore_inspector", "ignore_tester"]
    if pipeline.stage is Stage.BUILD:
        allowed += ["prompt", "interrupt"]
    verb = _VERBS.get(message.type, "reach")
    hint = "" if allowed else "The task is over; see `clew team log`"
    return IllegalState(verb, f"task {pipeline.id}", waits, allowed, hint=hint)
