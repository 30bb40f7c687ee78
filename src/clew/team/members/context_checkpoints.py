"""Checkpoints of members whose context fills up. They are built from the state of the session, the journal and the
calls of a conversation, without a model, and stored with the Archivalist under the category of the role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from clew.knowledge.history.entries import CheckpointCategory
from clew.team.machines.dag import NodeStatus
from clew.team.machines.pipeline_state import TaskPipeline
from clew.team.machines.team_state import TeamState
from clew.team.messages.conversation import TeamConversation
from clew.team.messages.payloads import CheckIssue
from clew.trail.model.breadcrumb import Breadcrumb


class ContextCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of every checkpoint. `context_usage` is between 0 and 1."""

    timestamp: datetime
    session_id: str
    context_usage: float


class LibrarianCheckpoint(ContextCheckpoint, frozen=True, kw_only=True):
    checkpoint_index: int
    directory_structure: tuple[str, ...]
    key_paths: tuple[str, ...]
    code_style: dict[str, Any]
    architecture: tuple[str, ...]
    testing_strategy: tuple[str, ...]
    tooling: tuple[str, ...]
    package_managers: tuple[str, ...]
    patterns: tuple[str, ...]
    conventions: tuple[str, ...]
    new_discoveries: tuple[str, ...]


class FrequentMatch(msgspec.Struct, frozen=True, kw_only=True):
    pattern: str
    agent: str
    confidence: float
    usage_count: int


class GuideCheckpoint(ContextCheckpoint, frozen=True, kw_only=True):
    checkpoint_index: int
    known_routings: dict[str, str]
    frequent_matches: tuple[FrequentMatch, ...]
    failed_routings: tuple[str, ...]
    agent_capabilities: dict[str, str]
    request_patterns: tuple[str, ...]
    session_routing_stats: dict[str, int]


class KeyFinding(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    summary: str
    confidence: float
    sources: tuple[str, ...]


class AcademicResearchPaper(ContextCheckpoint, frozen=True, kw_only=True):
    title: str
    abstract: str
    topics_researched: tuple[str, ...]
    key_findings: tuple[KeyFinding, ...]
    sources_cited: tuple[str, ...]
    recommendations: tuple[str, ...]
    open_questions: tuple[str, ...]
    related_topics: tuple[str, ...]


class WorkflowDag(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    total_nodes: int
    completed_nodes: int
    current_layer: int
    execution_order: tuple[tuple[str, ...], ...]


class WorkflowTask(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    description: str
    status: str
    assigned_to: str
    result: str


class ArchitectWorkflow(ContextCheckpoint, frozen=True, kw_only=True):
    original_request: str
    implementation_plan: str
    current_dag: WorkflowDag | None
    completed_tasks: tuple[WorkflowTask, ...]
    pending_tasks: tuple[WorkflowTask, ...]
    blocked_tasks: tuple[WorkflowTask, ...]
    architectural_decisions: tuple[str, ...]
    risks: tuple[str, ...]
    assumptions: tuple[str, ...]


class PendingFix(msgspec.Struct, frozen=True, kw_only=True):
    issue_id: str
    file: str
    line: int
    category: str
    severity: Literal["critical", "high", "medium", "low"]
    priority: int
    description: str
    suggested_fix: str


class InspectorFindings(ContextCheckpoint, frozen=True, kw_only=True):
    pipeline_id: str
    checks_performed: int
    issues_found: int
    issues_resolved: int
    issues_remaining: int
    fixes_completed: tuple[str, ...]
    fixes_pending: tuple[PendingFix, ...]
    validation_state: Literal["passed", "failed", "open"]


class CreatedTest(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    test_name: str
    type: Literal["unit", "integration", "e2e"]
    for_task: str


class RunTest(msgspec.Struct, frozen=True, kw_only=True):
    test_name: str
    status: Literal["pass", "fail", "skip"]
    duration: float


class TesterSummary(ContextCheckpoint, frozen=True, kw_only=True):
    pipeline_id: str
    tests_created: tuple[CreatedTest, ...]
    tests_run: tuple[RunTest, ...]
    pass_count: int
    fail_count: int
    skip_count: int
    coverage_needed: tuple[str, ...]
    failure_descriptions: tuple[str, ...]


CATEGORIES: Mapping[str, tuple[CheckpointCategory, type[ContextCheckpoint]]] = {
    "librarian": (CheckpointCategory.LIBRARIAN_CHECKPOINT, LibrarianCheckpoint),
    "guide": (CheckpointCategory.GUIDE_CHECKPOINT, GuideCheckpoint),
    "academic": (CheckpointCategory.ACADEMIC_RESEARCH_PAPER, AcademicResearchPaper),
    "architect": (CheckpointCategory.ARCHITECT_WORKFLOW, ArchitectWorkflow),
    "inspector": (CheckpointCategory.INSPECTOR_FINDINGS, InspectorFindings),
    "tester": (CheckpointCategory.TESTER_SUMMARY, TesterSummary),
}
"""The category and the fields of the checkpoints of each role."""

_DONE = (NodeStatus.PASSED,)
_SHORT = 500


def architect_workflow(base: dict[str, Any], state: TeamState, decisions: Sequence[str]) -> ArchitectWorkflow:
    """The workflow of a session: the request, the plan, and its tasks by their state."""
    plan, dag = state.plan, state.dag
    tasks = {"completed": list[WorkflowTask](), "pending": list[WorkflowTask](), "blocked": list[WorkflowTask]()}
    for node in plan.nodes if plan is not None else ():
        found = dag.nodes.get(node.id) if dag is not None else None
        status = found.status if found is not None else NodeStatus.PENDING
        task = WorkflowTask(
            id=node.id,
            description=node.label,
            status=status.value,
            assigned_to=node.agent,
            result=found.output[:_SHORT] if found is not None else "",
        )
        kind = "completed" if status in _DONE else "blocked" if found is not None and found.reason else "pending"
        tasks[kind].append(task)
    return ArchitectWorkflow(
        **base,
        original_request=state.request.request if state.request is not None else "",
        implementation_plan=plan.summary if plan is not None else "",
        current_dag=_dag(state, len(tasks["completed"])),
        completed_tasks=tuple(tasks["completed"]),
        pending_tasks=tuple(tasks["pending"]),
        blocked_tasks=tuple(tasks["blocked"]),
        architectural_decisions=tuple(decisions),
        risks=tuple(each.question for each in state.questions.values()),
        assumptions=state.notes,
    )


def inspector_findings(base: dict[str, Any], state: TeamState, place: TeamConversation) -> InspectorFindings:
    """The findings of a pipeline, or of the session."""
    pipeline = state.pipelines.get(place.pipeline)
    found = pipeline.inspector_result if pipeline is not None else state.findings
    rounds = pipeline.context.inspector_feedback if pipeline is not None else ()
    earlier = {_issue_key(issue): issue for each in rounds for issue in each.issues}
    now = {_issue_key(issue): issue for issue in found.issues} if found is not None and not found.passed else {}
    resolved = [issue for key, issue in earlier.items() if key not in now]
    ordered = sorted(now.values(), key=lambda each: each.severity != "error")
    state_of = "open" if found is None else "passed" if found.passed else "failed"
    return InspectorFindings(
        **base,
        pipeline_id=place.pipeline,
        checks_performed=pipeline.inspector_loops if pipeline is not None else state.fix_rounds,
        issues_found=len(earlier | now),
        issues_resolved=len(resolved),
        issues_remaining=len(now),
        fixes_completed=tuple(each.message for each in resolved),
        fixes_pending=tuple(_fix(at, each) for at, each in enumerate(ordered, 1)),
        validation_state=state_of,  # type: ignore[arg-type]  # one of its three values
    )


def tester_summary(base: dict[str, Any], state: TeamState, place: TeamConversation) -> TesterSummary:
    """The last test run of a pipeline, or of the session."""
    pipeline = state.pipelines.get(place.pipeline)
    report = pipeline.tester_result if pipeline is not None else state.tests
    failures = report.failures if report is not None else ()
    run, passed = (report.tests_run, report.tests_passed) if report is not None else (0, 0)
    return TesterSummary(
        **base,
        pipeline_id=place.pipeline,
        tests_created=_created_tests(pipeline),
        tests_run=tuple(RunTest(test_name=each.test_name, status="fail", duration=0.0) for each in failures),
        pass_count=passed,
        fail_count=len(failures),
        skip_count=max(0, run - passed - len(failures)),
        coverage_needed=pipeline.context.modified_files if pipeline is not None else (),
        failure_descriptions=tuple(f"{each.test_name}: {each.message}"[:_SHORT] for each in failures),
    )


def guide_checkpoint(
    base: dict[str, Any], index: int, calls: Sequence[tuple[Breadcrumb, dict[str, Any]]], modes: dict[str, str]
) -> GuideCheckpoint:
    """The checkpoint of the Guide: the routings of a conversation, read from its calls of the router."""
    routed = [(str(given.get("input") or ""), each.context.get("output")) for each, given in calls]
    known = {text: str(output["target"]) for text, output in routed if isinstance(output, dict) and "target" in output}
    sure = {text: float(output.get("confidence") or 0) for text, output in routed if isinstance(output, dict)}
    counts = Counter(text for text, _ in routed)
    return GuideCheckpoint(
        **base,
        checkpoint_index=index,
        known_routings=known,
        frequent_matches=tuple(
            FrequentMatch(pattern=text, agent=known[text], confidence=sure[text], usage_count=count)
            for text, count in counts.most_common(20)
            if text in known
        ),
        failed_routings=tuple(text for text, output in routed if not isinstance(output, dict)),
        agent_capabilities=modes,
        request_patterns=tuple(dict.fromkeys(text.split()[0].lower() for text in known if text.split())),
        session_routing_stats=dict(Counter(known.values())),
    )


def research_paper(base: dict[str, Any], calls: Sequence[tuple[Breadcrumb, dict[str, Any]]]) -> AcademicResearchPaper:
    """The checkpoint of the Academic: the research of a conversation, read from its tool calls."""
    findings = [
        KeyFinding(
            topic=str(given.get("query") or given.get("topic") or each.context.get("tool")),
            summary=str(each.context.get("output") or "")[:_SHORT],
            confidence=1.0 if each.context.get("status") == "success" else 0.0,
            sources=tuple(_citations(str(each.context.get("output") or ""))),
        )
        for each, given in calls
    ]
    topics = tuple(dict.fromkeys(each.topic for each in findings))
    return AcademicResearchPaper(
        **base,
        title=f"Research on {', '.join(topics[:3]) or 'nothing yet'}",
        abstract=findings[-1].summary if findings else "",
        topics_researched=topics,
        key_findings=tuple(findings),
        sources_cited=tuple(dict.fromkeys(source for each in findings for source in each.sources)),
        recommendations=(),
        open_questions=tuple(each.topic for each in findings if not each.sources),
        related_topics=(),
    )


def _citations(text: str) -> list[str]:
    """The ids of cited entries, which are in brackets at the ends of lines."""
    ends = [line.rpartition("(")[2].removesuffix(")") for line in text.splitlines() if line.endswith(")")]
    return [each for each in ends if each and " " not in each]


def _dag(state: TeamState, completed: int) -> WorkflowDag | None:
    if state.plan is None:
        return None
    order = state.plan.execution_order
    nodes = state.dag.nodes if state.dag is not None else {}
    passed = {id for id, each in nodes.items() if each.status in _DONE}
    layer = next((at for at, each in enumerate(order) if not set(each) <= passed), len(order))
    return WorkflowDag(
        id=state.plan.id,
        total_nodes=len(state.plan.nodes),
        completed_nodes=completed,
        current_layer=layer,
        execution_order=order,
    )


def _issue_key(issue: CheckIssue) -> tuple[str, str]:
    return issue.file, issue.message


def _fix(number: int, issue: CheckIssue) -> PendingFix:
    return PendingFix(
        issue_id=str(number),
        file=issue.file,
        line=issue.line,
        category=issue.category,
        severity="high" if issue.severity == "error" else "low",
        priority=number,
        description=issue.message,
        suggested_fix=issue.suggestion,
    )


def _created_tests(pipeline: TaskPipeline | None) -> tuple[CreatedTest, ...]:
    created = pipeline.context.created_files if pipeline is not None else ()
    task = pipeline.task_id if pipeline is not None else ""
    return tuple(
        CreatedTest(file=path, test_name=path, type="unit", for_task=task) for path in created if "test" in path.lower()
    )
