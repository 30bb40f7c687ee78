"""Simulates workers on one PostgreSQL to find the next bottleneck at 10, 1,000 and 100,000 sessions.

Usage: simulate_scale.py [--points FILE] [--save FILE] [--rounds N] [--quick] [--sessions N,...] [--workers N,...]
[--think S] [--steps N] [--calls-of N] [--call S] [--server-cores N] [--round-trip S] [--bound SHARE] [--seed N]

First measures service times and points on this machine (two minutes; alone, please), or reads those that --save wrote.
Then simulates the same points and prints both. If one is off by more than the bound, the exit code is 1, and there are
no statements about larger machines. The defaults of a turn are those of a chat with three tool calls: 17 events, of
which five wait for a model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from speed.report import describe_machine
from speed.scale_model import Line, Load, Outcome, ScaleRun, ServiceTimes
from speed.scale_reproduction import Reproduced, reproduce
from speed.timing import percentile

BOUND = 0.5
"""The largest error of a point with which the model is accepted."""
SATURATED = 0.9
"""The use of a resource at which it counts as saturated."""
PATIENCE = 0.5
"""Seconds that 95 % of the steps may take beside their model calls."""
CONNECTIONS_EACH, CONNECTIONS = 9, 100
"""The maximum connections of a process (a pool of 8 and the writer of the log), and the default limit of PostgreSQL."""
SESSION_KB, STREAM_KB = 2.7, 21.2
"""Memory of an idle session and of an open stream, from `make bench-idle`."""
MOST_WORKERS = 256
GAIN = 1.1
"""Twice as many workers must do this many times as many steps, or do them as much sooner."""
FEW = 1_000
"""With fewer sessions, the measure takes longer."""
SHOWN = {"workers": "processor of the workers", "server": "processor of PostgreSQL", "log": "the lock of the log"}


def main() -> None:
    arguments = parse_arguments()
    found = json.loads(arguments.points.read_text()) if arguments.points else measure(arguments)
    if arguments.save:
        arguments.save.write_text(json.dumps(found, indent=1) + "\n")
    from_points = reproduce(times := read_times(found), found["points"], found["machine"]["cores"])
    print(table_of_points(from_points))
    worst = max(from_points, key=lambda each: abs(each.error))
    if abs(worst.error) > arguments.bound:
        sys.exit(
            f"The model is off by {abs(worst.error):.0%} at {worst.name!r}. It is believed up to {arguments.bound:.0%},"
            " so it says nothing about larger machines. Measure again on an idle machine, or correct the model."
        )
    print(f"\nThe largest error is {abs(worst.error):.0%} ({worst.name}); the bound is {arguments.bound:.0%}.\n")
    print(table_of_workers(times, arguments))
    print()
    print(table_of_sessions(times, found, arguments))


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Service times and points of this machine."""
    # needs PostgreSQL, NATS and their drivers, which a simulation of recorded points does not
    from speed.scale_calibration import calibrate
    from speed.scale_stage import ScaleSettings, running_engines

    scratch = Path(tempfile.mkdtemp(prefix="clew-bench-"))
    scratch.chmod(0o711)  # PostgreSQL runs as another user, and must reach its own folder in there
    settings = ScaleSettings(
        scratch=scratch,
        records=(),
        rounds=arguments.rounds or (1 if arguments.quick else 3),
        quick=arguments.quick,
        without=frozenset(),
    )
    try:
        with running_engines(scratch) as engines:
            machine = describe_machine(scratch) | {"cores": len(os.sched_getaffinity(0))}
            return {"machine": machine, **asyncio.run(calibrate(engines, settings))}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def read_times(found: dict[str, Any]) -> ServiceTimes:
    return ServiceTimes(
        **{name: Line(*value) if isinstance(value, list) else value for name, value in found["times"].items()}
    )


# -- tables ---------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def table_of_points(points: Sequence[Reproduced]) -> str:
    rows = [[each.name, f"{each.measured:.1f}", f"{each.simulated:.1f}", f"{each.error:+.0%}"] for each in points]
    return table(("point", "measured", "simulated", "error"), rows)


def table_of_workers(times: ServiceTimes, arguments: argparse.Namespace) -> str:
    """Throughput by number of workers: steps without a model, with more sessions than the workers can handle."""
    rows = []
    for workers in arguments.workers:
        for logs in (1, 2):
            load = Load(
                workers=max(workers, logs),
                sessions=32 * workers,
                steps=30,
                cores=arguments.server_cores,
                is_one_machine=False,
                round_trip=arguments.round_trip,
                has_bus=True,
                logs=logs,
            )
            outcome = ScaleRun(times, load, arguments.seed).run_once()
            rows.append([str(workers), str(logs), f"{outcome.rate:,.0f}", *shares(outcome)])
    head = ("workers", "logs", "steps/s", *(f"{name}, use" for name in SHOWN.values()))
    return f"### More workers, PostgreSQL with {arguments.server_cores} cores\n\n{table(head, rows)}"


def shares(outcome: Outcome) -> list[str]:
    return [f"{outcome.use[name]:.0%}" for name in SHOWN]


def table_of_sessions(times: ServiceTimes, found: dict[str, Any], arguments: argparse.Namespace) -> str:
    """The fewest workers for a number of sessions, their resource use, and the resource that saturates first."""
    rows = []
    for sessions in arguments.sessions:
        workers, outcome = fewest_workers(times, sessions, arguments)
        connections = (workers + 1) * CONNECTIONS_EACH
        per_step = found["sizes"]["event"] + found["sizes"]["record"]
        rows.append(
            [
                f"{sessions:,}",
                str(workers),
                f"{sessions * arguments.steps / (arguments.think + calls_of_turn(arguments)):,.1f}",
                f"{outcome.rate:,.1f}",
                f"{1_000 * late(outcome):,.0f}",
                *shares(outcome),
                f"{outcome.commits / outcome.seconds * found['flush']:.0%}",
                str(connections),
                f"{sessions * (SESSION_KB + STREAM_KB) / 1e3:,.0f}",
                f"{outcome.rate * per_step * 86_400 / 1e9:,.1f}",
                f"{outcome.rate * (found['sizes']['terms'] + found['sizes']['vector']) * 86_400 / 1e9:,.1f}",
                first_limit(outcome, connections),
            ]
        )
    head = (
        *("sessions", "workers", "steps/s wanted", "steps/s", "p95 of a step, ms"),
        *(f"{name}, use" for name in SHOWN.values()),
        *("flushes, use", "connections", "memory of sessions and streams, MB"),
        *("events and records, GB a day", "index, if all are searched, GB a day", "saturated"),
    )
    turn = (
        f"Sessions think {arguments.think:g} s and take a turn of {arguments.steps} steps, of which each"
        f" {arguments.calls_of}th waits {arguments.call:g} s for a model."
    )
    return f"### Sessions\n\n{turn}\n\n{table(head, rows)}"


def calls_of_turn(arguments: argparse.Namespace) -> float:
    """Mean seconds of model calls in a turn."""
    return arguments.call * len(range(0, arguments.steps, arguments.calls_of))


def fewest_workers(times: ServiceTimes, sessions: int, arguments: argparse.Namespace) -> tuple[int, Outcome]:
    """The first number of workers, doubled each time, with which steps are in time. If there is none, the last number
    that was better than half of it, in throughput or in time."""
    load = Load(
        workers=1,
        sessions=sessions,
        steps=arguments.steps,
        cores=arguments.server_cores,
        call=arguments.call,
        is_call_fixed=False,
        calls_of=arguments.calls_of,
        think=arguments.think,
        is_one_machine=False,
        round_trip=arguments.round_trip,
        has_bus=True,
    )
    seconds = arguments.seconds * max(1.0, FEW / sessions)  # few sessions take few turns

    def run(workers: int) -> Outcome:
        return ScaleRun(times, replace(load, workers=workers), arguments.seed).run_for(arguments.warm_up, seconds)

    workers, best = 1, run(1)
    while late(best) > PATIENCE and workers < MOST_WORKERS:
        outcome = run(2 * workers)
        if outcome.rate < GAIN * best.rate and late(outcome) > late(best) / GAIN:
            break
        workers, best = 2 * workers, outcome
    return workers, best


def late(outcome: Outcome) -> float:
    """The time that 95 % of the steps take at most, beside their model calls."""
    return percentile(outcome.waits, 0.95) if outcome.waits else math.inf


def first_limit(outcome: Outcome, connections: int) -> str:
    """The resources that are at their limit, or the one that is nearest to it."""
    use = {SHOWN[name]: share / SATURATED for name, share in outcome.use.items()}
    use["connections"] = connections / CONNECTIONS
    full = [name for name, share in use.items() if share >= 1]
    if full or late(outcome) > PATIENCE:
        return f"**{', '.join(full) or 'room for model calls'}**"
    name, share = max(use.items(), key=lambda item: item[1])
    return f"none ({name} is next, at {share:.0%} of its limit)"


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=Path, help="service times and points to read instead of measuring")
    parser.add_argument("--save", type=Path, help="where to write what was measured")
    parser.add_argument("--rounds", type=int, help="how often each point is measured; 3, or 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="few samples")
    parser.add_argument("--sessions", type=numbers, default=[10, 1_000, 100_000])
    parser.add_argument("--workers", type=numbers, default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--think", type=float, default=120.0, help="mean seconds between the turns of a session")
    parser.add_argument("--steps", type=int, default=17, help="steps of a turn")
    parser.add_argument("--calls-of", type=int, default=4, help="each N-th step waits for a model")
    parser.add_argument("--call", type=float, default=3.0, help="mean seconds of a model call")
    parser.add_argument("--server-cores", type=int, default=8, help="cores of PostgreSQL")
    parser.add_argument("--round-trip", type=float, default=0.0005, help="seconds between a worker and PostgreSQL")
    parser.add_argument("--warm-up", type=float, default=150.0, help="simulated seconds before the measure")
    parser.add_argument("--seconds", type=float, default=120.0, help="simulated seconds of the measure")
    parser.add_argument("--bound", type=float, default=BOUND, help="largest error of a point")
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
