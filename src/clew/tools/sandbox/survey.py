"""What lies below a folder that matters to a sandbox: secrets, settings that make programs run, and links.

Folders that have not changed are not read again: the time of their last change, which no program can set, says so.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from clew.errors import ToolFailure
from clew.tools.sandbox.names import (
    GIT_DATA,
    GIT_GUARDED,
    LIBRARIES,
    is_denied_in_library,
    is_denied_name,
    is_guarded_name,
    is_repository,
)

MAX_ENTRIES = 300_000
_PACKAGES = "node_modules"
"""Of it only the folders of its packages themselves are looked into: it may hold more than all the rest."""
_PASSED_OVER = frozenset({"__pycache__"})
_KEPT_ROOTS = 8
_TICK = 50_000_000
"""Nanoseconds in which a folder may change twice without its time telling."""

Identity = tuple[int, int]
"""Device and number of a file."""
Place = tuple[Identity, str, int]
"""The folder that something lies in, wherever that was moved, its name, and for a link when it changed last. What is
kept by a wall cannot be replaced there by a program, and may be by the user; a link can be replaced by both."""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """Paths, none of them by way of a link."""

    denied: tuple[str, ...]
    guarded: dict[str, Place]
    repositories: tuple[str, ...]
    links: tuple[str, ...]


class _Listing(msgspec.Struct, frozen=True):
    """What of a folder matters. `read_at` is when it was read, `changed_at` when it had changed last."""

    identity: Identity
    changed_at: int
    read_at: int
    count: int
    folders: tuple[str, ...]
    denied: frozenset[str]
    guarded: tuple[str, ...]
    links: tuple[str, ...]
    is_repository: bool

    def is_current(self, about: os.stat_result) -> bool:
        is_same = self.identity == _identity(about) and self.changed_at == about.st_ctime_ns
        return is_same and self.read_at - self.changed_at > _TICK


_kept: OrderedDict[str, dict[str, _Listing]] = OrderedDict()
_keeping = threading.Lock()


def look_through(root: str, *, is_thorough: bool = False, is_after: bool = False) -> Survey:
    """What matters below a folder. Blocks.

    Unless it is thorough, folders that programs fill are looked into only so deep; after a run, not at all. Raises
    ToolFailure of the kind permission for a folder with too much in it; after a run, which may have put it there, not.
    """
    walk = _Walk(root, is_thorough=is_thorough, is_after=is_after)
    for path, listing in walk:
        walk.note(path, listing)
    _keep(root, {**walk.known, **walk.seen} if is_after else walk.seen)
    return walk.as_survey()


class _Walk:
    def __init__(self, root: str, *, is_thorough: bool, is_after: bool) -> None:
        self._root = root
        self._is_thorough = is_thorough
        self._is_after = is_after
        self.known = _kept.get(root, {})
        self.seen: dict[str, _Listing] = {}
        self._denied: list[str] = []
        self._links: list[str] = []
        self._guarded: dict[str, Place] = {}
        self._repositories: list[str] = []
        self._library: set[str] = set()

    def __iter__(self) -> Iterator[tuple[str, _Listing]]:
        """Folders with what is in them, outer ones first; not those that cannot be read."""
        left = MAX_ENTRIES
        waiting = [(self._root, -1)]
        while waiting:
            path, depth = waiting.pop()
            listing = self._read(path)
            if listing is None:
                continue
            left -= listing.count
            if left < 0 and not self._is_after:
                raise _too_much(self._root)
            if depth >= 0:
                self._library.add(path)
            yield path, listing
            waiting += self._below(path, depth, listing)

    def _below(self, path: str, depth: int, listing: _Listing) -> Iterator[tuple[str, int]]:
        """The folders to look into next, with how deep in a folder of libraries each is; -1 for in none."""
        if depth >= 0 and not self._is_thorough and _is_package(path):
            return
        for name in listing.folders:
            if listing.is_repository and name in GIT_DATA:
                continue
            if not self._is_thorough and name in _PASSED_OVER:
                continue
            inner = depth + 1 if depth >= 0 else 0 if name in LIBRARIES else -1
            if inner >= 0 and self._is_after:
                continue
            if name not in listing.denied or not self._is_denied(name, inner):
                yield os.path.join(path, name), inner

    def _is_denied(self, name: str, depth: int) -> bool:
        return is_denied_in_library(name) if depth >= 0 else is_denied_name(name)

    def _read(self, path: str) -> _Listing | None:
        try:
            about = os.stat(path, follow_symlinks=False)
            known = self.known.get(path)
            if known is None or not known.is_current(about):
                known = _list(path, about)
        except OSError:
            return None  # a file, what is gone, or what the user cannot read either
        self.seen[path] = known
        return known

    def note(self, path: str, listing: _Listing) -> None:
        is_library = path in self._library
        self._denied += [
            os.path.join(path, name) for name in listing.denied if not is_library or is_denied_in_library(name)
        ]
        self._links += [os.path.join(path, name) for name in listing.links]
        if is_library:
            return
        if listing.is_repository:
            self._repositories.append(path)
        for name in listing.guarded:
            inner = os.path.join(path, name)
            self._guarded[inner] = (listing.identity, name, _link_changed_at(inner) if name in listing.links else 0)

    def as_survey(self) -> Survey:
        return Survey(
            denied=tuple(self._denied),
            guarded=self._guarded,
            repositories=tuple(self._repositories),
            links=tuple(self._links),
        )


def _keep(root: str, listings: dict[str, _Listing]) -> None:
    with _keeping:
        _kept[root] = listings
        _kept.move_to_end(root)
        if len(_kept) > _KEPT_ROOTS:
            _kept.popitem(last=False)


def _list(path: str, about: os.stat_result) -> _Listing:
    read_at = time.time_ns()
    with os.scandir(path) as entries:
        listed = [(each.name, each.is_dir(follow_symlinks=False), each.is_symlink()) for each in entries]
    names = {name for name, _, _ in listed}
    is_git = is_repository(os.path.basename(path), names)
    return _Listing(
        identity=_identity(about),
        changed_at=about.st_ctime_ns,
        read_at=read_at,
        count=len(listed),
        folders=tuple(name for name, is_folder, _ in listed if is_folder),
        denied=frozenset(filter(is_denied_name, names)),
        guarded=tuple(
            name
            for name, is_folder, _ in listed
            if is_guarded_name(name) or (is_git and name in GIT_GUARDED) or (name == ".git" and not is_folder)
        ),
        links=tuple(name for name, _, is_link in listed if is_link),
        is_repository=is_git,
    )


def _identity(about: os.stat_result) -> Identity:
    return about.st_dev, about.st_ino


def _link_changed_at(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0  # gone meanwhile


def _is_package(path: str) -> bool:
    """Whether a folder is that of a package: `node_modules/name` or `node_modules/@scope/name`."""
    *_, outer, above, name = ("", "", *path.split("/"))
    return (above == _PACKAGES and not name.startswith("@")) or (outer == _PACKAGES and above.startswith("@"))


def _too_much(root: str) -> ToolFailure:
    return ToolFailure(
        "permission",
        f"the path {root!r} cannot be allowed: it has more than {MAX_ENTRIES:,} files to look through",
        hint="Name the folder within it that is needed",
    )
