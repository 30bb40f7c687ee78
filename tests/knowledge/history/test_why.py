"""Why a line is as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.code.file_content import find_origins
from clew.knowledge.git.blame import read_line_history
from clew.knowledge.history.decisions import read_adr
from clew.knowledge.history.explanation import blame_why
from clew.knowledge.history.journal import Archive
from clew.trail.store import Trail
from tests.knowledge.git.repository import Repository

SOURCE = "import os\n\nLIMIT = 10\n\n\ndef run():\n    return LIMIT\n"


@pytest.fixture
def told(repository: Repository) -> list[str]:
    """A line that was written, changed because of an issue, and moved with its file."""
    first = repository.commit("Add a limit", {"src/limit.py": SOURCE})
    second = repository.commit(
        "Raise the limit\n\nFixes #12", {"src/limit.py": SOURCE.replace("LIMIT = 10", "LIMIT = 20")}
    )
    repository.git("mv", "src/limit.py", "src/bounds.py")
    third = repository.commit("Rename the module")
    return [first, second, third]


def test_a_line_leads_to_the_commits_that_wrote_it(repository: Repository, told: list[str]) -> None:
    origin = find_origins(repository.root, "src/bounds.py", 3, 3)[0]
    assert (origin.sha, origin.path, origin.line) == (told[1], "src/limit.py", 3)
    assert [commit.sha for commit in read_line_history(repository.root, origin)] == [told[1], told[0]]


@pytest.mark.req("SYL-77")
async def test_a_line_is_explained_by_commits_decisions_and_entries(
    repository: Repository, told: list[str], trail: Trail, me: Principal
) -> None:
    record = (
        b"# 1. Twenty at most\n\n## Status\n\nAccepted\n\n## Context\n\n`src/bounds.py` floods.\n\n## Decision\n\n20.\n"
    )
    other = b"# 2. Something else\n\n## Context\n\nNot about that.\n\n## Decision\n\nYes.\n"
    read = [read_adr("docs/adr/0001-twenty.md", record), read_adr("docs/adr/0002-else.md", other)]
    decisions = [each for each in read if each is not None]
    entry = await Archive(trail, me).store_summary(
        "Ten was too few", "failure", "s1", code_references=["src/bounds.py#LIMIT"]
    )

    why = await blame_why(repository.root, "src/bounds.py", 3, trail=trail, by=me, decisions=decisions, symbol="LIMIT")
    assert [commit.subject for commit in why.commits] == ["Raise the limit", "Add a limit"]
    assert [decision.cited for decision in why.decisions] == ["docs/adr/0001-twenty.md:1"]
    assert [node.id for node in why.history] == [entry.node_id]


async def test_a_line_that_is_not_committed_says_so(
    repository: Repository, told: list[str], trail: Trail, me: Principal
) -> None:
    repository.write({"src/bounds.py": "# new\n" + SOURCE.replace("LIMIT = 10", "LIMIT = 20")})
    why = await blame_why(repository.root, "src/bounds.py", 1, trail=trail, by=me)
    assert (why.uncommitted, why.commits) == ((1,), ())
    moved = await blame_why(repository.root, "src/bounds.py", 4, trail=trail, by=me)
    assert moved.commits[0].sha == told[1]


def test_a_new_file_and_lines_that_are_not_there(repository: Repository, told: list[str]) -> None:
    repository.write({"new.py": "x = 1\n"})
    assert find_origins(repository.root, "new.py", 1, 1)[0].sha == ""
    for path, line in (("src/bounds.py", 99), ("src/bounds.py", 0), ("gone.py", 1)):
        with pytest.raises(NotFound):
            find_origins(repository.root, path, line, line)


def test_a_line_of_a_folder_within_the_repository(repository: Repository, told: list[str]) -> None:
    origin = find_origins(repository.root / "src", "bounds.py", 3, 3)[0]
    assert (origin.sha, origin.path) == (told[1], "limit.py")


def test_no_filter_of_the_repository_is_run(repository: Repository, told: list[str], tmp_path: Path) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    repository.write({".gitattributes": "* diff=evil filter=evil\n", "src/bounds.py": "# top\n" + SOURCE})
    for name in ("diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"):
        repository.git("config", name, str(trap))
    origin = find_origins(repository.root, "src/bounds.py", 2, 2)[0]
    assert read_line_history(repository.root, origin)[0].subject == "Add a limit"
    assert not (tmp_path / "sprung").exists()
