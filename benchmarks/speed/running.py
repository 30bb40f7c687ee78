"""Functions for the commands of several benchmarks: a temporary folder, tables, JSON, names of measures."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import NoReturn

from speed.report import Finding, describe_machine, render, write_json
from speed.timing import tell


def run(
    measure: Callable[[argparse.Namespace, Path], Awaitable[list[Finding]]], arguments: argparse.Namespace
) -> list[Finding]:
    """Measure in a scratch folder, print the findings and write them to `arguments.json`."""
    signal.signal(signal.SIGTERM, end_cleanly)
    scratch = Path(tempfile.mkdtemp(prefix="clew-bench-", dir=arguments.scratch))
    about = {"taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": describe_machine(scratch)}

    async def work() -> list[Finding]:
        return await measure(arguments, scratch)

    try:
        findings = asyncio.run(work())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(render(findings))
    write_json(arguments.json, findings, about)
    tell(f"written to {arguments.json}")
    return findings


def end_cleanly(number: int, frame: object) -> NoReturn:
    """Exit through the blocks that end processes and remove files."""
    sys.exit(f"ended by signal {number}")


def some_of(measures: Collection[str]) -> Callable[[str], list[str]]:
    """Reads names with commas between them, for an option. Refuses those that there are not."""

    def names(text: str) -> list[str]:
        found = [name.strip() for name in text.split(",") if name.strip()]
        for name in found:
            if name not in measures:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(measures)}")
        return found

    return names
