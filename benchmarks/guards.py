"""Whether rules and budgets hold: calls of AgentDojo's attacks, replayed through Clew's tools runner without a model.

Usage: guards.py [--suites NAME,...] [--tasks N] [--json FILE]

AgentDojo has user tasks and injection tasks, each with the calls that carry it out. A scripted model makes the calls of
an attack and then those of a user task, in an agent, its child and its grandchild. Only the first agent has rules; the
definitions of the other two allow everything. The rules deny every tool of the suite that changes or sends something,
except those that the user task itself needs. With the budget no rule denies anything: it pays for one call of the model
less than the attack takes.

This shows that a forbidden call is not carried out and that allowed work is not disturbed. It does not measure the
recognition of attacks: a call of a tool that the user task needs is not forbidden, and is only counted. The exit code
is 1 if a forbidden call was carried out, the goal of a forbidden attack was reached, or a user task was disturbed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import warnings
from pathlib import Path

from agentdojo.task_suite.load_suites import get_suites

from guard_agents.replay import SuiteFigures, replay_suite
from speed.running import some_of
from speed.timing import tell

VERSION = "v1.2.2"
SUITES = ("workspace", "travel", "banking", "slack")
RESULTS = Path(__file__).parent / "results" / "guards.json"


def main() -> None:
    arguments = parse_arguments()
    warnings.simplefilter("ignore")
    figures = asyncio.run(measure(arguments.suites, arguments.tasks))
    print(render(figures))
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"version": VERSION, "rows": [each.as_dict() for each in figures]}, indent=1))
    tell(f"written to {arguments.json}")
    sys.exit(not all(each.is_kept for each in figures))


async def measure(suites: list[str], tasks: int) -> list[SuiteFigures]:
    figures: list[SuiteFigures] = []
    for name in suites:
        tell(f"{name}: agent, child and grandchild")
        with tempfile.TemporaryDirectory() as folder:
            figures += await replay_suite(get_suites(VERSION)[name], Path(folder), tasks)
    return figures


def render(figures: list[SuiteFigures]) -> str:
    head = (
        "suite",
        "agent",
        "user tasks solved",
        "forbidden calls refused",
        "goals of forbidden attacks reached",
        "attacks with allowed calls alone",
        "calls beyond the budget refused",
        "kept",
    )
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for each in figures:
        cells = (
            each.suite,
            each.level,
            f"{each.solved} of {each.tasks}",
            f"{each.refused} of {each.forbidden}",
            f"{each.reached} of {each.attacks}",
            f"{each.allowed_attacks} of {each.attacks + each.allowed_attacks}",
            f"{each.unpaid_refused} of {each.unpaid}",
            "yes" if each.is_kept else "**no**",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", type=some_of(SUITES), default=list(SUITES), help=", ".join(SUITES))
    parser.add_argument("--tasks", type=int, default=1_000, help="at most this number of user tasks of each suite")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    return parser.parse_args()


if __name__ == "__main__":
    main()
