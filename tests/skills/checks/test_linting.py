"""Problems of a tree: as text, and fixed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from clew.errors import ReadOnly
from clew.skills.checks.fixes import apply_fixes, fix
from clew.skills.checks.linting import lint, render_problem
from clew.skills.checks.problems import Fix, Problem
from clew.skills.checks.suggestions import nearest
from clew.skills.definitions.manifest_builder import build
from tests.skills.definition_trees import google, markdown, researcher, write


def broken() -> dict[str, str]:
    return researcher() | {
        "agents/researcher.md": "---\ninitialSkils: webSearch\nskills:\n  - dataAnalisis\n---\nGo.\n",
        "skills/webSearch.md": "---\ndescripton: Use: this\ntoolsets: [serach, search]\nskills: [webSearch]\n---\n",
        "tools/googleSearch.md": markdown("Notes", description="Old text", category="other"),
    }


@pytest.mark.req("CAR-01")
def test_a_problem_is_printed_as_compilers_do(tmp_path: Path) -> None:
    write(tmp_path, researcher() | {"agents/researcher.md": "---\nskills:\n  - webSerch\n---\n"})
    (problem,) = lint(tmp_path)
    assert render_problem(problem, tmp_path).split("\n") == [
        "agents/researcher.md:3:5: error: unknown skill `webSerch`",
        "    3 |   - webSerch",
        "      |     ^^^^^^^^",
        "  did you mean: webSearch",
        "  allowed: dataAnalysis, webSearch",
        "  can be fixed: change it to webSearch",
    ]
    assert "    3 |" not in render_problem(problem)


def test_valid_definitions_have_no_problems(tmp_path: Path) -> None:
    assert lint(write(tmp_path, researcher())) == []


def test_problems_are_in_the_order_of_places(tmp_path: Path) -> None:
    places = [(each.path, each.line, each.column) for each in lint(write(tmp_path, broken()), [google()])]
    assert len(places) == 5
    assert places == sorted(places)


def test_shown_text_has_no_control_characters(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"skills/a.md": '---\ndescription: d\n"\\e[31mx": 1\n---\n', "skills/b.md": "---\nx\x1b[31m: 1\n---\n"},
    )
    text = "\n".join(render_problem(each, tmp_path) for each in lint(tmp_path))
    assert text
    assert all(line.isprintable() for line in text.split("\n"))


def test_a_place_that_is_not_there_shows_no_line(tmp_path: Path) -> None:
    for path, line in (("gone.md", 1), ("../out.md", 1), ("a.md", 99)):
        write(tmp_path, {"a.md": "x"})
        problem = Problem(kind="parse", path=path, line=line, message="m")
        assert render_problem(problem, tmp_path) == f"{path}:{line}: error: m"


def test_fixing_mends_until_nothing_is_left(tmp_path: Path) -> None:
    write(tmp_path, broken())
    done = fix(tmp_path, [google()])
    assert done.problems == ()
    assert done.paths == ("agents/researcher.md", "skills/webSearch.md", "tools/googleSearch.md")
    agent = (tmp_path / "agents/researcher.md").read_text()
    assert agent == "---\ninitialSkills: [webSearch]\nskills:\n  - dataAnalysis\n---\nGo.\n"
    skill = (tmp_path / "skills/webSearch.md").read_text()
    assert skill == '---\ndescription: "Use: this"\ntoolsets: [search]\nskills: []\n---\n'
    tool = (tmp_path / "tools/googleSearch.md").read_text()
    assert tool == '---\ndescription: "Search with Google"\n---\nNotes'
    assert fix(tmp_path, [google()]).mended == ()


def test_problems_without_a_fix_are_left_and_reported(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": markdown(description="d", toolsets="[nothing]")})
    done = fix(tmp_path)
    assert done.mended == ()
    assert [each.message for each in done.problems] == ["unknown toolset `nothing`"]


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_line_ends_marks_and_permissions_are_kept(tmp_path: Path, end: str) -> None:
    file = tmp_path / "skills/a.md"
    file.parent.mkdir()
    file.write_bytes(b"\xef\xbb\xbf" + end.join(["---", "descripton: d", "---", "Body", ""]).encode())
    file.chmod(0o640)
    assert fix(tmp_path).problems == ()
    assert file.read_bytes() == b"\xef\xbb\xbf" + end.join(["---", "description: d", "---", "Body", ""]).encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert os.listdir(file.parent) == ["a.md"]


def test_front_matter_without_an_end_is_closed(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": "---\ndescription: d\n\nBody\n", "skills/b.md": "---\ndescription: d"})
    fix(tmp_path)
    assert (tmp_path / "skills/a.md").read_text() == "---\ndescription: d\n---\n\nBody\n"
    assert list(build(tmp_path).manifest.skills) == ["a", "b"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("---\ndescription: d", "---\ndescription: d\n---", id="closed behind a last line without an end"),
        pytest.param(
            '---\ndescription: d\nmetadata:\n\tx: "a\tb"\n---\n',
            '---\ndescription: d\nmetadata:\n  x: "a\tb"\n---\n',
            id="a tab within a value stays",
        ),
        pytest.param(
            '---\ndescription: d\nkeywords: a, "b, c"\n---\n',
            '---\ndescription: d\nkeywords: a, "b, c"\n---\n',
            id="what quotes keep together is not taken apart",
        ),
        pytest.param(
            "---\r\ndescription: a: b\n---\r\n", '---\r\ndescription: "a: b"\n---\r\n', id="a line keeps its own end"
        ),
    ],
)
def test_a_mend_changes_nothing_beside_what_it_is_for(tmp_path: Path, before: str, after: str) -> None:
    file = tmp_path / "skills" / "a.md"
    file.parent.mkdir()
    file.write_bytes(before.encode())
    fix(tmp_path)
    assert file.read_bytes().decode() == after


def test_no_file_outside_the_root_is_touched(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("one\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.md").symlink_to(outside)
    mend = Fix(first=1, last=1, text=("two",))
    for path in ("../outside.md", "link.md", str(outside), "gone.md", "."):
        problem = Problem(kind="parse", path=path, message="m", fix=mend)
        assert apply_fixes(root, [problem]) == []
    assert outside.read_text() == "one\n"


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": markdown(descripton="d")})
    problems = lint(tmp_path)
    (tmp_path / "skills/a.md").write_text("---\nother: d\n---\n")
    assert apply_fixes(tmp_path, problems) == []
    assert (tmp_path / "skills/a.md").read_text() == "---\nother: d\n---\n"


def test_mends_that_overlap_are_made_one_at_a_time(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "1\n2\n3\n"})
    wide = Problem(kind="parse", path="a.md", message="wide", fix=Fix(first=1, last=2, text=("x",)))
    narrow = Problem(kind="parse", path="a.md", message="narrow", fix=Fix(first=2, last=2, text=("y", "z")))
    beyond = Problem(kind="parse", path="a.md", message="beyond", fix=Fix(first=9, last=9, text=("y",)))
    assert apply_fixes(tmp_path, [wide, narrow, beyond]) == [narrow]
    assert (tmp_path / "a.md").read_text() == "1\ny\nz\n3\n"


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"skills/a.md": markdown(descripton="d")})

    def refuse(*given: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(ReadOnly):
        fix(tmp_path)
    assert os.listdir(tmp_path / "skills") == ["a.md"]
    assert "descripton" in (tmp_path / "skills/a.md").read_text()


@pytest.mark.parametrize(
    ("given", "found"),
    [("serach", "search"), ("Web_Search", "webSearch"), ("web-search", "webSearch"), ("zzz", ""), ("", "")],
)
def test_the_nearest_name(given: str, found: str) -> None:
    assert nearest(given, ["webSearch", "search", "analysis"]) == found
