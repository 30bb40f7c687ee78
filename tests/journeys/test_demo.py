"""`make run` as a person and as a script see it, and its example workspace from the command line."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_examples import EXAMPLES, EXPECTED, environment
from tests.knowledge.code.repositories import git

PATIENCE = 300.0
READ = ("examples", "docs/decisions", "src/clew/trail")
"""The files of the small repository that the demonstration asks about; it is read in seconds. An example of its own
reads all of this one."""
MADE = shutil.ignore_patterns("__pycache__", "*.db", "trail.db*")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, in a repository that is not large."""
    root = tmp_path_factory.mktemp("repository")
    for part in READ:
        shutil.copytree(EXAMPLES.parent / part, root / part, ignore=MADE)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "begin")
    return root / "examples"


def run(demo: Path, folder: Path, *program: str) -> str:
    """The output of a demo without a terminal, when its port is taken. It must leave no files behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(
            [sys.executable, str(demo / program[0]), *program[1:]],
            cwd=folder,
            env=environment(folder) | {"CLEW_SERVER_PORT": str(taken.getsockname()[1])},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(folder.iterdir())
    return done.stdout


def in_order(shown: str, steps: list[str]) -> bool:
    places = [shown.index(step) for step in steps]
    return places == sorted(places)


@pytest.mark.req("ERN-15")
def test_the_walk_goes_from_a_question_to_an_answer_and_is_counted(demo: Path, tmp_path: Path) -> None:
    shown = run(demo, tmp_path, "run_demo.py", "walk")
    assert in_order(
        shown,
        [
            "$ clew trust --yes\n",
            "  server geo: runs python3 geo_server.py\n",
            "  domain northline:build_domains: imports northline:build_domains from northline, 5 files of this",
            "  1  ask  Passenger 4711",
            "  2  get  handbook://resources/fraud.md/when-a-passenger-disputes-a-charge\n",
            "> warehouse://tools/hidden/fincrime-review: The risk score 91 is above 80",
            "> support://tools/hidden/vip-ticket: A VIP, with 12,480 euros spent",
            "  3  get  warehouse://tools/hidden/fincrime-review passenger=4711\n",
            "  4  get  geo://tools/hidden/locate_ip ip=203.0.113.77\n",
            "= 203.0.113.77 is in Rockford (US), a relay.\n",
            "The answer, each line with the route that it comes from:\n",
            "  Ticket 1 is open in the VIP queue.\n",
            "NOT_REVEALED",
        ],
    )
    assert "For passenger 1002: Ben Holm has a risk score of 12" in shown
    assert "  > warehouse://tools/hidden/bookings, logs://tools/investigator\n" in shown
    assert "{" not in shown
    counts = {what: int(number.replace(",", "")) for number, what in re.findall(r"^ +([\d,]+)  (the .+)$", shown, re.M)}
    assert len(counts) == 4
    plain, many, listed, answers = counts.values()
    assert plain * 20 < many
    assert listed <= 600
    assert answers < many
    assert f"saves {many - listed:,} tokens" in shown


def test_the_trail_is_searched_and_followed_live(demo: Path, tmp_path: Path) -> None:
    shown = run(demo, tmp_path, "run_demo.py", "events")
    assert "Incident: passengers charged twice" in shown
    assert re.search(r"#\d+ updated  agent\.response\.v1  See you on Friday\. Bring the bicycle!\n", shown)


def test_clew_demo_lists_all_examples_and_runs_one_by_name(tmp_path: Path) -> None:
    def clew(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "clew", "demo", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE
        )

    listed = clew()
    names = [line.partition("\t")[0] for line in listed.stdout.splitlines()]
    assert {"start", "walk", "events", "resume", *(name[3:-3].replace("_", "-") for name in EXPECTED)} <= {
        *names,
        "name",
    }
    ran = clew("edges")
    assert (ran.returncode, EXPECTED["04_edges.py"][0] in ran.stdout) == (0, True)
    missing = clew("edge")
    assert missing.returncode == 1
    assert "Did you mean edges?" in missing.stderr


NO_PROGRAMS = """
import runpy, shutil, sys
shutil.which = lambda *_, **__: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
STEPS = [
    '  $ clew ask "where is the lease of a claim extended"\n  src/clew/trail/',
    "  1  ask  Passenger 4711",
    "= 203.0.113.77 is in Rockford (US), a relay.\n",
    "= Ticket 1 is open in the VIP queue.\n",
    "Tokens, counted",
    "tokens in every request.\n",
    "> How long is the crossing?\n",
    "(kill -9; a new process goes on)\n",
    "The crossing takes three hours.\n",
    "The tool ran 1 time.\n",
    '  $ clew code "add the total fare of a group" --name fares --yes\n',
    "inspector: 1 finding: no file has changed, so the task is not done\n",
    "F401 [*] `os` imported but unused\n    (kill -9; a new process goes on)\n  $ clew code --resume\n",
    "tester: 1 of 2 tests passed",
    "total: passed after 3 corrections\n",
    "  The work is completed.\n",
    "    proof of total, tree ",
    "    branch: clew/fares\n",
    "  clew ask ",
    "  clew connect claude-code",
    "  clew code ",
    "  clew demo",
    "its reference is at http://127.0.0.1:",
]


@pytest.mark.req("RCR-54", "ERN-15", "BEY-11", "BEY-10")
def test_make_run_shows_a_question_a_walk_a_killed_conversation_and_a_team_on_two_screens_and_stays_until_ctrl_c(
    demo: Path, tmp_path: Path
) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(demo / "start.py")],
        stdin=follower,
        stdout=follower,
        stderr=subprocess.PIPE,
        env=environment(tmp_path) | {"CLEW_SERVER_PORT": "0"},
        start_new_session=True,
    )
    os.close(follower)
    raw = b""
    while b"/docs.\r\n" not in raw:
        assert select.select([leader], [], [], PATIENCE)[0], raw
        raw += os.read(leader, 65_536)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    os.close(leader)
    assert (process.returncode, err) == (0, b"")
    assert not list(tmp_path.iterdir())
    shown = re.sub(r"\x1b\[[\d;]*m|\r", "", raw.decode())
    assert in_order(shown, STEPS)
    assert len(shown.splitlines()) <= 90
    assert max(map(len, shown.splitlines())) <= 110


def test_the_team_of_the_demo_says_in_one_line_what_it_needs(demo: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", NO_PROGRAMS, str(demo / "11_team.py"), "brief"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == "The team needs git, ruff, pytest. Install what is missing, or use the environment of `make run`.\n"
    )


def test_the_example_workspace_works_from_the_command_line_as_its_page_says(tmp_path: Path) -> None:
    place = tmp_path / "northline"
    shutil.copytree(EXAMPLES / "06_workspace", place, ignore=MADE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = environment(tmp_path) | {"PYTHONPATH": str(place), "PATH": path}

    def clew(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "clew", *words],
            cwd=place,
            env=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "northline:build_domains" in clew("trust", "--yes")
    clew("refresh")
    asked = clew("ask", "who may refund 300 euros?", "--agent")
    handle = re.search(r"clew-[\w-]+", asked)
    assert handle is not None
    assert "handbook://resources/refunds.md/limits" in asked
    assert "a second person" in clew("get", "handbook://resources/refunds.md/limits", "--handle", handle[0])
