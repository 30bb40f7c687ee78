"""The process of the `clew` command: one call of `main`, with garbage collection tuned for a short process."""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import sys
import threading
from typing import TYPE_CHECKING

from clew.cli import main

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

YOUNG_OBJECTS = 50_000
"""New objects before the collector looks for cycles. With Python's 700 it runs hundreds of times while modules load,
which takes a sixth of a short command and frees nothing."""

SERVERS = frozenset(("up", "mcp"))
"""Commands that run for long."""


def run() -> int:
    """Run the command of this process, and end the process; return the exit code to an interpreter that has to wait for
    other threads, or is profiled."""
    code = run_command()
    if not _is_server() and threading.active_count() == 1 and sys.getprofile() is None:
        _end(code)
    return code


def run_command() -> int:
    """Run the command of this process and return its exit code."""
    gc.set_threshold(YOUNG_OBJECTS)
    if sys.platform != "win32":  # its console is no file
        sys.stderr = open_stderr()
    fill_closed_streams()
    if not _is_server():
        # numpy's threads wait in a busy loop, and one question has no matrix that is large enough to share
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # one question reads few pages of the large tables; clearing huge pages of 2 MB would take longer than reading
        # them
        os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    code = main()
    # Everything ends with the process: without this the interpreter searches all of it for cycles once more.
    gc.freeze()
    return code


class LossyFile(io.FileIO):
    """A file that loses text instead of raising OSError."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def open_stderr() -> io.TextIOWrapper:
    """Standard error as a stream that never fails. If the disk is full or the reader has gone, the notes of a command
    are lost, but its exit code stays the same."""
    try:
        file: io.FileIO = LossyFile(2, "w", closefd=False)
    except OSError:  # the caller closed it
        file = io.FileIO(os.devnull, "w")
    encoding = sys.stderr.encoding if sys.stderr is not None else None
    return io.TextIOWrapper(io.BufferedWriter(file), encoding, errors="backslashreplace", line_buffering=True)


def fill_closed_streams() -> None:
    """If the caller closed standard input, it is empty; if it closed standard output, the output is discarded."""
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(os.devnull)))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(os.devnull, "w")))


def _is_server() -> bool:
    return not SERVERS.isdisjoint(sys.argv[1:2])


def _end(code: int) -> None:
    """End the process as the interpreter does, but without a destructor for each object in memory: everything durable
    was closed by the command."""
    atexit._run_exitfuncs()  # `os._exit` runs no exit handlers, and there is no public way to run them
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads on
            stream.flush()
    os._exit(code)
