"""The process of the `clew` command: one call of `main`, with a garbage collector for a short life."""

from __future__ import annotations

import gc
import os
import sys

from clew.cli import main

YOUNG_OBJECTS = 50_000
"""New objects before the collector looks for cycles. With Python's 700 it runs hundreds of times while modules load,
which takes a sixth of a short command and frees nothing."""

SERVERS = frozenset(("up", "mcp"))
"""Commands that run for long."""


def run() -> int:
    """Run the command of this process and return its exit code."""
    gc.set_threshold(YOUNG_OBJECTS)
    if SERVERS.isdisjoint(sys.argv[1:2]):
        # numpy's threads wait in a busy loop, and one question has no matrix that is large enough to share
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = main()
    # Everything ends with the process: without this the interpreter searches all of it for cycles once more.
    gc.freeze()
    return code
