"""The examples run as they stand, from any folder, without a network or a key."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from clew.trail.export_format import BreadcrumbLine, EdgeLine, parse_line
from clew.trail.model.breadcrumb import check_context, check_tags, check_title
from tests.knowledge.code.repositories import make_repository

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE = 300.0

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
    "07_skills.py": ["suggested: refunding", "before: []", "loaded: ['refund']", "unloaded: [] tokens: 0"],
    "08_agents.py": [
        "error: ZeroDivisionError: division by zero",
        "tool-debugger: The division was wrong; it is mended.",
        "The crossing takes three hours.",
        "message: it is the trigger",
        "had again byte for byte: 4 messages",
    ],
    "10_resume.py": [
        "  success: {'hours': 3.0}\n  (kill -9; a new process goes on)\n  The crossing takes three hours.\n",
        "The tool ran 1 time.",
    ],
    "11_team.py": [
        "total: inspector: 1 finding: no file has changed, so the task is not done",
        "F401 [*] `os` imported but unused\n  (kill -9; a new process goes on)\n$ clew code --resume\n",
        "total: tester: 1 of 2 tests passed",
        "The work is completed.",
        "total: the same results on tree ",
        "Your branch was moved forward to ",
    ],
    "09_knowledge.py": [
        "> where is the lease of a claim extended\n  src/clew/",
        "src/clew/trail/search/closeness.py:",
        "> what did we decide about code on the trail\n",
        "> what calls closeness\n  src/clew/",
    ],
}


def environment(tmp_path: Path) -> dict[str, str]:
    """This one, without settings of Clew but where consent is kept, and with warnings as errors."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLEW_") or name == "CLEW_TRUST"}
    return kept | {"TMPDIR": str(tmp_path), "PYTHONWARNINGS": "error"}


def copy_without_tests(place: Path) -> Path:
    """A repository with one commit: the code, the documents and the examples."""
    for name in ("src", "docs", "examples"):
        shutil.copytree(EXAMPLES.parent / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))
    return make_repository(place, {})


def test_every_example_is_known_here() -> None:
    assert {file.name for file in EXAMPLES.glob("[0-9]*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_example_runs_and_says_what_it_shows(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    program = EXAMPLES / name
    if name == "09_knowledge.py":  # it asks about the repository that it is in, and the tests are half of this one
        program = copy_without_tests(tmp_path_factory.mktemp("clone")) / "examples" / name
    done = subprocess.run(
        [sys.executable, str(program)],
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
