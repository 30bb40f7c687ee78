"""Hand-off: an Engineer whose context is full passes its task to a new one. The old pipeline closes only after the new
one has started."""

from __future__ import annotations

import msgspec

from clew.team.machines import pipeline as pipelines
from clew.team.machines.dag import NodeStatus, mark
from clew.team.machines.effects import CancelRun, Effects, send
from clew.team.machines.pipeline_state import PipelineStatus, Stage, TaskPipeline, move
from clew.team.machines.prompts import MAX_LISTED
from clew.team.machines.team_end import Moved, call_tool
from clew.team.machines.team_state import TeamState
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ARCHITECT, ARCHIVALIST, ORCHESTRATOR, RUNTIME, MessageType
from clew.team.messages.payloads import CallResult, PipelineHandoff, PipelineTransfer, StoreRequest

_T = MessageType
CATEGORY, FALLBACK = "pipeline_handoff", "handoff_fallback"
"""The categories under which the Archivalist stores a hand-off, and one that failed."""
PURPOSE = "handoff"


def step(state: TeamState, message: TeamMessage) -> Moved:
    """Take a request for a hand-off, or the Architect's order to carry it out."""
    if message.type is _T.HANDOFF_REQUEST:
        return _request(state, msgspec.convert(message.payload, PipelineHandoff), message)
    return _commit(state, msgspec.convert(message.payload, PipelineTransfer))


def _request(state: TeamState, given: PipelineHandoff, message: TeamMessage) -> Moved:
    """Bundle the state of the pipeline, store it, and let the Architect order the new pipeline."""
    old = state.pipelines.get(given.old_pipeline_id)
    if old is None or old.is_over or old.stage is not Stage.BUILD:
        return state, ()
    bundled = bundle(old, given, message)
    transfer = PipelineTransfer(state=bundled, close_pipeline=old.id)
    stored = StoreRequest(category=CATEGORY, content=msgspec.to_builtins(bundled), pipeline=old.id)
    return state, (
        send(_T.STORE_SUMMARY, RUNTIME, ARCHIVALIST, stored),
        send(_T.CREATE_PIPELINE_WITH_STATE, ARCHITECT, ORCHESTRATOR, transfer),
    )


def bundle(old: TaskPipeline, given: PipelineHandoff, message: TeamMessage) -> PipelineHandoff:
    """The hand-off with the state of all three agents of a pipeline. The builder's own notes are kept unchanged."""
    inspector, tester = old.inspector_result, old.tester_result
    return msgspec.structs.replace(
        given,
        session_id=old.session_id,
        dag_id=old.dag_id,
        task_id=old.task_id,
        timestamp=message.timestamp,
        handoff_index=old.handoff_index + 1,
        engineer_state={
            "accomplished": old.engineer_result,
            "files_changed": list(old.context.modified_files),
            "remaining": [],
            "context_notes": "",
            **given.engineer_state,
            "original_prompt": old.context.task_prompt,
        },
        inspector_state={
            "checks_performed": old.inspector_loops,
            "fixes_remaining": [each.message for each in inspector.issues[:MAX_LISTED]] if inspector else [],
            "validation_state": bool(inspector and inspector.passed),
            **given.inspector_state,
        },
        tester_state={
            "failure_descs": [each.message for each in tester.failures[:MAX_LISTED]] if tester else [],
            "test_results": {"run": tester.tests_run, "passed": tester.tests_passed} if tester else {},
            **given.tester_state,
        },
    )


def _commit(state: TeamState, transfer: PipelineTransfer) -> Moved:
    """Commit the work of the old pipeline, from which the new one starts."""
    old = state.pipelines.get(transfer.close_pipeline)
    if old is None or old.is_over or old.id in state.handoffs:
        return state, ()
    state = msgspec.structs.replace(state, handoffs={**state.handoffs, old.id: transfer.state})
    return _call_commit(state, old.id)


def _call_commit(state: TeamState, old: str) -> Moved:
    input = {"session": state.session, "pipeline": old, "message": "Hand-off", "files": []}
    return call_tool(state, f"{PURPOSE}:{old}", "team-commit", input)


def committed(state: TeamState, old_id: str, result: CallResult, message: TeamMessage) -> Moved:
    """Start the new pipeline on the committed work. If the commit fails twice, the state goes to the Archivalist and
    the old pipeline continues."""
    old, bundled = state.pipelines[old_id], state.handoffs.get(old_id)
    if bundled is None or old.is_over or state.dag is None:
        return state, ()
    if result.status != "success":
        return _recover(state, bundled)
    node = state.dag.nodes[old.task_id]
    name = f"{old.task_id}.{node.attempts + 1}"
    new = TaskPipeline(
        id=name,
        session_id=old.session_id,
        dag_id=old.dag_id,
        task_id=old.task_id,
        builder=old.builder,
        created_at=message.timestamp,
        context=msgspec.structs.replace(old.context, handoff_notes=notes_of(bundled)),
        previous=old.id,
        start_from=str(result.output.get("commit") or ""),
        inspector_loops=old.inspector_loops,
        tester_loops=old.tester_loops,
        max_loops=old.max_loops,
        skips_inspector=old.skips_inspector,
        skips_tester=old.skips_tester,
        overrides=old.overrides,
        touches_tests=old.touches_tests,
        handoff_index=bundled.handoff_index,
    )
    new, effects = pipelines.start(new)
    dag = mark(state.dag, old.task_id, NodeStatus.RUNNING, pipeline=name, attempts=node.attempts + 1)
    return msgspec.structs.replace(state, dag=dag, pipelines={**state.pipelines, name: new}), effects


def _recover(state: TeamState, bundled: PipelineHandoff) -> Moved:
    """Retry the commit once. If it fails again, store a summary and let the old pipeline continue."""
    old = bundled.old_pipeline_id
    if not bundled.was_retried:
        again = msgspec.structs.replace(bundled, was_retried=True)
        return _call_commit(msgspec.structs.replace(state, handoffs={**state.handoffs, old: again}), old)
    return _keep(state, bundled)


def _keep(state: TeamState, bundled: PipelineHandoff) -> Moved:
    """End a hand-off that failed: its state goes to the Archivalist, and the old pipeline continues."""
    old = bundled.old_pipeline_id
    stored = StoreRequest(category=FALLBACK, content=msgspec.to_builtins(bundled), pipeline=old)
    left = {id: each for id, each in state.handoffs.items() if id != old}
    return msgspec.structs.replace(state, handoffs=left), (send(_T.STORE_SUMMARY, RUNTIME, ARCHIVALIST, stored),)


def take_back(state: TeamState, failed: TaskPipeline) -> Moved | None:
    """Return a task to the old pipeline if the new pipeline of a hand-off could not start. None if there is no such
    hand-off, or the old pipeline is over."""
    old, bundled = state.pipelines.get(failed.previous), state.handoffs.get(failed.previous)
    if old is None or bundled is None or old.is_over or state.dag is None:
        return None
    dag = mark(state.dag, old.task_id, NodeStatus.RUNNING, pipeline=old.id)
    return _keep(msgspec.structs.replace(state, dag=dag), bundled)


def notes_of(bundled: PipelineHandoff) -> str:
    """The state of the task for the next Engineer, as text."""
    engineer, inspector, tester = bundled.engineer_state, bundled.inspector_state, bundled.tester_state
    parts = [
        ("Done", engineer.get("accomplished")),
        ("Files changed", engineer.get("files_changed")),
        ("Remaining", engineer.get("remaining")),
        ("Notes", engineer.get("context_notes")),
        ("Open findings", inspector.get("fixes_remaining")),
        ("Failed tests", tester.get("failure_descs")),
    ]
    lines = [f"{name}: {_text(value)}" for name, value in parts if value]
    return "\n".join(["Another Engineer began this task. Its work is in your work tree.", *lines])


def _text(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def close_predecessor(state: TeamState, before: TaskPipeline, after: TaskPipeline, message: TeamMessage) -> Moved:
    """Close the old pipeline of a hand-off when the new one has started."""
    has_started = before.state is PipelineStatus.CREATED and after.state is PipelineStatus.RUNNING
    bundled = state.handoffs.get(after.previous)
    if not has_started or bundled is None:
        return state, ()
    old = state.pipelines[after.previous]
    left = {id: each for id, each in state.handoffs.items() if id != old.id}
    state = msgspec.structs.replace(state, handoffs=left)
    if old.is_over:
        return state, ()
    closed = move(
        old,
        PipelineStatus.FAILED,
        stage=Stage.NONE,
        reason=f"handed over to {after.id}",
        completed_at=message.timestamp,
        is_run_active=False,
    )
    state = msgspec.structs.replace(state, pipelines={**state.pipelines, old.id: closed})
    transfer = PipelineTransfer(state=bundled, close_pipeline=old.id, pipeline=after.id)
    effects: Effects = (CancelRun(conversation=old.engineer_id, reason="handed over"),) if old.is_run_active else ()
    return state, (*effects, send(_T.HANDOFF_COMPLETE, ORCHESTRATOR, ARCHITECT, transfer))
