"""The team in lines of text: one for a message, some for a plan, a task, a status and the end. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from clew.cli.terminal.output import count, one_line
from clew.team.machines.pipeline_state import Stage, TaskPipeline
from clew.team.machines.team_state import Outcome, TeamState
from clew.team.messages.conversation import MAIN
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import INSPECTOR, TESTER, USER, MessageType
from clew.team.planning.plan import Plan, PlanNode
from clew.team.planning.preflight import Preflight
from clew.team.runtime.file_locks import HEAD
from clew.team.runtime.resources import SharedResources
from clew.team.runtime.status_records import TeamStatus

WIDTH = 160
SHOWN_ISSUES = 5
_T = MessageType


def message_line(message: TeamMessage) -> str:
    """One line about a message, with the task that it belongs to; empty for a message that is of no interest to a
    reader."""
    text = _describe(message, message.payload)
    task = task_of(message)
    return f"{task}: {text}" if text and task else text


def message_row(message: TeamMessage) -> tuple[str, str]:
    """The task of a message, and its line without the task."""
    return task_of(message), _describe(message, message.payload)


def task_of(message: TeamMessage) -> str:
    """The task that a message belongs to, as commands accept it; empty for the whole team."""
    pipeline = str(message.payload.get("pipeline") or MAIN)
    return "" if pipeline == MAIN else short_pipeline(pipeline)


def short_pipeline(pipeline: str) -> str:
    """The first attempt at a task is named like the task."""
    return pipeline.removesuffix(".1")


def _describe(message: TeamMessage, payload: dict[str, Any]) -> str:
    match message.type:
        case _T.PLAN_REQUEST:
            return f"request: {_cut(payload['request'])}"
        case _T.PLAN_RESPONSE:
            return f"architect: a plan with {count(len(payload['plan']['nodes']), 'task')}"
        case _T.PLAN_APPROVED:
            return "the plan is approved"
        case _T.PLAN_MODIFIED:
            return f"you change the plan: {_cut(payload['text'])}"
        case _T.TASK_DISPATCH:
            return f"{message.target} starts"
        case _T.TASK_COMPLETE:
            return f"{message.source} says that it is done: {_cut(payload.get('summary') or 'no summary')}"
        case _T.CLARIFICATION_REQUEST | _T.TASK_HELP:
            asked = "you" if message.target == USER else f"the {message.target}"
            return f"{message.source} asks {asked}: {_cut(payload['question'])}"
        case _T.CLARIFICATION_RESPONSE:
            return f"{message.source} answers: {_cut(payload['text'])}"
        case _T.WORKFLOW_COMPLETE:
            return f"the end: {_cut(payload['text'])}"
        case _T.MESSAGE_REFUSED:
            return f"refused: {_cut(payload['reason'])}{_hint(payload)}"
        case _T.CALL_RESULT if payload["status"] != "success":
            return f"{payload['tool']} failed: {_cut(payload.get('error') or payload['status'])}"
    return _describe_check(message, payload) or _describe_user(message, payload)


def _describe_check(message: TeamMessage, payload: dict[str, Any]) -> str:
    """A line about a check or the end of a task."""
    match message.type:
        case _T.INSPECTOR_FEEDBACK | _T.VALIDATION_CORRECTIONS | _T.VALIDATION_RESULT | _T.INSPECTION_RESULTS:
            return f"inspector: {findings_text(payload)}"
        case _T.TESTER_FEEDBACK | _T.TEST_CORRECTIONS | _T.TEST_RESULTS:
            return f"tester: {tests_text(payload)}"
        case _T.PIPELINE_COMPLETE:
            rounds = payload.get("loops_used", 0)
            return f"passed after {count(rounds, 'correction')}" if rounds else "passed"
        case _T.PIPELINE_FAILED:
            return f"failed: {_cut(payload.get('reason') or 'no reason')}"
    return ""


def _describe_user(message: TeamMessage, payload: dict[str, Any]) -> str:
    """A line about something that the user said, or an answer about a task."""
    text = _cut(payload.get("text") or payload.get("reason") or "")
    match message.type:
        case _T.USER_INTERRUPT:
            return f"you {_INTERRUPTS[payload['kind']]}{f': {text}' if text else ''}"
        case _T.USER_OVERRIDE | _T.USER_CHOICE:
            chosen = payload.get("choice") or f"override the {payload.get('what', 'inspection')}"
            return f"you choose: {chosen}{f' ({text})' if text else ''}"
        case _T.TASK_ANSWER:
            teller = "architect" if payload.get("pipeline") == MAIN else message.source
            return f"{teller} says: {text}"
        case _T.USER_TASK_PROMPT | _T.USER_TASK_QUERY | _T.USER_TASK_INTERRUPT:
            return f"you say: {text or 'stop'}"
        case _T.USER_IGNORE_INSPECTOR | _T.USER_IGNORE_TESTER:
            return f"you ignore the {message.type.rpartition('_')[2].lower()}{f': {text}' if text else ''}"
    return ""


_INTERRUPTS = {
    "halt": "pause the work",
    "continue": "let the work go on",
    "add": "add",
    "ask": "ask",
    "suspend": "suspend the session",
    "stop": "stop the work",
}


def findings_text(payload: dict[str, Any]) -> str:
    """The findings of an inspection: their number and the first ones with file and line."""
    issues: Sequence[dict[str, Any]] = payload.get("issues") or ()
    if not issues:
        return "passed" if payload.get("passed") else _cut(payload.get("note") or "not passed")
    shown = "; ".join(_issue(each) for each in issues[:SHOWN_ISSUES])
    more = f"; and {len(issues) - SHOWN_ISSUES} more" if len(issues) > SHOWN_ISSUES else ""
    return f"{count(len(issues), 'finding')}: {shown}{more}"


def _issue(issue: dict[str, Any]) -> str:
    line = f":{issue['line']}" if issue.get("line") else ""
    place = f"{issue['file']}{line} " if issue.get("file") else ""
    return _cut(f"{place}{issue['message']}")


def tests_text(payload: dict[str, Any]) -> str:
    """The result of tests: counts, and the names of those that failed."""
    failures: Sequence[dict[str, Any]] = payload.get("failures") or ()
    run, passed = payload.get("tests_run", 0), payload.get("tests_passed", 0)
    counts = f"{passed} of {count(run, 'test')} passed" if run else ""
    names = "; ".join(_failure(each) for each in failures[:SHOWN_ISSUES])
    note = _cut(payload.get("note") or "")
    return ": ".join(filter(None, (counts, names or note))) or ("passed" if payload.get("passed") else "not passed")


def _failure(failure: dict[str, Any]) -> str:
    """A test that failed, with the first line of its message."""
    first = next((line for line in str(failure.get("message") or "").splitlines() if line.strip()), "")
    return _cut(f"{failure['test_name']} {first}".strip())


def plan_lines(plan: Plan, state: TeamState | None = None) -> Iterator[str]:
    """The tasks of a plan with number, status, files, checks and dependencies."""
    return (line for _, line in plan_rows(plan, state))


def plan_rows(plan: Plan, state: TeamState | None = None) -> Iterator[tuple[str, str]]:
    """The lines of a plan, each with the id of its task; it is empty for a line about the whole plan."""
    statuses = {id: str(each.status) for id, each in state.dag.nodes.items()} if state and state.dag else {}
    if plan.summary:
        yield "", one_line(plan.summary)[:WIDTH]
    for number, node in enumerate(plan.nodes, 1):
        depth = next((at for at, layer in enumerate(plan.execution_order) if node.id in layer), 0)
        status = f"[{statuses[node.id]}] " if node.id in statuses else ""
        yield node.id, f"{'  ' * depth}{number}. {status}{node.id} ({node.agent}): {_cut(node.label)}{_limits(node)}"
    if plan.touches_tests:
        yield "", "This plan may delete, skip or weaken tests."


def _limits(node: PlanNode) -> str:
    parts = [
        f"files {', '.join(node.files)}"[:WIDTH] if node.files else "",
        f"checks {', '.join(node.checks)}" if node.checks else "",
        f"after {', '.join(node.depends_on)}"[:WIDTH] if node.depends_on else "",
    ]
    shown = "; ".join(filter(None, map(one_line, parts)))
    return f" [{shown}]" if shown else ""


def estimate_line(found: Preflight, budget: int) -> str:
    """One agent or a team, with the estimate of both and the budget."""
    chosen, other = (found.single, found.team) if found.one_agent else (found.team, found.single)
    way = "one agent" if found.one_agent else f"{chosen.agents} agents"
    rest = "a team" if found.one_agent else "one agent"
    limit = f"; the budget is {budget:,}" if budget else ""
    over = ", which is not enough" if found.exceeds_budget else ""
    cost, instead = (f"{each.tokens:,} tokens and {each.seconds / 60:.0f} min" for each in (chosen, other))
    instead = "the same" if instead == cost else instead.replace(" tokens", "")
    reason = f"{found.reason[:1].upper()}{found.reason[1:].rstrip('.')}"
    return f"{reason}: {way}, about {cost} ({rest}: {instead}){limit}{over}."


_STAGES = {
    Stage.TREE: "gets a work tree",
    Stage.BUILD: "builds",
    Stage.COMMIT: "commits",
    Stage.LINT: "runs the linters",
    Stage.DIFF: "reads the change",
    Stage.JUDGE: "judges the change",
    Stage.COVERING: "runs the tests of the change",
    Stage.SUITE: "runs all tests",
    Stage.QUESTION: "waits for an answer of yours",
    Stage.CHOICE: "waits for a decision of yours",
    Stage.PAUSED: "is paused",
}
_AGENTS = dict.fromkeys((Stage.LINT, Stage.DIFF, Stage.JUDGE), INSPECTOR) | dict.fromkeys(
    (Stage.COVERING, Stage.SUITE), TESTER
)
"""The agent that works in a stage; in stages that are not listed, the builder."""


def task_line(pipeline: TaskPipeline, activity: str = "") -> str:
    """One line about the agent of a task: its activity, the round, tokens, and its current command."""
    rounds = max(pipeline.inspector_loops, pipeline.tester_loops)
    agent = _AGENTS.get(pipeline.stage, pipeline.builder)
    does = pipeline.state if pipeline.is_over else _STAGES.get(pipeline.stage, pipeline.state)
    parts = [
        f"{short_pipeline(pipeline.id)}: {agent} {does}",
        f"round {rounds + 1}" if rounds else "",
        f"{pipeline.tokens:,} tokens" if pipeline.tokens else "",
        _cut(activity),
    ]
    return " · ".join(filter(None, parts))


def status_line(state: TeamState) -> str:
    """The whole team in one line: phase, tasks, tokens."""
    tasks = f"{state.dag.passed} of {count(len(state.dag.nodes), 'task')} passed" if state.dag else ""
    stage = f" ({state.stage})" if state.stage and not state.is_over else ""
    paused = "paused" if state.is_halted else ""
    tokens = f"{state.tokens:,} tokens" if state.tokens else ""
    return " · ".join(filter(None, (f"{state.phase}{stage}", tasks, tokens, paused)))


def end_lines(state: TeamState) -> Iterator[str]:
    """The end of the work: outcome, files, tests, validation, receipts and the next command."""
    done = state.summary
    reason = f": {_cut(state.reason)}" if state.reason and state.outcome is not Outcome.COMPLETED else ""
    yield f"The work is {state.outcome}{reason}."
    if done is None:
        return
    for label, files in (("created", done.created), ("modified", done.modified), ("deleted", done.deleted)):
        if files:
            yield f"  {label}: {', '.join(files)}"
    if done.tests_run:
        yield f"  tests: {done.tests_passed} of {done.tests_run} passed"
    if done.validation:
        yield f"  validation: {_cut(done.validation)}"
    for each in done.deferred_overrides:
        yield f"  deferred: {_cut(each)}"
    for pipeline in state.pipelines.values():
        yield from receipt_lines(pipeline)
    yield f"  branch: {state.branch}" if state.branch else "  no branch"


def receipt_lines(pipeline: TaskPipeline) -> Iterator[str]:
    """The commands that prove a task, below the tree that they ran on."""
    tree = ""
    for each in pipeline.receipts:
        if (found := str(each.get("tree", ""))[:12]) != tree:
            tree = found
            yield f"  proof of {short_pipeline(pipeline.id)}, tree {tree}:"
        tests = each.get("tests") or {}
        counted = f", {tests.get('passed', 0)} of {count(tests['run'], 'test')}" if tests.get("run") else ""
        code = each.get("exit_code", 0)
        yield f"    {'✗' if code else '✓'} {_cut(each.get('command', ''))}: exit code {code}{counted}"


def team_row(status: TeamStatus) -> tuple[str, ...]:
    """A row of `clew team status`."""
    state = status.outcome or ("waits for you" if status.waits_for_user else f"{status.phase}")
    tasks = f"{status.passed}/{status.tasks}" if status.tasks else "-"
    cost = f"{status.tokens:,}{f' of {status.budget:,}' if status.budget else ''}"
    return status.session_id, state, tasks, cost, one_line(status.request)


def _hint(payload: dict[str, Any]) -> str:
    return f". {_cut(payload['hint'])}" if payload.get("hint") else ""


def _cut(text: object) -> str:
    line = one_line(str(text))
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def resource_lines(shared: SharedResources) -> Iterator[str]:
    """The calls that run and wait in the worker pool, and the locks on files. Empty if nothing runs."""
    for queue in shared.pool:
        if queue.running or queue.waiting:
            waiting = f", {queue.waiting:,} waiting" if queue.waiting else ""
            yield f"{queue.kind}: {queue.running} of {queue.workers} workers busy{waiting}"
    for lock in shared.locks:
        paths = ", ".join(path or "all files" for path in lock.paths if path != HEAD) or "the branch"
        holder = f"{lock.task} of session {lock.session[-8:]}" if lock.session else lock.task
        state = f"waits for {', '.join(each[-8:] for each in lock.waits_for)}" if lock.waits_for else "holds"
        yield _cut(f"{lock.mode} lock: {holder} {state}: {paths}")
