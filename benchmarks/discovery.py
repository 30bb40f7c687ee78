"""How well tools and skills are found: Clew beside FTS5, vectors alone, plain rank fusion, FastMCP's BM25 search
transform and pydantic-ai's tool search, on the same names, descriptions and questions, in one run.

Usage: discovery.py [--data DIR] [--sets NAME,...] [--only MEASURE,...] [--every N] [--json FILE]

Measures: ranking (with exact names), abstention, variants (the indexed fields of a tool), skills (as an agent finds
them), tokens. Prints tables in markdown, and writes the same as JSON. A peer that is not installed is skipped with a
note.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from discovery_peers import abstention, ranking, skills, tokens, variants
from discovery_peers.data import DATA, read_sets
from discovery_peers.tables import tell

MEASURES: dict[str, Any] = {"ranking": ranking, "abstention": abstention, "variants": variants, "skills": skills}
RESULTS = Path(__file__).parent / "results" / "discovery.json"


def main() -> None:
    arguments = parse_arguments()
    if not arguments.data.is_dir():
        sys.exit(f"no benchmark data in {arguments.data}: nothing measured")
    found = asyncio.run(measure(arguments))
    for name, rows in found.items():
        print(f"### {name}\n\n{(MEASURES | {'tokens': tokens})[name].render(rows)}\n")
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    tell(f"written to {arguments.json}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", type=names, default=frozenset(), help="only these sets, separated by commas")
    parser.add_argument("--only", type=names, default=frozenset((*MEASURES, "tokens")), help="only these measures")
    parser.add_argument("--every", type=int, default=1, help="use each N-th question only")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    return parser.parse_args()


def names(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split(",")))


async def measure(arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """The rows of each measure, set by set."""
    chosen: dict[str, Callable[..., Awaitable[list[dict[str, Any]]]]] = {
        name: module.measure for name, module in MEASURES.items() if name in arguments.only
    }
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    for each in read_sets(arguments.data, arguments.sets, arguments.every) if chosen else ():
        for name, run in chosen.items():
            tell(f"{each.name}, {len(each.rows):,} rows, {len(each.questions):,} questions: {name}")
            found[name] += await run(each)
    if "tokens" in arguments.only:
        found["tokens"] = await tokens.measure(arguments.data)
    return found


if __name__ == "__main__":
    main()
