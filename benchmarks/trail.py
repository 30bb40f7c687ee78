"""Speed of the trail next to bare SQLite, Chroma, LanceDB, PostgreSQL and bare REST applications, in one run.

Usage: trail.py [--records 10000,100000] [--only NAME,...] [--without NAME,...] [--rounds N] [--quick] [--json FILE]

Contenders take turns within each round; the tables show the median over the rounds, and ratios are computed within each
round. Prints tables in markdown, and writes the same as JSON. A peer that is not installed gets a row that says so.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

from speed import common_words, creates, filters, handlers, ingest, rest, searches, startup
from speed.contenders import close_stores
from speed.report import Finding, Row, describe_machine, find_file_system, render, write_json
from speed.running import end_cleanly, some_of
from speed.stage import Settings, Stage
from speed.timing import tell

MEASURES: dict[str, Callable[[Stage], Awaitable[list[Finding]]]] = {
    "search": searches.measure,
    "filters": filters.measure,
    "creates": creates.measure,
    "ingest": ingest.measure,
    "handlers": handlers.measure,
    "rest": rest.measure,
    "common-words": common_words.measure,
    "startup": startup.measure,
}
SHARING = ("search", "filters", "creates")
"""Measures that work on the same stores, which are loaded once; those that add most come last."""
PEERS = ("sqlite", "chroma", "lancedb", "postgres", "postgres-hnsw", "fastapi", "starlette")
RESULTS = Path(__file__).parent / "results" / "trail.json"


def main() -> None:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, end_cleanly)
    scratch = Path(tempfile.mkdtemp(prefix="clew-bench-", dir=arguments.scratch))
    scratch.chmod(0o711)  # PostgreSQL runs as another user, and must reach its own folder in there
    run = Run(arguments, scratch)
    try:
        asyncio.run(run.measure_all())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(render(run.findings))
    tell(f"written to {arguments.json}")
    sys.exit(1 if run.has_failed else 0)


class Run:
    """One run of the benchmark. Results are written after each measure, so that a late failure does not lose them."""

    def __init__(self, arguments: argparse.Namespace, scratch: Path) -> None:
        self.findings: list[Finding] = []
        self.has_failed = False
        self._arguments = arguments
        self._scratch = scratch
        self._about = {
            "taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "settings": {"records": arguments.records, "rounds": arguments.rounds, "quick": arguments.quick},
            "machine": describe_machine(scratch),
        }
        if find_file_system(scratch) == "tmpfs":
            tell(f"{scratch} is in memory: nothing here is durable; choose a disk with --scratch")

    async def measure_all(self) -> None:
        arguments = self._arguments
        settings = Settings(rounds=arguments.rounds, quick=arguments.quick, without=frozenset(arguments.without))
        for size in arguments.records:
            folder = self._scratch / str(size)
            folder.mkdir(mode=0o711)
            stage = Stage(size, folder, settings)
            gc.collect()
            gc.freeze()  # the records live long, and no measure should pay for scanning them in garbage collections
            try:
                for name in arguments.only:
                    await self._measure(name, stage)
            finally:
                await close_stores(stage)
            gc.unfreeze()
            shutil.rmtree(folder, ignore_errors=True)

    async def _measure(self, name: str, stage: Stage) -> None:
        if name not in SHARING:
            await close_stores(stage)
        try:
            self.findings += await MEASURES[name](stage)
        except Exception as error:  # the boundary of a measure: the others still run
            traceback.print_exc()
            self.has_failed = True
            note = f"failed: {type(error).__name__}: {error}"[:200]
            self.findings.append(Row(measure=name, records=stage.size, contender="all", note=note))
        write_json(self._arguments.json, self.findings, self._about)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=numbers, default=[10_000, 100_000], help="sizes, separated by commas")
    parser.add_argument("--only", type=some_of(MEASURES), default=list(MEASURES), help=", ".join(MEASURES))
    parser.add_argument("--without", type=some_of(PEERS), default=[], help=f"peers to leave out: {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, help="the number of rounds; 5, or 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the samples")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--scratch", type=Path, help="a folder on the disk to be measured")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 5)
    return arguments


def numbers(text: str) -> list[int]:
    found = [int(part) for part in text.split(",")]
    if min(found) < 100:
        raise argparse.ArgumentTypeError("at least 100 records are needed")
    return found


if __name__ == "__main__":
    main()
