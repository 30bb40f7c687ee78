"""Durable steps a second beside LangGraph and DBOS, and what a step takes on the disk."""

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
Rates = dict[str, list[float]]


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


def measure_rates(settings: Settings) -> tuple[Rates, Rates]:
    """Steps a second of one session whose steps wait for each other, and of several side by side; by round."""
    names = measured(ALL, settings)
    one: Rates = {name: [] for name in names}
    many: Rates = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        served = {name: stack.enter_context(serving(name, settings.folder(f"steps-{name}"))) for name in names}
        for each in served.values():
            each.run(2, settings.count(30, 4))  # warms up
        for turn in range(settings.rounds):
            tell(f"{MANY}: round {turn + 1} of {settings.rounds}")
            for name in rotate(names, turn):
                one[name].append(rate(served[name], 1, settings.count(200, 16)))
                many[name].append(rate(served[name], SESSIONS, settings.count(50, 4)))
    return one, many


def rate(served: Served, sessions: int, steps: int) -> float:
    return sessions * steps / served.run(sessions, steps)


def rows_of(measure: str, rates: Rates, steps: int) -> list[Finding]:
    return [
        Row(
            measure=measure,
            records=steps,
            contender=SHOWN[name],
            values={"steps/s": median(each), "clew × as fast": paired_ratio(rates[OURS], each)},
        )
        for name, each in rates.items()
    ]


def promises_of(rates: Rates, steps: int) -> list[Finding]:
    return [
        Promise(
            name=f"steps, times {SHOWN[name]}",
            records=steps,
            value=paired_ratio(rates[OURS], rates[name]),
            target=least,
        )
        for name, least in LEAST.items()
        if name in rates
    ]


def measure_bytes(settings: Settings) -> list[Finding]:
    """By how much the closed files grow with steps after the first ones, of which the payload is only a part."""
    tell(STORED)
    steps, payload = settings.count(2_000, 64), payload_bytes()
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
