"""The state of a team's work in one session: the fold of all its messages."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from clew.team.machines.dag import DagState
from clew.team.machines.phases import Phase
from clew.team.machines.pipeline_state import TaskPipeline
from clew.team.messages.conversation import MAIN
from clew.team.messages.payloads import (
    CompletionSummary,
    Findings,
    PipelineHandoff,
    PlanRequest,
    TeamQuestion,
    TestReport,
)
from clew.team.planning.plan import Plan, PlanNode
from clew.team.planning.preflight import Preflight

MAX_FIX_ROUNDS = 3


class TeamStage(StrEnum):
    """The step of the whole team; pipelines have stages of their own."""

    IDLE = ""
    RESEARCH = "research"
    PLAN = "plan"
    APPROVAL = "approval"
    BUILD = "build"
    LINT = "lint"
    JUDGE = "judgement"
    TESTS = "tests"
    FIX = "fix plan"
    CHOICE = "a decision of the user"
    OVER = "over"


class Outcome(StrEnum):
    OPEN = ""
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


class TeamState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a team knows about its work in a session. `plan` is the last proposed plan. `merging` is the
    pipeline that is being merged, and `merge_queue` holds the pipelines that wait for their merge."""

    session: str
    phase: Phase = Phase.SESSION
    stage: TeamStage = TeamStage.IDLE
    request: PlanRequest | None = None
    branch: str = ""
    folder: str = ""
    base_commit: str = ""
    head: str = ""
    tree: str = ""
    notes: tuple[str, ...] = ()
    plan: Plan | None = None
    preflight: Preflight | None = None
    is_approved: bool = False
    dag: DagState | None = None
    dag_history: tuple[str, ...] = ()
    earlier_plans: tuple[Plan, ...] = ()
    """The plans that were executed before the current one; each was followed by a plan of corrections."""
    pipelines: dict[str, TaskPipeline] = {}
    handoffs: dict[str, PipelineHandoff] = {}
    """The hand-offs under way, by the pipeline that is handed over."""
    merging: str = ""
    merge_queue: tuple[str, ...] = ()
    questions: dict[str, TeamQuestion] = {}
    """The open questions to the user, by the id of their message."""
    findings: Findings | None = None
    tests: TestReport | None = None
    receipts: tuple[str, ...] = ()
    fix_rounds: int = 0
    overrides: tuple[str, ...] = ()
    calls: int = 0
    waiting_calls: dict[str, str] = {}
    """The calls of tools for the whole team that have no result yet, and the purpose of each."""
    was_asked_again: bool = False
    is_halted: bool = False
    outcome: Outcome = Outcome.OPEN
    reason: str = ""
    summary: CompletionSummary | None = None
    tokens: int = 0
    messages: int = 0
    """The number of processed messages. A state with a higher number is newer."""

    @property
    def is_over(self) -> bool:
        return self.outcome is not Outcome.OPEN

    @property
    def is_opened(self) -> bool:
        """Whether the session has a branch to work on."""
        return bool(self.branch)

    def next_call(self, purpose: str) -> str:
        """The id of the next call of a tool for the whole team."""
        return f"{MAIN}/{purpose.partition(':')[0]}/{self.calls + 1}"

    def find_node(self, task: str) -> PlanNode | None:
        """The node of a task, in the plan that is carried out or an earlier one."""
        plans = (*((self.dag.plan,) if self.dag else ()), *self.earlier_plans)
        return next((each for plan in plans for each in plan.nodes if each.id == task), None)

    def changed_files(self) -> tuple[str, ...]:
        """The files that completed pipelines have changed, created or deleted."""
        found = (each.context for each in self.pipelines.values() if each.state == "completed")
        paths = (path for each in found for path in (*each.modified_files, *each.created_files, *each.deleted_files))
        return tuple(sorted(set(paths)))
