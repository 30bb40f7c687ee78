"""Commands and prompts: skills that load only by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.skills.formats.collection import collect
from clew.skills.manifest import Parameter

from .trees import only_skill, plant, skill_text


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        (".claude/commands/brew.md", "claude"),
        (".claude/commands/drinks/hot/brew.md", "claude"),
        (".codex/prompts/brew.md", "codex"),
        (".opencode/command/brew.md", "opencode"),
        (".opencode/commands/team/brew.md", "opencode"),
        ("packages/app/.claude/commands/brew.md", "claude"),
    ],
)
def test_a_command_is_a_skill_that_is_called_by_the_name_of_its_file(tmp_path: Path, path: str, origin: str) -> None:
    text = "---\ndescription: Brews.\nallowed-tools: Read, Bash(kettle:*)\nmodel: m\n---\nBrew $ARGUMENTS now.\n"
    found = collect(plant(tmp_path, {path: text}))
    skill = only_skill(found)
    assert (skill.name, skill.description, skill.tier) == ("brew", "Brews.", 3)
    assert skill.content == "Brew $ARGUMENTS now.\n"
    assert skill.parameters == (Parameter(name="arguments"),)
    assert skill.allowed_tools == ("Read", "Bash(kettle:*)")
    assert (skill.origin, skill.path, skill.metadata) == (origin, path, {"model": "m"})
    assert found.problems == ()


def test_without_front_matter_a_command_is_described_by_its_beginning(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, {".claude/commands/brew.md": "# Brew\n\nMake a cup of $1.\n"}))
    skill = only_skill(found)
    assert (skill.description, skill.parameters) == ("Make a cup of $1.", (Parameter(name="arguments"),))
    assert found.problems == ()


def test_a_prompt_of_codex_asks_for_what_it_names(tmp_path: Path) -> None:
    text = "---\ndescription: d\nargument-hint: TEA=<kind>\n---\nBrew $TEA in $CUP. $TEA costs $$FIVE, and $5.\n"
    skill = only_skill(collect(plant(tmp_path, {".codex/prompts/brew.md": text})))
    assert skill.parameters == (
        Parameter(name="arguments", description="TEA=<kind>"),
        Parameter(name="TEA", required=True),
        Parameter(name="CUP", required=True),
    )


def test_a_skill_has_its_name_before_a_command_does(tmp_path: Path) -> None:
    root = plant(tmp_path, {".claude/commands/brew.md": "Brew.", ".claude/skills/brew/SKILL.md": skill_text("brew")})
    found = collect(root)
    assert {each.name: each.path for each in found.skills} == {
        "brew": ".claude/skills/brew/SKILL.md",
        "claude-brew": ".claude/commands/brew.md",
    }
    assert [(each.severity, each.path) for each in found.problems] == [("warning", ".claude/commands/brew.md")]


def test_an_empty_command_is_an_error(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, {".claude/commands/brew.md": "---\ndescription: x\n---\n\n"}))
    assert found.skills == ()
    assert [each.severity for each in found.problems] == ["error"]
