"""The files of a folder that the index covers: those that git tracks or would add, without links, key files, caches of
tools and other repositories. Without git, the `.gitignore` files decide."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from clew.errors import SourceError
from clew.knowledge.git.run import QUICK_SECONDS, is_stuck, note_stuck, start_git
from clew.secrecy import is_secret_file
from clew.tools.ignoring import NEVER_READ, TOOLS_OWN, rules_above

ALWAYS_LEFT_OUT = NEVER_READ | TOOLS_OWN | frozenset((".idea", ".vscode", ".cache"))
LEFT_OUT_UNTRACKED = frozenset(("vendor", "dist", "build"))
"""Folders of generated or copied files. Tracked files in them count."""

GIT_SECONDS = QUICK_SECONDS
"""The time for git to list files. After that the folder is walked."""
COARSE_NS, FINE_NS = 2_000_000_000, 50_000_000
"""How long after a change a second one may leave the times of a file as they are: on file systems with whole seconds,
and on others."""

_SECOND_NS = 1_000_000_000
_LINK, _MODULE = "120000", "160000"
_TRACKED, _OTHERS = "ls-files", "ls-files --others"


class Status(NamedTuple):
    """The status of a file. An equal status means equal content if it is `settled`."""

    size: int
    mtime_ns: int
    ctime_ns: int
    ino: int

    def settled(self, looked_ns: int) -> bool:
        """Whether a change of the file after that time shows in its status."""
        newest = max(self.mtime_ns, self.ctime_ns)
        grain = FINE_NS if self.ctime_ns % _SECOND_NS else COARSE_NS
        return newest < looked_ns - grain


def status_of(found: os.stat_result) -> Status:
    return Status(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


class Tree:
    """The files of one folder, listed anew by each call. Paths are relative, with `/`."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.realpath(root)

    def look(self) -> dict[str, Status]:
        """All regular files that count, in no order; empty without such a folder."""
        found = self._statuses(self._list())
        return _without_case_twins(found) if len({path.lower() for path in found}) < len(found) else found

    def status(self, path: str) -> Status | None:
        """The status of a regular file, or None."""
        try:
            found = os.lstat(f"{self.root}/{path}")
        except (OSError, ValueError):
            return None
        return status_of(found) if stat.S_ISREG(found.st_mode) else None

    def folders(self, files: Iterable[str]) -> set[str]:
        """The folders that may get files that count, and those of these files. The root is the empty string."""
        found = {folder for folder, _ in _walk(self.root)}
        for path in files:
            while path and (path := path.rpartition("/")[0]) not in found:
                found.add(path)
        return found

    def choose(self, paths: Iterable[str]) -> dict[str, Status]:
        """The paths that count, with their status. Asks git once for all of them."""
        wanted = [path for path in paths if _is_wanted(path)]
        if not wanted:
            return {}
        listed = set(self._list_git(wanted) if _is_repository(self.root) else ())
        if not listed:
            everything = set(self._list())
            listed = {path for path in wanted if path in everything}
        return self._statuses(path for path in wanted if path in listed)

    def _statuses(self, paths: Iterable[str]) -> dict[str, Status]:
        root, found = self.root, {}
        for path in paths:
            try:
                seen = os.lstat(f"{root}/{path}")
            except OSError:
                continue
            if stat.S_ISREG(seen.st_mode):
                found[path] = status_of(seen)
        return found

    def _list(self) -> Iterable[str]:
        """Paths that count. A folder that its repository ignores is walked as without git."""
        by_git = self._list_git() if _is_repository(self.root) else []
        return by_git or self._walked()

    def _list_git(self, only: Iterable[str] = ()) -> list[str]:
        """The tracked and the untracked paths that git does not ignore; empty if git fails. If only the list of
        untracked paths takes too long, a walk replaces it."""
        if is_stuck(self.root, _TRACKED):
            return []
        chosen = ["--", *only] if only else []
        deadline = time.monotonic() + GIT_SECONDS
        commands = {_TRACKED: ("--stage",), _OTHERS: ("--others", "--exclude-standard")}
        running = {
            command: _start_git(self.root, ["ls-files", "-z", *options, *chosen])
            for command, options in commands.items()
            if not is_stuck(self.root, command)
        }
        tracked, others = (self._output(command, running.get(command), deadline) for command in commands)
        if tracked is None:
            return []
        found = [path for path in map(_tracked_path, tracked) if _is_wanted(path)]
        if others is None:
            wanted = set(only)
            found += [path for path in self._walked() if not wanted or path in wanted]
        else:
            found += [path for path in others if _is_wanted(path) and _is_own(path)]
        return list(dict.fromkeys(found))

    def _walked(self) -> list[str]:
        return [path for _, files in _walk(self.root) for path in files]

    def _output(self, command: str, process: subprocess.Popen[bytes] | None, deadline: float) -> list[str] | None:
        """The paths that git prints; None if it fails or takes too long, which is remembered."""
        if process is None:
            return None
        with process:
            try:
                content, _ = process.communicate(timeout=max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                note_stuck(self.root, command)
                return None
        return [line for line in os.fsdecode(content).split("\0") if line] if process.returncode == 0 else None


def _is_wanted(path: str) -> bool:
    """Whether a path may count. The path of a nested repository ends with a slash."""
    folder, _, name = path.rpartition("/")
    if not name or name in NEVER_READ or not _may_hold_files(folder):
        return False
    return not is_secret_file(name) and _is_utf8(path)


@lru_cache(maxsize=20_000)
def _may_hold_files(folder: str) -> bool:
    names = folder.split("/")
    return ALWAYS_LEFT_OUT.isdisjoint(names) and (not folder or names[0] not in ("", ".."))


def _is_own(path: str) -> bool:
    return LEFT_OUT_UNTRACKED.isdisjoint(path.split("/")[:-1])


def _is_utf8(path: str) -> bool:
    return path.isascii() or path.encode("utf-8", errors="replace").decode("utf-8") == path


def _is_repository(root: str) -> bool:
    folder = Path(root)
    return any(os.path.lexists(place / ".git") for place in (folder, *folder.parents))


def _tracked_path(line: str) -> str:
    """The path in a line of `ls-files --stage`; empty for a link or a nested repository."""
    return "" if line.startswith((_LINK, _MODULE)) else line.partition("\t")[2]


def _start_git(root: str, arguments: list[str]) -> subprocess.Popen[bytes] | None:
    try:
        return start_git(root, arguments)
    except SourceError:
        return None


def _walk(root: str) -> Iterator[tuple[str, list[str]]]:
    """All folders that the `.gitignore` files allow, each with its files. Follows no links, and enters no other
    repository."""
    pending = [("", rules_above(Path(root)))]
    while pending:
        folder, above = pending.pop()
        place = f"{root}/{folder}" if folder else root
        rules = above.entering(place)
        files = []
        for entry in _entries(place, is_top=not folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            inside = f"{path}/-" if is_folder else path
            if not (_is_wanted(inside) and _is_own(inside)) or rules.ignores(entry.path, is_folder=is_folder):
                continue
            if is_folder:
                pending.append((path, rules))
            else:
                files.append(path)
        yield folder, files


def _entries(place: str, *, is_top: bool) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as listing:
            entries = list(listing)
    except OSError:
        return []
    is_another = not is_top and any(entry.name == ".git" for entry in entries)
    return [] if is_another else entries


def _without_case_twins(found: dict[str, Status]) -> dict[str, Status]:
    """Drop paths that differ only in case and are the same file."""
    kept: dict[tuple[str, int], str] = {}
    for path, status in found.items():
        kept.setdefault((path.lower(), status.ino), path)
    return {path: found[path] for path in kept.values()}
