"""`clew team status` on a trail with many sessions: in this process, and as a command."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from clew.agents.conversations.conversation import open_conversations
from clew.app import App, open_app
from clew.config import read_config
from clew.team.team import Team, TeamOptions
from speed.processes import clean_environment
from speed.report import Finding, Promise, Row
from speed.step_contenders import Settings
from speed.team_crew import no_gate
from speed.team_resume import processor_seconds
from speed.timing import Rounds, tell

MEASURE = "clew team status"
SESSIONS = 200
MOST_MS = 100.0


async def measure(settings: Settings) -> list[Finding]:
    number, folder = settings.count(SESSIONS, 20), settings.folder("status") / ".clew"
    tell(f"{MEASURE}: {number} sessions")
    async with open_app(read_config(folder, {}, {})) as app:
        await app.bootstrap()
        await start_sessions(app, number)
        times, busy = await list_in_process(app, number, settings.count(50, 5))
    runs = [run_command(folder) for _ in range(settings.count(5, 1))]
    command = {"p50 ms": 1_000 * median(each for each, _ in runs), "s of the processor": median(cpu for _, cpu in runs)}
    return [
        Row(
            measure=MEASURE,
            records=number,
            contender="in process",
            values={**times.spread(), "s of the processor": busy},
        ),
        Row(measure=MEASURE, records=number, contender="as a command, from its start to its end", values=command),
        Promise(
            name="clew team status in process, p95 ms",
            records=number,
            value=times.milliseconds(0.95),
            target=MOST_MS,
            at_least=False,
        ),
    ]


async def start_sessions(app: App, number: int) -> None:
    """Sessions with a request for which no runtime has worked yet, and their statuses as the team writes them."""
    conversations = await open_conversations(app.trail, app.clock, by=app.me)
    team = Team(app.trail, conversations, app.clock, no_gate, me=app.me)
    for at in range(number):
        session = await team.start(f"Request {at}: add rate limits", by=app.me, options=TeamOptions(name=f"s{at}"))
        await team.state(session.id, by=app.me)


async def list_in_process(app: App, number: int, samples: int) -> tuple[Rounds, float]:
    """The listing as the command makes it, each time by a team that has read nothing yet; and the seconds of the
    processor that one takes."""
    times, busy = Rounds(), list[float]()
    times.begin()
    for _ in range(samples):
        team = await app.team()
        began, worked = time.perf_counter(), time.process_time()
        found = await team.status(by=app.me)
        times.add(time.perf_counter() - began)
        busy.append(time.process_time() - worked)
        if len(found) != number:
            raise RuntimeError(f"{len(found)} of {number} sessions are listed")
    return times, median(busy)


def run_command(folder: Path) -> tuple[float, float]:
    """Seconds of the command, and those of the processor."""
    command = [str(Path(sys.executable).with_name("clew")), "team", "status", "--folder", str(folder)]
    before, began = processor_seconds(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=clean_environment({}))
    return time.perf_counter() - began, processor_seconds() - before
