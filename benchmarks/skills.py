"""Speed of skills: building them from folders, the tools of an agent, its prompt; beside skills-ref, FastMCP's skills
provider and pydantic-ai's toolsets where they do the same work, in one run.

Usage: skills.py [--skills 500] [--tools 10000] [--only NAME,...] [--rounds N] [--quick] [--without-peers]
                 [--json FILE] [--scratch DIR]

Contenders take turns within each round; the tables show the median over the rounds, and ratios are computed within each
round. Prints tables in markdown, and writes the same as JSON.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from discovery_peers.data import DATA
from speed import skills_builds, skills_prompts, skills_tools
from speed.report import Finding
from speed.running import run, some_of
from speed.skills_stage import Settings

MEASURES: dict[str, Callable[[Settings], Awaitable[list[Finding]]]] = {
    "builds": skills_builds.measure,
    "tools": skills_tools.measure,
    "prompts": skills_prompts.measure,
}
RESULTS = Path(__file__).parent / "results" / "skills.json"
QUICK = {"rounds": 1, "samples": 4}


def main() -> None:
    arguments = parse_arguments()
    logging.disable(logging.INFO)  # a peer logs every skill that it finds
    run(measure, arguments)


async def measure(arguments: argparse.Namespace, scratch: Path) -> list[Finding]:
    rounds, samples = (QUICK["rounds"], QUICK["samples"]) if arguments.quick else (arguments.rounds, 200)
    settings = Settings(
        data=arguments.data,
        scratch=scratch,
        skills=arguments.skills,
        loaded=max(1, arguments.skills // 10),
        tools=arguments.tools,
        rounds=rounds,
        samples=samples,
        peers=not arguments.without_peers,
    )
    return [finding for name in arguments.only for finding in await MEASURES[name](settings)]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=DATA, help="the folder of real skills; without it, skills are generated"
    )
    parser.add_argument("--skills", type=int, default=500, help="the number of skills; a tenth of them is loaded")
    parser.add_argument("--tools", type=int, default=10_000, help="how many tools are registered")
    parser.add_argument("--only", type=some_of(MEASURES), default=list(MEASURES), help=", ".join(MEASURES))
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is repeated")
    parser.add_argument("--quick", action="store_true", help="one round of a few samples")
    parser.add_argument("--without-peers", action="store_true", help="only ours")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--scratch", type=Path, help="a folder on the disk to be measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
