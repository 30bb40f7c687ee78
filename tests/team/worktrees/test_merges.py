"""Merges by `git merge-tree`: real histories are classified right, and conflicts keep both versions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.clock import ManualClock
from clew.errors import ClewError, InvalidInput
from clew.team.worktrees.checkout_merge import merge_into_checkout
from clew.team.worktrees.git_calls import GitFolder
from clew.team.worktrees.merges import MergedTrees, merge_pipeline, merge_trees
from clew.team.worktrees.repository import find_repository, make_git_folder
from clew.team.worktrees.session_trees import find_session, open_session
from tests.team.worktrees.projects import TeamProject, commit_all, git, make_repository, open_project, snapshot
from tests.tools.working_folder import plant

LINES = "".join(f"line {number}\n" for number in range(1, 21))
BASE: dict[str, str | bytes] = {
    "a.txt": LINES,
    "b.txt": LINES.replace("line 5", "other line") + "end\n",
    "run.sh": "#!/bin/sh\n" + LINES,
    "logo.bin": b"\0\1\2" * 50,
    "dir/c.txt": LINES,
    "link-target": "x\n",
}
Side = Callable[[Path], object]


def edit(name: str, old: str, new: str) -> Side:
    return lambda root: (root / name).write_text((root / name).read_text().replace(old, new))


def write(name: str, content: str | bytes) -> Side:
    return lambda root: plant(root, {name: content})


def move(old: str, new: str) -> Side:
    def run(root: Path) -> None:
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)

    return run


def delete(name: str) -> Side:
    return lambda root: (root / name).unlink()


def both(*sides: Side) -> Side:
    return lambda root: [side(root) for side in sides]


def chmod(name: str) -> Side:
    return lambda root: (root / name).chmod(0o755)


def link(name: str, target: str) -> Side:
    def run(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        os.symlink(target, root / name)

    return run


def submodule(commit: str) -> Side:
    return lambda root: git(root, "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")


FIRST, LAST, MIDDLE = ("line 1\n", "ONE\n"), ("line 20\n", "TWENTY\n"), ("line 10\n", "TEN\n")
CLEAN: dict[str, tuple[Side, Side]] = {
    "other files": (edit("a.txt", *FIRST), edit("b.txt", *FIRST)),
    "other lines": (edit("a.txt", *FIRST), edit("a.txt", *LAST)),
    "the same change": (edit("a.txt", *FIRST), edit("a.txt", *FIRST)),
    "new files": (write("x.txt", "x\n"), write("y.txt", "y\n")),
    "the same new file": (write("x.txt", "x\n"), write("x.txt", "x\n")),
    "a rename and an edit of it": (move("a.txt", "renamed.txt"), edit("a.txt", *FIRST)),
    "a rename and another file": (move("a.txt", "moved/a.txt"), edit("b.txt", *FIRST)),
    "the same rename": (move("a.txt", "x.txt"), move("a.txt", "x.txt")),
    "a renamed folder and a new file in it": (move("dir/c.txt", "folder/c.txt"), edit("a.txt", *FIRST)),
    "two deletions": (delete("a.txt"), delete("b.txt")),
    "the same deletion": (delete("a.txt"), delete("a.txt")),
    "a mode and an edit": (chmod("run.sh"), edit("run.sh", *LAST)),
    "a mode alone": (chmod("run.sh"), edit("a.txt", *FIRST)),
    "the same mode": (chmod("run.sh"), chmod("run.sh")),
    "one binary change": (write("logo.bin", b"\0\3" * 60), edit("a.txt", *FIRST)),
    "the same binary change": (write("logo.bin", b"\0\3" * 60), write("logo.bin", b"\0\3" * 60)),
    "a submodule": (submodule("1" * 40), edit("a.txt", *FIRST)),
    "the same submodule": (submodule("1" * 40), submodule("1" * 40)),
    "a link": (link("link", "a.txt"), edit("a.txt", *FIRST)),
    "nothing on one side": (edit("a.txt", *FIRST), lambda root: None),
}
CONFLICTS: dict[str, tuple[Side, Side, str, str]] = {
    "the same line": (edit("a.txt", *FIRST), edit("a.txt", "line 1\n", "EINS\n"), "a.txt", "content"),
    "neighbouring lines": (edit("a.txt", *MIDDLE), edit("a.txt", "line 11\n", "ELF\n"), "a.txt", "content"),
    "all lines": (write("a.txt", "mine\n"), write("a.txt", "theirs\n"), "a.txt", "content"),
    "both added a file": (write("x.txt", "mine\n"), write("x.txt", "theirs\n"), "x.txt", "both_added"),
    "deleted and changed": (delete("a.txt"), edit("a.txt", *FIRST), "a.txt", "modify_delete"),
    "changed and deleted": (edit("a.txt", *FIRST), delete("a.txt"), "a.txt", "modify_delete"),
    "renamed and changed in the same line": (
        both(move("a.txt", "r.txt"), edit("r.txt", *FIRST)),
        edit("a.txt", "line 1\n", "EINS\n"),
        "r.txt",
        "content",
    ),
    "renamed twice": (move("a.txt", "mine.txt"), move("a.txt", "theirs.txt"), "a.txt", "rename"),
    "renamed to one name": (move("a.txt", "x.txt"), move("b.txt", "x.txt"), "x.txt", "both_added"),
    "renamed and deleted": (move("a.txt", "r.txt"), delete("a.txt"), "r.txt", "rename"),
    "binary on both sides": (write("logo.bin", b"\0\3" * 60), write("logo.bin", b"\0\4" * 60), "logo.bin", "binary"),
    "both added a binary file": (write("n.bin", b"\0\3" * 9), write("n.bin", b"\0\4" * 9), "n.bin", "binary"),
    "both added with another mode": (
        both(write("x.sh", "mine\n"), chmod("x.sh")),
        write("x.sh", "theirs\n"),
        "x.sh",
        "both_added",
    ),
    "a file and a link": (write("n", "file\n"), link("n", "a.txt"), "n", "mode"),
    "a file and a folder": (write("n", "file\n"), write("n/inner.txt", "x\n"), "n", "file_folder"),
    "a submodule on both sides": (submodule("1" * 40), submodule("2" * 40), "sub", "submodule"),
}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a branch for each side of each merge."""
    root = make_repository(tmp_path_factory.mktemp("history") / "repository", BASE)
    sides = dict(CLEAN) | {name: each[:2] for name, each in CONFLICTS.items()}
    for name, pair in sides.items():
        for label, side in zip(("ours", "theirs"), pair, strict=True):
            git(root, "checkout", "-q", "-f", "-b", branch(name, label), "main")
            git(root, "clean", "-fdq")
            side(root)
            is_submodule = side.__qualname__.startswith("submodule")
            if is_submodule:
                git(root, "commit", "-q", "-m", name)
            else:
                commit_all(root, name)
    git(root, "checkout", "-q", "-f", "main")
    return root


def branch(name: str, side: str) -> str:
    return f"{name.replace(' ', '-')}--{side}"


def merge(history: Path, tmp_path: Path, name: str) -> tuple[GitFolder, MergedTrees]:
    repository = find_repository(history, tmp_path)
    folder = make_git_folder(repository, tmp_path / "git", None)
    ours, theirs = (git(history, "rev-parse", branch(name, side)).strip() for side in ("ours", "theirs"))
    return folder, merge_trees(folder, ours, theirs)


@pytest.mark.parametrize("name", CLEAN)
def test_a_merge_without_a_conflict_has_the_tree_that_git_merges(history: Path, tmp_path: Path, name: str) -> None:
    folder, merged = merge(history, tmp_path, name)
    assert merged.conflicts == ()
    place = tmp_path / "merged"
    git(history, "worktree", "add", "-q", "--detach", str(place), branch(name, "ours"))
    git(place, "-c", "user.name=Ann", "-c", "user.email=a@b", "merge", "-q", "-m", "x", branch(name, "theirs"))
    assert merged.tree == git(place, "rev-parse", "HEAD^{tree}").strip()
    assert folder.tree_of(merged.tree) == merged.tree


@pytest.mark.parametrize("name", CONFLICTS)
def test_a_conflict_is_named_by_its_kind_with_both_versions(history: Path, tmp_path: Path, name: str) -> None:
    *_, path, kind = CONFLICTS[name]
    before = git(history, "for-each-ref")
    _, merged = merge(history, tmp_path, name)
    found = {each.path: each for each in merged.conflicts}
    mine = next(each for each in merged.conflicts if each.path == path or each.path.startswith(f"{path}~"))
    assert mine.kind == kind, found
    texts = [text for each in merged.conflicts for text in (each.ours, each.theirs)]
    assert sum(map(bool, texts)) >= (1 if "delet" in name or "renamed" in name or "folder" in name else 2)
    assert git(history, "for-each-ref") == before


def test_sides_without_a_common_history_are_refused(history: Path, tmp_path: Path) -> None:
    repository = find_repository(history, tmp_path)
    folder = make_git_folder(repository, tmp_path / "git", None)
    tree = git(history, "rev-parse", "main^{tree}").strip()
    orphan = git(history, "-c", "user.name=A", "-c", "user.email=a@b", "commit-tree", tree, "-m", "x").strip()
    with pytest.raises(ClewError, match="no common history"):
        merge_trees(folder, git(history, "rev-parse", "main").strip(), orphan)


# -- pipelines and sessions ------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, clock: ManualClock) -> TeamProject:
    return open_project(make_repository(tmp_path / "checkout", BASE), tmp_path / "state", clock)


def test_parallel_pipelines_are_merged_into_the_session(project: TeamProject) -> None:
    start = project.trees.head
    project.change("n.1", {"a.txt": LINES.replace(*FIRST)}, start=start)
    project.change("m.1", {"a.txt": LINES.replace(*LAST)}, start=start)
    assert project.merge("n.1").merged
    assert project.merge("m.1").merged
    tree = Path(project.opened.folder)
    assert (tree / "a.txt").read_text() == LINES.replace(*FIRST).replace(*LAST)
    assert git(project.root, "rev-list", "--count", "--merges", "clew/s1").strip() == "1"


def test_a_conflict_between_pipelines_keeps_both_branches(project: TeamProject) -> None:
    start = project.trees.head
    project.change("n.1", {"a.txt": "mine\n"}, start=start)
    project.change("m.1", {"a.txt": "theirs\n"}, start=start)
    head = project.merge("n.1").head
    found = project.merge("m.1")
    assert (found.merged, found.head) == (False, head)
    (conflict,) = found.conflicts
    assert (conflict.ours, conflict.theirs, conflict.base) == ("mine\n", "theirs\n", LINES)
    assert git(project.root, "show", "clew-work/s1/m.1:a.txt") == "theirs\n"
    assert git(project.root, "show", "clew/s1:a.txt") == "mine\n"


def test_two_sessions_on_one_file_end_in_a_reported_conflict(clock: ManualClock, project: TeamProject) -> None:
    open_session(project.root, project.state, "s2", "HEAD", take_changes=False, clock=clock)
    second = find_session(project.root, project.state, "s2")
    plant(Path(second.open_pipeline("n.1").folder), {"a.txt": "second\n"})
    second.commit("n.1", "second", (), clock)
    merge_pipeline(second, "n.1", clock)
    project.change("n.1", {"a.txt": "first\n"})
    project.merge("n.1")
    assert project.merge_into_checkout().outcome == "fast_forward"
    before = snapshot(project.root)
    found = merge_into_checkout(second, clock)
    assert found.outcome == "conflict"
    assert [(each.ours, each.theirs) for each in found.conflicts] == [("first\n", "second\n")]
    after = snapshot(project.root)
    assert {path: after[path] for path in before if "/objects/" not in path} == {
        path: about for path, about in before.items() if "/objects/" not in path
    }
    assert git(project.root, "show", "clew/s2:a.txt") == "second\n"


def test_a_branch_that_somebody_moved_is_merged_as_it_is_now(project: TeamProject) -> None:
    project.change("n.1", {"a.txt": LINES.replace(*FIRST)})
    tree = git(project.root, "rev-parse", "main^{tree}").strip()
    other = git(project.root, "commit-tree", tree, "-p", "main", "-m", "by hand").strip()
    git(project.root, "update-ref", "refs/heads/clew/s1", other)
    merged = project.merge("n.1")
    assert merged.merged
    assert git(project.root, "merge-base", "--is-ancestor", other, merged.head) == ""


def test_a_branch_that_is_gone_is_said_to_be_gone(project: TeamProject) -> None:
    project.change("n.1", {"a.txt": "x\n"})
    git(project.root, "update-ref", "-d", "refs/heads/clew-work/s1/n.1")
    with pytest.raises(InvalidInput, match="gone"):
        project.merge("n.1")
