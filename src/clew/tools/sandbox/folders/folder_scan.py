"""Scan of a folder for the sandbox: secrets, settings that start programs, and links."""

from __future__ import annotations

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from clew.errors import ToolFailure
from clew.tools.protected_names import (
    GIT_DATA,
    GIT_NAME,
    LIBRARIES,
    is_denied_in_library,
    is_denied_name,
)
from clew.tools.sandbox.folders.folder_listing import TICK, FolderListing, Identity, is_shut, read_listing

MAX_ENTRIES = 300_000
_PACKAGES = "node_modules"
"""A folder with installed packages. Only its package folders are searched, because it may be very large."""
_PASSED_OVER = frozenset({"__pycache__"})
"""Folders that are skipped in libraries."""
_OUTSIDE, _DEEP = -1, 2
"""Depths within a folder of libraries: outside of one, and below its packages."""
_KEPT_ROOTS = 8

Place = tuple[Identity, str, int]
"""Identifies an entry even if its folder was renamed: the identity of the folder, the name, and the change time of a
link. A program cannot replace a protected file, but the user can; both can replace a link."""


class FolderScan(msgspec.Struct, frozen=True, kw_only=True):
    """The paths found, without following links. `denied` includes folders that cannot be read."""

    denied: tuple[str, ...]
    guarded: dict[str, Place]
    repositories: tuple[str, ...]
    links: tuple[str, ...]


_kept: OrderedDict[str, dict[str, FolderListing]] = OrderedDict()
_cache_lock = threading.Lock()


def scan_folder(root: str, *, is_thorough: bool = False, since: int | None = None) -> FolderScan:
    """Scan a folder. Blocks.

    Unless `is_thorough`, folders that programs fill are searched only to a limited depth. After a run that began at
    `since` (nanoseconds), changed folders are searched at any depth, and folders that the run made unreadable are made
    readable. Raises ToolFailure of the kind permission for a folder that cannot be read or is too large, but not after
    a run, which may have caused it.
    """
    walk = _Walk(root, is_thorough=is_thorough, since=since)
    walk.go()
    _keep(root, walk.seen if since is None else {**walk.known, **walk.seen})
    return walk.as_scan()


class _Walk:
    def __init__(self, root: str, *, is_thorough: bool, since: int | None) -> None:
        self._root = root
        self._is_thorough = is_thorough
        self._is_after = since is not None
        self._since = (since or 0) - TICK
        self._left = MAX_ENTRIES
        self.known = _kept.get(root, {})
        self.seen: dict[str, FolderListing] = {}
        self._denied: list[str] = []
        self._links: list[str] = []
        self._leads: list[str] = []
        self._library: set[str] = set()
        self._guarded: dict[str, Place] = {}
        self._repositories: list[str] = []

    def go(self) -> None:
        """Search from the root, outer folders first, then from the targets of links."""
        waiting = [(self._root, _OUTSIDE)]
        while waiting or (waiting := self._led_to()):
            path, depth = waiting.pop()
            listing = self._read(path)
            if listing is None:
                continue
            self._left -= listing.count
            if self._left < 0 and not self._is_after:
                raise _refused(self._root, f"it has more than {MAX_ENTRIES:,} files to search")
            if depth > _OUTSIDE:
                self._library.add(path)
            if not listing.is_plain:
                self._note(path, depth, listing)
            if listing.folders:
                waiting += self._below(path, depth, listing)

    def _led_to(self) -> list[tuple[str, int]]:
        """Return skipped folders and folders of libraries that are targets of links from elsewhere."""
        found = {os.path.realpath(link) for link in self._leads if os.path.isdir(link)}
        self._leads = []
        inner = self._root.rstrip("/") + "/"
        new = [path for path in found if path.startswith(inner) and (path not in self.seen or path in self._library)]
        self._library.difference_update(new)
        return [(path, _OUTSIDE) for path in new if os.path.basename(path) not in LIBRARIES]

    def _below(self, path: str, depth: int, listing: FolderListing) -> Iterator[tuple[str, int]]:
        """Yield the folders to search next, with the depth of each in a folder of libraries."""
        has_changed = self._is_after and listing.changed_at >= self._since
        is_all = self._is_thorough or has_changed
        if depth > 0 and not is_all and self._is_end(path):
            return
        is_git = listing.is_repository and f"/{GIT_NAME}/" in f"{path.casefold()}/"
        for name in listing.folders:
            inner = depth + 1 if depth > _OUTSIDE else 0 if name in LIBRARIES else _OUTSIDE
            if is_git and name in GIT_DATA:
                if not has_changed:
                    continue
                inner = _DEEP
            if depth > _OUTSIDE and name in _PASSED_OVER and not is_all:
                continue
            if name not in listing.denied or not _is_denied(name, inner):
                yield os.path.join(path, name), inner

    def _is_end(self, path: str) -> bool:
        """Whether the search skips everything below a folder of libraries."""
        return _is_package(path) or (self._is_after and not os.path.basename(path).startswith("@"))

    def _read(self, path: str) -> FolderListing | None:
        """Return the entries of a folder; None for a file, a missing path and an unreadable folder."""
        try:
            about = os.lstat(path)
            if is_shut(about):
                if not self._has_opened(path, about):
                    return None
                about = os.lstat(path)
            known = self.known.get(path)
            if known is None or not known.is_current(about):
                known = read_listing(path, about)
        except PermissionError:
            self._hide_unreadable(path, can_be_opened=False)
            return None
        except OSError:
            return None
        self.seen[path] = known
        return known

    def _has_opened(self, path: str, about: os.stat_result) -> bool:
        """Make an unreadable folder readable after a run that may have changed its permissions; return the success."""
        if not self._is_after or about.st_ctime_ns < self._since:
            self._hide_unreadable(path, can_be_opened=True)
            return False
        os.chmod(path, stat.S_IMODE(about.st_mode) | stat.S_IRWXU)
        return True

    def _hide_unreadable(self, path: str, *, can_be_opened: bool) -> None:
        """Hide an unreadable folder if the program could change its permissions or enter it."""
        if self._is_after:
            return
        if path == self._root:
            raise _refused(path, "it cannot be read")
        if can_be_opened or os.access(path, os.X_OK):
            self._denied.append(path)

    def _note(self, path: str, depth: int, listing: FolderListing) -> None:
        is_library = depth > _OUTSIDE
        self._denied += [os.path.join(path, name) for name in listing.denied if _is_denied(name, depth)]
        self._links += (links := [os.path.join(path, name) for name in listing.links])
        if not is_library:
            self._leads += links
        elif self._is_after and listing.changed_at < self._since:
            return
        if listing.is_repository:
            self._repositories.append(path)
        for name in listing.of_git if is_library else listing.guarded:
            inner = os.path.join(path, name)
            self._guarded[inner] = (listing.identity, name, _link_changed_at(inner) if name in listing.links else 0)

    def as_scan(self) -> FolderScan:
        return FolderScan(
            denied=tuple(self._denied),
            guarded=self._guarded,
            repositories=tuple(self._repositories),
            links=tuple(self._links),
        )


def _keep(root: str, listings: dict[str, FolderListing]) -> None:
    with _cache_lock:
        _kept[root] = listings
        _kept.move_to_end(root)
        if len(_kept) > _KEPT_ROOTS:
            _kept.popitem(last=False)


def _is_denied(name: str, depth: int) -> bool:
    return is_denied_in_library(name) if depth > _OUTSIDE else is_denied_name(name)


def _link_changed_at(path: str) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0  # deleted meanwhile


def _is_package(path: str) -> bool:
    """Whether a folder is a package: `node_modules/name` or `node_modules/@scope/name`."""
    *_, outer, above, name = ("", "", *path.split("/"))
    return (above == _PACKAGES and not name.startswith("@")) or (outer == _PACKAGES and above.startswith("@"))


def _refused(root: str, why: str) -> ToolFailure:
    hint = "Allow only the subfolder that the program needs"
    return ToolFailure("permission", f"the path {root!r} cannot be allowed: {why}", hint=hint)
