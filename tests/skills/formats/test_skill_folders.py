"""Skills as folders: their fields, and problems of skills that break the rules of the format."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.skills.formats.collection import collect
from clew.skills.manifest import SkillLink

from .trees import only_skill, plant, read_skill_text, skill_text

HOMES = (
    *(".clew/skills", ".claude/skills", ".codex/skills", ".agents/skills", ".opencode/skill", ".opencode/skills"),
    *(".github/skills", "skills", "plugins/kitchen/skills", "skills/drinks/hot", "src/app/examples/skills"),
)


@pytest.mark.req("PLA-12")
def test_a_folder_is_a_skill_with_its_scripts_references_and_assets(tmp_path: Path) -> None:
    body = "Steps are in [the steps](references/steps.md). Not an [image](references/pot.png).\n"
    root = plant(
        tmp_path,
        {
            ".claude/skills/brewing/SKILL.md": skill_text("brewing", "Makes tea.", body=body),
            ".claude/skills/brewing/scripts/boil.py": "print()",
            ".claude/skills/brewing/scripts/lib/kettle.sh": "true",
            ".claude/skills/brewing/references/steps.md": "1. Boil",
            ".claude/skills/brewing/references/green-tea.md": "80 degrees",
            ".claude/skills/brewing/assets/pot.svg": "<svg/>",
            ".claude/skills/brewing/LICENSE.txt": "free",
        },
    )
    found = collect(root)
    skill = only_skill(found)
    assert (skill.name, skill.description, skill.content) == ("brewing", "Makes tea.", body + "\n")
    assert skill.scripts == ("scripts/boil.py", "scripts/lib/kettle.sh")
    assert skill.assets == ("assets/pot.svg",)
    assert skill.references == (
        SkillLink(text="the steps", path="references/steps.md", line=5),
        SkillLink(text="green tea", path="references/green-tea.md"),
    )
    assert (skill.path, skill.folder) == (".claude/skills/brewing/SKILL.md", ".claude/skills/brewing")
    assert (skill.origin, skill.tier) == ("agentskills", 2)
    assert found.problems == ()


@pytest.mark.parametrize("home", HOMES)
def test_skills_are_found_in_every_home_that_agents_use(tmp_path: Path, home: str) -> None:
    found = collect(plant(tmp_path, {f"{home}/brewing/SKILL.md": skill_text("brewing")}))
    assert only_skill(found).path == f"{home}/brewing/SKILL.md"
    assert found.problems == ()


def test_a_root_that_is_a_skill_itself_has_its_own_three_folders_only(tmp_path: Path) -> None:
    files = {"SKILL.md": skill_text("brewing"), "scripts/a.py": "1", "src/app.py": "1"}
    root = plant(tmp_path / "brewing", files)
    before = only_skill(collect(root))
    assert (before.name, before.folder, before.scripts) == ("brewing", "", ("scripts/a.py",))
    plant(root, {"src/app.py": "2"})
    assert only_skill(collect(root)).digest == before.digest
    plant(root, {"scripts/a.py": "2"})
    assert only_skill(collect(root)).digest != before.digest


def test_a_lower_case_file_counts_where_there_is_no_other(tmp_path: Path) -> None:
    assert only_skill(collect(plant(tmp_path / "a", {"skills/tea/skill.md": skill_text("tea")}))).name == "tea"
    both = {"skills/tea/skill.md": skill_text("tea", "low"), "skills/tea/SKILL.md": skill_text("tea", "high")}
    assert only_skill(collect(plant(tmp_path / "b", both))).description == "high"


def test_templates_that_a_skill_carries_are_its_assets_and_not_definitions(tmp_path: Path) -> None:
    root = plant(
        tmp_path,
        {
            "skills/making/SKILL.md": skill_text("making"),
            "skills/making/assets/SKILL.md": skill_text("template"),
            "skills/making/references/sample/SKILL.md": skill_text("sample"),
            "skills/making/templates/.claude/agents/one.md": "---\nname: one\ndescription: x\n---\nYou are one.",
            "skills/making/parts/SKILL.md": skill_text("parts"),
        },
    )
    found = collect(root)
    assert [each.name for each in found.skills] == ["making", "parts"]
    assert found.agents == ()


def test_without_front_matter_the_folder_gives_the_name_and_the_text_the_description(tmp_path: Path) -> None:
    skill, problems = read_skill_text(tmp_path, "# Brewing\n\n<!-- note -->\n\nHow to make\n*good* tea.\n\nMore.\n")
    assert skill is not None
    assert (skill.name, skill.description) == ("brewing", "How to make *good* tea.")
    assert [(each.severity, each.line, each.message) for each in problems] == [
        ("warning", 1, "there is no front matter")
    ]


def test_invalid_yaml_is_read_line_by_line(tmp_path: Path) -> None:
    skill, problems = read_skill_text(tmp_path, "---\nname: brewing\ndescription: Use when: tea [\n---\nHot.\n")
    assert skill is not None
    assert (skill.name, skill.description, skill.content) == ("brewing", "Use when: tea [", "Hot.\n")
    assert [(each.severity, each.line) for each in problems] == [("warning", 3)]


@pytest.mark.parametrize(
    "raw",
    [
        skill_text("brewing").replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + skill_text("brewing").encode(),
        b"\xef\xbb\xbf" + skill_text("brewing").replace("\n", "\r\n").encode(),
        skill_text("brewing").replace("\n", "\r").encode(),
    ],
    ids=["crlf", "bom", "both", "cr"],
)
def test_line_ends_and_byte_order_marks_do_not_matter(tmp_path: Path, raw: bytes) -> None:
    skill, problems = read_skill_text(tmp_path, raw)
    assert skill is not None
    assert (skill.name, skill.description, skill.content) == ("brewing", "What it is for.", "How it is done.\n")
    assert problems == []


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Brewing Tea", "brewing-tea"),
        ("brewing_tea", "brewing-tea"),
        ("-brewing--tea-", "brewing-tea"),
        ("../../etc", "etc"),
        ("'!!!'", "brewing"),
        ("x" * 80, "x" * 64),
        ('"a\\e[31mb"', "a-31mb"),
    ],
)
def test_an_illegal_name_becomes_the_nearest_legal_one(tmp_path: Path, written: str, name: str) -> None:
    skill, problems = read_skill_text(tmp_path, skill_text(written))
    assert skill is not None
    assert skill.name == name
    (problem,) = problems
    assert (problem.severity, problem.line) == ("warning", 2)
    assert "is not allowed" in problem.message
    assert problem.message.isprintable()
    assert problem.allowed


def test_a_name_that_differs_from_the_folder_is_used_and_reported(tmp_path: Path) -> None:
    skill, problems = read_skill_text(tmp_path, skill_text("tea"))
    assert skill is not None
    assert skill.name == "tea"
    assert [(each.line, each.allowed) for each in problems] == [(2, ("brewing",))]


def test_names_may_be_in_any_script(tmp_path: Path) -> None:
    skill, problems = read_skill_text(tmp_path, skill_text("чай-1"), folder="чай-1")
    assert skill is not None
    assert (skill.name, problems) == ("чай-1", [])


def test_values_that_yaml_reads_as_numbers_or_booleans_stay_as_written(tmp_path: Path) -> None:
    more = "version: 1.10\nmetadata:\n  level: 3\n  tags: [a, b]\n"
    skill, problems = read_skill_text(tmp_path, skill_text("010", "yes", more=more), folder="010")
    assert skill is not None
    assert (skill.name, skill.description) == ("010", "yes")
    assert skill.metadata == {"version": "1.10", "level": "3", "tags": '["a", "b"]'}
    assert [each.message for each in problems] == ["unknown keys, which have no effect: `version`"]


def test_values_of_the_wrong_kind_are_reported_and_ignored(tmp_path: Path) -> None:
    text = "---\nname: [a]\ndescription: {a: b}\nmetadata: nothing\n---\nThe text.\n"
    skill, problems = read_skill_text(tmp_path, text)
    assert skill is not None
    assert (skill.name, skill.description, skill.metadata) == ("brewing", "The text.", {})
    assert [each.line for each in problems if "must be" in each.message] == [2, 3, 4]
    assert {each.severity for each in problems} == {"warning"}


@pytest.mark.parametrize("key", ["name:", "description: ''", "name: null"])
def test_empty_values_count_as_missing(tmp_path: Path, key: str) -> None:
    skill, problems = read_skill_text(tmp_path, f"---\n{key}\n---\nThe text.\n")
    assert skill is not None
    assert (skill.name, skill.description) == ("brewing", "The text.")
    assert len(problems) == 2


def test_long_descriptions_are_loaded_whole_and_reported(tmp_path: Path) -> None:
    skill, problems = read_skill_text(
        tmp_path, skill_text("brewing", "x" * 1_025, more=f"compatibility: {'y' * 501}\n")
    )
    assert skill is not None
    assert len(skill.description) == 1_025
    assert [(each.line, each.allowed) for each in problems] == [(3, ("1 to 1,024",)), (4, ("1 to 500",))]


@pytest.mark.parametrize(
    "written",
    [
        "allowed-tools: Read Bash(git add:*) Grep\n",
        "allowed-tools: Read, Bash(git add:*), Grep\n",
        "allowed-tools: [Read, 'Bash(git add:*)', Grep]\n",
        "allowed-tools:\n  - Read\n  - Bash(git add:*)\n  - Grep\n",
    ],
)
def test_allowed_tools_are_a_line_or_a_list(tmp_path: Path, written: str) -> None:
    skill, _ = read_skill_text(tmp_path, skill_text("brewing", more=written))
    assert skill is not None
    assert skill.allowed_tools == ("Read", "Bash(git add:*)", "Grep")


def test_the_keys_of_claude_code_are_understood(tmp_path: Path) -> None:
    more = "disable-model-invocation: true\nargument-hint: '[cup]'\npaths: [src/**, docs/*.md]\n"
    skill, problems = read_skill_text(tmp_path, skill_text("brewing", more=more))
    assert skill is not None
    assert (skill.tier, skill.triggers.paths) == (3, ("src/**", "docs/*.md"))
    assert [(each.name, each.description) for each in skill.parameters] == [("arguments", "[cup]")]
    assert problems == []


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"---\n---\n", "is empty"),
        (b"\xff\xfe\x00\x01", "is not UTF-8"),
        (b"---\nname: a\x00b\n---\n", "NUL"),
        (b"x" * 1_048_577, "more than 1,048,576 bytes"),
    ],
    ids=["nothing", "blank", "no-values", "binary", "nul", "large"],
)
def test_a_file_that_cannot_be_a_skill_is_an_error_with_its_path(tmp_path: Path, raw: bytes, reason: str) -> None:
    skill, problems = read_skill_text(tmp_path, raw)
    assert skill is None
    (problem,) = problems
    assert (problem.severity, problem.path) == ("error", ".claude/skills/brewing/SKILL.md")
    assert reason in problem.message


def test_references_out_of_the_root_or_to_nothing_are_left_out_and_reported(tmp_path: Path) -> None:
    body = "[a](../../../../a.md) [b](/etc/b.md) [c](c.md) [d](../shared/d.md) [e](references/../../../../../e.md)\n"
    root = plant(
        tmp_path / "root",
        {".claude/skills/tea/SKILL.md": skill_text("tea", body=body), ".claude/skills/shared/d.md": "d"},
    )
    plant(tmp_path, {"a.md": "secret", "e.md": "secret"})
    found = collect(root)
    assert [each.path for each in only_skill(found).references] == ["../shared/d.md"]
    told = {
        "../../../../a.md": "out of the root",
        "../../../../e.md": "out of the root",
        "/etc/b.md": "out of the root",
        "c.md": "to no file",
    }
    assert sorted(each.message for each in found.problems) == [
        f"the reference {path} leads {where}: it is ignored" for path, where in told.items()
    ]
    assert {each.line for each in found.problems} == {5}
