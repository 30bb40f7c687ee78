"""What a process that reads anybody's files may take of the machine. Where a system has no such limits, there are none:
who started the process ends it after a while."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path

MORE_MEMORY = 1 << 30
"""Bytes above what a process has when it begins: five times what the largest file of code takes."""


def limit_memory(more: int = MORE_MEMORY) -> None:
    """From now on this process ends when it wants so many more bytes. It leaves no image of itself behind."""
    if sys.platform == "win32":
        return
    import resource  # not there on every system

    with contextlib.suppress(OSError, ValueError):  # no /proc, or a limit that may not be changed
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        wanted = pages * resource.getpagesize() + more
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if soft == resource.RLIM_INFINITY or soft > wanted:
            resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def limit_seconds(seconds: float) -> None:
    """This process ends when it has used the processor for so long from now on; 0 takes the limit away. Unlike a limit
    of the whole process, it can be given anew for each piece of work."""
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def has_timed_out(returncode: int | None) -> bool:
    """Whether a process was ended by `limit_seconds`."""
    return sys.platform != "win32" and returncode == -signal.SIGPROF
