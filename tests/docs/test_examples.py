"""The examples run as they stand, from any folder, without a network or a key."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from clew.trail.breadcrumb import check_context, check_tags, check_title
from clew.trail.export_format import BreadcrumbLine, EdgeLine, parse_line

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE = 60.0

EXPECTED = {
    "01_first_trail.py": [
        "Port 8081 is ours: version 1",
        "refused: expected version 1, it is 2",
        "2 breadcrumb.updated v2",
    ],
    "02_search.py": [
        "imported 43 breadcrumbs",
        "Notify passengers",
        "Weather at a harbour",
        "Passenger: and my bicycle?",
    ],
    "03_handlers.py": [
        "session:1: A ticket is 12 euros.",
        "session:2: A cabin is 80 euros.",
        "session:1: A cabin is 80",
    ],
    "04_edges.py": ["references  Query the ledger", "Setting: refund limit  (by way of: Refund a payment)", "Refused:"],
    "05_client.py": ["visitors: 10, version 11", "found: The museum door", "event: breadcrumb.updated version 11"],
}


def environment(tmp_path: Path) -> dict[str, str]:
    """This one, without settings of Clew, and with warnings as errors."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLEW_")}
    return kept | {"TMPDIR": str(tmp_path), "PYTHONWARNINGS": "error"}


def test_every_example_is_known_here() -> None:
    assert {file.name for file in EXAMPLES.glob("[0-9]*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_example_runs_and_says_what_it_shows(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for line in EXPECTED[name]:
        assert line in done.stdout
    assert not list(tmp_path.iterdir())


def test_the_example_data_is_a_sound_export_of_a_few_dozen_breadcrumbs() -> None:
    lines = [parse_line(line) for line in (EXAMPLES / "data" / "northline.jsonl").read_bytes().splitlines()]
    breadcrumbs = [line for line in lines if isinstance(line, BreadcrumbLine)]
    edges = [line for line in lines if isinstance(line, EdgeLine)]
    ids = {line.id for line in breadcrumbs}
    assert len(ids) == len(breadcrumbs) > 36
    assert all({edge.source, edge.target} <= ids for edge in edges)
    for line in breadcrumbs:
        check_title(line.title)
        check_tags(line.tags)
        check_context(msgspec.to_builtins(line.context))


@pytest.mark.req("RCR-54")
def test_the_demonstration_ends_by_itself_without_a_terminal_and_with_its_port_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / "run_demo.py")],
            cwd=tmp_path,
            env=environment(tmp_path) | {"CLEW_SERVER_PORT": str(taken.getsockname()[1])},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1. " in done.stdout
    assert "Incident: passengers charged twice" in done.stdout
    assert re.search(r"#\d+ updated  agent\.response\.v1  See you on Friday\. Bring the bicycle!\n", done.stdout)
    assert "{" not in done.stdout
    assert not list(tmp_path.iterdir())


def test_on_a_terminal_the_demonstration_stays_until_ctrl_c_and_tidies_up(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "run_demo.py")],
        stdin=follower,
        stdout=follower,
        stderr=subprocess.PIPE,
        env=environment(tmp_path) | {"CLEW_SERVER_PORT": "0"},
        start_new_session=True,
    )
    os.close(follower)
    shown = b""
    while b"/breadcrumbs/search?q=refund" not in shown:
        assert select.select([leader], [], [], PATIENCE)[0], shown
        shown += os.read(leader, 65_536)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    os.close(leader)
    assert (process.returncode, err) == (0, b"")
    assert b"its reference is at http://127.0.0.1:" in shown
    assert not list(tmp_path.iterdir())
