"""Speed of the team: the time of a step of a pipeline beside a supervisor in LangGraph, the makespan of plans, the end
of a request after kill -9, the list of many sessions, and how evenly many sessions go on.

Usage: team.py [--only NAME,...] [--without NAME,...] [--rounds N] [--quick] [--json FILE] [--scratch DIR]

Real handlers on a real trail with its default durability, and a scripted model. Contenders have processes of their own
and take turns within each round; ratios are taken within a round. Prints tables in markdown, writes the same as JSON,
and ends with 1 when a promise was not kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from speed import team_dags, team_resume, team_status, team_steps
from speed.report import Finding, Promise, Row
from speed.running import run, some_of
from speed.step_contenders import BARE, SUPERVISOR, Settings
from speed.timing import tell

FAIRNESS, SIDE_BY_SIDE = "team_fairness", "sessions side by side"
SESSIONS, TASKS = 30, 50
RESULTS = Path(__file__).parent / "results" / "team.json"


async def fairness(settings: Settings) -> list[Finding]:
    """Many sessions at once, measured by a script of its own in a process of its own."""
    if find_spec(FAIRNESS) is None:
        return [Row(measure=SIDE_BY_SIDE, records=0, contender="clew", note=f"{FAIRNESS}.py is missing")]
    sessions, tasks = settings.count(SESSIONS, 3), settings.count(TASKS, 2)
    tell(f"{SIDE_BY_SIDE}: {sessions} with {tasks} tasks each")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(import_module(FAIRNESS).run_fairness, sessions, tasks).result()
    values = {name: value for name, value in found.items() if isinstance(value, int | float)}
    bounds = (
        ("slowest_share_at_half", 0.6, True),
        ("longest_queue", values.get("queue_bound", 0), False),
        ("resident_mb", 500.0, False),
    )
    return [
        Row(measure=SIDE_BY_SIDE, records=sessions, contender="clew", values=values),
        *(
            Promise(name=f"{SIDE_BY_SIDE}, {name}", records=sessions, value=values[name], target=most, at_least=least)
            for name, most, least in bounds
        ),
    ]


MEASURES: dict[str, Callable[[Settings], Awaitable[list[Finding]]]] = {
    "steps": team_steps.measure,
    "dags": team_dags.measure,
    "resume": team_resume.measure,
    "status": team_status.measure,
    "fairness": fairness,
}


def main() -> None:
    findings = run(measure, parse_arguments())
    sys.exit(any(isinstance(each, Promise) and not each.is_kept for each in findings))


async def measure(arguments: argparse.Namespace, scratch: Path) -> list[Finding]:
    settings = Settings(
        scratch=scratch,
        rounds=1 if arguments.quick else arguments.rounds,
        quick=arguments.quick,
        without=frozenset(arguments.without),
    )
    return [finding for name in arguments.only for finding in await MEASURES[name](settings)]


def parse_arguments() -> argparse.Namespace:
    peers = (SUPERVISOR, BARE)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=some_of(MEASURES), default=list(MEASURES), help=", ".join(MEASURES))
    parser.add_argument("--without", type=some_of(peers), default=[], help=f"peers to leave out: {', '.join(peers)}")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is repeated")
    parser.add_argument("--quick", action="store_true", help="one round of a few samples")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    parser.add_argument("--scratch", type=Path, help="a folder on the disk to be measured")
    return parser.parse_args()


if __name__ == "__main__":
    main()
