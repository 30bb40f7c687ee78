"""Skills that are copied into a folder, and a process that is ended in the middle of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew.errors import AlreadyExists, ReadOnly
from clew.skills.definitions.skill_import import find_imports, new_skill, write_imports
from clew.skills.formats.collection import collect
from tests.skills.definition_trees import markdown, write

ENDED = 9
CRASH = """
import os, sys
from pathlib import Path
from clew.skills.definitions import skill_import

def end(*_, **__):
    os._exit(9)

def end_before_a_draft_is_put_in_its_place(self, target):
    if target.name == "mooring":
        end()
    return os.replace(self, target)

def end_when_all_is_there(*_, **__):
    if (folder / "mooring/SKILL.md").exists() and "New." in (folder / "mooring/SKILL.md").read_text():
        end()

source, folder, point = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
if point == "while it is written":
    skill_import.os.access = end
elif point == "between old and new":
    Path.replace = end_before_a_draft_is_put_in_its_place
else:
    skill_import.shutil.rmtree = end_when_all_is_there
skill_import.write_imports(skill_import.find_imports([source], folder, force=True), folder)
"""
POINTS = ("while it is written", "between old and new", "before it is tidied")


def skill(tmp_path: Path, text: str) -> Path:
    files = {"SKILL.md": markdown(text, name="mooring", description="Moor a ship"), "scripts/tie.sh": "echo tied\n"}
    return write(tmp_path / "elsewhere" / "mooring", files)


def bring(source: Path, folder: Path) -> None:
    write_imports(find_imports([source], folder, force=True), folder)


def crash(source: Path, folder: Path, point: str) -> None:
    """Import in a separate process that ends at a given point."""
    done = subprocess.run([sys.executable, "-c", CRASH, str(source), str(folder), point], check=False, timeout=60)
    assert done.returncode == ENDED


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("point", POINTS)
def test_an_interrupted_import_is_cleaned_up_by_the_next_one(tmp_path: Path, point: str, is_there: bool) -> None:
    folder = tmp_path / "project" / ".clew" / "skills"
    if is_there:
        bring(skill(tmp_path, "Old."), folder)
    source = skill(tmp_path, "New.")
    crash(source, folder, point)
    assert {each.folder for each in collect(tmp_path / "project").skills} <= {".clew/skills/mooring"}
    bring(write(tmp_path / "other" / "diving", {"SKILL.md": markdown("D.", name="diving", description="D")}), folder)
    found = {each.name: each.content for each in collect(tmp_path / "project").skills}
    assert set(found) == {"diving", "mooring"} if is_there else {"diving"} <= set(found)
    assert sorted(each.name for each in folder.iterdir()) == sorted(found)
    bring(source, folder)
    assert (folder / "mooring" / "SKILL.md").read_text().endswith("New.")


def test_a_linked_folder_for_drafts_is_not_written(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".clew" / "skills"
    kept = write(tmp_path / "kept", {"mine.txt": "mine"})
    folder.mkdir(parents=True)
    (folder / ".cache").symlink_to(kept)
    with pytest.raises(ReadOnly, match="is a link"):
        bring(skill(tmp_path, "New."), folder)
    assert os.listdir(kept) == ["mine.txt"]


def test_the_second_of_two_concurrent_imports_replaces_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".clew" / "skills"
    first = find_imports([skill(tmp_path / "a", "First.")], folder)
    second = find_imports([skill(tmp_path / "b", "Second.")], folder)
    write_imports(first, folder)
    with pytest.raises(AlreadyExists, match="mooring"):
        write_imports(second, folder)
    assert "First." in (folder / "mooring" / "SKILL.md").read_text()


def test_a_forced_import_replaces_a_skill_that_was_created_concurrently(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".clew" / "skills"
    found = find_imports([skill(tmp_path / "b", "Second.")], folder, force=True)
    bring(skill(tmp_path / "a", "First."), folder)
    write_imports(found, folder)
    assert "Second." in (folder / "mooring" / "SKILL.md").read_text()


def test_the_second_of_two_concurrent_new_skills_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_skill(tmp_path, "mooring", "Moor a ship")
    monkeypatch.setattr("os.path.lexists", lambda _: False)  # as it was when the second looked
    with pytest.raises(AlreadyExists, match="mooring"):
        new_skill(tmp_path, "mooring")
    assert "Moor a ship" in (tmp_path / "mooring" / "SKILL.md").read_text()
