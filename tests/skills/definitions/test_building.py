"""From markdown to a manifest."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from clew.errors import BuildError, ClewError, ConfigError, ParseError, ValidationError
from clew.skills.checks.fixing import fix
from clew.skills.definitions.building import build, build_or_raise
from clew.skills.definitions.loading import read_manifest
from clew.skills.definitions.own_format import BuildMemory
from clew.skills.definitions.references import find_circles
from clew.skills.formats.collecting import Collected, collect
from clew.skills.manifest import Skill
from clew.tools.tool import Tool, tool
from tests.skills.writing import google, markdown, only_problem, researcher, write


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
def test_two_builds_are_the_same_bytes_whatever_order_and_process(tmp_path: Path) -> None:
    files = researcher()
    names = list(files)
    trees = []
    for number in range(2):
        random.Random(number).shuffle(names)
        trees.append(write(tmp_path / str(number), {name: files[name] for name in names}))
    first, second = (build(each).manifest.encode() for each in trees)
    assert first == second
    script = "import sys, pathlib; from clew.skills.definitions.building import build; "
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
        ("agents/a.md", markdown(initialSkills="[webSerch]"), "no skill `webSerch`"),
        ("agents/a.md", markdown(skills="[nothing-like-it]"), "no skill `nothing-like-it`"),
        ("skills/a.md", markdown(description="d", skills="[gone]"), "no skill `gone`"),
        ("toolsets/a.md", markdown(description="d", tools="[gone]"), "no tool `gone`"),
    ],
)
def test_every_name_must_be_there(tmp_path: Path, path: str, text: str, said: str) -> None:
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


def test_what_has_errors_is_left_out_and_its_name_with_it(tmp_path: Path) -> None:
    built = build(write(tmp_path, researcher() | {"toolsets/search.md": markdown(tools="[bingSearch]")}))
    assert "search" not in built.manifest.toolsets
    assert built.manifest.skills["webSearch"].toolsets == ()
    assert [(each.path, each.severity) for each in built.problems] == [
        ("skills/webSearch.md", "warning"),
        ("toolsets/search.md", "error"),
    ]
    assert read_manifest(built.manifest.encode()) == built.manifest


@pytest.mark.parametrize("key", ["initialSkills", "initial_skills", "initial-skills"])
def test_a_key_has_three_spellings(tmp_path: Path, key: str) -> None:
    write(tmp_path, researcher() | {"agents/researcher.md": f"---\n{key}: [webSearch]\n---\n"})
    assert build_or_raise(tmp_path).agents["researcher"].initial_skills == ("webSearch",)


@pytest.mark.parametrize(
    ("lines", "line", "said", "allowed", "mended"),
    [
        ("descripton: d", 2, "no key `descripton`", "description", "description: d"),
        ("description: d\nInitialSkill: []", 3, "no key `InitialSkill`", "metadata", None),
        ("description: d\ntoolsets: search", 3, "must be a list", "a list of texts", "toolsets: [search]"),
        ("description: d\ntoolsets: a, b", 3, "must be a list", "a list of texts", "toolsets: [a, b]"),
        ("description: 12", 2, "must be text", "text", 'description: "12"'),
        ("description: d\nkeywords:\n  - a\n  - 7", 5, "`keywords[1]` must be text", "a list of texts", '  - "7"'),
        ("description: d\ntier: 4", 3, "not one of the choices", "2", None),
        ("description: d\npriority: high", 3, "must be a whole number", "a whole number", None),
        ("description: d\ntriggers: {word: [a]}", 3, "no key `word`", "words", "triggers: {words: [a]}"),
        ("description: d\ntriggers:\n  pattern: (a+)+", 4, "trigger", None, None),
        ("description: d\nparameters:\n  - {type: string}", 4, "name", None, None),
        ("description: d\nparameters:\n  - {name: a, type: text}", 4, "choices", "string", None),
        ("description: d\nparameters:\n  - {name: a, type: enum}", 4, "values", None, None),
        ("description: d\nmetadata: {version: 1.0}", 3, "must be text", None, 'metadata: {version: "1.0"}'),
        ("description: d\nmetadata: {when: 2020-01-01}", 3, "a date", None, None),
        ("description: d\nallowed-tools: [a]\nallowedTools: [b]", 4, "given twice", None, None),
        ('description: "a\\u202eb"', 2, "U+202E", None, None),
        ("name: x", 1, "`description` is missing", None, None),
    ],
)
def test_a_wrong_value_is_told_with_its_line_and_what_is_allowed(
    tmp_path: Path, lines: str, line: int, said: str, allowed: str | None, mended: str | None
) -> None:
    problem = only_problem(write(tmp_path, {"skills/x.md": f"---\n{lines}\n---\n"}))
    assert (problem.kind, problem.severity, problem.line) == ("validation", "error", line)
    assert said in problem.message
    if allowed is not None:
        assert allowed in problem.allowed
    assert (problem.fix.text[0] if problem.fix else None) == mended


def test_a_description_may_be_in_any_language(tmp_path: Path) -> None:
    text = "Déploie : 部署 👩‍💻 — שלום"
    write(tmp_path, {"skills/a.md": markdown(description=json.dumps(text, ensure_ascii=False))})
    assert build_or_raise(tmp_path).skills["a"].description == text


@pytest.mark.parametrize(
    "name", ["../up", "a/b", "a\\b", "se\u0430rch", "a b", "-a", ".a", "", "a\u202eb", "a\x07", "x" * 65, "名前"]
)
def test_a_name_is_plain_letters(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"skills/x.md": markdown(name=json.dumps(name), description="d")})
    problem = only_problem(tmp_path)
    assert (problem.kind, problem.line) == ("validation", 2)
    assert problem.allowed
    assert problem.message.isprintable()
    assert build(tmp_path).manifest.skills == {}


def test_a_name_that_differs_from_its_file_is_a_warning(tmp_path: Path) -> None:
    built = build(write(tmp_path, {"skills/a/SKILL.md": markdown(name="b", description="d")}))
    assert [each.severity for each in built.problems] == ["warning"]
    assert list(built.manifest.skills) == ["b"]


def test_one_name_is_defined_once(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": markdown(description="one"), "skills/a/SKILL.md": markdown(description="two")})
    problem = only_problem(tmp_path)
    assert problem.kind == "build"
    assert problem.context["paths"] == ("skills/a.md", "skills/a/SKILL.md")


def test_names_that_differ_in_capital_letters_only_are_told(tmp_path: Path) -> None:
    text = markdown(description="d")
    write(tmp_path, {"skills/tea.md": text, "skills/Tea/SKILL.md": text, "toolsets/TEA.md": text})
    built = build(tmp_path)
    (told,) = built.problems
    assert (told.severity, told.path) == ("warning", "skills/tea.md")
    assert told.message == "the skill tea differs from Tea in capital letters only"
    assert "skills/Tea/SKILL.md" in told.hint
    assert list(built.manifest.skills) == ["Tea", "tea"]


def test_a_name_that_is_listed_twice_counts_once(tmp_path: Path) -> None:
    text = markdown(description="d", tools="[bingSearch, bingSearch]")
    built = build(write(tmp_path, researcher() | {"toolsets/twice.md": text}))
    assert built.manifest.toolsets["twice"].tools == ("bingSearch",)
    assert [each.severity for each in built.problems] == ["warning"]


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ({"a": "a"}, "a → a"),
        ({"a": "b", "b": "a"}, "a → b → a"),
        ({"a": "b", "b": "c", "c": "b"}, "b → c → b"),
        ({"a": "b", "b": "c", "c": "d", "d": "e", "e": "f", "f": ""}, "6 levels"),
    ],
)
def test_skills_bring_no_circle_and_no_more_than_five_levels(tmp_path: Path, links: dict[str, str], said: str) -> None:
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
    assert any("cycle" in each.message for each in find_circles(skills))


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
def test_whatever_a_file_says_of_a_tool_must_agree(tmp_path: Path, line: str) -> None:
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


def test_a_tool_with_neither_a_description_nor_an_executable_is_told(tmp_path: Path) -> None:
    problem = only_problem(write(tmp_path, {"tools/a.md": markdown(category="x")}))
    assert "`description` is missing" in problem.message


def test_two_executable_tools_of_one_name_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        build_or_raise(write(tmp_path, researcher()), [google(), google()])


def test_an_executable_tool_that_no_json_can_hold_is_told(tmp_path: Path) -> None:
    @tool(name="odd", description="d", examples=({"a": float("nan")},))
    async def odd(a: float) -> str:
        return str(a)

    assert "odd" in only_problem(tmp_path, odd).message


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


def test_no_link_leads_out_of_the_root(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.md": markdown(description="secret"), "s/SKILL.md": markdown()})
    root = write(tmp_path / "root", {"agents/a.md": "Hello", "skills/inside.md": markdown(description="d")})
    for place in ("agents", "skills", "tools"):
        (root / place).mkdir(exist_ok=True)
        (root / place / "out.md").symlink_to(outside / "secret.md")
    (root / "skills/folder").symlink_to(outside / "s")
    (root / "toolsets").symlink_to(outside)
    (root / "skills/loop.md").symlink_to(root / "skills/loop.md")
    (root / "skills/alias.md").symlink_to(root / "skills/inside.md")
    built = build(root)
    assert list(built.manifest.skills) == ["inside"]
    assert built.manifest.tools == {}
    assert "secret" not in built.manifest.encode().decode()
    assert {each.path for each in built.problems} == {
        "agents/out.md",
        "skills/folder",
        "skills/loop.md",
        "skills/out.md",
        "tools/out.md",
        "toolsets",
    }


def test_odd_files_are_problems_and_no_crash(tmp_path: Path) -> None:
    root = write(tmp_path, {"skills/good.md": markdown(description="d"), "agents": "a file", "skills/README.md": "Hi"})
    (root / "skills/huge.md").write_bytes(b"x" * 2_000_000)
    (root / "skills/binary.md").write_bytes(b"\x00\xff\xfe" * 100)
    (root / "skills/empty.md").write_bytes(b"")
    (root / "skills/folder.md").mkdir()
    (root / "skills/bare").mkdir()
    os.mkfifo(root / "skills/pipe.md")
    os.symlink("/dev/zero", root / "skills/zero.md")
    with open(os.path.join(os.fsencode(root), b"skills", b"stray\xff.md"), "wb") as file:
        file.write(b"---\ndescription: d\n---\n")
    built = build(root)
    assert list(built.manifest.skills) == ["good"]
    told = {each.path: each for each in built.problems}
    names = ("huge.md", "binary.md", "empty.md", "folder.md", "bare", "pipe.md", "zero.md")
    assert {*(f"skills/{name}" for name in names), "agents"} < told.keys()
    assert all(each.path.isprintable() and each.message.isprintable() for each in built.problems)


def test_hostile_definitions_are_told_and_leave_the_rest(tmp_path: Path) -> None:
    files = {
        "skills/bomb.md": "---\na: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n",
        "skills/keys.md": "---\n" + "\n".join(f"k{n}: {n}" for n in range(100_000)) + "\n---\n",
        "skills/unknown.md": "---\n" + "\n".join(f"k{n}: {n}" for n in range(4_000)) + "\n---\n",
        "skills/deep.md": "---\ndescription: " + "[" * 30_000 + "\n---\n",
        "skills/long.md": markdown("x" * 1_000_000, description="d"),
        "skills/words.md": markdown(description="y" * 5_000),
    }
    built = build(write(tmp_path, files))
    assert list(built.manifest.skills) == ["long"]
    assert {each.path for each in built.problems} == files.keys() - {"skills/long.md"}


def test_a_skill_folder_lists_what_it_holds(tmp_path: Path) -> None:
    body = (
        "Read [the guide](references/guide.md), [gone](gone.md), [out](../../../etc/x.md) and [web](https://a.b/c.md)."
    )
    files = {
        "skills/a/SKILL.md": markdown(body, description="d"),
        "skills/a/references/guide.md": "# Guide",
        "skills/a/references/more_notes.md": "# More",
        "skills/a/scripts/run.py": "print()",
        "skills/a/assets/logo.svg": "<svg/>",
    }
    built = build(write(tmp_path, files))
    skill = built.manifest.skills["a"]
    assert [(each.text, each.path, each.line) for each in skill.references] == [
        ("the guide", "references/guide.md", 4),
        ("more notes", "references/more_notes.md", 0),
    ]
    assert (skill.scripts, skill.assets) == (("scripts/run.py",), ("assets/logo.svg",))
    assert [(each.line, each.severity) for each in built.problems] == [(4, "warning"), (4, "warning")]
    before = skill.digest
    (tmp_path / "skills/a/scripts/run.py").write_text("print(1)")
    assert build(tmp_path).manifest.skills["a"].digest not in ("", before)


def test_a_workspace_keeps_its_definitions_in_its_own_folder(tmp_path: Path) -> None:
    files = {f".clew/{path}": text for path, text in researcher().items()}
    files |= {"tools/README2.md": "Not ours", "skills/other.md": "Not ours"}
    built = build(write(tmp_path, files))
    assert built.problems == ()
    assert built.manifest.agents["researcher"].path == ".clew/agents/researcher.md"


def test_own_definitions_go_before_found_ones(tmp_path: Path) -> None:
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


def test_a_found_definition_loses_names_that_there_are_not(tmp_path: Path) -> None:
    skill = Skill(name="a", description="d", toolsets=("gone",), origin="claude", path=".claude/skills/a/SKILL.md")
    built = build(tmp_path, found=Collected(skills=(skill,)))
    assert built.manifest.skills["a"].toolsets == ()
    assert [(each.path, each.severity) for each in built.problems] == [(skill.path, "warning")]


def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    files = {f"skills/s{n}.md": markdown("text", description="d") for n in range(20)}
    write(tmp_path, files)
    for path in files:
        os.utime(tmp_path / path, (1_000_000_000, 1_000_000_000))
    memory = BuildMemory()
    first = build(tmp_path, memory=memory)
    again = build(tmp_path, memory=memory)
    assert again == first
    (tmp_path / "skills/s3.md").write_text(markdown("other", description="d"))
    assert build(tmp_path, memory=memory).manifest.skills["s3"].content == "other"
    (tmp_path / "skills/s3.md").write_text(markdown("ehtor", description="d"))
    assert build(tmp_path, memory=memory).manifest.skills["s3"].content == "ehtor"
    (tmp_path / "skills/s3.md").unlink()
    assert "s3" not in build(tmp_path, memory=memory).manifest.skills


def test_a_reference_that_goes_is_told_though_its_skill_is_unchanged(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": markdown("[x](x.md)", description="d"), "skills/x.md": markdown(description="d")})
    memory = BuildMemory()
    assert build(tmp_path, memory=memory).problems == ()
    (tmp_path / "skills/x.md").unlink()
    assert [each.severity for each in build(tmp_path, memory=memory).problems] == ["warning"]


def test_a_given_tool_need_not_be_named(tmp_path: Path) -> None:
    tools: list[Tool] = [google()]
    assert list(build(tmp_path, tools).manifest.tools) == ["googleSearch"]


def test_a_skill_with_errors_that_names_a_toolset_like_itself_is_told_of_both(tmp_path: Path) -> None:
    write(tmp_path, {"skills/n.md": markdown("x", description="N", toolsets="[n]", unheard="1")})
    told = [each.message for each in build(tmp_path).problems]
    assert any("unheard" in each for each in told)
    assert "there is no toolset `n`" in told


@pytest.mark.req("CAR-01")
def test_an_agent_has_permissions_as_rules_and_one_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    place = tmp_path / "agents"
    place.mkdir()
    (place / "a.md").write_text(
        "---\npermissions: {deny: [exec, 'fetch(*.org)'], ask: [grep]}\ntools: []\n---\nYou are it."
    )
    agent = build(tmp_path).manifest.agents["a"]
    assert (agent.permissions.deny, agent.permissions.ask, agent.tools) == (("exec", "fetch(*.org)"), ("grep",), ())
    (place / "a.md").write_text("---\npermissions:\n  deny:\n    - exec\n    - 'a b('\n---\nYou are it.")
    (problem,) = build(tmp_path).problems
    assert (problem.line, "has a bracket that is not closed" in problem.message) == (5, True)


def test_a_link_to_another_skill_of_the_tree_counts_once_where_it_really_is(tmp_path: Path) -> None:
    write(tmp_path, {"skills/good/SKILL.md": markdown("Pay.", name="wrong", description="b"), "elsewhere/a.md": "x"})
    (tmp_path / "skills" / "alias").symlink_to("good")
    (tmp_path / "skills" / "zebra").symlink_to("good")
    problem = only_problem(tmp_path)
    assert (problem.path, problem.severity) == ("skills/good/SKILL.md", "warning")
    assert [each.path for each in fix(tmp_path).mended] == ["skills/good/SKILL.md"]
    assert list(build(tmp_path).manifest.skills) == ["good"]
    assert build(tmp_path).problems == ()


@pytest.mark.parametrize(
    ("schema", "place", "message", "near"),
    [
        ("{type: objct}", (3, 16), "`schema.type` is no JSON Schema: `objct` is no type", "object"),
        (
            "{type: object, properties: {a: {type: strng}}}",
            (3, 47),
            "`schema.properties.a.type` is no JSON Schema: `strng` is no type",
            "string",
        ),
        ("{type: object, properties: 5}", (3, 36), "`schema.properties` is no JSON Schema: must be", ""),
        ("{anyOf: [{type: 5}]}", (3, 26), "`schema.anyOf[0].type` is no JSON Schema", ""),
    ],
)
def test_parameters_that_are_no_json_schema_are_told_at_their_place(
    tmp_path: Path, schema: str, place: tuple[int, int], message: str, near: str
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "t.md").write_text(f"---\ndescription: b\nschema: {schema}\n---\n")
    (problem,) = build(tmp_path).problems
    assert (problem.severity, problem.line, problem.nearest) == ("error", place[0], near)
    assert problem.message.startswith(message)
    assert problem.column > 0


def test_a_related_tool_that_is_not_there_is_told_and_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "weigh.md").write_text("---\ndescription: b\n---\n")
    (tmp_path / "tools" / "t.md").write_text("---\ndescription: b\nseeAlso: [weigh, weihg, 'geo://tools/x']\n---\n")
    built = build(tmp_path)
    (problem,) = built.problems
    assert (problem.severity, problem.line, problem.column) == ("warning", 3, 18)
    assert (problem.message, problem.nearest) == ("there is no tool `weihg`", "weigh")
    assert read_manifest(built.manifest.encode()) == built.manifest


def test_text_where_a_list_of_triggers_is_meant_is_mended(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": "---\ndescription: b\ntriggers: {words: invoice, phases: 'x, y'}\n---\nx"})
    assert fix(tmp_path).problems == ()
    triggers = build(tmp_path).manifest.skills["a"].triggers
    assert (triggers.words, triggers.phases) == (("invoice",), ("x", "y"))
