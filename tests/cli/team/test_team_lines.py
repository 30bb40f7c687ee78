"""Messages and states of the team as lines of text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from clew.agents.conversations.steps import ToolCalled
from clew.cli.team.team_commands import state_lines
from clew.cli.team.team_lines import end_lines, estimate_line, message_line, plan_lines, task_line, team_row
from clew.cli.team.team_view import AGENT, describe_call, fit_height, live_lines
from clew.team.machines.pipeline_state import PipelineContext, PipelineStatus, Stage, TaskPipeline
from clew.team.machines.team_state import Outcome, TeamState
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import MessageType
from clew.team.messages.payloads import CompletionSummary, PlanRequest
from clew.team.planning.plan import read_plan
from clew.team.planning.preflight import preflight
from clew.team.runtime.status_records import status_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = read_plan(
    {
        "id": "p1",
        "summary": "Rate limiting",
        "nodes": [
            {"id": "api", "prompt": "Limit requests", "files": ["api.py"], "checks": ["pytest -q"]},
            {"id": "docs", "prompt": "Describe it", "files": ["docs/*.md"], "depends_on": ["api"], "agent": "designer"},
        ],
    }
)


def message(type: str, payload: dict[str, Any], source: str = "runtime", target: str = "orchestrator") -> TeamMessage:
    return TeamMessage(
        id="m", session_id="s", source=source, target=target, type=MessageType(type), payload=payload, timestamp=NOW
    )


def pipeline(**given: Any) -> TaskPipeline:
    context = PipelineContext(task_prompt="Limit requests")
    return TaskPipeline(
        id="api.1", session_id="s", dag_id="p1", task_id="api", created_at=NOW, context=context, **given
    )


ISSUE = {"file": "api.py", "line": 3, "message": "F401 unused import"}
FAILURE = {"test_name": "test_limit", "message": "assert 3 == 2"}


@pytest.mark.parametrize(
    ("type", "payload", "line"),
    [
        ("PLAN_REQUEST", {"request": "add\nlimits"}, "request: add limits"),
        ("PLAN_RESPONSE", {"plan": {"nodes": [1, 2]}}, "architect: a plan with 2 tasks"),
        ("TASK_COMPLETE", {"pipeline": "api.1", "summary": "done"}, "api: engineer says that it is done: done"),
        (
            "INSPECTOR_FEEDBACK",
            {"pipeline": "api.1", "passed": False, "issues": [ISSUE]},
            "api: inspector: 1 finding: api.py:3 F401 unused import",
        ),
        (
            "TESTER_FEEDBACK",
            {"pipeline": "api.1", "passed": False, "tests_run": 3, "tests_passed": 2, "failures": [FAILURE]},
            "api: tester: 2 of 3 tests passed: test_limit assert 3 == 2",
        ),
        ("PIPELINE_COMPLETE", {"pipeline": "api.1", "task": "api", "success": True}, "api: passed"),
        (
            "PIPELINE_FAILED",
            {"pipeline": "api.1", "task": "api", "success": False, "reason": "no time"},
            "api: failed: no time",
        ),
        ("USER_INTERRUPT", {"kind": "add", "text": "log it"}, "you add: log it"),
        ("MESSAGE_REFUSED", {"message": "m", "reason": "late", "hint": "Ask"}, "refused: late. Ask"),
        ("TIMER_DUE", {"key": "x"}, ""),
        ("CALL_RESULT", {"call": "c", "tool": "team-open", "status": "success"}, ""),
        (
            "CALL_RESULT",
            {"call": "c", "tool": "team-open", "status": "error", "error": "no git"},
            "team-open failed: no git",
        ),
    ],
)
def test_a_message_is_one_line_and_machinery_is_left_out(type: str, payload: dict[str, Any], line: str) -> None:
    assert message_line(message(type, payload, "engineer" if type == "TASK_COMPLETE" else "runtime")) == line


def test_a_question_says_who_asks_whom() -> None:
    asked = message("CLARIFICATION_REQUEST", {"question": "per user?"}, "architect", "user")
    assert message_line(asked) == "architect asks you: per user?"
    help = message("TASK_HELP", {"question": "per user?", "pipeline": "api.1"}, "engineer")
    assert message_line(help) == "api: engineer asks the orchestrator: per user?"


def test_hostile_text_cannot_take_a_second_line_or_flood_one() -> None:
    line = message_line(message("PLAN_REQUEST", {"request": "a\x1b[31m\nb" + "x" * 10_000}))
    assert "\n" not in line
    assert "\x1b" not in line
    assert len(line) < 200


def test_a_plan_shows_numbers_files_checks_and_order() -> None:
    assert list(plan_lines(PLAN)) == [
        "Rate limiting",
        "1. api (engineer): Limit requests [files api.py; checks pytest -q]",
        "  2. docs (designer): Describe it [files docs/*.md; after api]",
    ]


def test_an_estimate_names_both_ways_and_a_budget_that_is_too_small() -> None:
    line = estimate_line(preflight(PLAN, budget=10), 10)
    assert "one agent, about" in line
    assert "(a team:" in line
    assert "the budget is 10, which is not enough" in line
    alone = msgspec.structs.replace(PLAN, nodes=PLAN.nodes[:1], execution_order=())
    assert "(a team: the same)" in estimate_line(preflight(alone, budget=0), 0)


def test_an_agent_is_one_line_with_its_round_and_command() -> None:
    running = pipeline(state=PipelineStatus.RUNNING, stage=Stage.BUILD, inspector_loops=1, tokens=1_200)
    line = task_line(running, "run_command ruff check")
    assert line == "api: engineer builds · round 2 · 1,200 tokens · run_command ruff check"
    assert task_line(pipeline(state=PipelineStatus.TESTING, stage=Stage.SUITE)) == "api: tester runs all tests"
    assert task_line(pipeline(state=PipelineStatus.COMPLETED, stage=Stage.NONE)) == "api: engineer completed"
    step = ToolCalled(
        seq=1, session="s", run="r", id="i", request_id="q", tool="run", input={"n": 1, "command": "ls\n"}
    )
    assert describe_call(step) == "run ls"
    assert describe_call(msgspec.structs.replace(step, tool="engineer_write_file")) == "write_file ls"
    assert describe_call(msgspec.structs.replace(step, tool="team-check")) == ""


def test_the_end_lists_files_tests_overrides_and_receipts() -> None:
    receipt = {"command": "pytest -q", "exit_code": 0, "tree": "abcdef1234567890", "tests": {"run": 3, "passed": 3}}
    done = CompletionSummary(
        text="Limited.",
        created=("limit.py",),
        modified=("api.py",),
        tests_run=3,
        tests_passed=3,
        validation="passed",
        deferred_overrides=("docs: no network",),
    )
    state = TeamState(
        session="s",
        outcome=Outcome.COMPLETED,
        summary=done,
        branch="clew/s",
        pipelines={"api.1": pipeline(state=PipelineStatus.COMPLETED, receipts=(receipt,))},
    )
    assert list(end_lines(state)) == [
        "The work is completed.",
        "  created: limit.py",
        "  modified: api.py",
        "  tests: 3 of 3 passed",
        "  validation: passed",
        "  deferred: docs: no network",
        "  proof of api, tree abcdef123456:",
        "    ✓ pytest -q: exit code 0, 3 of 3 tests",
        "  branch: clew/s",
    ]
    stopped = TeamState(session="s", outcome=Outcome.STOPPED, reason="the user stopped it")
    assert list(end_lines(stopped)) == ["The work is stopped: the user stopped it."]


def test_a_status_and_the_live_view_show_what_waits_and_who_works() -> None:
    asked = PlanRequest(request="add limits", budget=100)
    running = pipeline(state=PipelineStatus.RUNNING, stage=Stage.BUILD)
    state = TeamState(session="s", request=asked, plan=PLAN, pipelines={"api.1": running}, tokens=40, is_halted=True)
    assert team_row(status_of(state)) == ("s", "waits for you", "-", "40 of 100", "add limits")
    shown = live_lines(state, {"s.api.1.engineer": "ruff check", "s.main.architect": "plan Limits"})
    assert shown == [
        "session · 40 tokens · paused",
        "     architect · plan Limits",
        "Rate limiting",
        "1. api (engineer): Limit requests [files api.py; checks pytest -q]",
        "     api: engineer builds · ruff check",
        "  2. docs (designer): Describe it [files docs/*.md; after api]",
    ]
    assert state_lines(state)[-1] == "  api: engineer builds"


def test_a_plan_that_is_higher_than_the_terminal_keeps_the_agents_and_loses_what_passed() -> None:
    tasks = [f"{at}. [{'passed' if at < 30 else 'running'}] t{at} (engineer): Task" for at in range(40)]
    agents = [f"{AGENT}t{at}: engineer builds" for at in (30, 31)]
    shown = fit_height(["execution", *tasks[:31], agents[0], tasks[31], agents[1], *tasks[32:]], 12)
    assert len(shown) == 12
    assert (shown[0], shown[-1]) == ("execution", "… and 32 more lines")
    assert set(agents) <= set(shown)
    assert not [line for line in shown if "[passed]" in line]
    assert fit_height(["a", "b"], 12) == ["a", "b"]


def test_a_plan_says_that_it_weakens_tests_and_shows_every_check():
    node = msgspec.structs.replace(PLAN.nodes[0], files=("x" * 300,), checks=("make everything",))
    lines = list(plan_lines(msgspec.structs.replace(PLAN, nodes=(node,), touches_tests=True)))
    assert "checks make everything" in lines[-2]
    assert lines[-1] == "This plan may delete, skip or weaken tests."
