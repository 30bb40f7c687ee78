"""The gate that decides whether a task counts as done: it judges the state of a pipeline as a claim with receipts."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from clew.team.evidence.gate import CompletionClaim, GateState, TaskReview, Verdict, accept
from clew.team.evidence.receipts import CheckReceipt
from clew.team.evidence.task_evidence import TaskEvidence
from clew.team.machines.pipeline_state import TaskPipeline
from clew.team.messages.message_types import INSPECTOR
from clew.team.planning.plan import PlanNode

_EVER = datetime.min.replace(tzinfo=UTC)


def completion_gate(pipeline: TaskPipeline, node: PlanNode) -> tuple[str, ...]:
    """The reasons why the work of a pipeline does not count as done; none if it does. The state of a pipeline contains
    only receipts of checks that the team itself requested."""
    try:
        return judge(pipeline, node).reasons
    except msgspec.ValidationError as error:
        return (f"A receipt cannot be read: {error}",)


def judge(pipeline: TaskPipeline, node: PlanNode) -> Verdict:
    """The verdict on the claim of a pipeline. Raises msgspec.ValidationError for an invalid receipt."""
    receipts = receipts_of(pipeline)
    return accept(claim_of(pipeline), receipts, _state_of(pipeline, node, receipts))


def evidence_of(pipeline: TaskPipeline, node: PlanNode) -> TaskEvidence:
    """The evidence for the work of a pipeline, for people."""
    return TaskEvidence(
        task=pipeline.task_id,
        title=node.label,
        claim=claim_of(pipeline),
        receipts=receipts_of(pipeline),
        verdict=judge(pipeline, node),
    )


def claim_of(pipeline: TaskPipeline) -> CompletionClaim:
    context = pipeline.context
    files = (*context.modified_files, *context.created_files, *context.deleted_files)
    return CompletionClaim(
        session=pipeline.session_id,
        pipeline=pipeline.id,
        commit=pipeline.commit,
        tree=pipeline.tree,
        base_commit=pipeline.base_commit,
        changed=tuple(dict.fromkeys(files)),
        deleted=context.deleted_files,
    )


def receipts_of(pipeline: TaskPipeline) -> tuple[CheckReceipt, ...]:
    return tuple(msgspec.convert(each, CheckReceipt) for each in pipeline.receipts)


def _state_of(pipeline: TaskPipeline, node: PlanNode, receipts: tuple[CheckReceipt, ...]) -> GateState:
    return GateState(
        session=pipeline.session_id,
        pipeline=pipeline.id,
        commit=pipeline.commit,
        tree=pipeline.tree,
        changed_at=pipeline.committed_at or _EVER,
        recorded={each.id: each.digest for each in receipts},
        requests=frozenset(pipeline.check_calls),
        has_tests=pipeline.has_tests,
        has_linters=pipeline.has_linters,
        touches_tests=pipeline.touches_tests,
        checks=node.checks,
        reviewers=(INSPECTOR,),
        reviews=_reviews(pipeline),
        waived=_waived(pipeline),
    )


def _reviews(pipeline: TaskPipeline) -> tuple[TaskReview, ...]:
    found = pipeline.inspector_result
    if found is None:
        return ()
    review = TaskReview(
        reviewer=INSPECTOR,
        session=pipeline.session_id,
        pipeline=pipeline.id,
        tree=pipeline.inspected_tree,
        status="passed" if found.passed else "failed",
        at=found.timestamp or _EVER,
    )
    return (review,)


def _waived(pipeline: TaskPipeline) -> frozenset[str]:
    """The kinds of evidence that the user chose to do without."""
    inspector = {"lint", INSPECTOR} if pipeline.skips_inspector else set()
    return frozenset(inspector | ({"test"} if pipeline.skips_tester else set()))
