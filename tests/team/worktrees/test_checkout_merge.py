"""The merge of a session into the user's checkout: complete or without effect, and never over the user's changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.team.worktrees.checkout_merge import merge_into_checkout
from tests.team.worktrees.projects import TeamProject, commit_all, git, make_repository, open_project, snapshot
from tests.tools.working_folder import plant

FILES = {"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "sub/d.txt": "d\n"}


@pytest.fixture
def project(tmp_path: Path, clock: ManualClock) -> TeamProject:
    found = open_project(make_repository(tmp_path / "checkout", FILES), tmp_path / "state", clock)
    found.change("n.1", {"a.txt": "theirs\n", "sub/d.txt": None, "new/e.txt": "e\n"})
    assert found.merge("n.1").merged
    return found


def files_of(root: Path) -> dict[str, tuple[int, bytes]]:
    return {path: about for path, about in snapshot(root).items() if not path.startswith(".git")}


def test_a_checkout_at_the_base_is_moved_forward(project: TeamProject) -> None:
    found = project.merge_into_checkout()
    assert (found.outcome, found.head) == ("fast_forward", project.trees.head)
    assert found.files == ("a.txt", "new/e.txt", "sub/d.txt")
    assert (project.root / "a.txt").read_text() == "theirs\n"
    assert not (project.root / "sub/d.txt").exists()
    assert git(project.root, "status", "--porcelain") == ""
    assert git(project.root, "symbolic-ref", "--short", "HEAD").strip() == "main"
    assert project.merge_into_checkout().outcome == "up_to_date"


def test_a_checkout_with_commits_of_its_own_gets_a_merge_commit(project: TeamProject) -> None:
    plant(project.root, {"c.txt": "mine\n"})
    commit_all(project.root, "mine")
    found = project.merge_into_checkout()
    assert found.outcome == "merged"
    assert len(git(project.root, "log", "-1", "--format=%P").split()) == 2
    assert (project.root / "c.txt").read_text() == "mine\n"
    assert (project.root / "a.txt").read_text() == "theirs\n"
    assert git(project.root, "status", "--porcelain") == ""


def test_a_merge_that_may_only_move_forward_changes_nothing_else(project: TeamProject, clock: ManualClock) -> None:
    plant(project.root, {"c.txt": "mine\n"})
    commit_all(project.root, "mine")
    before = files_of(project.root)
    found = merge_into_checkout(project.trees, clock, ff_only=True)
    assert (found.outcome, found.merged) == ("diverged", False)
    assert found.head == git(project.root, "rev-parse", "HEAD").strip()
    assert files_of(project.root) == before


def test_changes_of_the_user_elsewhere_stay(project: TeamProject) -> None:
    plant(project.root, {"b.txt": "mine\n", "c.txt": "staged\n", "untracked.txt": "u\n"})
    git(project.root, "add", "c.txt")
    assert project.merge_into_checkout().outcome == "fast_forward"
    assert git(project.root, "status", "--porcelain").splitlines() == [" M b.txt", "M  c.txt", "?? untracked.txt"]


DIRTY = {
    "a changed file": ({"a.txt": "mine\n"}, False, "a.txt"),
    "a staged file": ({"a.txt": "mine\n"}, True, "a.txt"),
    "a file that is new on both sides": ({"new/e.txt": "mine\n"}, False, "new/e.txt"),
    "a changed file that the session deletes": ({"sub/d.txt": "mine\n"}, False, "sub/d.txt"),
}


@pytest.mark.parametrize("name", DIRTY)
def test_changes_of_the_user_in_a_file_concerned_refuse_the_merge(project: TeamProject, name: str) -> None:
    files, is_staged, path = DIRTY[name]
    plant(project.root, files)
    if is_staged:
        git(project.root, "add", "-A")
    before, status = files_of(project.root), git(project.root, "status", "--porcelain")
    found = project.merge_into_checkout()
    assert (found.outcome, found.dirty, found.merged) == ("dirty", (path,), False)
    assert files_of(project.root) == before
    assert git(project.root, "status", "--porcelain") == status
    assert git(project.root, "rev-parse", "HEAD").strip() == project.opened.base_commit


def test_a_conflict_changes_nothing(project: TeamProject) -> None:
    plant(project.root, {"a.txt": "mine\n"})
    commit_all(project.root, "mine")
    before, head = files_of(project.root), git(project.root, "rev-parse", "HEAD")
    found = project.merge_into_checkout()
    assert found.outcome == "conflict"
    assert [(each.path, each.ours, each.theirs, each.base) for each in found.conflicts] == [
        ("a.txt", "mine\n", "theirs\n", "a\n")
    ]
    assert files_of(project.root) == before
    assert git(project.root, "rev-parse", "HEAD") == head
    assert git(project.root, "status", "--porcelain") == ""


def test_changes_that_the_session_took_along_are_replaced_by_its_result(tmp_path: Path, clock: ManualClock) -> None:
    root = make_repository(tmp_path / "checkout", FILES)
    plant(root, {"a.txt": "mine\n", "untracked.txt": "u\n"})
    (root / "c.txt").unlink()
    project = open_project(root, tmp_path / "state", clock, take_changes=True)
    project.change("n.1", {"a.txt": "mine and theirs\n", "untracked.txt": "u2\n"})
    project.merge("n.1")
    assert project.merge_into_checkout().outcome == "fast_forward"
    assert (root / "a.txt").read_text() == "mine and theirs\n"
    assert (root / "untracked.txt").read_text() == "u2\n"
    assert not (root / "c.txt").exists()
    assert git(root, "status", "--porcelain") == ""


def test_changes_after_the_session_took_some_along_are_not_lost(tmp_path: Path, clock: ManualClock) -> None:
    root = make_repository(tmp_path / "checkout", FILES)
    plant(root, {"a.txt": "mine\n"})
    project = open_project(root, tmp_path / "state", clock, take_changes=True)
    project.change("n.1", {"a.txt": "mine and theirs\n"})
    project.merge("n.1")
    plant(root, {"a.txt": "mine, later\n"})
    assert project.merge_into_checkout().dirty == ("a.txt",)
    assert (root / "a.txt").read_text() == "mine, later\n"


@pytest.mark.parametrize("written", [("a.txt",), ("a.txt", "new/e.txt"), ("a.txt", "new/e.txt", "sub/d.txt")])
def test_a_merge_that_was_killed_while_it_wrote_files_is_completed(
    project: TeamProject, written: tuple[str, ...]
) -> None:
    """Git writes files first, then the index, then HEAD."""
    new: dict[str, str] = {"a.txt": "theirs\n", "new/e.txt": "e\n"}
    plant(project.root, {path: new[path] for path in written if path in new})
    if "sub/d.txt" in written:
        (project.root / "sub/d.txt").unlink()
    assert project.merge_into_checkout().outcome == "fast_forward"
    assert git(project.root, "status", "--porcelain") == ""


def test_a_merge_that_was_killed_before_it_moved_head_is_completed(project: TeamProject) -> None:
    project.merge_into_checkout()
    git(project.root, "update-ref", "HEAD", project.opened.base_commit)
    assert project.merge_into_checkout().outcome == "fast_forward"
    assert git(project.root, "status", "--porcelain") == ""


def test_a_checkout_in_the_middle_of_a_merge_is_refused(project: TeamProject) -> None:
    plant(project.root, {".git/MERGE_HEAD": project.opened.base_commit})
    with pytest.raises(InvalidInput, match="a merge is under way"):
        project.merge_into_checkout()


def test_modes_links_and_binary_files_are_merged(tmp_path: Path, clock: ManualClock) -> None:
    root = make_repository(tmp_path / "checkout", {**FILES, "run.sh": "#!/bin/sh\n"})
    project = open_project(root, tmp_path / "state", clock)
    folder = project.pipeline("n.1")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("a.txt")
    (folder / "logo.bin").write_bytes(b"\0\1")
    project.trees.commit("n.1", "kinds", (), clock)
    project.merge("n.1")
    assert project.merge_into_checkout().merged
    assert (root / "run.sh").stat().st_mode & 0o100
    assert (root / "link").readlink() == Path("a.txt")
    assert (root / "logo.bin").read_bytes() == b"\0\1"
    assert git(root, "status", "--porcelain") == ""
