"""Tools of a manifest: the executable one is the source, and a file has to agree with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import ConfigError, ValidationError
from clew.skills.definitions.manifest_builder import build, build_or_raise
from clew.skills.definitions.manifest_loader import read_manifest
from clew.tools.tool import Tool, tool
from tests.skills.definition_trees import google, markdown, only_problem, researcher, write


@pytest.mark.req("CAR-04")
def test_the_executable_tool_is_the_source_of_its_entry(tmp_path: Path) -> None:
    write(tmp_path, {"toolsets/search.md": markdown(description="d", tools="[googleSearch]")})
    entry = build_or_raise(tmp_path, [google()]).tools["googleSearch"]
    assert (entry.description, entry.category, entry.see_also) == ("Search with Google", "search", ("bingSearch",))
    assert entry.schema["properties"]["query"] == {"type": "string"}
    assert entry.is_executable
    assert '{"query": "clew"}' in entry.content
    changed = build_or_raise(tmp_path, [google("Ask Google")])
    assert changed.tools["googleSearch"].description == "Ask Google"


@pytest.mark.req("CAR-04")
def test_a_file_that_says_something_else_than_the_tool_fails(tmp_path: Path) -> None:
    write(tmp_path, {"tools/googleSearch.md": markdown("Notes", description="Something else", category="search")})
    problem = only_problem(tmp_path, google())
    assert (problem.kind, problem.line) == ("validation", 2)
    assert problem.context["written"] == "Something else"
    assert problem.context["said"] == "Search with Google"
    assert problem.fix is not None
    assert problem.fix.text == ('description: "Search with Google"',)
    with pytest.raises(ValidationError):
        build_or_raise(tmp_path, [google()])


@pytest.mark.req("CAR-04")
@pytest.mark.parametrize(
    "line", ["schema: {type: object}", "examples: [{query: other}]", "seeAlso: [x]", "category: x"]
)
def test_a_file_of_a_tool_must_agree_with_the_tool(tmp_path: Path, line: str) -> None:
    write(tmp_path, {"tools/googleSearch.md": f"---\n{line}\n---\n"})
    problem = only_problem(tmp_path, google())
    assert problem.fix is not None
    assert problem.fix.text == ()


@pytest.mark.req("CAR-04")
def test_a_file_that_agrees_adds_its_notes(tmp_path: Path) -> None:
    write(tmp_path, {"tools/googleSearch.md": markdown("Use sparingly.", description="Search  with\n  Google")})
    built = build(tmp_path, [google()])
    assert built.problems == ()
    assert built.manifest.tools["googleSearch"].content == "Use sparingly."


def test_a_tool_with_neither_a_description_nor_an_executable_is_reported(tmp_path: Path) -> None:
    problem = only_problem(write(tmp_path, {"tools/a.md": markdown(category="x")}))
    assert "`description` is missing" in problem.message


def test_two_executable_tools_of_one_name_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        build_or_raise(write(tmp_path, researcher()), [google(), google()])


def test_an_executable_tool_that_no_json_can_hold_is_reported(tmp_path: Path) -> None:
    @tool(name="odd", description="d", examples=({"a": float("nan")},))
    async def odd(a: float) -> str:
        return str(a)

    assert "odd" in only_problem(tmp_path, odd).message


def test_a_given_tool_need_not_be_named(tmp_path: Path) -> None:
    tools: list[Tool] = [google()]
    assert list(build(tmp_path, tools).manifest.tools) == ["googleSearch"]


@pytest.mark.parametrize(
    ("schema", "place", "message", "near"),
    [
        ("{type: objct}", (3, 16), "`schema.type` is not valid JSON Schema: `objct` is not a type", "object"),
        (
            "{type: object, properties: {a: {type: strng}}}",
            (3, 47),
            "`schema.properties.a.type` is not valid JSON Schema: `strng` is not a type",
            "string",
        ),
        ("{type: object, properties: 5}", (3, 36), "`schema.properties` is not valid JSON Schema: must be", ""),
        ("{anyOf: [{type: 5}]}", (3, 26), "`schema.anyOf[0].type` is not valid JSON Schema", ""),
    ],
)
def test_parameters_that_are_no_json_schema_are_reported_at_their_place(
    tmp_path: Path, schema: str, place: tuple[int, int], message: str, near: str
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "t.md").write_text(f"---\ndescription: b\nschema: {schema}\n---\n")
    (problem,) = build(tmp_path).problems
    assert (problem.severity, problem.line, problem.nearest) == ("error", place[0], near)
    assert problem.message.startswith(message)
    assert problem.column > 0


def test_a_related_tool_that_is_not_there_is_reported_and_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "weigh.md").write_text("---\ndescription: b\n---\n")
    (tmp_path / "tools" / "t.md").write_text("---\ndescription: b\nseeAlso: [weigh, weihg, 'geo://tools/x']\n---\n")
    built = build(tmp_path)
    (problem,) = built.problems
    assert (problem.severity, problem.line, problem.column) == ("warning", 3, 18)
    assert (problem.message, problem.nearest) == ("unknown tool `weihg`", "weigh")
    assert read_manifest(built.manifest.encode()) == built.manifest
