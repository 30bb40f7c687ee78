"""Prompts of the team, built from its state."""

from __future__ import annotations

from collections.abc import Sequence

from clew.team.machines.pipeline_state import TaskPipeline
from clew.team.messages.payloads import CheckIssue, Findings, TestFailure, TestReport
from clew.team.planning.plan import PlanNode

MAX_DIFF = 60_000
MAX_LISTED = 50
SIGNAL = "engineer_signal_complete"
HELP = "engineer_request_help"


def plan_prompt(request: str, findings: str = "") -> str:
    """The request for a plan."""
    background = f"\n\nResearch on the request:\n{findings}" if findings else ""
    return (
        f"Plan this request of the user:\n\n{request}{background}\n\n"
        "Call the tool `plan` with the tasks. Name for each the files that it may change, the checks that must pass "
        "and the criteria that a reviewer judges. Use one task unless parts are independent of each other. If the "
        "request is unclear, call `clarify` with one question."
    )


def plan_again(reason: str) -> str:
    """The second request, after a run that ended without a plan."""
    return f"{reason} Call `plan` with the tasks now, or `clarify` with one question."


def modify_prompt(text: str) -> str:
    return f"The user wants another plan:\n\n{text}\n\nCall `modify_plan` with the whole new plan."


def answer_prompt(question: str, text: str) -> str:
    asked = f"You asked: {question}\n" if question else ""
    return f"{asked}The user answers: {text}\n\nGo on."


def build_prompt(node: PlanNode, pipeline: TaskPipeline) -> str:
    """The first prompt of a builder: the verbatim task, its limits, and the results of the tasks that it depends on."""
    parts = [pipeline.context.task_prompt]
    if pipeline.context.handoff_notes:
        parts.append(pipeline.context.handoff_notes)
    if node.files:
        parts.append("You may change only these files: " + ", ".join(node.files))
    if node.context.relevant_files:
        parts.append("Read first: " + ", ".join(node.context.relevant_files))
    parts += _listed("Constraints:", pipeline.context.task_constraints)
    parts += _listed("A reviewer checks:", pipeline.context.compliance_criteria)
    parts += _listed("These commands must pass:", node.checks)
    for task, text in pipeline.context.upstream_outputs.items():
        parts.append(f"Result of the task {task}, which is done:\n{text}")
    parts += [_feedback(each) for each in pipeline.context.inspector_feedback[-1:]]
    parts += [_test_feedback(each) for each in pipeline.context.tester_feedback[-1:]]
    parts.append(
        f"When the work is finished, call `{SIGNAL}` with a summary. If you cannot go on without an answer, "
        f"call `{HELP}`."
    )
    return "\n\n".join(parts)


def build_again() -> str:
    return f"You ended without `{SIGNAL}`. Finish the task and call it, or call `{HELP}` with your question."


def inspector_feedback(findings: Findings) -> str:
    """The feedback to a builder after an inspection."""
    return f"{_feedback(findings)}\n\nChange only what these findings need. Then call `{SIGNAL}` again."


def tester_feedback(report: TestReport) -> str:
    """The feedback to a builder after a test run."""
    return f"{_test_feedback(report)}\n\nChange only what is needed. Then call `{SIGNAL}` again."


def judge_prompt(node: PlanNode, pipeline: TaskPipeline) -> str:
    """The request to the Inspector to judge a change by its criteria."""
    criteria = "\n".join(f"- {each}" for each in pipeline.context.compliance_criteria)
    return (
        f"Judge this change. The task was:\n{node.prompt}\n\nCriteria:\n{criteria}\n\n"
        f"The change:\n```diff\n{pipeline.diff[:MAX_DIFF]}\n```\n\n"
        "Call `report_issues` once. Give an issue with file and line for each criterion that the change does not "
        "meet, or no issue if it meets all."
    )


def judge_again() -> str:
    return "You ended without a verdict. Call `report_issues` once, with the issues or with none."


def full_judge_prompt(request: str, files: Sequence[str]) -> str:
    """The request to the Inspector to judge the whole work of a session."""
    return (
        f"All tasks of this request are merged:\n{request}\n\nChanged files: {', '.join(files[:MAX_LISTED])}\n\n"
        "Check that the parts fit together and that the request is met. Call `report_issues` once, with the issues or "
        "with none."
    )


def fix_prompt(text: str) -> str:
    """The request to the Architect for a plan that corrects findings."""
    return (
        f"The work is merged, but these findings are open:\n\n{text}\n\n"
        "Call `create_fix_dag` with the smallest plan that corrects them."
    )


def query_prompt(pipeline: TaskPipeline, question: str) -> str:
    """A question of the user about a task, for an agent that only reads."""
    return (
        f"The user asks about a task that is {pipeline.state}. The task:\n{pipeline.context.task_prompt}\n\n"
        f"Changed files: {', '.join(pipeline.context.modified_files) or 'none yet'}\n\n"
        f"Question: {question}\n\nAnswer it. Change nothing."
    )


def findings_text(issues: Sequence[CheckIssue], failures: Sequence[TestFailure]) -> str:
    """Issues and failed tests, one line each."""
    lines = [_issue_line(each) for each in issues[:MAX_LISTED]] + [
        _failure_line(each) for each in failures[:MAX_LISTED]
    ]
    more = len(issues) + len(failures) - len(lines)
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def _feedback(findings: Findings) -> str:
    return f"The Inspector found in round {findings.loop}:\n{findings_text(findings.issues, ())}{_note(findings.note)}"


def _test_feedback(report: TestReport) -> str:
    head = f"The Tester ran {report.tests_run} tests in round {report.loop}; {report.tests_passed} passed:"
    return f"{head}\n{findings_text((), report.failures)}{_note(report.note)}"


def _note(note: str) -> str:
    return f"\n{note}" if note else ""


def _issue_line(issue: CheckIssue) -> str:
    suggestion = f" ({issue.suggestion})" if issue.suggestion else ""
    return f"- {issue.file}:{issue.line}: {issue.category} {issue.severity}: {issue.message}{suggestion}"


def _failure_line(failure: TestFailure) -> str:
    compared = f" (expected {failure.expected}, got {failure.actual})" if failure.expected or failure.actual else ""
    trace = f"\n  {failure.stack_trace.strip()[:2_000]}" if failure.stack_trace.strip() else ""
    return f"- {failure.file}: {failure.test_name}: {failure.message[:1_000]}{compared}{trace}"


def _listed(head: str, items: Sequence[str]) -> list[str]:
    return ["\n".join([head, *(f"- {each}" for each in items)])] if items else []
