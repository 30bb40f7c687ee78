"""The time of one step of a pipeline beside LangGraph: the same request, with the same calls of models and tools that
do nothing, each of them durable before the next one."""

from __future__ import annotations

import contextlib
from statistics import median

from speed.report import Finding, Promise, Row
from speed.step_contenders import BARE, SHOWN, SUPERVISOR, TEAM, Served, Settings, measured, serving, why_absent
from speed.timing import paired_ratio, rotate, tell

ALL = (TEAM, SUPERVISOR, BARE)
SESSIONS = 8
ONE, MANY = "a step of a pipeline, one request", f"a step of a pipeline, {SESSIONS} requests side by side"
Figures = dict[str, list[tuple[float, float]]]
"""Milliseconds a step of each round: elapsed, and of the processor."""


async def measure(settings: Settings) -> list[Finding]:
    names = measured(ALL, settings)
    figures: dict[str, Figures] = {ONE: {name: [] for name in names}, MANY: {name: [] for name in names}}
    steps = 0
    with contextlib.ExitStack() as stack:
        served = {name: stack.enter_context(serving(name, settings.folder(f"team-{name}"))) for name in names}
        for each in served.values():
            each.run(1, 0)  # warms up
        for turn in range(settings.rounds):
            tell(f"{MANY}: round {turn + 1} of {settings.rounds}")
            for name in rotate(names, turn):
                steps = take(served[name], settings.count(3, 1), figures[ONE][name])
                take(served[name], settings.count(SESSIONS, 2), figures[MANY][name], at_once=True)
    left_out = [
        Row(measure=MANY, records=0, contender=SHOWN[name], note=why)
        for name in ALL
        if (why := why_absent(name, settings))
    ]
    rows = [row for measure, found in figures.items() for row in rows_of(measure, found, steps)]
    return [*rows, *left_out, *promises_of(figures, steps)]


def take(served: Served, requests: int, into: list[tuple[float, float]], *, at_once: bool = False) -> int:
    """Let a contender carry out requests, together or one after the other; the steps of one."""
    answers = [served.measure(requests, 0)] if at_once else [served.measure(1, 0) for _ in range(requests)]
    steps = sum(each["steps"] for each in answers)
    into.append(tuple(1_000 * sum(each[key] for each in answers) / steps for key in ("seconds", "processor")))  # type: ignore[arg-type]
    return round(steps / requests)


def rows_of(measure: str, figures: Figures, steps: int) -> list[Row]:
    return [
        Row(
            measure=measure,
            records=steps,
            contender=SHOWN[name],
            values={
                "ms a step": median(each for each, _ in found),
                "of the processor": median(cpu for _, cpu in found),
            },
        )
        for name, found in figures.items()
    ]


def promises_of(figures: dict[str, Figures], steps: int) -> list[Promise]:
    return [
        Promise(
            name=f"{measure}, x that of {SHOWN[peer]}: {what}",
            records=steps,
            value=paired_ratio([each[at] for each in found[TEAM]], [each[at] for each in found[peer]]),
            target=1.0,
            at_least=False,
        )
        for measure, found in figures.items()
        for peer in (SUPERVISOR, BARE)
        if peer in found
        for at, what in enumerate(("elapsed", "processor"))
    ]
