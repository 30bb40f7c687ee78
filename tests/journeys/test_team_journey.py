"""`clew code` from a request to merged work, with real git, ruff and pytest; the models are a script."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Clew, clew, folder
from tests.cli.terminal import Terminal

__all__ = ["clew", "folder"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "11_team"
SCRIPT = str(EXAMPLE / "script.yaml")
REQUEST = "add the total fare of a group"


def git(project: Path, *words: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
    return subprocess.run(["git", *identity, *words], cwd=project, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a test of a missing function."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    root = folder.parent
    shutil.copytree(EXAMPLE / "project", root, dirs_exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / ".gitignore").write_text(".clew/\n")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "Fares")
    return root


@pytest.mark.req("SYL-40")
@pytest.mark.req("SYL-42")
@pytest.mark.req("BEY-10")
def test_a_request_is_planned_approved_proven_and_merged(clew: Clew, project: Path) -> None:
    before = git(project, "rev-parse", "HEAD")
    planned = clew("code", REQUEST, "--name", "fares", "--script", SCRIPT)
    assert planned.code == 3, planned.err
    assert "1. total (engineer): Add total(adults, children) [files fares.py]" in planned.out
    assert "clew team approve" in planned.err
    assert clew("team", "status").rows[0][1] == "waits for you"
    assert "cannot merge" in clew("code", "merge").err
    assert "total: Add total(adults, children) has not started; the plan waits" in clew("why", "done").out
    assert clew("team", "approve", "fares").code == 0

    worked = clew("code", "--resume", "fares", "--script", SCRIPT)
    assert worked.code == 0, worked.out + worked.err
    for line in (
        "inspector: 1 finding: no file has changed, so the task is not done",
        "inspector: 1 finding: fares.py:3 F401",
        "tester: 1 of 2 tests passed",
        "total: passed after 3 corrections",
        "The work is completed.",
        "modified: fares.py",
        "tests: 2 of 2 passed",
        "validation: passed",
    ):
        assert line in worked.out
    assert git(project, "rev-parse", "HEAD") == before, "the checkout is touched by nobody before the merge"
    assert git(project, "status", "--porcelain") == ""
    (status,) = clew("team", "status", "--json").json["items"]
    assert (status["outcome"], status["passed"]) == ("completed", 1)
    session = clew("session", "show", "fares", "--json").json
    assert (session["state"], session["branch_name"], status["branch"]) == ("completed", "clew/fares", "clew/fares")
    assert session["active_dag_id"]
    assert clew("team", "log", "fares").lines[0] == "time\ttask\tmessage"

    evidence = clew("why", "done", "total", "fares", "--json").json
    assert evidence["verdict"]["accepted"] is True
    assert [each["exit_code"] for each in evidence["receipts"]] == [0, 0, 0]
    verified = clew("verify", "total", "--session", "fares", "--json")
    assert (verified.code, verified.json["matches"]) == (0, True)
    trees = list(Path(os.environ["XDG_STATE_HOME"]).glob("**/trees/*"))
    assert clew("code", "merge", "fares", "--json").json["outcome"] == "fast_forward"
    assert trees
    assert not any(each.exists() for each in trees), "nobody needs the work trees of tasks after the merge"
    assert "clew-work/" not in git(project, "branch")
    assert clew("verify", "total", "--session", "fares", "--json").json["matches"] is True
    assert "children * CHILD" in (project / "fares.py").read_text()
    assert "already" in clew("code", "merge", "fares").out


def test_a_dry_run_shows_the_plan_and_the_estimate_and_stops(clew: Clew, project: Path) -> None:
    shown = clew("code", REQUEST, "--dry-run", "--script", SCRIPT)
    assert shown.code == 0, shown.err
    assert "one agent, about" in shown.out
    assert "engineer starts" not in shown.out
    assert clew("team", "status").rows[0][1] == "stopped"


def test_a_plan_is_one_json_object_among_the_events(clew: Clew, project: Path) -> None:
    shown = clew("code", REQUEST, "--dry-run", "--json", "--script", SCRIPT)
    assert shown.code == 0, shown.err
    events = [json.loads(line) for line in shown.lines]
    (plan,) = [each for each in events if each["type"] == "plan"]
    assert [each["id"] for each in plan["plan"]["nodes"]] == ["total"]


def test_a_plan_that_waits_is_approved_by_resume_with_yes(clew: Clew, project: Path) -> None:
    assert clew("code", REQUEST, "--script", SCRIPT).code == 3
    worked = clew("code", "--resume", "--yes", "--script", SCRIPT)
    assert worked.code == 0, worked.out + worked.err
    assert "the plan is approved" in worked.out


@pytest.mark.req("BEY-09")
def test_a_call_that_the_budget_cannot_pay_is_not_made(clew: Clew, project: Path) -> None:
    shown = clew("code", REQUEST, "--budget", "100", "--script", SCRIPT)
    assert shown.code != 0
    assert "budget" in shown.out
    (status,) = clew("team", "status", "--json").json["items"]
    assert (status["outcome"], status.get("tokens", 0)) == ("failed", 0)


def test_events_are_printed_as_json_with_the_end(clew: Clew, project: Path) -> None:
    (project / "notes.txt").write_text("unfinished")
    shown = clew("code", REQUEST, "--yes", "--json", "--script", SCRIPT)
    assert shown.code == 0, shown.err
    assert "without 1 changed file of the checkout; --take-changes" in shown.err
    assert '"PLAN_REQUEST"' in shown.lines[0]
    assert '"outcome":"completed"' in shown.lines[-1]


def test_a_folder_without_git_is_worked_on_in_a_copy(clew: Clew, project: Path) -> None:
    shutil.rmtree(project / ".git")
    shown = clew("code", REQUEST, "--yes", "--script", SCRIPT)
    assert shown.code == 0, shown.out + shown.err
    assert "no git repository: the team works in a copy" in shown.err
    assert "total" not in (project / "fares.py").read_text()
    assert clew("code", "merge", "--json").json["outcome"] == "copied"
    assert "children * CHILD" in (project / "fares.py").read_text()


def test_every_failure_is_one_line(clew: Clew, project: Path) -> None:
    for words, told in [
        (("code",), "is missing"),
        (("code", "do something"), "model"),
        (("code", "merge"), "no session of a team. Start one with `clew code"),
        (("team", "approve"), "clew code"),
        (("team", "log", "nothing-such"), "clew session list"),
        (("why", "done", "api"), "clew code"),
    ]:
        result = clew(*words)
        assert result.code != 0, words
        assert told in result.err
        assert len(result.err.strip().splitlines()) <= 2, result.err
    assert "No work yet" in clew("team", "status").err


@pytest.mark.req("SYL-41")
def test_at_a_terminal_the_plan_is_asked_about_and_ctrl_c_pauses(clew: Clew, project: Path) -> None:
    terminal = Terminal("code", REQUEST, "--name", "fares", "--script", SCRIPT)
    terminal.until("approve, modify TEXT, ask TEXT or stop>")
    terminal.answer("maybe", "Type approve")
    terminal.until("stop>")
    terminal.answer("approve", "engineer starts")
    terminal.type("\x03")
    terminal.until("pause, steer TEXT, stop or continue>")
    terminal.answer("pause", "Paused. Continue with")
    assert terminal.end() == 130
    assert clew("team", "status").rows[0][1] == "waits for you"
    again = Terminal("code", "--resume", "fares", "--script", SCRIPT)
    again.until("The work is completed.")
    assert again.end() == 0
    assert "[running] total" in again.shown


@pytest.mark.req("SYL-41")
def test_at_a_terminal_the_architect_answers_before_the_plan_is_asked_about_again(project: Path) -> None:
    script = project.parent / "asked.yaml"
    script.write_text(Path(SCRIPT).read_text() + "\n- user: why one task\n  say: Because it is one function.\n")
    terminal = Terminal("code", REQUEST, "--name", "fares", "--script", str(script))
    terminal.until("stop>")
    terminal.answer("", "Type approve")
    terminal.until("stop>")
    typed = len(terminal.shown)
    terminal.answer("ask why one task?", "you ask: why one task?", "planning (approval)")
    drawn = terminal.shown[typed:].partition("planning (approval)")[0]
    assert "\x1b[1A" not in drawn, "what stands above the view is not erased"
    terminal.until("architect says: Because it is one function.")
    terminal.until("stop>")
    terminal.answer("stop", "The work is stopped")
    assert terminal.end() == 1
