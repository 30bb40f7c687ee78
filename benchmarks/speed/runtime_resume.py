"""From the start of a process, after its predecessor was killed in the middle of a step, to the end of the run."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from speed.report import Finding, Promise, Row
from speed.step_contenders import DBOS, GRAPH, OURS, SHOWN, TALK, Settings, Spent, crash, measured, resume, why_absent
from speed.timing import rotate, tell

MEASURE = "going on after kill -9"
ALL = (OURS, TALK, GRAPH, DBOS)
STEPS, DIES_AT = 20, 10
MOST = 1.0


async def measure(settings: Settings) -> list[Finding]:
    """The steps themselves take next to nothing: all of it is overhead."""
    names = measured(ALL, settings)
    took: dict[str, list[Spent]] = {name: [] for name in names}
    for turn in range(settings.rounds):
        tell(f"{MEASURE}: round {turn + 1} of {settings.rounds}")
        for name in rotate(names, turn):
            folder = settings.folder(f"resume-{name}-{turn}")
            crash(name, folder, STEPS, DIES_AT)
            took[name].append(resume(name, folder, STEPS))
    rows = [
        Row(measure=MEASURE, records=STEPS, contender=SHOWN[name], values=values_of(each))
        for name, each in took.items()
    ]
    missing = [
        Row(measure=MEASURE, records=STEPS, contender=SHOWN[name], note=why)
        for name in ALL
        if (why := why_absent(name, settings))
    ]
    promises = [
        Promise(
            name=f"{SHOWN[name]}: done after kill -9, s",
            records=STEPS,
            value=median(each.seconds for each in took[name]),
            target=MOST,
            at_least=False,
        )
        for name in (OURS, TALK)
    ]
    return [*rows, *missing, *promises]


def values_of(took: Sequence[Spent]) -> dict[str, float]:
    return {
        "s": median(each.seconds for each in took),
        "worst s": max(each.seconds for each in took),
        "processor s": median(each.processor for each in took),
    }
