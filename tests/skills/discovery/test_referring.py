"""References are found by the text that is shown, and read from the skill's own folder when they are asked for."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.errors import ConfigError, FormatError, ValidationError
from clew.skills.definitions.manifest_builder import build
from clew.skills.discovery.reference_search import ReferencePlace, SkillReference, read_reference
from clew.skills.discovery.skill_index import SkillShelf, open_shelf
from clew.skills.files.document import MAX_BYTES
from clew.skills.formats.collection import collect
from clew.skills.manifest import Manifest, Skill, SkillLink
from tests.skills.writing import markdown, write

BODY = """# Report
See [Templates for reports](references/templates.md) and [Style of charts](references/charts.md).
Further [the web](https://example.org/x.md), ![a picture](assets/x.png), [a script](scripts/run.py).
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(
        tmp_path / "root",
        {
            "skills/report/SKILL.md": markdown(BODY, name="report", description="Write a report"),
            "skills/report/references/templates.md": "THE TEMPLATE TEXT",
            "skills/report/references/charts.md": "Use bars.",
            "skills/report/scripts/run.py": "pass",
            "skills/other/SKILL.md": markdown("Other.", name="other", description="Another thing"),
            "secret.md": "outside of the skill",
        },
    )


@pytest.fixture
async def shelf(root: Path) -> AsyncIterator[SkillShelf]:
    opened = await open_shelf(Manifest(skills={each.name: each for each in collect(root).skills}), root=root)
    yield opened
    await opened.close()


@pytest.mark.req("PLA-13")
async def test_an_intent_finds_the_reference_and_its_content_is_read_on_demand(shelf: SkillShelf, root: Path) -> None:
    found = await shelf.search_references("templates")
    assert [each.reference.path for each in found][:1] == ["references/templates.md"]
    assert found[0].reference.skill == "report"
    assert found[0].relevance >= 1
    assert await shelf.get_reference_content(found[0].reference) == "THE TEMPLATE TEXT"
    (root / "skills/report/references/templates.md").write_text("changed since", encoding="utf-8")
    assert await shelf.get_reference_content(found[0].reference) == "changed since"


@pytest.mark.req("PLA-13")
async def test_the_text_of_a_reference_is_no_part_of_its_skill(root: Path) -> None:
    (skill,) = [each for each in collect(root).skills if each.name == "report"]
    assert "THE TEMPLATE TEXT" not in skill.content


@pytest.mark.req("PLA-13")
async def test_references_of_a_skill_are_its_markdown_links_in_order(shelf: SkillShelf) -> None:
    found = await shelf.get_references("report")
    assert [(each.text, each.path) for each in found] == [
        ("Templates for reports", "references/templates.md"),
        ("Style of charts", "references/charts.md"),
    ]
    assert found[0].line > 0
    assert await shelf.get_references("other") == []


async def test_an_intent_that_nothing_fits_finds_nothing(shelf: SkillShelf) -> None:
    assert await shelf.search_references("feeding penguins in zoos") == []
    assert await shelf.search_references("") == await shelf.search_references("templates", limit=0) == []


async def test_a_skill_or_reference_that_there_is_not_is_told(shelf: SkillShelf) -> None:
    with pytest.raises(ValidationError, match="no skill 'nothing'"):
        await shelf.get_references("nothing")
    unknown = SkillReference(skill="report", text="x", path="references/template.md")
    with pytest.raises(ValidationError) as caught:
        await shelf.get_reference_content(unknown)
    assert "references/templates.md" in caught.value.hint


async def test_a_reference_that_is_made_up_is_refused(shelf: SkillShelf) -> None:
    for path in ("../../secret.md", "/etc/hostname.md", "SKILL.md"):
        with pytest.raises(ValidationError):
            await shelf.get_reference_content(SkillReference(skill="report", text="x", path=path))


@pytest.mark.parametrize("path", ["../../secret.md", "../other/SKILL.md", "/etc/x.md", "~/x.md"])
async def test_a_link_out_of_the_folder_of_its_skill_is_not_read(root: Path, path: str) -> None:
    leaky = Skill(
        name="leaky",
        description="Leaks",
        references=(SkillLink(text="Secrets of others", path=path),),
        path="skills/report/SKILL.md",
        folder="skills/report",
    )
    shelf = await open_shelf(Manifest(skills={"leaky": leaky}), root=root)
    (reference,) = await shelf.get_references("leaky")
    with pytest.raises(ValidationError, match="leads out of the folder"):
        await shelf.get_reference_content(reference)
    await shelf.close()


async def test_a_symbolic_link_out_of_the_folder_is_not_followed(shelf: SkillShelf, root: Path) -> None:
    (reference, _) = await shelf.get_references("report")
    file = root / "skills/report/references/templates.md"
    file.unlink()
    os.symlink(root / "secret.md", file)
    with pytest.raises(ValidationError, match="leads out of the folder"):
        await shelf.get_reference_content(reference)
    file.unlink()
    os.symlink("/etc/hostname", file)
    with pytest.raises(FormatError, match="leads out of the root"):
        await shelf.get_reference_content(reference)


async def test_what_cannot_be_read_is_told(shelf: SkillShelf, root: Path) -> None:
    (reference, other) = await shelf.get_references("report")
    file = root / "skills/report/references/templates.md"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="not UTF-8"):
        await shelf.get_reference_content(reference)
    file.write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(FormatError, match="more than"):
        await shelf.get_reference_content(reference)
    (root / "skills/report/references/charts.md").unlink()
    with pytest.raises(FormatError, match="leads nowhere"):
        await shelf.get_reference_content(other)


async def test_only_markdown_is_a_reference_and_a_file_is_one_only_once() -> None:
    links = [("A", "x.md"), ("B", "x.md"), ("C", "run.py"), ("", "notes/Y.MD"), ("D " * 900, "long.md")]
    skill = Skill(
        name="s",
        description="Something",
        references=tuple(SkillLink(text=text, path=path) for text, path in links),
        path="s/SKILL.md",
        folder="s",
    )
    shelf = await open_shelf(Manifest(skills={"s": skill}))
    found = await shelf.get_references("s")
    assert [(each.text[:5], each.path) for each in found] == [
        ("A", "x.md"),
        ("Y.MD", "notes/Y.MD"),
        ("D D D", "long.md"),
    ]
    with pytest.raises(ConfigError, match="no folder"):
        await shelf.get_reference_content(found[0])
    await shelf.close()


@pytest.mark.parametrize("folder", ["__pycache__", ".git", ".hg", ".svn", ".x/worktrees"])
async def test_what_no_digest_covers_is_no_reference(tmp_path: Path, folder: str) -> None:
    body = f"[hidden orders]({folder}/a.md)"
    files = {".clew/skills/odd/SKILL.md": markdown(body, name="odd", description="Odd")}
    write(tmp_path, {**files, f".clew/skills/odd/{folder}/a.md": "EVIL"})
    built = build(tmp_path)
    assert built.manifest.skills["odd"].references == ()
    assert "no part of the skill" in built.problems[0].message
    place = ReferencePlace(
        skill="odd", source=".clew/skills/odd/SKILL.md", home=".clew/skills/odd", path=f"{folder}/a.md"
    )
    with pytest.raises(ValidationError):
        read_reference(tmp_path, place)
