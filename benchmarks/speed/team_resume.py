"""A request of a team whose process is killed near its end: how long a new process takes to end it."""

from __future__ import annotations

import resource
import sqlite3
from pathlib import Path
from statistics import median

from speed.report import Finding, Promise, Row
from speed.step_contenders import SHOWN, TEAM, Settings, Spent, crash, resume
from speed.timing import tell

MEASURE = "kill -9 in the last merge of a request, then from the start of a process to its end"
TASKS, EVENTS = 40, 1_500
MOST = 1.0


async def measure(settings: Settings) -> list[Finding]:
    tasks = settings.count(TASKS, 4)
    took: list[Spent] = []
    events = 0
    for turn in range(min(settings.rounds, 3)):
        tell(f"{MEASURE}: round {turn + 1}")
        folder = settings.folder(f"team-resume-{turn}")
        crash(TEAM, folder, tasks, tasks - 1)
        events = count_events(folder)
        took.append(resume(TEAM, folder, tasks))
        if count_events(folder) == events:
            raise RuntimeError("the new process did nothing")
    seconds = [each.seconds for each in took]
    values = {
        "s": median(seconds),
        "worst s": max(seconds),
        "s of the processor": median(each.processor for each in took),
    }
    found: list[Finding] = [Row(measure=MEASURE, records=events, contender=SHOWN[TEAM], values=values)]
    if not settings.quick:
        name = f"resumed and ended after kill -9 at {events:,} events, s"
        found.append(Promise(name=name, records=events, value=median(seconds), target=MOST, at_least=False))
    return found


def count_events(folder: Path) -> int:
    with sqlite3.connect(folder / "trail.db") as connection:
        return int(connection.execute("SELECT max(seq) FROM events").fetchone()[0])


def processor_seconds() -> float:
    """Of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
