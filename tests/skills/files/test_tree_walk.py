"""The walk is bounded, follows links only in folders of definitions, and reports omitted parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.skills.files import tree_walk
from clew.skills.files.tree_walk import walk
from clew.skills.formats.safe_open import Root
from tests.skills.formats.trees import plant


def reached(root: Path) -> set[str]:
    return {folder.at(name) for folder in walk(Root(str(root))).folders.values() for name in folder.files}


def test_installed_packages_and_caches_are_skipped(tmp_path: Path) -> None:
    files = {
        **{f"{name}/a.md": "x" for name in (".git", "node_modules", ".venv", "__pycache__", ".tox", ".worktrees")},
        "env-of-mine/pyvenv.cfg": "home = x",
        "env-of-mine/lib/a.md": "x",
        "target/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55",
        "target/debug/a.md": "x",
        ".claude/worktrees/copy/AGENTS.md": "x",
        "src/node_modules/a.md": "x",
        "src/worktrees/a.md": "x",
        "build/a.md": "x",
    }
    assert reached(plant(tmp_path, files)) == {"src/worktrees/a.md", "build/a.md"}


def test_a_skill_includes_compiled_files_but_not_version_control(tmp_path: Path) -> None:
    files = {
        "skills/a/SKILL.md": "x",
        "skills/a/node_modules/b.js": "x",
        "skills/a/venv/pyvenv.cfg": "x",
        "skills/a/.git/config": "x",
        "skills/a/scripts/__pycache__/c.pyc": "x",
    }
    assert reached(plant(tmp_path, files)) == {
        "skills/a/SKILL.md",
        "skills/a/node_modules/b.js",
        "skills/a/venv/pyvenv.cfg",
        "skills/a/scripts/__pycache__/c.pyc",
    }


def test_a_tree_that_is_too_large_is_read_from_the_top_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_walk, "MAX_ENTRIES", 20)
    plant(tmp_path, {f"{letter}/{number}.md": "x" for letter in "abcdef" for number in range(5)})
    found = walk(Root(str(tmp_path)))
    assert list(found.folders) == ["", "a", "b", "c"]
    assert found.left_out == ["c", "d", "e", "f"]
    (problem,) = found.problems
    assert (problem.severity, problem.path) == ("warning", "c")
    assert "more than 20 entries: 4 folders were left out" in problem.message


def test_folders_that_are_too_deep_are_skipped_with_a_warning(tmp_path: Path) -> None:
    plant(tmp_path, {f"{'d/' * (tree_walk.MAX_DEPTH + 2)}a.md": "x"})
    found = walk(Root(str(tmp_path)))
    assert len(found.folders) == tree_walk.MAX_DEPTH + 1
    assert [each.message for each in found.problems] == ["is more than 40 folders deep: Clew does not read it"]


def test_only_the_named_folders_are_walked(tmp_path: Path) -> None:
    plant(tmp_path, {".claude/skills/a/x": "1", ".codex/b/x": "1", "src/x": "1", "x": "1"})
    found = walk(Root(str(tmp_path)), [".claude/skills", "./.codex/", "missing", "../outside"])
    assert list(found.folders) == [".claude/skills", ".codex", ".claude/skills/a", ".codex/b"]
    assert found.problems == []


def test_a_place_outside_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    plant(tmp_path, {"outside/a.md": "x"})
    found = walk(Root(str(tmp_path / "root")), ["../outside"])
    assert found.folders == {}
    assert [(each.severity, each.message) for each in found.problems] == [("error", "leads out of the root")]


def test_links_are_followed_only_in_folders_of_definitions(tmp_path: Path) -> None:
    plant(tmp_path, {"shared/a/x.md": "1", "docs/y.md": "1", ".claude/z": "1"})
    (tmp_path / ".claude/agents").symlink_to("../shared")
    (tmp_path / "docs/more").symlink_to("../shared")
    found = walk(Root(str(tmp_path)))
    assert found.folders[".claude/agents/a"].files == {"x.md": "shared/a/x.md"}
    assert "docs/more" not in found.folders
    assert [(each.path, each.target) for each in found.links] == [(".claude/agents", "shared")]
    assert found.problems == []


def test_circular_links_are_refused(tmp_path: Path) -> None:
    plant(tmp_path, {"skills/a/x": "1", "skills/b/x": "1"})
    (tmp_path / "skills/a/to-b").symlink_to("../b")
    (tmp_path / "skills/b/to-a").symlink_to("../a")
    (tmp_path / "skills/a/up").symlink_to("..")
    (tmp_path / "skills/self").symlink_to("self")
    (tmp_path / "skills/root").symlink_to("..")
    found = walk(Root(str(tmp_path)))
    assert {each.path for each in found.problems} == {
        *("skills/self", "skills/root", "skills/a/up"),
        *("skills/a/to-b/to-a", "skills/b/to-a/to-b", "skills/b/to-a/up"),
    }
    assert all("circular" in each.message and each.severity == "error" for each in found.problems)


def test_long_chains_of_links_are_refused(tmp_path: Path) -> None:
    for number in range(6):
        folder = tmp_path / f"skills/{number}"
        folder.mkdir(parents=True)
        (folder / "x").write_text("1")
        (folder / "next").symlink_to(f"../{number + 1}")
    (tmp_path / "skills/6").mkdir()
    found = walk(Root(str(tmp_path)))
    assert "skills/0/next/next/next" in found.folders
    assert "skills/0/next/next/next/next" not in found.folders
    assert any("more than 3 links" in each.message for each in found.problems)
