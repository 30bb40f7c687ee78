"""Payloads of team messages. A field that is unknown or of a wrong type is refused."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from clew.team.planning.plan import Plan

MAX_TEXT = 1_000_000
"""Characters of a text in a message."""
NonEmpty = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
Bounded = Annotated[str, Meta(max_length=MAX_TEXT)]


class Payload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of all payloads."""


class TextPayload(Payload, frozen=True, kw_only=True):
    text: NonEmpty


class SessionChange(Payload, frozen=True, kw_only=True):
    name: str = ""
    reason: str = ""


class TeamQuery(Payload, frozen=True, kw_only=True):
    """A question to a knowledge agent. `pipeline` is the pipeline that asks."""

    query: NonEmpty
    pipeline: str = ""
    across_sessions: bool = False


class TeamReply(Payload, frozen=True, kw_only=True):
    text: Bounded
    request: str = ""
    pipeline: str = ""
    sources: tuple[str, ...] = ()


class StoreRequest(Payload, frozen=True, kw_only=True):
    """A record for the Archivalist."""

    category: NonEmpty
    content: dict[str, Any]
    pipeline: str = ""


class PlanRequest(Payload, frozen=True, kw_only=True):
    """A request of the user, with the options of the run. `budget` limits the tokens, and `max_engineers` the number of
    concurrent Engineer tasks. `task_timeout` limits the seconds of tasks without a limit of their own. 0 means no
    limit."""

    request: NonEmpty
    base: str = "HEAD"
    takes_changes: bool = False
    approves_plan: bool = False
    research: bool = False
    budget: Annotated[int, Meta(ge=0)] = 0
    max_agents: Annotated[int, Meta(ge=1, le=64)] = 4
    max_engineers: Annotated[int, Meta(ge=0, le=64)] = 0
    task_timeout: Annotated[float, Meta(ge=0)] = 0.0
    branch: str = ""
    """The preferred branch of the session. If the name is taken, the session gets another one."""


class PlanProposal(Payload, frozen=True, kw_only=True):
    plan: Plan
    note: str = ""


class PlanApproval(Payload, frozen=True, kw_only=True):
    plan_id: str = ""
    over_budget: bool = False
    """Whether the user also accepts an estimate above the budget."""


class DagProgress(Payload, frozen=True, kw_only=True):
    passed: int
    total: int
    note: str = ""


class Dispatch(Payload, frozen=True, kw_only=True):
    pipeline: NonEmpty
    task: NonEmpty
    prompt: Bounded = ""


class TaskClaim(Payload, frozen=True, kw_only=True):
    """An agent's claim that its task is done."""

    pipeline: NonEmpty
    summary: Bounded = ""
    files: tuple[str, ...] = ()


class TaskFailure(Payload, frozen=True, kw_only=True):
    pipeline: NonEmpty
    reason: Bounded


class TeamQuestion(Payload, frozen=True, kw_only=True):
    """A question on its way to the user. `origin` is the agent that originally asked."""

    question: NonEmpty
    pipeline: str = ""
    origin: str = ""
    request: str = ""


class QuestionAnswer(Payload, frozen=True, kw_only=True):
    text: NonEmpty
    request: str = ""
    pipeline: str = ""


class TaskReference(Payload, frozen=True, kw_only=True):
    pipeline: NonEmpty


class CheckIssue(Payload, frozen=True, kw_only=True):
    """One finding of the Inspector at a line of a file."""

    file: str
    line: int = 0
    column: int = 0
    category: Literal["lint", "format", "type", "compliance"] = "lint"
    severity: Literal["error", "warning"] = "error"
    message: str = ""
    suggestion: str = ""


class TestFailure(Payload, frozen=True, kw_only=True):
    """One test that failed."""

    __test__ = False

    test_name: str
    file: str = ""
    message: str = ""
    expected: str = ""
    actual: str = ""
    stack_trace: str = ""


class Findings(Payload, frozen=True, kw_only=True):
    """The result of an inspection. `loop` counts the rounds of the pipeline."""

    passed: bool
    issues: tuple[CheckIssue, ...] = ()
    pipeline: str = ""
    loop: int = 0
    timestamp: datetime | None = None
    note: str = ""


class TestReport(Payload, frozen=True, kw_only=True):
    """The result of a test run."""

    __test__ = False

    passed: bool
    tests_run: int = 0
    tests_passed: int = 0
    failures: tuple[TestFailure, ...] = ()
    pipeline: str = ""
    loop: int = 0
    timestamp: datetime | None = None
    note: str = ""


class UserOverride(Payload, frozen=True, kw_only=True):
    """The user accepts open findings of the session's inspection or tests, with a reason."""

    reason: NonEmpty
    what: Literal["inspection", "testing"] = "inspection"


class UserInterrupt(Payload, frozen=True, kw_only=True):
    kind: Literal["halt", "continue", "add", "ask", "suspend", "stop"]
    text: Bounded = ""


class CompletionSummary(Payload, frozen=True, kw_only=True):
    """The end of the work: files, tests, validation, and findings that the user chose to ignore."""

    text: str
    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    tests_run: int = 0
    tests_passed: int = 0
    validation: str = ""
    deferred_overrides: tuple[str, ...] = ()
    branch: str = ""
    head: str = ""
    receipts: tuple[str, ...] = ()
    tokens: int = 0


class PipelineResult(Payload, frozen=True, kw_only=True):
    pipeline: NonEmpty
    task: NonEmpty
    success: bool
    modified_files: tuple[str, ...] = ()
    created_files: tuple[str, ...] = ()
    loops_used: int = 0
    reason: str = ""
    seconds: float = 0.0


class TaskText(Payload, frozen=True, kw_only=True):
    """A message about one pipeline."""

    pipeline: NonEmpty
    text: Bounded = ""


class PipelineHandoff(Payload, frozen=True, kw_only=True):
    """The state that passes from one pipeline to the next one of the same task."""

    old_pipeline_id: NonEmpty
    session_id: str = ""
    dag_id: str = ""
    task_id: str = ""
    handoff_reason: str = ""
    timestamp: datetime | None = None
    handoff_index: int = 0
    engineer_state: dict[str, Any] = {}
    inspector_state: dict[str, Any] = {}
    tester_state: dict[str, Any] = {}
    was_retried: bool = False


class PipelineTransfer(Payload, frozen=True, kw_only=True):
    state: PipelineHandoff
    close_pipeline: NonEmpty
    pipeline: str = ""


class RunEnd(Payload, frozen=True, kw_only=True):
    """The end of one run of an agent."""

    conversation: NonEmpty
    role: NonEmpty
    pipeline: str = ""
    status: Literal["answered", "failed", "cancelled"]
    text: Bounded = ""
    error: str = ""
    cause: Literal["", "budget", "model", "timeout"] = ""
    tokens: int = 0


class CallResult(Payload, frozen=True, kw_only=True):
    """The end of one call of a `team-` tool."""

    call: NonEmpty
    tool: NonEmpty
    status: Literal["success", "error", "cancelled", "interrupted"]
    output: dict[str, Any] = {}
    error: str = ""


class TimerDue(Payload, frozen=True, kw_only=True):
    key: NonEmpty


class PipelineChoice(Payload, frozen=True, kw_only=True):
    """The user's decision on a pipeline that used all its loops, or a choice on the session's findings."""

    pipeline: str = ""
    choice: Literal["ignore", "fail", "retry"]
    reason: str = ""


class MessageRefusal(Payload, frozen=True, kw_only=True):
    """A message that was not accepted."""

    message: NonEmpty
    type: str = ""
    reason: NonEmpty
    hint: str = ""
