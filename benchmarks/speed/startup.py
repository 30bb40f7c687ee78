"""Waiting times and memory of a user: imports, help, questions and serving a large trail."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from clew.adapters.rest import open_keys
from clew.clock import SystemClock
from speed import questions
from speed.contenders import OURS
from speed.load import build_request, send_all
from speed.processes import clean_environment, clew_command, clew_up, serving
from speed.report import Finding, Promise, Row
from speed.stage import ME, Stage
from speed.timing import tell

COMMANDS_MEASURE = "starting a command"
SERVER_MEASURE = "starting the server"
RUNS, STARTS, SEARCHES = 15, 3, 100
MOST_IMPORT, MOST_HELP, MOST_READY, MOST_MEMORY = 150.0, 300.0, 1.5, 400.0
PATIENCE = 60


async def measure(stage: Stage) -> list[Finding]:
    return [*measure_commands(stage), *questions.measure(stage), *await measure_server(stage)]


def measure_commands(stage: Stage) -> list[Finding]:
    tell(f"{COMMANDS_MEASURE}: import clew, clew --help")
    commands = {
        "python alone": [sys.executable, "-c", "pass"],
        "import clew": [sys.executable, "-c", "import clew"],
        "import clew.trail": [sys.executable, "-c", "import clew.trail"],
        "clew --help": [*clew_command(), "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(1 + stage.settings.samples(RUNS, least=2)):
        for name, command in commands.items():
            times[name].append(run_seconds(command))
    took = {name: 1000 * median(seconds[1:]) for name, seconds in times.items()}
    python = took["python alone"]
    rows = [
        Row(measure=COMMANDS_MEASURE, records=0, contender=name, values={"ms": ms, "ms over python": ms - python})
        for name, ms in took.items()
    ]
    return [
        *rows,
        Promise(
            name="import clew, ms", records=0, value=took["import clew"] - python, target=MOST_IMPORT, at_least=False
        ),
        Promise(name="clew --help, ms", records=0, value=took["clew --help"], target=MOST_HELP, at_least=False),
    ]


def run_seconds(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=clean_environment(), timeout=PATIENCE)
    return time.perf_counter() - began


async def measure_server(stage: Stage) -> list[Finding]:
    """`clew up` until it answers, its memory then and after a hundred searches."""
    ready, at_first, first, later = [], [], [], []
    folder = await stage.copy_trail("startup")
    starts = stage.settings.samples(STARTS, least=1)
    if not stage.settings.quick:
        await start_once(stage, folder)  # its file was copied just now, which would slow down other measures
    for turn in range(starts):
        tell(f"{SERVER_MEASURE}: {turn + 1} of {starts}")
        seconds, resident, search, afterwards = await start_once(stage, folder)
        ready.append(seconds)
        at_first.append(resident)
        first.append(1000 * search)
        later.append(afterwards)
    values = {
        "ready s": median(ready),
        "first search ms": median(first),
        "resident MB": median(at_first),
        f"resident MB after {SEARCHES} searches": median(later),
    }
    return [
        Row(measure=SERVER_MEASURE, records=stage.size, contender=f"{OURS} up", values=values),
        Promise(name="clew up ready, s", records=stage.size, value=median(ready), target=MOST_READY, at_least=False),
        Promise(
            name="resident, MB",
            records=stage.size,
            value=max(median(at_first), median(later)),
            target=MOST_MEMORY,
            at_least=False,
        ),
    ]


async def start_once(stage: Stage, folder: Path) -> tuple[float, float, float, float]:
    """Seconds until ready, MB then, seconds of the first search, MB after the searches."""
    queries = stage.corpus.ask(stage.items, SEARCHES + 1)
    with serving(clew_up(folder)) as server:
        resident = server.resident_mb
        token = open_keys(folder, SystemClock()).issue(ME).token
        bodies = [json.dumps({"text": query.text}).encode() for query in queries]
        first, *others = [build_request("POST", "/breadcrumbs/search", body, token) for body in bodies]
        answered = await send_all(server, [first], 1)
        await send_all(server, others, 1)
        return server.seconds, resident, answered.seconds, server.resident_mb
