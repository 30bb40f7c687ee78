"""Disk usage of a run. It is measured only when the free space has shrunk."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

_BLOCK = 512
_AGAIN = 0.25
"""The share of the limit that must be used up between two measurements."""


class DiskWatch:
    """Watches the folders that a run may write, from its creation on."""

    def __init__(self, places: Iterable[str], limit: int) -> None:
        self._places = tuple(places)
        self._limit = limit
        self._since = time.time_ns()
        self._worth = limit
        self._left = self._look()

    def is_due(self) -> bool:
        """Whether the free space has shrunk so much that a measurement is due. Does not block."""
        return any(before - now >= self._worth for before, now in zip(self._left, self._look(), strict=True))

    def is_over(self, pids: Iterable[int]) -> bool:
        """Whether the files written since take more than the limit, including deleted files that the processes hold
        open. Blocks; the time grows with the number of files."""
        taken = 0
        for about in (*self._written(), *_deleted_files(pids, {os.stat(place).st_dev for place in self._places})):
            taken += about.st_blocks * _BLOCK
            if taken >= self._limit:
                return True
        self._worth += int(self._limit * _AGAIN)
        return False

    def _look(self) -> tuple[int, ...]:
        return tuple(map(_free, self._places))

    def _written(self) -> Iterator[os.stat_result]:
        waiting = list(self._places)
        while waiting:
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif (about := _about(entry)) is not None and about.st_ctime_ns >= self._since:
                        yield about


def _free(place: str) -> int:
    try:
        about = os.statvfs(place)
    except OSError:
        return 0
    return about.f_bavail * about.f_frsize


def _about(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _deleted_files(pids: Iterable[int], devices: Collection[int]) -> Iterator[os.stat_result]:
    """Yield deleted files of these devices that processes hold open."""
    found = {}
    for held in (held for pid in pids for held in _held(pid)):
        with contextlib.suppress(OSError):
            about = held.stat()
            if about.st_nlink == 0 and about.st_dev in devices:
                found[about.st_dev, about.st_ino] = about
    yield from found.values()


def _held(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []  # the process has ended
