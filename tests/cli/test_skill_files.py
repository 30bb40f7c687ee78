"""The commands for files of skills: create, check, fix and build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.skills.checks.fixes import MAX_ROUNDS
from clew.skills.checks.problems import Problem
from clew.skills.definitions.manifest_loader import load_manifest
from tests.catalog.skills.northline import FILES
from tests.cli.conftest import Clew
from tests.skills.definition_trees import markdown, write


@pytest.fixture
def project(folder: Path) -> Path:
    """A project with three skills that nobody has agreed to yet; its root."""
    return write(folder.parent, FILES)


@pytest.mark.req("CAR-01")
def test_build_writes_a_manifest_that_can_be_loaded_and_is_the_same_each_time(clew: Clew, project: Path) -> None:
    assert clew("skills", "build", "--out", "manifest.json").code == 0
    first = (project / "manifest.json").read_bytes()
    assert set(load_manifest(project / "manifest.json").skills) == {"announcing", "cancelling", "refunding"}
    assert clew("skills", "build", "--out", "manifest.json").code == 0
    assert (project / "manifest.json").read_bytes() == first
    assert clew("skills", "build").out.encode() == first


def test_build_with_an_error_writes_nothing_and_says_where_it_is(clew: Clew, project: Path) -> None:
    write(project, {".clew/skills/broken.md": markdown(description="Broken", toolsets="[monney]")})
    failed = clew("skills", "build", "--out", "manifest.json")
    assert failed.code == 1
    assert ".clew/skills/broken.md:3" in failed.err
    assert not (project / "manifest.json").exists()


def test_lint_points_at_the_line_suggests_the_name_and_can_mend_it(clew: Clew, project: Path) -> None:
    write(project, {".clew/skills/broken.md": markdown("Text", description="Broken", toolsets="[monney]")})
    found = clew("skills", "lint")
    assert found.code == 1
    assert ".clew/skills/broken.md:3" in found.out
    assert "did you mean: money" in found.out
    assert "^^^" in found.out
    assert "1 error" in found.err
    (problem,) = clew("skills", "lint", "--json").json["problems"]
    assert (problem["line"], problem["nearest"]) == (3, "money")
    mended = clew("skills", "lint", "--fix")
    assert mended.code == 0
    assert "fixed .clew/skills/broken.md:3" in mended.out
    assert "toolsets: [money]" in (project / ".clew" / "skills" / "broken.md").read_text()
    assert clew("skills", "lint").code == 0


def test_lint_takes_a_folder_that_is_a_team_of_its_own(clew: Clew, tmp_path: Path) -> None:
    write(tmp_path / "team", {"agents/a.md": markdown("You are.", skills="[lost]")})
    found = clew("skills", "lint", "team")
    assert found.code == 1
    assert "unknown skill `lost`" in found.out


def test_new_begins_a_skill_that_passes_the_lint(clew: Clew, folder: Path) -> None:
    made = clew("skills", "new", "release-notes", "--description", 'Draft "notes": for releases')
    assert made.code == 0
    file = folder / "skills" / "release-notes" / "SKILL.md"
    begun = clew("skills", "lint")
    assert begun.code == 0
    assert "the text of the template is still there" in begun.out
    assert clew("skills", "show", "release-notes", "--json").json["description"] == 'Draft "notes": for releases'
    file.write_text(markdown("# Notes\n\nRead the changes.", description="Draft notes"))
    assert clew("skills", "lint").out == ""
    again = clew("skills", "new", "release-notes")
    assert again.code == 1
    assert "exists already" in again.err


@pytest.mark.parametrize("name", ["Release", "a--b", "-a", "../x", "a/b", "", "ä"])
def test_new_refuses_names_that_no_skill_may_have(clew: Clew, folder: Path, name: str) -> None:
    refused = clew("skills", "new", "--", name)
    assert refused.code == 2
    assert not (folder / "skills").exists() or not list((folder / "skills").iterdir())


@pytest.mark.parametrize("command", ["lint", "build"])
def test_a_place_that_is_not_there_or_defines_nothing_is_no_success(clew: Clew, project: Path, command: str) -> None:
    write(project, {"docs/guide.md": "# Guide\n"})
    missing = clew("skills", command, "nope")
    assert missing.code == 2
    assert len(missing.err.splitlines()) == 1
    assert "nope" in missing.err
    empty = clew("skills", command, "docs")
    assert empty.code == 1
    assert "docs has no definitions" in empty.err
    assert clew("skills", command, "docs/guide.md").code == 2


def test_a_file_has_the_same_problems_however_it_is_named(clew: Clew, project: Path) -> None:
    files = {
        ".clew/skills/broken/SKILL.md": markdown("Text", description="Broken", toolset="[x]", skills="[refundin]"),
        ".clew/skills/other.md": markdown("Text", descripton="Other"),
    }
    write(project, files)
    whole = clew("skills", "lint", "--json").json["problems"]
    mine = [each for each in whole if each["path"] == ".clew/skills/broken/SKILL.md"]
    assert [each["nearest"] for each in mine] == ["toolsets", "refunding"]
    for place in (".clew/skills/broken", ".clew/skills/broken/SKILL.md"):
        assert clew("skills", "lint", place, "--json").json["problems"] == mine
    for place in (".", ".clew", ".clew/skills"):
        assert clew("skills", "lint", place, "--json").json["problems"] == whole


def test_lint_of_a_part_mends_only_that_part(clew: Clew, project: Path) -> None:
    broken = markdown("Text", description="Broken", toolsets="[monney]")
    write(project, {".clew/skills/one.md": broken, ".clew/skills/two.md": broken})
    assert clew("skills", "lint", ".clew/skills/one.md", "--fix").code == 0
    assert "[money]" in (project / ".clew" / "skills" / "one.md").read_text()
    assert (project / ".clew" / "skills" / "two.md").read_text() == broken


def test_a_misspelt_route_is_a_warning_where_the_trail_knows_the_tools(clew: Clew, project: Path) -> None:
    route = "skills://tools/hidden/lod"
    write(project, {".clew/toolsets/loading.md": markdown(description="Loading", tools=f'["{route}"]')})
    assert clew("skills", "lint").out == ""
    clew("trust", "--yes")
    clew("domains")
    found = clew("skills", "lint", "--json")
    assert found.code == 0
    (problem,) = found.json["problems"]
    assert (problem["path"], problem["line"], problem["severity"]) == (".clew/toolsets/loading.md", 3, "warning")
    assert problem["nearest"] == "skills://tools/hidden/load"
    assert clew("skills", "lint", ".clew/toolsets", "--json").json["problems"] == [problem]


def test_lint_stops_mending_what_never_comes_to_an_end(
    clew: Clew, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = []

    def mend_again(root: Path, problems: object) -> list[Problem]:
        rounds.append(root)
        assert len(rounds) <= MAX_ROUNDS
        return [Problem(kind="build", path="a.md", message="is still wrong")]

    monkeypatch.setattr("clew.skills.checks.fixes.apply_fixes", mend_again)
    assert clew("skills", "lint", "--fix").code == 0
    assert len(rounds) == MAX_ROUNDS


def test_a_link_to_another_skill_is_mended_once(clew: Clew, folder: Path) -> None:
    write(folder, {"skills/good/SKILL.md": markdown("Go.", name="bad", description="Go")})
    (folder / "skills" / "alias").symlink_to("good")
    done = clew("skills", "lint", "--fix")
    assert (done.code, done.out.count("fixed")) == (0, 1)


def test_lint_tells_of_tools_and_models_of_agents_that_there_are_not(clew: Clew, folder: Path) -> None:
    text = markdown(
        "You sell.",
        description="At the counter",
        model="fsat",
        tools="[Read, Bassh, read-fil, grpe, Task, 'geo://tools/x', 'note-*', crossing-time]",
        permissions="{deny: [exce, 'exec(rm*)']}",
    )
    write(folder, {"agents/ann.md": text, "agents/bob.md": markdown("You buy.", model="fast", tools="[grep]")})
    done = clew("skills", "lint", "--json")
    told = [(each["line"], each["message"], each.get("nearest")) for each in done.json["problems"]]
    assert told == [
        (3, "there is no model or role `fsat`", "fast"),
        (4, "there is no tool `Bassh`", "bash"),
        (4, "there is no tool `read-fil`", "read-file"),
        (4, "there is no tool `grpe`", "grep"),
        (4, "there is no tool `crossing-time`", None),
        (5, "there is no tool `exce`", "exec"),
    ]
    assert done.code == 0
    tool = {
        "name": "crossing-time",
        "description": "How long it takes",
        "language": "python",
        "code": "def run(input, context):\n    return {}\n",
        "input_schema": {"type": "object"},
    }
    draft = {"title": "T", "schema_name": "tool.code.v1", "tags": ["workspace:tools"], "context": tool}
    assert clew("trail", "put", stdin=json.dumps(draft).encode()).code == 0
    assert "crossing-time`" not in clew("skills", "lint").out
