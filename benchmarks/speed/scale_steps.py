"""Durable steps a second with one and with four worker processes, beside DBOS and LangGraph on the same server; and how
throughput grows with workers when a step waits for a model."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from statistics import median

from speed.report import Finding, Promise, Row
from speed.scale_stage import Engines, ScaleSettings
from speed.scale_workers import Workers, working
from speed.step_contenders import Spent
from speed.timing import paired_ratio, rotate, tell

OURS = "clew"
NEEDS = {"dbos": "dbos", "langgraph": "langgraph.checkpoint.postgres"}
LEAST = {"dbos": 2.0, "langgraph": 1.5}
WORKERS = (1, 4)
SESSIONS = 16
CALLS, CALL_MS = "model calls of 50 ms", 50
GROWTH = {2: 1.6, 8: 7.0}
Figures = dict[str, list[Spent]]


def why_absent(name: str, settings: ScaleSettings) -> str:
    if name in settings.without:
        return "left out"
    package = NEEDS.get(name)
    try:
        return f"{package} is not installed" if package and find_spec(package) is None else ""
    except ModuleNotFoundError:
        return f"{package} is not installed"


async def measure(engines: Engines, settings: ScaleSettings) -> list[Finding]:
    return [each for count in WORKERS for each in await measure_with(engines, settings, count)]


async def measure_with(engines: Engines, settings: ScaleSettings, workers: int) -> list[Finding]:
    measure, steps = f"durable steps, {workers} workers, {SESSIONS} sessions", settings.count(100, 10)
    names = [name for name in (OURS, *NEEDS) if not why_absent(name, settings)]
    figures: Figures = {name: [] for name in names}
    async with contextlib.AsyncExitStack() as stack:
        groups: dict[str, Workers] = {}
        for name in names:
            groups[name] = await stack.enter_async_context(working(name, engines, settings.scratch, workers))
            await groups[name].run(workers, 5)  # warms up
        for turn in range(settings.rounds):
            tell(f"{measure}: round {turn + 1} of {settings.rounds}")
            for name in rotate(names, turn):
                spent = await groups[name].run(SESSIONS, steps)
                figures[name].append(Spent(*(each / (SESSIONS * steps) for each in spent)))
    absent = [
        Row(measure=measure, records=steps, contender=name, note=why)
        for name in NEEDS
        if (why := why_absent(name, settings))
    ]
    return [*rows_of(measure, figures, steps), *absent, *promises_of(figures, workers, steps)]


def rows_of(measure: str, figures: Figures, steps: int) -> list[Finding]:
    return [
        Row(
            measure=measure,
            records=steps,
            contender=name,
            values={
                "steps/s": median(1 / spent.seconds for spent in each),
                "clew × as fast": times(figures, name),
                "processor ms a step, with the server": 1_000 * median(spent.processor for spent in each),
            },
        )
        for name, each in figures.items()
    ]


def times(figures: Figures, peer: str) -> float:
    """By how much a step of ours is faster than one of the peer."""
    return paired_ratio([each.seconds for each in figures[peer]], [each.seconds for each in figures[OURS]])


def promises_of(figures: Figures, workers: int, steps: int) -> list[Finding]:
    if workers != WORKERS[-1]:
        return []
    return [
        Promise(
            name=f"steps with {workers} workers, times {name}", records=steps, value=times(figures, name), target=least
        )
        for name, least in LEAST.items()
        if name in figures
    ]


async def measure_calls(engines: Engines, settings: ScaleSettings) -> list[Finding]:
    """Each worker makes one call at a time. The groups run one after the other, as idle ones would poll."""
    rates: dict[int, list[float]] = {}
    for count in (1, *GROWTH):
        tell(f"{CALLS}: {count} workers")
        sessions, steps = 2 * count, settings.count(12, 6)
        group = working(OURS, engines, settings.scratch, count, pause_ms=CALL_MS, concurrency=1)
        async with group as workers:
            await workers.run(count, 3)
            spent = [await workers.run(sessions, steps) for _ in range(settings.rounds)]
        rates[count] = [sessions * steps / each.seconds for each in spent]
    rows: list[Finding] = [
        Row(measure=CALLS, records=count, contender=f"{count} workers", values={"calls/s": median(each)})
        for count, each in rates.items()
    ]
    promises = [
        Promise(
            name=f"throughput of {count} workers, times one",
            records=count,
            value=median(rates[count]) / median(rates[1]),
            target=least,
        )
        for count, least in GROWTH.items()
    ]
    return [*rows, *promises]
