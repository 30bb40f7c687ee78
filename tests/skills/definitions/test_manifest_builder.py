"""From markdown to a manifest."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from clew.errors import BuildError, ClewError, ConfigError, ParseError, ValidationError
from clew.skills.definitions.manifest_builder import build, build_or_raise
from clew.skills.definitions.manifest_loader import read_manifest
from clew.skills.definitions.own_format import BuildMemory
from clew.skills.definitions.references import find_cycles
from clew.skills.formats.collection import Collected, collect
from clew.skills.manifest import Skill
from tests.skills.definition_trees import markdown, only_problem, researcher, write


@pytest.mark.req("CAR-01", "CAR-02")
def test_a_tree_becomes_a_manifest(tmp_path: Path) -> None:
    built = build(write(tmp_path, researcher()))
    manifest = built.manifest
    assert built.problems == ()
    assert manifest.agents["researcher"].initial_skills == ("webSearch",)
    assert manifest.agents["researcher"].prompt == "You research."
    assert manifest.skills["webSearch"].toolsets == ("search",)
    assert manifest.skills["dataAnalysis"].content == "# Analyse"
    assert manifest.skills["dataAnalysis"].folder == "skills/dataAnalysis"
    assert manifest.toolsets["search"].tools == ("googleSearch", "bingSearch")
    assert manifest.tools["googleSearch"].description == "Search with Google"
    assert list(manifest.tools) == ["analyzeData", "bingSearch", "googleSearch"]


@pytest.mark.req("CAR-01")
def test_two_builds_give_the_same_bytes_in_any_order_and_process(tmp_path: Path) -> None:
    files = researcher()
    names = list(files)
    trees = []
    for number in range(2):
        random.Random(number).shuffle(names)
        trees.append(write(tmp_path / str(number), {name: files[name] for name in names}))
    first, second = (build(each).manifest.encode() for each in trees)
    assert first == second
    script = "import sys, pathlib; from clew.skills.definitions.manifest_builder import build; "
    script += "sys.stdout.buffer.write(build(pathlib.Path(sys.argv[1])).manifest.encode())"
    for seed, locale in (("1", "C"), ("2", "tr_TR.UTF-8")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "PYTHONUTF8": "0"}
        command = [sys.executable, "-c", script, str(trees[0])]
        assert subprocess.run(command, env=environment, capture_output=True, check=True).stdout == first


@pytest.mark.req("CAR-01", "CAR-31")
def test_a_malformed_file_is_a_parse_error_with_path_and_line(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": "---\nname: a\ndescription: [unclosed\n---\n"})
    with pytest.raises(ParseError) as raised:
        build_or_raise(tmp_path)
    assert raised.value.path == "skills/a.md"
    assert raised.value.line in (3, 4)
    assert "skills/a.md:" in str(raised.value)


@pytest.mark.req("CAR-02", "CAR-31")
def test_an_unknown_toolset_is_a_build_error_with_the_valid_names(tmp_path: Path) -> None:
    files = researcher() | {"skills/webSearch.md": markdown(description="S", toolsets="[analysis, serach]")}
    write(tmp_path, files)
    with pytest.raises(BuildError) as raised:
        build_or_raise(tmp_path)
    error = raised.value
    assert (error.path, error.line) == ("skills/webSearch.md", 3)
    assert error.allowed == ("analysis", "search")
    assert error.context == {
        "toolsetName": "serach",
        "availableToolsets": ("analysis", "search"),
        "requestedBy": "webSearch",
    }
    problem = next(each for each in build(tmp_path).problems if each.severity == "error")
    assert (problem.nearest, problem.column, problem.width) == ("search", 22, 6)
    assert problem.fix is not None
    assert problem.fix.text == ("toolsets: [analysis, search]",)


@pytest.mark.req("CAR-02")
@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("agents/a.md", markdown(initialSkills="[webSerch]"), "unknown skill `webSerch`"),
        ("agents/a.md", markdown(skills="[nothing-like-it]"), "unknown skill `nothing-like-it`"),
        ("skills/a.md", markdown(description="d", skills="[gone]"), "unknown skill `gone`"),
        ("toolsets/a.md", markdown(description="d", tools="[gone]"), "unknown tool `gone`"),
    ],
)
def test_unknown_names_are_errors(tmp_path: Path, path: str, text: str, said: str) -> None:
    problem = only_problem(write(tmp_path, researcher() | {path: text}))
    assert (problem.kind, problem.path) == ("build", path)
    assert said in problem.message
    assert problem.line > 1
    assert problem.allowed


def test_a_tool_of_the_catalog_is_named_by_its_route(tmp_path: Path) -> None:
    write(tmp_path, {"toolsets/a.md": markdown(description="d", tools="[github://tools/issues/list]")})
    built = build(tmp_path)
    assert built.problems == ()
    assert built.manifest.toolsets["a"].tools == ("github://tools/issues/list",)


def test_definitions_with_errors_are_left_out_with_references_to_them(tmp_path: Path) -> None:
    built = build(write(tmp_path, researcher() | {"toolsets/search.md": markdown(tools="[bingSearch]")}))
    assert "search" not in built.manifest.toolsets
    assert built.manifest.skills["webSearch"].toolsets == ()
    assert [(each.path, each.severity) for each in built.problems] == [
        ("skills/webSearch.md", "warning"),
        ("toolsets/search.md", "error"),
    ]
    assert read_manifest(built.manifest.encode()) == built.manifest


def test_duplicate_names_are_errors(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": markdown(description="one"), "skills/a/SKILL.md": markdown(description="two")})
    problem = only_problem(tmp_path)
    assert problem.kind == "build"
    assert problem.context["paths"] == ("skills/a.md", "skills/a/SKILL.md")


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ({"a": "a"}, "a → a"),
        ({"a": "b", "b": "a"}, "a → b → a"),
        ({"a": "b", "b": "c", "c": "b"}, "b → c → b"),
        ({"a": "b", "b": "c", "c": "d", "d": "e", "e": "f", "f": ""}, "6 levels"),
    ],
)
def test_circular_and_too_deep_dependencies_are_errors(tmp_path: Path, links: dict[str, str], said: str) -> None:
    write(tmp_path, {f"skills/{a}.md": markdown(description="d", skills=f"[{b}]") for a, b in links.items()})
    built = build(tmp_path)
    errors = [each for each in built.problems if each.severity == "error"]
    assert [each.kind for each in errors] == ["validation"]
    assert said in errors[0].message
    assert read_manifest(built.manifest.encode()) == built.manifest


def test_five_levels_are_allowed(tmp_path: Path) -> None:
    links = dict(zip("abcde", ["b", "c", "d", "e", ""], strict=True))
    write(tmp_path, {f"skills/{a}.md": markdown(description="d", skills=f"[{b}]") for a, b in links.items()})
    assert build(tmp_path).problems == ()


def test_a_chain_of_ten_thousand_skills_is_checked(tmp_path: Path) -> None:
    skills = {f"s{n}": Skill(name=f"s{n}", description="", skills=(f"s{n + 1}",)) for n in range(10_000)}
    skills["s9999"] = Skill(name="s9999", description="", skills=("s0",))
    assert any("circular" in each.message for each in find_cycles(skills))


@pytest.mark.req("CAR-31")
def test_every_problem_has_a_class_of_the_family_and_a_place(tmp_path: Path) -> None:
    files = {
        "skills/parse.md": "---\na: [\n---\n",
        "skills/validation.md": markdown(description="d", tier="9"),
        "skills/build.md": markdown(description="d", skills="[gone]"),
    }
    errors = [each.as_error() for each in build(write(tmp_path, files)).problems]
    assert [type(each) for each in errors] == [BuildError, ParseError, ValidationError]
    assert all(isinstance(each, ClewError) and each.path and each.line for each in errors)  # type: ignore[union-attr]
    with pytest.raises(ConfigError):
        build_or_raise(tmp_path / "nowhere")


def test_a_workspace_keeps_its_definitions_in_its_own_folder(tmp_path: Path) -> None:
    files = {f".clew/{path}": text for path, text in researcher().items()}
    files |= {"tools/README2.md": "Not ours", "skills/other.md": "Not ours"}
    built = build(write(tmp_path, files))
    assert built.problems == ()
    assert built.manifest.agents["researcher"].path == ".clew/agents/researcher.md"


def test_own_definitions_take_precedence(tmp_path: Path) -> None:
    files = {
        ".clew/skills/both/SKILL.md": markdown("own", name="both", description="own", keywords="[k]"),
        ".claude/skills/both/SKILL.md": markdown("found", name="both", description="found"),
        ".claude/skills/other/SKILL.md": markdown("other", name="other", description="other"),
        ".claude/agents/helper.md": markdown("Help", name="helper", description="helps"),
    }
    write(tmp_path, files)
    built = build(tmp_path, found=collect(tmp_path))
    assert built.manifest.skills["both"].content == "own"
    assert built.manifest.skills["both"].keywords == ("k",)
    assert "other" in built.manifest.skills
    assert "helper" in built.manifest.agents
    assert read_manifest(built.manifest.encode()) == built.manifest


def test_a_collected_definition_loses_unknown_names(tmp_path: Path) -> None:
    skill = Skill(name="a", description="d", toolsets=("gone",), origin="claude", path=".claude/skills/a/SKILL.md")
    built = build(tmp_path, found=Collected(skills=(skill,)))
    assert built.manifest.skills["a"].toolsets == ()
    assert [(each.path, each.severity) for each in built.problems] == [(skill.path, "warning")]


def test_a_missing_reference_is_reported_for_an_unchanged_skill(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": markdown("[x](x.md)", description="d"), "skills/x.md": markdown(description="d")})
    memory = BuildMemory()
    assert build(tmp_path, memory=memory).problems == ()
    (tmp_path / "skills/x.md").unlink()
    assert [each.severity for each in build(tmp_path, memory=memory).problems] == ["warning"]


def test_a_skill_with_errors_reports_an_unknown_toolset_of_its_own_name_too(tmp_path: Path) -> None:
    write(tmp_path, {"skills/n.md": markdown("x", description="N", toolsets="[n]", unheard="1")})
    told = [each.message for each in build(tmp_path).problems]
    assert any("unheard" in each for each in told)
    assert "unknown toolset `n`" in told
