"""Moves of a pipeline: each returns the pipeline after it, and the effects."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.team.machines import prompts
from clew.team.machines.effects import AskAgent, CallTool, CancelRun, Effects, send
from clew.team.machines.pipeline_state import PipelineStatus, Stage, TaskPipeline, move
from clew.team.messages.conversation import conversation_id
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ARCHITECT, INSPECTOR, ORCHESTRATOR, RUNTIME, TESTER, USER, MessageType
from clew.team.messages.payloads import CheckIssue, Findings, PipelineResult, TaskReference, TeamQuestion, TestReport

Moved = tuple[TaskPipeline, Effects]
_T, _S = MessageType, PipelineStatus


def call_id(pipeline: TaskPipeline) -> str:
    """The id of the call that a pipeline waits for."""
    return f"{pipeline.id}/{pipeline.stage}/{pipeline.calls}"


def call_tool(pipeline: TaskPipeline, stage: Stage, tool: str, input: dict[str, Any]) -> Moved:
    pipeline = msgspec.structs.replace(pipeline, stage=stage, calls=pipeline.calls + 1)
    given = {"session": pipeline.session_id, "pipeline": pipeline.id, **input}
    return pipeline, (CallTool(call=call_id(pipeline), tool=tool, input=given),)


def run_check(pipeline: TaskPipeline, stage: Stage, kind: str, scope: str, commands: tuple[str, ...] = ()) -> Moved:
    """Check the commit of the pipeline. The receipts name the call that they belong to."""
    call = f"{pipeline.id}/{stage}/{pipeline.calls + 1}"
    input = {
        "call": call,
        "kind": kind,
        "scope": scope,
        "commands": list(commands),
        "base_commit": pipeline.base_commit,
    }
    pipeline = msgspec.structs.replace(pipeline, check_calls=(*pipeline.check_calls, call))
    return call_tool(pipeline, stage, "team-check", input)


def take_inspection(
    pipeline: TaskPipeline, issues: tuple[CheckIssue, ...], message: TeamMessage, note: str = ""
) -> Moved:
    """Take the result of an inspection: on to the tests, back to the builder, or to the user."""
    errors = [each for each in issues if each.severity == "error"]
    passed = not errors and not note
    loop = pipeline.inspector_loops + (not passed)
    findings = Findings(
        passed=passed, issues=issues, pipeline=pipeline.id, loop=loop, timestamp=message.timestamp, note=note
    )
    feedback = (*pipeline.context.inspector_feedback, findings)
    context = msgspec.structs.replace(pipeline.context, inspector_feedback=feedback)
    pipeline = msgspec.structs.replace(pipeline, context=context, inspector_result=findings, inspector_loops=loop)
    pipeline = msgspec.structs.replace(pipeline, inspected_tree=pipeline.tree)
    if passed:
        return begin_tests(pipeline, message)
    told = send(_T.INSPECTOR_FEEDBACK, INSPECTOR, pipeline.builder, findings)
    if loop >= pipeline.max_loops:
        return ask_user(pipeline, "the Inspector still finds issues", (told,))
    pipeline, effects = ask_builder(move(pipeline, _S.RUNNING), prompts.inspector_feedback(findings))
    return pipeline, (told, *effects)


def begin_tests(pipeline: TaskPipeline, message: TeamMessage) -> Moved:
    pipeline = move(pipeline, _S.TESTING, tester_id=conversation_id(pipeline.session_id, pipeline.id, TESTER))
    if pipeline.skips_tester:
        return complete_untested(pipeline, message)
    ready = send(_T.TESTS_READY, ORCHESTRATOR, TESTER, TaskReference(pipeline=pipeline.id))
    pipeline, effects = run_check(pipeline, Stage.COVERING, "test", "covering")
    return pipeline, (ready, *effects)


def take_failed_tests(pipeline: TaskPipeline, report: TestReport) -> Moved:
    """Take failed tests: back to the builder, or to the user."""
    loop = pipeline.tester_loops + 1
    context = msgspec.structs.replace(pipeline.context, tester_feedback=(*pipeline.context.tester_feedback, report))
    pipeline = msgspec.structs.replace(pipeline, context=context, tester_loops=loop)
    told = send(_T.TESTER_FEEDBACK, TESTER, pipeline.builder, report)
    if loop >= pipeline.max_loops:
        return ask_user(pipeline, "tests still fail", (told,))
    pipeline, effects = ask_builder(move(pipeline, _S.RUNNING), prompts.tester_feedback(report))
    return pipeline, (told, *effects)


def ask_user(pipeline: TaskPipeline, why: str, told: Effects) -> Moved:
    """Ask the user how to continue a pipeline that has used all its rounds."""
    text = f"Task {pipeline.task_id}: {why} after {pipeline.max_loops} rounds. Ignore them, let it fail, or try again?"
    question = TeamQuestion(question=text, pipeline=pipeline.id, origin=ORCHESTRATOR)
    pipeline = msgspec.structs.replace(pipeline, stage=Stage.CHOICE)
    return pipeline, (*told, send(_T.CLARIFICATION_REQUEST, ARCHITECT, USER, question))


def complete_untested(pipeline: TaskPipeline, message: TeamMessage) -> Moved:
    note = f"{pipeline.task_id}: tests were skipped by the user"
    pipeline = msgspec.structs.replace(pipeline, overrides=(*pipeline.overrides, note))
    return _end(move(pipeline, _S.COMPLETED, stage=Stage.NONE, completed_at=message.timestamp), True, "")


def complete(pipeline: TaskPipeline, message: TeamMessage) -> Moved:
    return _end(move(pipeline, _S.COMPLETED, stage=Stage.NONE, completed_at=message.timestamp), True, "")


def fail(pipeline: TaskPipeline, reason: str, message: TeamMessage, *, retryable: bool = False) -> Moved:
    """End a pipeline without success. `retryable` says whether another attempt may help."""
    failed = move(
        pipeline,
        _S.FAILED,
        stage=Stage.NONE,
        reason=reason,
        is_retryable=retryable,
        completed_at=message.timestamp,
        is_run_active=False,
    )
    failed, effects = _end(failed, False, reason)
    return failed, (*_cancel_runs(pipeline, reason), *_keep_work(pipeline), *effects)


def _cancel_runs(pipeline: TaskPipeline, reason: str) -> Effects:
    judge = (CancelRun(conversation=pipeline.inspector_id, reason=reason),) if pipeline.stage is Stage.JUDGE else ()
    return (*(cancel_run(pipeline, reason) if pipeline.is_run_active else ()), *judge)


def _keep_work(pipeline: TaskPipeline) -> Effects:
    """Commit the unfinished work of a builder to its branch. Nothing waits for the result."""
    if pipeline.state is not _S.RUNNING or not pipeline.asks:
        return ()
    message = f"Unfinished work on {pipeline.task_id}"
    given = {"session": pipeline.session_id, "pipeline": pipeline.id, "message": message, "files": []}
    return (CallTool(call=f"{pipeline.id}/unfinished/{pipeline.calls + 1}", tool="team-commit", input=given),)


def _end(pipeline: TaskPipeline, success: bool, reason: str) -> Moved:
    result = PipelineResult(
        pipeline=pipeline.id,
        task=pipeline.task_id,
        success=success,
        modified_files=pipeline.context.modified_files,
        created_files=pipeline.context.created_files,
        loops_used=pipeline.inspector_loops + pipeline.tester_loops,
        reason=reason,
    )
    type = _T.PIPELINE_COMPLETE if success else _T.PIPELINE_FAILED
    return pipeline, (send(type, RUNTIME, ORCHESTRATOR, result),)


def ask_builder(pipeline: TaskPipeline, prompt: str) -> Moved:
    """Prompt the builder."""
    conversation = conversation_id(pipeline.session_id, pipeline.id, pipeline.builder)
    pipeline = msgspec.structs.replace(
        pipeline,
        stage=Stage.BUILD,
        engineer_id=conversation,
        asks=pipeline.asks + 1,
        is_claimed=False,
        is_run_active=True,
    )
    return pipeline, (AskAgent(role=pipeline.builder, conversation=conversation, prompt=prompt, pipeline=pipeline.id),)


def ask_inspector(pipeline: TaskPipeline, prompt: str) -> AskAgent:
    return AskAgent(role=INSPECTOR, conversation=pipeline.inspector_id, prompt=prompt, pipeline=pipeline.id)


def cancel_run(pipeline: TaskPipeline, reason: str) -> Effects:
    return (CancelRun(conversation=pipeline.engineer_id, reason=reason),) if pipeline.engineer_id else ()
