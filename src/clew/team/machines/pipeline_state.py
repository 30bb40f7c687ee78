"""The state of a pipeline: one task from its work tree to work that passed inspection and tests."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from clew.errors import IllegalState
from clew.team.messages.message import TeamMessage
from clew.team.messages.payloads import Findings, TestReport

MAX_LOOPS = 3


class PipelineStatus(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    INSPECTING = "inspecting"
    TESTING = "testing"
    COMPLETED = "completed"
    FAILED = "failed"


class Stage(StrEnum):
    """The step that a pipeline waits for."""

    TREE = "work tree"
    BUILD = "build"
    COMMIT = "commit"
    LINT = "lint"
    DIFF = "diff"
    JUDGE = "judgement"
    COVERING = "covering tests"
    SUITE = "all tests"
    QUESTION = "an answer of the user"
    CHOICE = "a decision of the user"
    PAUSED = "the user"
    NONE = ""


FOR_USER = (Stage.QUESTION, Stage.CHOICE, Stage.PAUSED)
"""The stages in which a pipeline waits for the user."""

TRANSITIONS: dict[PipelineStatus, frozenset[PipelineStatus]] = {
    PipelineStatus.CREATED: frozenset({PipelineStatus.RUNNING, PipelineStatus.FAILED}),
    PipelineStatus.RUNNING: frozenset({PipelineStatus.INSPECTING, PipelineStatus.FAILED}),
    PipelineStatus.INSPECTING: frozenset({PipelineStatus.RUNNING, PipelineStatus.TESTING, PipelineStatus.FAILED}),
    PipelineStatus.TESTING: frozenset({PipelineStatus.RUNNING, PipelineStatus.COMPLETED, PipelineStatus.FAILED}),
    PipelineStatus.COMPLETED: frozenset(),
    PipelineStatus.FAILED: frozenset(),
}
"""The states that may follow each state. Every other change is refused."""


class PipelineContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The task of a pipeline and the feedback on it."""

    task_prompt: str
    task_constraints: tuple[str, ...] = ()
    compliance_criteria: tuple[str, ...] = ()
    upstream_outputs: dict[str, str] = {}
    handoff_notes: str = ""
    modified_files: tuple[str, ...] = ()
    created_files: tuple[str, ...] = ()
    deleted_files: tuple[str, ...] = ()
    inspector_feedback: tuple[Findings, ...] = ()
    tester_feedback: tuple[TestReport, ...] = ()


class TaskPipeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt at one task. `asks` counts the prompts to its builder and `calls` the tool calls; both counters are
    used in ids. `receipts` belong to the tree that was checked last."""

    id: str
    session_id: str
    dag_id: str
    task_id: str
    builder: str = "engineer"
    state: PipelineStatus = PipelineStatus.CREATED
    stage: Stage = Stage.TREE
    created_at: datetime
    completed_at: datetime | None = None
    engineer_id: str = ""
    inspector_id: str = ""
    tester_id: str = ""
    context: PipelineContext
    inspector_loops: int = 0
    tester_loops: int = 0
    max_loops: int = MAX_LOOPS
    engineer_result: str = ""
    inspector_result: Findings | None = None
    tester_result: TestReport | None = None
    is_claimed: bool = False
    """Whether the builder claimed in its current run that the task is done."""
    is_run_active: bool = False
    was_asked_again: bool = False
    is_time_up: bool = False
    """Whether the time limit ended while the pipeline waited for the user."""
    skips_inspector: bool = False
    skips_tester: bool = False
    overrides: tuple[str, ...] = ()
    """Findings that the user chose to ignore."""
    question: str = ""
    waiting_prompts: tuple[str, ...] = ()
    asks: int = 0
    calls: int = 0
    previous: str = ""
    """The pipeline of the same task before this one."""
    start_from: str = ""
    """The commit that the work tree starts from; empty for the head of the session."""
    base_commit: str = ""
    commit: str = ""
    tree: str = ""
    committed_at: datetime | None = None
    inspected_tree: str = ""
    """The tree that the last inspection was about."""
    check_calls: tuple[str, ...] = ()
    """The calls of checks for the present commit."""
    receipts: tuple[dict[str, Any], ...] = ()
    has_tests: bool = False
    has_linters: bool = False
    """Whether the checks found tests and linters in the project."""
    touches_tests: bool = False
    """Whether the plan states that tests are removed, skipped or made weaker."""
    diff: str = ""
    handoff_index: int = 0
    reason: str = ""
    is_retryable: bool = False
    tokens: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in (PipelineStatus.COMPLETED, PipelineStatus.FAILED)


def repeated(pipeline: TaskPipeline, name: str, message: TeamMessage) -> TaskPipeline:
    """A new attempt for a pipeline that ended before its work tree was created. It keeps the start commit and the
    predecessor of the ended pipeline."""
    return msgspec.structs.replace(
        pipeline,
        id=name,
        state=PipelineStatus.CREATED,
        stage=Stage.TREE,
        created_at=message.timestamp,
        completed_at=None,
        reason="",
        is_retryable=False,
        calls=0,
    )


def move(pipeline: TaskPipeline, state: PipelineStatus, **changes: Any) -> TaskPipeline:
    """The pipeline in another state. Raises IllegalState if the transition is not allowed."""
    if state is not pipeline.state and state not in TRANSITIONS[pipeline.state]:
        allowed = sorted(TRANSITIONS[pipeline.state])
        raise IllegalState(f"move to {state}", f"pipeline {pipeline.id}", pipeline.state, allowed)
    return msgspec.structs.replace(pipeline, state=state, **changes)
