"""Speed of the trail next to bare SQLite, Chroma, LanceDB, PostgreSQL and bare REST applications, in one run.

Usage: trail.py [--records 10000,100000] [--only NAME,...] [--without NAME,...] [--rounds N] [--quick] [--json FILE]

Contenders take turns within each round; what is shown is the median over the rounds, and ratios are taken within a
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
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

from speed import creates, filters, handlers, ingest, rest, searches, startup
from speed.report import Finding, describe_machine, find_file_system, render, write_json
from speed.stage import Settings, Stage
from speed.timing import tell

MEASURES: dict[str, Callable[[Stage], Awaitable[list[Finding]]]] = {
    "creates": creates.measure,
    "ingest": ingest.measure,
    "search": searches.measure,
    "filters": filters.measure,
    "handlers": handlers.measure,
    "rest": rest.measure,
    "startup": startup.measure,
}
PEERS = ("sqlite", "chroma", "lancedb", "postgres", "fastapi", "starlette")
RESULTS = Path(__file__).parent / "results" / "trail.json"


def main() -> None:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, end_cleanly)
    scratch = Path(tempfile.mkdtemp(prefix="clew-bench-", dir=arguments.scratch))
    scratch.chmod(0o711)  # PostgreSQL runs as another user, and must reach its own folder in there
    try:
        if find_file_system(scratch) == "tmpfs":
            tell(f"{scratch} is in memory: nothing here is durable; choose a disk with --scratch")
        about = {
            "taken_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "settings": {"records": arguments.records, "rounds": arguments.rounds, "quick": arguments.quick},
            "machine": describe_machine(scratch),
        }
        findings = asyncio.run(run_all(arguments, scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(render(findings))
    write_json(arguments.json, findings, about)
    tell(f"written to {arguments.json}")


async def run_all(arguments: argparse.Namespace, scratch: Path) -> list[Finding]:
    settings = Settings(rounds=arguments.rounds, quick=arguments.quick, without=frozenset(arguments.without))
    findings: list[Finding] = []
    for size in arguments.records:
        folder = scratch / str(size)
        folder.mkdir()
        folder.chmod(0o711)
        stage = Stage(size, folder, settings)
        gc.collect()
        gc.freeze()  # the records stay for long, and nobody's clock should pay for looking at them again
        for name in arguments.only:
            findings += await MEASURES[name](stage)
        gc.unfreeze()
        shutil.rmtree(folder, ignore_errors=True)
    return findings


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=numbers, default=[10_000, 100_000], help="sizes, separated by commas")
    parser.add_argument("--only", type=names_of(MEASURES), default=list(MEASURES), help=", ".join(MEASURES))
    parser.add_argument("--without", type=names_of(PEERS), default=[], help=f"peers to leave out: {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, help="how often everything is repeated; 5, or 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the samples")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--scratch", type=Path, help="a folder on the disk that is to be measured")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 5)
    return arguments


def numbers(text: str) -> list[int]:
    found = [int(part) for part in text.split(",")]
    if min(found) < 100:
        raise argparse.ArgumentTypeError("at least 100 records are needed")
    return found


def names_of(known: Any) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        found = [name.strip() for name in text.split(",") if name.strip()]
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return found

    return parse


def end_cleanly(number: int, frame: object) -> NoReturn:
    """Leave through the blocks that end processes and remove files."""
    sys.exit(f"ended by signal {number}")


if __name__ == "__main__":
    main()
