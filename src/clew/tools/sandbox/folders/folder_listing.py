"""The entries of a folder that matter to a sandbox, cached until the change time of the folder differs. No program can
set the change time (ctime)."""

from __future__ import annotations

import os
import stat
import time

import msgspec

from clew.tools.protected_names import (
    GIT_GUARDED,
    GIT_NAME,
    is_denied_name,
    is_guarded_name,
    is_repository,
)

TICK = 50_000_000
"""The resolution of change times, in nanoseconds. A folder may change twice within it and keep its time."""
_USER = os.geteuid() if hasattr(os, "geteuid") else 0

Identity = tuple[int, int]
"""Device and inode of a file."""


class FolderListing(msgspec.Struct, frozen=True):
    """The relevant entries of a folder. `read_at` is the time of reading, `changed_at` that of the last change.
    `of_git` are the guarded entries that belong to a repository; `is_plain` means that only folders in it matter."""

    identity: Identity
    changed_at: int
    read_at: int
    count: int
    folders: tuple[str, ...]
    denied: frozenset[str]
    guarded: tuple[str, ...]
    of_git: frozenset[str]
    links: tuple[str, ...]
    is_repository: bool
    is_plain: bool

    def is_current(self, about: os.stat_result) -> bool:
        is_same = self.changed_at == about.st_ctime_ns and self.identity == (about.st_dev, about.st_ino)
        return is_same and self.read_at - self.changed_at > TICK


def read_listing(path: str, about: os.stat_result) -> FolderListing:
    """Read a folder. Raises OSError if it is not a folder or cannot be read."""
    read_at = time.time_ns()
    with os.scandir(path) as entries:
        listed = [(each.name, each.is_dir(follow_symlinks=False), each.is_symlink()) for each in entries]
    names = {name for name, _, _ in listed}
    is_git = is_repository(os.path.basename(path), names)
    of_git = frozenset(
        name
        for name, is_folder, _ in listed
        if (is_git and name in GIT_GUARDED) or (name == GIT_NAME and not is_folder)
    )
    denied = frozenset(filter(is_denied_name, names))
    guarded = tuple(name for name, _, _ in listed if name in of_git or is_guarded_name(name))
    links = tuple(name for name, _, is_link in listed if is_link)
    return FolderListing(
        identity=(about.st_dev, about.st_ino),
        changed_at=about.st_ctime_ns,
        read_at=read_at,
        count=len(listed),
        folders=tuple(name for name, is_folder, _ in listed if is_folder),
        denied=denied,
        guarded=guarded,
        of_git=of_git,
        links=links,
        is_repository=is_git,
        is_plain=not (denied or guarded or links or is_git),
    )


def is_shut(about: os.stat_result) -> bool:
    """Whether a folder belongs to the user but is not readable: any program of the user can make it readable."""
    hides = about.st_mode & (stat.S_IRUSR | stat.S_IXUSR) != stat.S_IRUSR | stat.S_IXUSR
    return hides and about.st_uid == _USER != 0 and stat.S_ISDIR(about.st_mode)
