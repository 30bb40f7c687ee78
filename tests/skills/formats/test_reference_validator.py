"""The reference validator of the format and Clew agree: a skill that is valid there has no problem here, and equal
values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from clew.skills.formats.collection import collect

from ...conftest import DATA
from .trees import plant, skill_text

VALID = {
    "plain": skill_text("plain"),
    "full": skill_text(
        "full",
        more="license: MIT\ncompatibility: Needs git\nallowed-tools: Read Bash(git:*)\nmetadata:\n  version: 1.10\n",
    ),
    "x": skill_text("x"),
    "a1-b2": skill_text("a1-b2", "'Quoted: with a colon'"),
    "010": skill_text("010", "yes"),
    "чай": skill_text("чай", "Заваривает чай."),
    "long": skill_text("long", "x" * 1_024),
    "n" * 64: skill_text("n" * 64),
    "folded": "---\nname: folded\ndescription: >\n  One\n  two\n---\n",
    "literal": "---\nname: literal\ndescription: |\n  One\n  two\n---\nText\n",
    "crlf": skill_text("crlf").replace("\n", "\r\n"),
}
INVALID = {
    "other": skill_text("another"),
    "Upper": skill_text("Upper"),
    "under_score": skill_text("under_score"),
    "-begin": skill_text("-begin"),
    "two--two": skill_text("two--two"),
    "toolong": skill_text("toolong", "x" * 1_025),
    "extra": skill_text("extra", more="version: 1\n"),
    "nameless": "---\ndescription: d\n---\nText\n",
    "mute": "---\nname: mute\n---\nText\n",
    "bare": "# Bare\n\nText\n",
    "open": "---\nname: open\ndescription: d\n",
    "wordy": skill_text("wordy", more=f"compatibility: {'y' * 501}\n"),
    "n" * 65: skill_text("n" * 65),
}


@pytest.fixture
def reference() -> Any:
    return pytest.importorskip("skills_ref", reason="skills-ref is not installed: the agreement with it is NOT checked")


def complaints(root: Path, folder: str) -> list[str]:
    return [each.message for each in collect(root).problems if each.path.startswith(f"skills/{folder}/")]


@pytest.mark.parametrize("folder", VALID)
def test_a_skill_that_is_valid_for_the_reference_has_the_same_values(
    tmp_path: Path, folder: str, reference: Any
) -> None:
    root = plant(tmp_path, {f"skills/{folder}/SKILL.md": VALID[folder]})
    assert reference.validate(root / "skills" / folder) == []
    theirs = reference.read_properties(root / "skills" / folder)
    (ours,) = collect(root).skills
    assert (ours.name, ours.description.strip()) == (theirs.name, theirs.description)
    assert complaints(root, folder) == []


@pytest.mark.parametrize("folder", INVALID)
def test_a_skill_that_is_invalid_for_the_reference_loads_with_a_warning(
    tmp_path: Path, folder: str, reference: Any
) -> None:
    root = plant(tmp_path, {f"skills/{folder}/SKILL.md": INVALID[folder]})
    assert reference.validate(root / "skills" / folder) != []
    assert len(collect(root).skills) == 1
    assert complaints(root, folder) != []


@pytest.mark.slow
def test_all_real_skills_load_and_both_agree_on_each(tmp_path: Path, reference: Any) -> None:
    files = [DATA / "skills_dev_corpus.jsonl", DATA / "skills_dev_distractors.jsonl"]
    if not all(file.exists() for file in files):
        pytest.skip(f"there are no real skills in {DATA}: the agreement on them is NOT checked")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()[::5]]
    folders = []
    for row in rows:
        group, _, name = row["id"].partition(":")
        head = yaml.safe_dump(
            {"name": row["name"], "description": row["description"]}, allow_unicode=True, width=10_000
        )
        folders.append(f"{group}/skills/{name.replace('/', '__')}")
        plant(tmp_path, {f"{folders[-1]}/SKILL.md": f"---\n{head}---\n{row['content']}"})
    found = collect(tmp_path)
    assert len(found.skills) == len(rows)
    told = {each.path for each in found.problems if each.kind != "build"}  # not of links to files that are not here
    apart = [each for each in folders if (f"{each}/SKILL.md" in told) != bool(reference.validate(tmp_path / each))]
    assert apart == []
