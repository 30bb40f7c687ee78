"""`clew rules`: the rules of a path with reasons, the list of rules, and linked documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Clew

WAITS = "not trusted yet: run `clew trust`"


@pytest.fixture
def project(folder: Path) -> Path:
    root = folder.parent
    for path, text in {
        "AGENTS.md": "Use tabs. See [database migrations](docs/migrations.md).\n",
        "docs/migrations.md": "Every schema change is a numbered file.\n",
        "src/AGENTS.md": "Write tests.\n",
        "src/auth/CLAUDE.md": "Never log tokens. @more.md\n",
        "src/auth/more.md": "Ask before you delete.\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    return root


@pytest.mark.req("PLA-17")
def test_the_rules_for_a_file_are_shown_the_outermost_first_with_the_reason(clew: Clew, project: Path) -> None:
    done = clew("rules", "for", "src/auth/login.py")
    rows = done.rows
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [
        ("1", "AGENTS.md", "of the project: always", WAITS),
        ("2", "src/AGENTS.md", "holds below src", WAITS),
        ("3", "src/auth/CLAUDE.md", "holds below src/auth", WAITS),
        ("4", "src/auth/more.md", "imported by src/auth/CLAUDE.md", WAITS),
    ]
    assert all(int(row[2]) > 0 for row in rows)
    assert (done.code, done.err) == (0, "CLAUDE.md is AGENTS.md, which counts once.\n")
    agreed = clew("trust", "--yes")
    assert (agreed.code, "rules src/AGENTS.md: tells agents what to do (1 line): Write tests." in agreed.out) == (
        0,
        True,
    )
    assert {row[4] for row in clew("rules", "for", "src/auth/login.py").rows} == {"trusted"}


def test_a_program_gets_the_same_as_json(clew: Clew, project: Path) -> None:
    found = clew("rules", "for", "src/x.py", "--json").json
    assert (found["root"], found["path"]) == (str(project), "src/x.py")
    assert [(each["path"], each["folder"], each["why"], each["trusted"]) for each in found["rules"]] == [
        ("AGENTS.md", "", "of the project: always", False),
        ("src/AGENTS.md", "src", "holds below src", False),
    ]
    assert found["repeats"] == [{"path": "CLAUDE.md", "target": "AGENTS.md"}]
    listed = clew("rules", "ls", "--json").json
    assert [each["path"] for each in listed["rules"]] == [
        *("AGENTS.md", "src/AGENTS.md", "src/auth/CLAUDE.md", "src/auth/more.md")
    ]


def test_paths_begin_where_the_person_is(clew: Clew, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "src")
    assert [row[1] for row in clew("rules", "for", "x.py").rows] == ["AGENTS.md", "src/AGENTS.md"]
    outside = clew("rules", "for", "../../x.py")
    assert outside.out == ""
    assert "is outside of" in outside.err
    assert "none of these rules holds there" in outside.err
    assert clew("rules", "for", "/etc/passwd", "--json").json["rules"] == []


def test_without_rules_the_command_says_so(clew: Clew, folder: Path) -> None:
    done = clew("rules", "for", "x.py")
    assert (done.code, done.out) == (0, "")
    assert done.err == "No rules apply there. An AGENTS.md applies to everything below its folder.\n"
    assert clew("rules", "ls").out == ""


def test_unreadable_files_are_reported_and_the_rest_is_shown(clew: Clew, project: Path) -> None:
    (project / "src" / "AGENTS.md").write_bytes(b"\xff")
    (project / "src" / "auth" / "AGENTS.md").symlink_to("/etc/passwd")
    done = clew("rules", "for", "src/auth/x.py")
    assert [row[1] for row in done.rows] == ["AGENTS.md", "src/auth/CLAUDE.md", "src/auth/more.md"]
    assert "src/AGENTS.md: is not UTF-8 text (byte 0)\n" in done.err
    assert "src/auth/AGENTS.md: the link leads out of the root: Clew does not follow it\n" in done.err
    assert "\x1b" not in clew("rules", "for", "src/\x1b[31m/x").err


def test_documents_are_found_by_what_is_to_be_done(clew: Clew, project: Path) -> None:
    assert clew("rules", "search", "database", "migrations").lines[1:] == [
        "docs/migrations.md\tAGENTS.md:1\tdatabase migrations"
    ]
    (found,) = clew("rules", "search", "database migrations", "--json").json
    assert found["reference"]["line_number"] == 1
    nothing = clew("rules", "search", "zzz qqq")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err == "No match among 1 document that the rules link to.\n"
    assert clew("rules", "search", "x", "--limit", "0").code == 2
    assert clew("rules", "search", " ").code == 2


@pytest.mark.parametrize("command", ["for", "ls", "search"])
def test_each_command_shows_examples(clew: Clew, command: str) -> None:
    assert f"clew rules {command}" in clew("rules", command, "--help").out.partition("\n")[2]
