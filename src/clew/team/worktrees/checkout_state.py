"""Uncommitted changes of the user's checkout."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from clew.team.worktrees.changes import compare_trees, snapshot_checkout
from clew.team.worktrees.repository import find_repository, make_git_folder, state_folder


def changed_files(root: Path) -> tuple[str, ...] | None:
    """The files with uncommitted changes, new ones included; None for a folder without git. Raises InvalidInput for a
    repository that the team cannot use."""
    repository = find_repository(root, state_folder(root))
    if repository.kind == "copy":
        return None
    with TemporaryDirectory(prefix="clew-state-") as place:
        taken = snapshot_checkout(repository, Path(place))
        git = make_git_folder(repository, Path(place), repository.top)
        return compare_trees(git, repository.head, taken.tree).changed
