"""A `.git` that leads to another repository on the machine: its history is not shown as that of the folder. Worktrees
and submodules, which are pointed back to, are read."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.errors import SourceError
from clew.knowledge.code.store import CodeStore
from clew.knowledge.git.log import read_commits
from clew.knowledge.git.run import find_head, find_objects
from clew.knowledge.git.store import GitLog
from tests.knowledge.code.repositories import git, make_repository


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.knowledge.git.run._warned", set())


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A repository of the user that is none of the archive's business."""
    root = make_repository(tmp_path / "private", {"plan.md": "turnip\n"})
    git(root, "commit", "--amend", "-qm", "Plan the turnip")
    return root


def _file(private: Path, root: Path) -> None:
    (root / ".git").write_text(f"gitdir: {private / '.git'}\n")


def _link(private: Path, root: Path) -> None:
    (root / ".git").symlink_to(private / ".git")


def _common(private: Path, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git" / "commondir").write_text(f"{private / '.git'}\n")


def _false_worktree(private: Path, root: Path) -> None:
    """A worktree that names itself, and another repository as its main one."""
    inner = root / "x" / "worktrees" / "own"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "gitdir").write_text(f"{root / '.git'}\n")
    (inner / "commondir").write_text(f"{private / '.git'}\n")
    (root / ".git").write_text("gitdir: x/worktrees/own\n")


def _skeleton(private: Path, root: Path) -> Path:
    """A repository that names the commit of another; its objects."""
    git(root, "init", "-q")
    shutil.rmtree(root / ".git" / "objects" / "info")
    (root / ".git" / "refs" / "heads" / "main").write_text(git(private, "rev-parse", "HEAD"))
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return root / ".git" / "objects"


def _alternates(private: Path, root: Path) -> None:
    objects = _skeleton(private, root)
    (objects / "info").mkdir()
    (objects / "info" / "alternates").write_text(f"{private / '.git' / 'objects'}\n")


def _chained_alternates(private: Path, root: Path) -> None:
    objects = _skeleton(private, root)
    for place, leads in ((objects, "../more"), (root / ".git" / "more", str(private / ".git" / "objects"))):
        (place / "info").mkdir(parents=True)
        (place / "info" / "alternates").write_text(f"{leads}\n")


def _objects(private: Path, root: Path) -> None:
    objects = _skeleton(private, root)
    shutil.rmtree(objects)
    objects.symlink_to(private / ".git" / "objects")


def _packs(private: Path, root: Path) -> None:
    git(private, "repack", "-adq")
    objects = _skeleton(private, root)
    shutil.rmtree(objects / "pack")
    (objects / "pack").symlink_to(private / ".git" / "objects" / "pack")


def _single_pack(private: Path, root: Path) -> None:
    git(private, "repack", "-adq")
    objects = _skeleton(private, root)
    for each in (private / ".git" / "objects" / "pack").iterdir():
        (objects / "pack" / each.name).symlink_to(each)


def _bare(private: Path, root: Path) -> None:
    """A folder that is a repository itself."""
    (root / "refs").mkdir()
    (root / "HEAD").write_text(git(private, "rev-parse", "HEAD"))
    (root / "objects").symlink_to(private / ".git" / "objects")


LEADING_OUT = (
    *(_file, _link, _common, _false_worktree, _alternates, _chained_alternates, _objects, _packs, _single_pack),
    _bare,
)


@pytest.mark.parametrize("lead", LEADING_OUT)
def test_the_history_of_another_repository_is_not_read_and_that_is_said_once(
    tmp_path: Path, private: Path, lead: Callable[[Path, Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "archive"
    (root / "sub").mkdir(parents=True)
    lead(private, root)
    assert git(root, "log", "--format=%s").strip() == "Plan the turnip"  # this is what git itself would tell
    with caplog.at_level(logging.WARNING):
        for folder in (root, root, root / "sub"):
            assert find_head(folder) is None
            with pytest.raises(SourceError, match="is not used in this folder"):
                find_objects(folder)
            with pytest.raises(SourceError, match="is not used in this folder"):
                list(read_commits(folder, [git(private, "rev-parse", "HEAD").strip()]))
    assert [each.getMessage().partition(":")[0] for each in caplog.records] == ["the history of git is left out"] * 2


def test_commits_of_a_former_repository_are_forgotten(tmp_path: Path, private: Path) -> None:
    store = CodeStore(tmp_path / "code.db")
    try:
        GitLog(store, private).refresh()
        root = tmp_path / "archive"
        root.mkdir()
        _file(private, root)
        assert GitLog(store, root).refresh().head is None
        assert GitLog(store, root).count() == 0
    finally:
        store.close()


@pytest.mark.parametrize("relative", [False, True])
def test_a_worktree_is_read(tmp_path: Path, private: Path, relative: bool) -> None:
    tree = tmp_path / "tree"
    git(private, "worktree", "add", "-q", str(tree))
    if relative:
        (tree / ".git").write_text("gitdir: ../private/.git/worktrees/tree\n")
        (private / ".git" / "worktrees" / "tree" / "gitdir").write_text("../../../../tree/.git\n")
    head = find_head(tree)
    assert head == find_objects(tree).head == find_head(private) is not None
    assert [commit.subject for commit in read_commits(tree, [head])] == ["Plan the turnip"]


def test_a_submodule_is_read(tmp_path: Path, private: Path) -> None:
    above = make_repository(tmp_path / "above", {"a.py": "x = 1\n"})
    git(above, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(private), "parts/inner")
    assert find_head(above / "parts" / "inner") == find_head(private)
    assert find_objects(above / "parts" / "inner").head == find_head(private)


def test_a_folder_within_a_repository_and_one_that_is_reached_by_a_link_are_read(tmp_path: Path, private: Path) -> None:
    (private / "deep" / "er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(private)
    assert find_head(private / "deep" / "er") == find_head(tmp_path / "link") == find_head(private) is not None


def test_a_clone_that_borrows_objects_is_read_once_it_is_whole(tmp_path: Path, private: Path) -> None:
    shared = tmp_path / "shared"
    git(tmp_path, "clone", "-q", "--shared", str(private), str(shared))
    assert find_head(shared) is None
    git(shared, "repack", "-adq")
    (shared / ".git" / "objects" / "info" / "alternates").unlink()
    assert find_head(shared) == find_head(private)


def test_a_repository_that_was_put_elsewhere_is_read_once_it_names_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"), str(root))
    git(root, "commit", "-q", "--allow-empty", "-m", "Begin")
    git(root, "config", "core.worktree", str(root))
    assert find_head(root) is not None
