"""Speed of the runtime: durable steps, what they take on the disk and going on after kill -9 beside LangGraph and DBOS;
contexts on a large trail, calls of sandboxed tools, and many conversations at once, in one run.

Usage: runtime.py [--only NAME,...] [--without NAME,...] [--rounds N] [--quick] [--json FILE] [--scratch DIR]

Contenders have processes of their own and take turns within each round; the tables show the median over the rounds, and
ratios are computed within each round. Prints tables in markdown, and writes the same as JSON.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from pathlib import Path

from speed import runtime_contexts, runtime_conversations, runtime_resume, runtime_sandbox, runtime_steps
from speed.report import Finding
from speed.running import run, some_of
from speed.step_contenders import PEERS, Settings

MEASURES: dict[str, Callable[[Settings], Awaitable[list[Finding]]]] = {
    "steps": runtime_steps.measure,
    "resume": runtime_resume.measure,
    "conversations": runtime_conversations.measure,
    "contexts": runtime_contexts.measure,
    "sandbox": runtime_sandbox.measure,
}
RESULTS = Path(__file__).parent / "results" / "runtime.json"


def main() -> None:
    run(measure, parse_arguments())


async def measure(arguments: argparse.Namespace, scratch: Path) -> list[Finding]:
    settings = Settings(
        scratch=scratch,
        rounds=1 if arguments.quick else arguments.rounds,
        quick=arguments.quick,
        without=frozenset(arguments.without),
    )
    return [finding for name in arguments.only for finding in await MEASURES[name](settings)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=some_of(MEASURES), default=list(MEASURES), help=", ".join(MEASURES))
    parser.add_argument("--without", type=some_of(PEERS), default=[], help=f"peers to leave out: {', '.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is repeated")
    parser.add_argument("--quick", action="store_true", help="one round of a few samples")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--scratch", type=Path, help="a folder on the disk to be measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
