"""Speed of the catalog: `ask` over thousands of tools beside FastMCP's search transform, `get` of many routes, the
start of `clew mcp`, loading a large catalog, and a bare MCP round trip, in one run.

Usage: catalog.py [--tools 3000] [--only NAME,...] [--rounds N] [--quick] [--json FILE] [--scratch DIR]

Contenders take turns within each round; the tables show the median over the rounds, and ratios are computed within each
round. Prints tables in markdown, and writes the same as JSON.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from discovery_peers.data import DATA
from speed import bare_mcp, catalog_asks, catalog_gets, catalog_loads
from speed.catalog_stage import Settings
from speed.report import Finding
from speed.running import run, some_of

MEASURES: dict[str, Callable[[Settings], Awaitable[list[Finding]]]] = {
    "asks": catalog_asks.measure,
    "gets": catalog_gets.measure,
    "loads": catalog_loads.measure,
    "bare": bare_mcp.measure,
}
RESULTS = Path(__file__).parent / "results" / "catalog.json"
QUICK = {"rounds": 1, "samples": 4}


def main() -> None:
    arguments = parse_arguments()
    logging.disable(logging.INFO)  # a peer shows every HTTP request in colours, which takes longer than the request
    if not arguments.data.is_dir():
        sys.exit(f"no benchmark data in {arguments.data}: nothing measured")
    run(measure, arguments)


async def measure(arguments: argparse.Namespace, scratch: Path) -> list[Finding]:
    rounds, samples = (QUICK["rounds"], QUICK["samples"]) if arguments.quick else (arguments.rounds, 60)
    settings = Settings(
        data=arguments.data,
        scratch=scratch,
        tools=arguments.tools,
        routes=arguments.routes,
        resources=arguments.resources,
        rounds=rounds,
        samples=samples,
    )
    return [finding for name in arguments.only for finding in await MEASURES[name](settings)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tools", type=int, default=3_000, help="how many tools are asked about")
    parser.add_argument("--routes", type=int, default=10_000, help="how many routes are loaded")
    parser.add_argument("--resources", type=int, default=100_000, help="how many resources are loaded beside them")
    parser.add_argument("--only", type=some_of(MEASURES), default=list(MEASURES), help=", ".join(MEASURES))
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is repeated")
    parser.add_argument("--quick", action="store_true", help="one round of a few samples")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--scratch", type=Path, help="a folder on the disk to be measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
