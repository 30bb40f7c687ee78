"""A trail on PostgreSQL beside DBOS and LangGraph (durable steps), a bare psycopg script (creates) and LanceDB
(search); wake-ups of other processes with NATS and without; how throughput grows with workers; and the gain of
partitions, a replica and several logs, in one run.

Usage: scale.py [--only NAME,...] [--without NAME,...] [--records N,...] [--rounds N] [--quick] [--json FILE]
[--scratch DIR]

All contenders use one PostgreSQL server that flushes every commit. They have processes of their own and take turns
within each round; ratios are taken within a round. Prints tables in markdown, writes the same as JSON, and ends with 1
when a promise was not kept. A million records are measured on request, and take long to load: --records 1000000.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from speed import scale_creates, scale_growth, scale_search, scale_steps, scale_wakeups
from speed.report import Finding, Promise
from speed.running import run, some_of
from speed.scale_stage import Engines, ScaleSettings, running_engines

MEASURES: dict[str, Callable[[Engines, ScaleSettings], Awaitable[list[Finding]]]] = {
    "steps": scale_steps.measure,
    "calls": scale_steps.measure_calls,
    "wakeups": scale_wakeups.measure,
    "creates": scale_creates.measure,
    "search": scale_search.measure,
    "growth": scale_growth.measure,
}
PEERS = ("dbos", "langgraph", "lancedb")
RESULTS = Path(__file__).parent / "results" / "scale.json"


def main() -> None:
    findings = run(measure, parse_arguments())
    sys.exit(any(isinstance(each, Promise) and not each.is_kept for each in findings))


async def measure(arguments: argparse.Namespace, scratch: Path) -> list[Finding]:
    scratch.chmod(0o711)  # PostgreSQL runs as another user, and must reach its own folder in there
    settings = ScaleSettings(
        scratch=scratch,
        records=tuple(arguments.records or ([2_000] if arguments.quick else [10_000, 100_000])),
        rounds=arguments.rounds or (1 if arguments.quick else 3),
        quick=arguments.quick,
        without=frozenset(arguments.without),
    )
    with running_engines(scratch) as engines:
        return [finding for name in arguments.only for finding in await MEASURES[name](engines, settings)]


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=some_of(MEASURES), default=list(MEASURES), help=", ".join(MEASURES))
    parser.add_argument("--without", type=some_of(PEERS), default=[], help=f"peers to leave out: {', '.join(PEERS)}")
    parser.add_argument(
        "--records", type=numbers, help="sizes of the search; 10,000 and 100,000, or 2,000 with --quick"
    )
    parser.add_argument("--rounds", type=int, help="the number of rounds; 3, or 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="few samples: at most two minutes")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--scratch", type=Path, help="a folder on the disk to be measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
