"""A lock between processes, held beside a file. The operating system releases it when the process ends."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_PAUSE = 0.05


@contextlib.contextmanager
def process_lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock beside a file. Calls `waiting` once if another process has it. Raises OSError."""
    lock = _open(path)
    try:
        if not _try(lock):
            waiting()
            while not _try(lock):
                time.sleep(_PAUSE)
        yield
    finally:
        os.close(lock)


def is_locked(path: Path) -> bool:
    """Whether any process holds the lock. Raises OSError."""
    lock = _open(path)
    try:
        return not _try(lock)
    finally:
        os.close(lock)


def _open(path: Path) -> int:
    name = path.with_name(f"{path.name}.lock")
    return os.open(name, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o600)


def _try(lock: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # only on this system

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # not on Windows

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
