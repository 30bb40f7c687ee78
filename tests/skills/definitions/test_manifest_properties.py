"""Properties of any manifest: writing, reading and rebuilding give the same manifest."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.skills.checks.fixes import fix
from clew.skills.checks.problems import has_errors
from clew.skills.definitions.manifest_builder import build
from clew.skills.definitions.manifest_loader import read_manifest
from tests.skills.definition_trees import write

_SETTINGS = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cf", "Zl", "Zp", "Co", "Cn")), max_size=30
)


def yaml_of(fields: dict[str, Any]) -> str:
    return "\n".join(
        ["---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()), "---"]
    )


@st.composite
def trees(draw: st.DrawFn, *, is_valid: bool = True) -> dict[str, str]:
    """The files of a tree; where it is not valid, references and keys may be anything."""
    tools, toolsets, skills, agents = (sorted(draw(st.sets(NAMES, max_size=5))) for _ in range(4))

    def some(of: list[str]) -> list[str]:
        known = st.sampled_from(of) if of else st.nothing()
        wanted = known if is_valid else known | NAMES
        return draw(st.lists(wanted, max_size=0 if wanted.is_empty else 3, unique=True))

    files: dict[str, dict[str, Any]] = {}
    files |= {f"tools/{name}.md": {"description": draw(WORDS) + "x"} for name in tools}
    files |= {f"toolsets/{name}.md": {"description": draw(WORDS) + "x", "tools": some(tools)} for name in toolsets}
    for number, name in enumerate(skills):
        before = skills[max(0, number - 2) : number] if is_valid else skills
        fields = {"description": draw(WORDS) + "x", "toolsets": some(toolsets), "skills": some(before)}
        fields |= {"keywords": draw(st.lists(WORDS, max_size=2, unique=True)), "tier": draw(st.integers(1, 3))}
        if not is_valid:
            fields |= draw(st.dictionaries(NAMES, st.none() | st.integers() | WORDS | st.lists(WORDS), max_size=2))
        files[f"skills/{name}{draw(st.sampled_from(['.md', '/SKILL.md']))}"] = fields
    files |= {f"agents/{name}.md": {"initialSkills": some(skills), "skills": some(skills)} for name in agents}
    return {path: f"{yaml_of(fields)}\n{draw(WORDS)}" for path, fields in files.items()}


@pytest.mark.req("CAR-01", "CAR-02")
@given(trees())
@_SETTINGS
def test_a_built_manifest_is_valid_and_loads_unchanged(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        built = build(write(Path(folder), files))
    assert [each for each in built.problems if "levels" not in each.message and each.severity == "error"] == []
    encoded = built.manifest.encode()
    assert read_manifest(encoded) == built.manifest
    assert read_manifest(encoded).encode() == encoded


@pytest.mark.req("CAR-01")
@given(trees(is_valid=False), st.randoms())
@_SETTINGS
def test_the_order_of_files_changes_nothing(files: dict[str, str], chance: Any) -> None:
    order = list(files)
    chance.shuffle(order)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first = build(write(Path(one), files))
        second = build(write(Path(other), {path: files[path] for path in order}))
    assert first == second
    assert first.manifest.encode() == second.manifest.encode()


@given(trees(is_valid=False))
@_SETTINGS
def test_the_manifest_loads_with_any_errors_and_every_error_has_a_place(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        built = build(write(Path(folder), files))
    assert read_manifest(built.manifest.encode()) == built.manifest
    assert all(each.path in files and each.line >= 1 for each in built.problems)


@given(trees(is_valid=False))
@_SETTINGS
def test_fixing_ends_and_does_not_make_it_worse(files: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = write(Path(folder), files)
        before = build(root).problems
        after = fix(root)
        assert fix(root).mended == ()
    assert has_errors(before) or not has_errors(after.problems)
    assert not any(each.kind == "parse" for each in after.problems)
