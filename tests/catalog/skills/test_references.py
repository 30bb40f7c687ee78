"""References of a skill are found by their text, and read from the folder of the skill when they are asked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.catalog.skills.references import OwnReferences, find_reference
from clew.clock import ManualClock
from clew.errors import FormatError, ValidationError
from clew.skills.definitions.manifest_builder import build
from clew.skills.files.document import MAX_BYTES
from clew.skills.manifest import Skill, SkillLink
from clew.trail.store import Trail
from tests.catalog.skills.northline import FIND, LOAD, REFERENCE, Caller, open_project, write_project
from tests.skills.definition_trees import markdown, write

HOME = ".clew/skills/report"
BODY = """# Report
See [Templates for reports](references/templates.md) and [Style of charts](references/charts.md).
Further [the web](https://example.org/x.md), ![a picture](assets/x.png), [a script](scripts/run.py).
"""
FILES = {
    f"{HOME}/SKILL.md": markdown(BODY, name="report", description="Write a report"),
    f"{HOME}/references/templates.md": "THE TEMPLATE TEXT",
    f"{HOME}/references/charts.md": "Use bars.",
    f"{HOME}/scripts/run.py": "pass",
    ".clew/skills/other/SKILL.md": markdown("Other.", name="other", description="Another thing"),
    "secret.md": "outside of the skill",
}


def read(root: Path, path: str) -> str:
    """Read a reference of the skill as it is defined now."""
    return OwnReferences(root).read(report(root), SkillLink(text="x", path=path))


def report(root: Path) -> Skill:
    return build(root).manifest.skills["report"]


@pytest.mark.req("PLA-12")
@pytest.mark.req("PLA-13")
async def test_an_intent_finds_the_reference_and_its_content_is_read_on_demand(
    trail: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    async with open_project(trail, clock, write_project(tmp_path / "project", FILES)) as workspace:
        caller = Caller(workspace)
        await caller.ask("templates")
        found = await caller.get(FIND, need="templates")
        assert found.data is not None
        steps = [step for step in found.data.guidance if step.route == REFERENCE]
        assert [step.params for step in steps] == [{"skill": "report", "path": "references/templates.md"}]
        loaded = await caller.get(LOAD, skill="report")
        assert loaded.data is not None
        assert "THE TEMPLATE TEXT" not in loaded.data.content
        offered = [(step.params or {}).get("path") for step in loaded.data.guidance if step.route == REFERENCE]
        assert offered == ["references/templates.md", "references/charts.md", "scripts/run.py"]
        assert await caller.text(REFERENCE, **(steps[0].params or {})) == "THE TEMPLATE TEXT"
        nothing = await caller.get(FIND, need="feeding penguins in zoos")
        assert nothing.data is not None
        assert REFERENCE not in [step.route for step in nothing.data.guidance]


@pytest.mark.req("PLA-13")
def test_the_references_of_a_skill_are_its_markdown_links_in_order(tmp_path: Path) -> None:
    skill = report(write(tmp_path, FILES))
    assert [(each.text, each.path) for each in skill.references] == [
        ("Templates for reports", "references/templates.md"),
        ("Style of charts", "references/charts.md"),
    ]
    assert skill.references[0].line > 0
    assert find_reference(skill, "Style of charts").path == "references/charts.md"
    with pytest.raises(ValidationError) as caught:
        find_reference(skill, "references/template.md")
    assert "references/templates.md" in caught.value.hint


@pytest.mark.parametrize("path", ["../../../secret.md", "../other/SKILL.md", "/etc/x.md", "~/x.md", "scripts/run.py"])
def test_a_link_out_of_the_folder_of_its_skill_is_not_read(tmp_path: Path, path: str) -> None:
    write(tmp_path, FILES)
    with pytest.raises(ValidationError, match="leads out of the folder"):
        read(tmp_path, path)


def test_a_symbolic_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    file = write(tmp_path, FILES) / HOME / "references/templates.md"
    file.unlink()
    os.symlink(tmp_path / "secret.md", file)
    with pytest.raises(ValidationError, match="leads out of the folder"):
        read(tmp_path, "references/templates.md")
    file.unlink()
    os.symlink("/etc/hostname", file)
    with pytest.raises(FormatError, match="leads out of the root"):
        read(tmp_path, "references/templates.md")


def test_a_reference_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    file = write(tmp_path, FILES) / HOME / "references/templates.md"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="not UTF-8"):
        read(tmp_path, "references/templates.md")
    file.write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(FormatError, match="more than"):
        read(tmp_path, "references/templates.md")
    file.unlink()
    with pytest.raises(FormatError, match="does not exist"):
        read(tmp_path, "references/templates.md")
    with pytest.raises(ValidationError, match="folder of the skill's own"):
        OwnReferences(tmp_path).read(
            Skill(name="loose", description="Loose", path="loose.md"), SkillLink(text="x", path="x.md")
        )


@pytest.mark.parametrize("folder", ["__pycache__", ".git", ".x/worktrees"])
def test_a_file_that_no_digest_covers_is_no_reference(tmp_path: Path, folder: str) -> None:
    body = f"[hidden orders]({folder}/a.md)"
    files = {f"{HOME}/SKILL.md": markdown(body, name="report", description="Odd")}
    built = build(write(tmp_path, {**files, f"{HOME}/{folder}/a.md": "EVIL"}))
    assert built.manifest.skills["report"].references == ()
    assert "does not belong to the skill" in built.problems[0].message
    with pytest.raises(ValidationError):
        read(tmp_path, f"{folder}/a.md")
