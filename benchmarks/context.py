"""Contexts: how much a graph walk finds that flat search does not, and how long a context takes on a large trail.

Usage: context.py [--records 100000] [--builds 200] [--tokens 1000] [--conversations N] [--only NAME,...] [--data DIR]

Prints one JSON object. `two_hop` needs the benchmark data, and is skipped without it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from discovery_peers.data import DATA
from speed import context_assembly, two_hop
from speed.running import some_of
from speed.timing import tell

MEASURES = ("two_hop", "assembly")


async def measure(
    scratch: Path,
    *,
    data: Path = DATA,
    only: tuple[str, ...] = MEASURES,
    records: int = 100_000,
    builds: int = 200,
    tokens: int = two_hop.TOKENS,
    conversations: int | None = None,
) -> dict[str, dict[str, float]]:
    """The figures of each measure by name."""
    found: dict[str, dict[str, float]] = {}
    if "two_hop" in only and (data / "memory_dev.jsonl").exists():
        found["two_hop"] = await two_hop.measure(data, scratch, tokens=tokens, conversations=conversations)
    elif "two_hop" in only:
        tell(f"no memory_dev.jsonl in {data}: two_hop is left out")
    if "assembly" in only:
        found["assembly"] = await context_assembly.measure(scratch, records=records, builds=builds)
    return found


def main() -> None:
    given = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="clew-bench-", dir=given.scratch) as scratch:
        found = asyncio.run(
            measure(
                Path(scratch),
                data=given.data,
                only=tuple(given.only),
                records=given.records,
                builds=given.builds,
                tokens=given.tokens,
                conversations=given.conversations,
            )
        )
    print(json.dumps(found, indent=2))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="where memory_dev.jsonl and its corpus are")
    parser.add_argument("--records", type=int, default=100_000, help="how many records the large trail has")
    parser.add_argument("--builds", type=int, default=200, help="how many contexts are built there")
    parser.add_argument(
        "--tokens", type=int, default=two_hop.TOKENS, help="the token budget of a context of the two-hop set"
    )
    parser.add_argument(
        "--conversations", type=int, default=None, help="the number of conversations in the two-hop set"
    )
    parser.add_argument("--only", type=some_of(MEASURES), default=list(MEASURES), help=", ".join(MEASURES))
    parser.add_argument("--scratch", type=Path, default=None, help="where the trails are written")
    return parser.parse_args()


if __name__ == "__main__":
    main()
