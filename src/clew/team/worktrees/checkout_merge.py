"""The merge of a session's branch into the user's checkout. Nothing changes if an affected file has changes of the
user, or if the two sides conflict. Other files in the checkout stay unchanged."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from clew.clock import Clock
from clew.errors import InvalidInput
from clew.files import inside, replace_file
from clew.knowledge.git.run import GitFailed
from clew.team.worktrees.changes import compare_trees, write_commit
from clew.team.worktrees.git_calls import NO_OBJECT, SUBMODULE, GitFolder, json_name, split_entries
from clew.team.worktrees.merges import MergeConflict, is_ancestor, merge_trees
from clew.team.worktrees.repository import make_git_folder
from clew.team.worktrees.session_trees import SessionTrees, short

_Version = tuple[str, str]
"""Mode and blob."""
_NONE: _Version = ("000000", NO_OBJECT)
"""The version of a file that does not exist."""
Outcome = Literal["up_to_date", "fast_forward", "merged", "copied", "diverged", "conflict", "dirty"]


class CheckoutMerge(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a merge into the checkout. `dirty` are files that the user has changed. If there are dirty files or
    conflicts, nothing was changed."""

    outcome: Outcome
    head: str
    files: tuple[str, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    dirty: tuple[str, ...] = ()

    @property
    def merged(self) -> bool:
        return self.outcome not in ("diverged", "conflict", "dirty")


def merge_into_checkout(trees: SessionTrees, clock: Clock, *, ff_only: bool = False) -> CheckoutMerge:
    """Merge a session's branch into the branch or commit that is checked out; a folder without git gets the changed
    files. With `ff_only`, nothing changes if a merge commit is needed. Can be repeated after a crash. Raises
    InvalidInput for a checkout in the middle of a merge or a rebase."""
    with trees.locked():
        if trees.repository.kind == "copy":
            return _copy_back(trees)
        return _merge(trees, clock, ff_only)


def _merge(trees: SessionTrees, clock: Clock, ff_only: bool) -> CheckoutMerge:
    repository, theirs = trees.repository, trees.head
    repository.refuse_begun_operation()
    if any(repository.own.glob("sharedindex.*")):
        raise InvalidInput("checkout", "has a split index", hint="Run `git update-index --no-split-index`")
    git = make_git_folder(repository, trees.place / "checkout", repository.top).with_index(repository.own / "index")
    head = repository.read_ref("HEAD")
    if is_ancestor(git, theirs, head):
        return CheckoutMerge(outcome="up_to_date", head=head)
    is_forward = is_ancestor(git, head, theirs)
    if ff_only and not is_forward:
        return CheckoutMerge(outcome="diverged", head=head)
    merged = merge_trees(git, head, theirs)
    if merged.conflicts:
        return CheckoutMerge(outcome="conflict", head=head, conflicts=merged.conflicts)
    files = compare_trees(git, head, merged.tree).changed
    _refuse_collisions(git, merged.tree)
    states = _check_files(git, head, merged.tree, trees.record.start)
    if states.dirty:
        return CheckoutMerge(outcome="dirty", head=head, files=files, dirty=states.dirty)
    message = f"Merge branch '{short(trees.branch)}'"
    new = (
        theirs if is_forward else write_commit(git, merged.tree, [head, theirs], message, repository.identity(), clock)
    )
    try:
        git.run(["read-tree", "-m", "-u", _stage_states(git, trees.place / "checkout", head, states), new])
    except GitFailed:
        hint = "Commit or stash your changes, and let no other program use git during the merge"
        raise InvalidInput("checkout", "git could not write the merged files", hint=hint) from None
    if not repository.move_ref("HEAD", new, head):
        raise InvalidInput("checkout", "was moved to another commit during the merge", hint="Run the merge again")
    return CheckoutMerge(outcome="fast_forward" if is_forward else "merged", head=new, files=files)


@dataclass(frozen=True, slots=True)
class _FileStates:
    """The states of the files that a merge affects. `dirty` files have a content that no version of the merge has.
    `staged` are index entries for files that differ from HEAD. They already have the merged content, as after a crash,
    or the uncommitted content with which the session started. The latter are also in `taken`."""

    dirty: tuple[str, ...]
    staged: tuple[bytes, ...]
    taken: tuple[bytes, ...]


def _check_files(git: GitFolder, head: str, tree: str, start: str) -> _FileStates:
    """Compare the affected files of the checkout with the versions in the merge."""
    started = _read_changes(git, head, start)
    git.run(["update-index", "-q", "--refresh", "--ignore-submodules"], codes=(0, 1))
    entries = {path: (mode, blob) for mode, blob, path in split_entries(git.run(["ls-files", "-z", "-s"]))}
    modified = set(git.run(["diff-files", "-z", "--name-only", "--ignore-submodules=dirty"]).fields())
    dirty, staged, taken = [], [], []
    for path, (old, new) in _read_changes(git, head, tree).items():
        begun = started[path][1] if path in started else old
        entry = entries.get(path)
        if entry is not None and path not in modified:
            current: _Version | None = entry
        else:
            current = next((each for each in (new, begun, old) if _is_version(git, path, *each)), None)
        if current not in (old, new, begun) or (entry or _NONE) not in (old, new, begun):
            dirty.append(json_name(path))
        elif current is not None and current != old:
            staged.append(f"{current[0]} {current[1]}\t".encode() + path + b"\0")
            taken += staged[-1:] if current == begun and current != new else []
    return _FileStates(tuple(dirty), tuple(staged), tuple(taken))


def _read_changes(git: GitFolder, base: str, new: str) -> dict[bytes, tuple[_Version, _Version]]:
    """The old and the new version of each path that differs."""
    fields = git.run(["diff-tree", "-r", "-z", "--no-renames", base, new]).fields()
    rows = {path: about.decode().lstrip(":").split() for about, path in zip(fields[0::2], fields[1::2], strict=True)}
    return {path: (_version(row[0], row[2]), _version(row[1], row[3])) for path, row in rows.items()}


def _version(mode: str, blob: str) -> _Version:
    return (mode, blob) if blob.strip("0") else _NONE


def _stage_states(git: GitFolder, place: Path, head: str, states: _FileStates) -> str:
    """Write the entries into the user's index, and return the tree that git should treat as the current one."""
    if states.staged:
        git.run(["update-index", "-z", "--index-info"], stdin=b"".join(states.staged))
        git.run(["update-index", "-q", "--refresh", "--ignore-submodules"], codes=(0, 1))
    if not states.taken:
        return head
    (place / "from-index").unlink(missing_ok=True)
    scratch = git.with_index(place / "from-index")
    scratch.run(["read-tree", head])
    scratch.run(["update-index", "-z", "--index-info"], stdin=b"".join(states.taken))
    return scratch.sha("write-tree", "--missing-ok")


def _exists(git: GitFolder, path: bytes) -> bool:
    assert git.work_tree is not None
    return os.path.lexists(os.path.join(os.fsencode(git.work_tree), path))


def _has_content(git: GitFolder, path: bytes, mode: str, blob: str) -> bool:
    """Whether the file in the work tree has the mode and the content of a blob."""
    assert git.work_tree is not None
    place = os.path.join(os.fsencode(git.work_tree), path)
    if mode == SUBMODULE or blob == _NONE[1]:
        return False
    try:
        about = os.lstat(place)
        if stat.S_ISLNK(about.st_mode) != (mode == "120000") or stat.S_ISDIR(about.st_mode):
            return False
        if stat.S_ISLNK(about.st_mode):
            return git.sha("hash-object", "--stdin", stdin=os.readlink(place)) == blob
        content = Path(os.fsdecode(place)).read_bytes()
    except OSError:
        return False
    return git.sha("hash-object", "--stdin", f"--path={os.fsdecode(path)}", stdin=content) == blob


def _refuse_collisions(git: GitFolder, tree: str) -> None:
    """Raise InvalidInput for names that differ only by case, if the file system ignores case."""
    assert git.work_tree is not None
    if not os.path.exists(git.work_tree / ".GIT"):
        return
    seen: dict[str, str] = {}
    for path in map(json_name, git.run(["ls-tree", "-r", "-z", "--name-only", tree]).fields()):
        if path.casefold() in seen:
            why = f"{seen[path.casefold()]} and {path} are one file on this machine"
            raise InvalidInput("files", why, hint="Rename one of them")
        seen[path.casefold()] = path


# -- a folder without git ----------------------------------------------------------------------------------------


def _copy_back(trees: SessionTrees) -> CheckoutMerge:
    """Copy changed files into a folder without git, unless one of them changed there since the session began."""
    git = make_git_folder(trees.repository, trees.place / "checkout", trees.repository.top)
    start, head = trees.record.start, trees.head
    rows = _read_changes(git, start, head)
    files = tuple(map(json_name, rows))
    pending = {path: row for path, row in rows.items() if not _is_version(git, path, *row[1])}
    dirty = tuple(json_name(path) for path, (old, _) in pending.items() if not _is_version(git, path, *old))
    if dirty:
        return CheckoutMerge(outcome="dirty", head=head, files=files, dirty=dirty)
    for path, (_, new) in pending.items():
        _write_version(git, trees.repository.top, path, *new)
    return CheckoutMerge(outcome="copied" if pending else "up_to_date", head=head, files=files)


def _is_version(git: GitFolder, path: bytes, mode: str, blob: str) -> bool:
    return not _exists(git, path) if blob == _NONE[1] else _has_content(git, path, mode, blob)


def _write_version(git: GitFolder, top: Path, path: bytes, mode: str, blob: str) -> None:
    place = inside((top / os.fsdecode(path)).parent, top) / os.path.basename(os.fsdecode(path))
    if blob == _NONE[1]:
        place.unlink(missing_ok=True)
        return
    content = git.run(["cat-file", "blob", blob]).stdout
    place.parent.mkdir(parents=True, exist_ok=True)
    if mode == "120000":
        place.unlink(missing_ok=True)
        place.symlink_to(os.fsdecode(content))
    else:
        replace_file(place, content, 0o777 if mode == "100755" else 0o666)
