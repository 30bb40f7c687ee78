"""The memory allocator of a process that runs for long."""

from __future__ import annotations

import ctypes
import sys

MAX_ARENAS = 2
_M_ARENA_MAX = -8


def limit_arenas() -> None:
    """Let all threads share a few arenas of glibc's malloc. By default, threads have their own arenas and keep the
    memory that they free there; a server then grows by half over a few thousand conversations. Call it before threads
    start. Does nothing on other systems."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, MAX_ARENAS)
