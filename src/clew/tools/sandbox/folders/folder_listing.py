"""The entries of a folder that matter to a sandbox, cached until the folder changes. No program can set the time of its
last change."""

from __future__ import annotations

import os
import stat
import time

import msgspec

from clew.tools.sandbox.folders.protected_names import (
    GIT_GUARDED,
    GIT_NAME,
    is_denied_name,
    is_guarded_name,
    is_repository,
)

TICK = 50_000_000
"""Nanoseconds in which a folder may change twice without its time telling."""
_USER = os.geteuid() if hasattr(os, "geteuid") else 0

Identity = tuple[int, int]
"""Device and number of a file."""


class FolderListing(msgspec.Struct, frozen=True):
    """`read_at` is when the folder was read, `changed_at` when it had changed last. `of_git` are those of the guarded
    that belong to a repository; `is_plain` says that nothing in it but folders matters."""

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
    """Raises OSError for what is no folder or cannot be read."""
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
    """Whether a folder is the user's own and hides what it holds: any of his programs can open it."""
    hides = about.st_mode & (stat.S_IRUSR | stat.S_IXUSR) != stat.S_IRUSR | stat.S_IXUSR
    return hides and about.st_uid == _USER != 0 and stat.S_ISDIR(about.st_mode)
