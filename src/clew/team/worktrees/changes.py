"""The changes of a work tree: staged into an index, compared with a commit, and written as a commit."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from clew.clock import Clock
from clew.errors import InvalidInput
from clew.team.worktrees.git_calls import SUBMODULE, GitFolder, Identity, json_name
from clew.team.worktrees.repository import Repository, make_git_folder
from clew.tools.protected_names import is_denied_name

MAX_FILE = 50_000_000
MAX_FILES, MAX_BYTES = 50_000, 2_000_000_000
"""Limits of a folder without git that is copied."""
_LFS = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 1_024
_CONFLICT = "has unmerged files"


class FileChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The paths that differ between two trees. `changed` includes `created` and `deleted`."""

    changed: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """A tree that was written from files, and notes on files that it leaves out."""

    tree: str
    notes: tuple[str, ...] = ()


def stage(git: GitFolder, *, is_users: bool) -> Staged:
    """Write the files of a work tree as a tree. Ignored files, secrets, very large new files and repositories within
    are left out. No git filter is run. Files with a filter, such as Git LFS files, are therefore left out with a note
    in the user's checkout, and refused in a work tree of Clew."""
    git.run(["update-index", "-q", "--refresh", "--ignore-submodules"], codes=(0, 1))
    if git.run(["ls-files", "-z", "--unmerged"]).stdout:
        raise InvalidInput("checkout", _CONFLICT, hint="Resolve them first, or start from HEAD")
    modified = git.run(["diff-files", "-z", "--name-only", "--ignore-submodules=dirty"]).fields()
    others = git.run(["ls-files", "-z", "--others", "--exclude-standard"]).fields()
    taken, notes = _choose(git, others)
    filtered = _filtered(git, [*modified, *taken])
    kept_back = [path for path in filtered if not _is_same_pointer(git, path)]
    if kept_back and not is_users:
        names = ", ".join(map(json_name, kept_back[:5]))
        raise InvalidInput("files", f"{names} have a filter of git, such as Git LFS", hint="Leave them as they are")
    notes += [f"{json_name(path)} has a filter of git and was left out" for path in kept_back]
    paths = [path for path in (*modified, *taken) if path not in filtered]
    git.run(["update-index", "--add", "--remove", "-z", "--stdin"], stdin=b"".join(path + b"\0" for path in paths))
    return Staged(tree=git.sha("write-tree", "--missing-ok"), notes=tuple(notes))


def _choose(git: GitFolder, others: Iterable[bytes]) -> tuple[list[bytes], list[str]]:
    """The untracked files to take, and notes about the others."""
    taken, notes = [], []
    for path in others:
        name = json_name(path)
        if path.endswith(b"/"):
            notes.append(f"{name} is a repository of its own and was left out")
        elif any(is_denied_name(part) for part in os.fsdecode(path).split("/")):
            notes.append(f"{name} may hold secrets and was left out")
        elif _size(git, path) > MAX_FILE:
            notes.append(f"{name} has over {MAX_FILE:,} bytes and was left out")
        else:
            taken.append(path)
    return taken, notes


def _size(git: GitFolder, path: bytes) -> int:
    assert git.work_tree is not None
    try:
        return os.lstat(os.path.join(os.fsencode(git.work_tree), path)).st_size
    except OSError:
        return 0


def _filtered(git: GitFolder, paths: Sequence[bytes]) -> set[bytes]:
    """The paths whose attributes name a filter."""
    if not paths:
        return set()
    asked = b"".join(path + b"\0" for path in paths)
    fields = git.run(["check-attr", "-z", "--stdin", "filter"], stdin=asked).fields()
    rows = zip(fields[0::3], fields[2::3], strict=False)
    return {path for path, value in rows if value not in (b"unspecified", b"unset", b"")}


def _is_same_pointer(git: GitFolder, path: bytes) -> bool:
    """Whether the file equals the LFS pointer in the index, or the content that this pointer refers to."""
    assert git.work_tree is not None
    entry = git.run(["ls-files", "-z", "-s", "--", os.fsdecode(path)]).fields()
    if not entry:
        return False
    pointer = git.run(["cat-file", "blob", entry[0].split()[1].decode()]).stdout
    if not pointer.startswith(_LFS) or len(pointer) > _POINTER_BYTES:
        return False
    try:
        with open(os.path.join(os.fsencode(git.work_tree), path), "rb") as file:
            head = file.read(_POINTER_BYTES)
            if head == pointer:
                return True
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return False
    return f"oid sha256:{digest}".encode() in pointer


def snapshot_checkout(repository: Repository, place: Path) -> Staged:
    """Write the user's files as a tree, with uncommitted changes and without touching the checkout or its index. Raises
    InvalidInput for unmerged files and for a folder that is too large to copy."""
    git = make_git_folder(repository, place, repository.top)
    index = place / "snapshot-index"
    index.unlink(missing_ok=True)
    if repository.kind == "git":
        repository.refuse_begun_operation()
        for shared in repository.own.glob("sharedindex.*"):
            shutil.copy2(shared, place / shared.name)
        if (repository.own / "index").exists():
            shutil.copy2(repository.own / "index", index)  # with its time, by which git knows files that changed since
    git = git.with_index(index)
    if repository.kind == "copy":
        _refuse_large(git)
    return stage(git, is_users=True)


def _refuse_large(git: GitFolder) -> None:
    others = git.run(["ls-files", "-z", "--others", "--exclude-standard"]).fields()
    size = sum(_size(git, path) for path in others[: MAX_FILES + 1])
    if len(others) > MAX_FILES or size > MAX_BYTES:
        what = f"{len(others):,} files" if len(others) > MAX_FILES else f"{size:,} bytes"
        raise InvalidInput("root", f"has no git and is too large to copy: {what}", hint="Run `git init`, and commit")


def write_commit(
    git: GitFolder, tree: str, parents: Sequence[str], message: str, identity: Identity, clock: Clock
) -> str:
    """Write a commit without a hook or a signature, and return its name."""
    stamp = f"{int(clock.now().timestamp())} +0000"
    who = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", identity.name), ("EMAIL", identity.email), ("DATE", stamp))
    }
    arguments = ["commit-tree", tree, *(part for each in parents for part in ("-p", each)), "-F", "-"]
    text = message.replace("\0", "").strip() or "Work of the team"
    return git.run(arguments, stdin=f"{text}\n".encode(errors="replace"), env=who).stdout.decode().strip()


def compare_trees(git: GitFolder, base: str, new: str) -> FileChanges:
    """The paths that differ between two commits or trees. A rename is a deletion and a creation."""
    fields = git.run(["diff-tree", "-r", "-z", "--no-renames", "--name-status", base, new]).fields()
    found = sorted(zip((json_name(each) for each in fields[1::2]), fields[0::2], strict=True))
    return FileChanges(
        changed=tuple(path for path, _ in found),
        created=tuple(path for path, status in found if status == b"A"),
        deleted=tuple(path for path, status in found if status == b"D"),
    )


def new_submodules(git: GitFolder, base: str, new: str) -> list[str]:
    """Submodules that a tree has and its base has not."""
    fields = git.run(["diff-tree", "-r", "-z", "--no-renames", base, new]).fields()
    pairs = zip(fields[0::2], fields[1::2], strict=True)
    return [json_name(path) for about, path in pairs if about.split()[1].decode() == SUBMODULE and b" A" in about]


def is_outside(path: str, allowed: Sequence[str]) -> bool:
    """Whether a path matches none of the paths, folders and patterns that a task may change. If the list is empty,
    every path is allowed."""
    return bool(allowed) and not any(_covers(each, path) for each in allowed)


def _covers(pattern: str, path: str) -> bool:
    plain = pattern.removeprefix("./").rstrip("/")
    return path == plain or path.startswith(f"{plain}/") or fnmatchcase(path, plain)
