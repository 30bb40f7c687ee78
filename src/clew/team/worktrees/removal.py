"""The removal of work trees. Work that is not merged is never deleted: its branch stays, and uncommitted files are
committed to the branch first."""

from __future__ import annotations

import shutil

import msgspec

from clew.clock import Clock
from clew.errors import NotFound
from clew.team.worktrees.merges import is_ancestor
from clew.team.worktrees.session_trees import SessionTrees, short


class RemovedTree(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a removal. `branch` still holds work that is not merged; empty if all of it is merged."""

    pipeline: str
    branch: str = ""


def remove_worktree(trees: SessionTrees, pipeline: str, clock: Clock) -> RemovedTree:
    """Remove the work tree of a pipeline, and its branch if the session has all of it."""
    try:
        tree = trees.tree(pipeline)
    except NotFound:
        return RemovedTree(pipeline=pipeline)
    if tree.folder.exists():
        trees.commit(pipeline, f"Unfinished work of {pipeline}", (), clock)
    with trees.locked():
        head = trees.repository.read_ref(tree.branch)
        is_merged = not head or is_ancestor(tree.git, head, trees.head)
        shutil.rmtree(tree.folder, ignore_errors=True)
        if is_merged and head:
            trees.repository.delete_ref(tree.branch, head)
        shutil.rmtree(tree.git.gitdir, ignore_errors=True)
    return RemovedTree(pipeline=pipeline, branch="" if is_merged else short(tree.branch))


def remove_worktrees(trees: SessionTrees, clock: Clock) -> tuple[RemovedTree, ...]:
    """Remove the work trees of all pipelines of a session. Its own branch and tree stay."""
    gits = trees.place / "gits"
    names = sorted(each.name for each in gits.iterdir()) if gits.is_dir() else []
    return tuple(remove_worktree(trees, each, clock) for each in names)
