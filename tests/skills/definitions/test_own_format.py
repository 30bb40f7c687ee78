"""Definitions in Clew's own format: keys, values, names, and other files in the folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from clew.skills.checks.fixes import fix
from clew.skills.definitions.manifest_builder import build, build_or_raise
from clew.skills.definitions.own_format import BuildMemory
from tests.skills.definition_trees import markdown, only_problem, researcher, write


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
        ("description: d\nallowed-tools: [a]\nallowedTools: [b]", 4, "the same key", None, None),
        ('description: "a\\u202eb"', 2, "U+202E", None, None),
        ("name: x", 1, "`description` is missing", None, None),
    ],
)
def test_a_wrong_value_is_reported_with_its_line_and_what_is_allowed(
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


def test_names_that_differ_in_capital_letters_only_are_reported(tmp_path: Path) -> None:
    text = markdown(description="d")
    write(tmp_path, {"skills/tea.md": text, "skills/Tea/SKILL.md": text, "toolsets/TEA.md": text})
    built = build(tmp_path)
    (told,) = built.problems
    assert (told.severity, told.path) == ("warning", "skills/tea.md")
    assert told.message == "the skill tea differs from Tea only in upper and lower case"
    assert "skills/Tea/SKILL.md" in told.hint
    assert list(built.manifest.skills) == ["Tea", "tea"]


def test_a_name_that_is_listed_twice_counts_once(tmp_path: Path) -> None:
    text = markdown(description="d", tools="[bingSearch, bingSearch]")
    built = build(write(tmp_path, researcher() | {"toolsets/twice.md": text}))
    assert built.manifest.toolsets["twice"].tools == ("bingSearch",)
    assert [each.severity for each in built.problems] == ["warning"]


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


def test_hostile_definitions_are_reported_and_leave_the_rest(tmp_path: Path) -> None:
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


@pytest.mark.req("CAR-01")
def test_an_agent_has_permissions_as_rules_and_one_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
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


def test_text_where_a_list_of_triggers_is_meant_is_mended(tmp_path: Path) -> None:
    write(tmp_path, {"skills/a.md": "---\ndescription: b\ntriggers: {words: invoice, phases: 'x, y'}\n---\nx"})
    assert fix(tmp_path).problems == ()
    triggers = build(tmp_path).manifest.skills["a"].triggers
    assert (triggers.words, triggers.phases) == (("invoice",), ("x", "y"))
