"""Durable steps per second beside LangGraph and DBOS, and the disk space of a step."""

from __future__ import annotations

import contextlib
from statistics import median

from speed.report import Finding, Promise, Row
from speed.step_contenders import (
    DBOS,
    GRAPH,
    GRAPH_ASYNC,
    OURS,
    SHOWN,
    Served,
    Settings,
    Spent,
    folder_bytes,
    measured,
    serving,
    why_absent,
)
from speed.step_payload import payload_bytes
from speed.timing import paired_ratio, rotate, tell

ALL = (OURS, GRAPH, GRAPH_ASYNC, DBOS)
SESSIONS = 8
ONE, MANY = "durable steps, one session", f"durable steps, {SESSIONS} sessions side by side"
STORED = "bytes stored a step"
LEAST = {GRAPH: 2.0, GRAPH_ASYNC: 2.0, DBOS: 5.0}
MOST_BYTES = 600.0
Figures = dict[str, list[Spent]]
"""For each contender what one step took, in seconds, by round."""


async def measure(settings: Settings) -> list[Finding]:
    one, many = measure_rates(settings)
    steps = settings.count(400, 16)
    left_out = [Row(measure=MANY, records=steps, contender=SHOWN[name], note=why) for name, why in absent(settings)]
    return [
        *(row for name, rates in ((ONE, one), (MANY, many)) for row in rows_of(name, rates, steps)),
        *left_out,
        *promises_of(many, steps),
        *measure_bytes(settings),
    ]


def absent(settings: Settings) -> list[tuple[str, str]]:
    return [(name, why) for name in ALL if (why := why_absent(name, settings))]


def measure_rates(settings: Settings) -> tuple[Figures, Figures]:
    """Steps of one session, which wait for each other, and of several side by side."""
    names = measured(ALL, settings)
    one: Figures = {name: [] for name in names}
    many: Figures = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        served = {name: stack.enter_context(serving(name, settings.folder(f"steps-{name}"))) for name in names}
        for each in served.values():
            each.run(2, settings.count(30, 4))  # warms up
        for turn in range(settings.rounds):
            tell(f"{MANY}: round {turn + 1} of {settings.rounds}")
            for name in rotate(names, turn):
                one[name].append(measure_step(served[name], 1, settings.count(200, 16)))
                many[name].append(measure_step(served[name], SESSIONS, settings.count(50, 4)))
    return one, many


def measure_step(served: Served, sessions: int, steps: int) -> Spent:
    spent, count = served.run(sessions, steps), sessions * steps
    return Spent(spent.seconds / count, spent.processor / count)


def rows_of(measure: str, figures: Figures, steps: int) -> list[Finding]:
    return [
        Row(
            measure=measure,
            records=steps,
            contender=SHOWN[name],
            values={
                "steps/s": median(1 / spent.seconds for spent in each),
                "clew × as fast": times_as_fast(figures, name),
                "processor µs a step": 1_000_000 * median(spent.processor for spent in each),
                "× clew's processor time": times_the_processor(figures, name),
            },
        )
        for name, each in figures.items()
    ]


def promises_of(figures: Figures, steps: int) -> list[Finding]:
    return [
        Promise(name=f"steps, times {SHOWN[name]}{how}", records=steps, value=ratio(figures, name), target=least)
        for name, least in LEAST.items()
        if name in figures
        for how, ratio in (("", times_as_fast), (", by processor time", times_the_processor))
    ]


def times_as_fast(figures: Figures, peer: str) -> float:
    return paired_ratio([each.seconds for each in figures[peer]], [each.seconds for each in figures[OURS]])


def times_the_processor(figures: Figures, peer: str) -> float:
    return paired_ratio([each.processor for each in figures[peer]], [each.processor for each in figures[OURS]])


def measure_bytes(settings: Settings) -> list[Finding]:
    """The growth of the closed files with each further step; the payload is only a part of it."""
    tell(STORED)
    steps, payload = settings.count(2_000, 1_000), payload_bytes()  # of fewer, half-filled pages are most
    found: list[Finding] = []
    for name in measured((OURS, GRAPH, DBOS), settings):
        folder = settings.folder(f"bytes-{name}")
        sizes = []
        for count in (settings.count(400, 16), steps):
            with serving(name, folder) as served:
                served.run(SESSIONS, count // SESSIONS)
            sizes.append(folder_bytes(folder))
        beyond = (sizes[1] - sizes[0]) / steps - payload
        values = {"payload": float(payload), "beyond it": beyond}
        found.append(Row(measure=STORED, records=steps, contender=SHOWN[name], values=values))
        if name == OURS:
            promised = Promise(
                name="bytes a step beyond its payload", records=steps, value=beyond, target=MOST_BYTES, at_least=False
            )
    return [*found, promised]
