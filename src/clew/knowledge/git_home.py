"""Whether the repository that git finds for a folder is the folder's own. A `.git` that came with an archive may lead
to any other on the machine: what lies elsewhere has to point back, as that of a worktree or a submodule does."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from clew.errors import SourceError
from clew.knowledge.git import read_sha, run_git
from clew.trust import printable

MAX_NAME = 4_096
"""Bytes of a file that names a folder."""
MOST_ALTERNATES = 20
_WORKTREES = "worktrees"
_REPACK = "`git repack -a -d` and removing its objects/info/alternates make it whole"
_log = logging.getLogger(__name__)
_told: set[tuple[str, str]] = set()
"""Folders, and what was said of each."""


def find_head(root: Path) -> str | None:
    """The commit that is checked out, or None: no repository, no commit yet, no git, or a repository that is not the
    folder's own, which is said once."""
    try:
        require_own(root)
        return read_sha(run_git(root, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]))
    except SourceError:
        return None


def require_own(root: Path) -> None:
    """Raises SourceError where git finds no repository for a folder, or one that is not its own."""
    reason = _find_stranger(root)
    if not reason:
        return
    if (str(root), reason) not in _told:
        _told.add((str(root), reason))
        _log.warning("the history of git is left out: %s", reason)
    raise SourceError("git", f"is not asked: {reason}")


def _find_stranger(root: Path) -> str:
    """Why a repository is not the folder's own; empty where it is. Raises SourceError: no repository, no git."""
    printed = run_git(root, ["rev-parse", "--absolute-git-dir", "--git-common-dir"]).removesuffix(b"\n").split(b"\n")
    if len(printed) != 2:
        return "its folders have names of several lines"
    own, common = (Path(os.path.realpath(os.path.join(root, os.fsdecode(each)))) for each in printed)
    top = _find_top(Path(os.path.realpath(root)), own)
    if top is None:
        return f"nothing around this folder leads to {_shown(own)}"
    if not own.is_relative_to(top) and not _points_back(own, top):
        return f".git leads to {_shown(own)}, which does not point back to this folder"
    is_worktree = own.parent == common / _WORKTREES
    if not (common == own or is_worktree or common.is_relative_to(top)):
        return f".git shares {_shown(common)}, which does not point back to this folder"
    return _find_stray(common)


def _find_top(folder: Path, own: Path) -> Path | None:
    """The folder whose `.git` git found, or which is a repository itself."""
    for each in (folder, *folder.parents):
        if each == own or Path(os.path.realpath(each / ".git")) == own or _named_in(each / ".git", "gitdir:") == own:
            return each
    return None


def _points_back(own: Path, top: Path) -> bool:
    """Whether a repository elsewhere names the folder: as one of its worktrees, or as its only one."""
    if _named_in(own / "gitdir") == top / ".git":
        return True
    try:
        named = run_git(own, ["config", "--file", str(own / "config"), "--get", "core.worktree"]).strip()
    except SourceError:
        return False
    return bool(named) and Path(os.path.realpath(os.path.join(own, os.fsdecode(named)))) == top


def _find_stray(common: Path) -> str:
    """Which objects of a repository lie elsewhere."""
    objects = common / "objects"
    for place in (objects, *(link for part in ("", "pack", "info") for link in _links_in(objects / part))):
        if not Path(os.path.realpath(place)).is_relative_to(common):
            return f"{place.name} among its objects is a link that leads out of the repository"
    waiting, seen = [objects], {objects}
    while waiting:
        for other in _alternates(waiting.pop()):
            if not other.is_relative_to(common):
                return f"it borrows objects from {_shown(other)}: {_REPACK}"
            if other not in seen:
                seen.add(other)
                waiting.append(other)
        if len(seen) > MOST_ALTERNATES:
            return f"it borrows objects from over {MOST_ALTERNATES} places: {_REPACK}"
    return ""


def _links_in(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            yield from (Path(each.path) for each in entries if each.is_symlink())
    except OSError:
        return


def _alternates(objects: Path) -> list[Path]:
    """Where objects are looked up besides; what cannot be read leads nowhere, for git neither."""
    try:
        with open(objects / "info" / "alternates", "rb") as file:
            lines = file.read(MAX_NAME * MOST_ALTERNATES).splitlines()
    except OSError:
        return []
    named = (os.fsdecode(line) for line in lines if line.strip() and not line.startswith(b"#"))
    return [Path(os.path.realpath(os.path.join(objects, name.strip('"')))) for name in named]


def _named_in(file: Path, before: str = "") -> Path | None:
    """The place that a small file names after a word, as seen from its folder; links of the last part are kept."""
    try:
        with open(file, "rb") as opened:
            said = os.fsdecode(opened.read(MAX_NAME)).strip()
    except OSError:
        return None
    if not said.startswith(before) or "\0" in said:
        return None
    place = os.path.join(file.parent, said.removeprefix(before).strip())
    return Path(os.path.realpath(place)) if before else Path(os.path.realpath(os.path.dirname(place)), ".git")


def _shown(place: Path) -> str:
    return printable(str(place), 200)
