"""Create and get over REST with 16 keep-alive connections: `clew up` next to bare applications, each in a process of
its own, all with uvicorn, httptools and uvloop, all flushing each commit to disk."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from clew.adapters.rest import open_keys
from clew.clock import SystemClock
from speed.bare_apps import Rows
from speed.contenders import OURS
from speed.corpus import Item
from speed.load import CONNECTIONS, Outcome, build_request, send_all
from speed.processes import Server, clean_environment, clew_up, serving
from speed.report import Finding, Promise, Row
from speed.stage import ME, Stage, split
from speed.timing import paired_ratio, percentile, rotate, tell

MEASURE = f"REST with {CONNECTIONS} connections"
CREATES, GETS, WARM_UP = 600, 2_000, 100
BARE = {
    "fastapi": "FastAPI + sqlite3",
    "fastapi-async": "FastAPI + sqlite3, in the loop",
    "starlette": "Starlette + msgspec + sqlite3",
}
PLAIN = f"{OURS}, no embedder"
LEAST = 0.7


Figures = tuple[float, float, float]
RATE, P95, PROCESSOR = range(3)


@dataclass(slots=True)
class Contender:
    """A running server, and its figures of each round: requests a second, p95 in ms, processor time of a request in
    µs."""

    name: str
    server: Server
    token: str = ""
    creates: list[Figures] = field(default_factory=list)
    gets: list[Figures] = field(default_factory=list)

    def column(self, what: str, place: int) -> list[float]:
        return [figures[place] for figures in getattr(self, what)]


async def measure(stage: Stage) -> list[Finding]:
    with contextlib.ExitStack() as running:
        contenders = [
            await start_ours(stage, running, OURS, "wordllama"),
            await start_ours(stage, running, PLAIN, "none"),
        ]
        missing = []
        for kind, name in BARE.items():
            package = kind.partition("-")[0]
            reason = "left out" if package in stage.settings.without else "" if find_spec(package) else "not installed"
            if reason:
                missing.append(Row(measure=MEASURE, records=stage.size, contender=name, note=reason))
            else:
                contenders.append(start_bare(stage, running, kind, name))
        warm_up = stage.settings.samples(WARM_UP, least=16)
        for contender in contenders:
            await run_round(contender, stage.corpus.make(warm_up), warm_up)
            contender.creates.clear()
            contender.gets.clear()
        for turn in range(stage.settings.rounds):
            tell(f"{MEASURE}: round {turn + 1} of {stage.settings.rounds}")
            items = stage.corpus.make(stage.settings.samples(CREATES, least=32))
            for contender in rotate(contenders, turn):
                await run_round(contender, items, stage.settings.samples(GETS, least=64))
    return [*summarize(contenders, stage.size), *missing]


async def start_ours(stage: Stage, running: contextlib.ExitStack, name: str, embedder: str) -> Contender:
    tell(f"{MEASURE}: starting {name}")
    folder = await stage.copy_trail(f"rest-{embedder}")
    server = running.enter_context(serving(clew_up(folder), {"CLEW_EMBEDDER": embedder}))
    return Contender(name, server, open_keys(folder, SystemClock()).issue(ME).token)


def start_bare(stage: Stage, running: contextlib.ExitStack, kind: str, name: str) -> Contender:
    tell(f"{MEASURE}: starting {name}")
    file = stage.folder / f"rest-{kind}.db"
    rows = Rows(file)
    for some in split(stage.items, 10_000):
        rows.fill(
            [(item.id, item.title, json.dumps({"description": item.text}), json.dumps(item.tags)) for item in some]
        )
    rows.close()
    command = [sys.executable, "-m", "speed.bare_apps", kind, str(file)]
    path = {"PYTHONPATH": str(Path(__file__).parents[1])}
    return Contender(name, running.enter_context(serving(command, clean_environment(path))))


async def run_round(contender: Contender, items: Sequence[Item], gets: int) -> None:
    creates = [build_request("POST", "/breadcrumbs", encode(item), contender.token) for item in items]
    created, figures = await measure_load(contender.server, creates)
    contender.creates.append(figures)
    ids = [json.loads(body)["id"] for body in created.bodies]
    reads = [
        build_request("GET", f"/breadcrumbs/{ids[number % len(ids)]}", token=contender.token) for number in range(gets)
    ]
    _, figures = await measure_load(contender.server, reads)
    contender.gets.append(figures)


async def measure_load(server: Server, requests: Sequence[bytes]) -> tuple[Outcome, Figures]:
    before = server.processor_seconds
    outcome = await send_all(server, requests)
    processor = (server.processor_seconds - before) / len(requests)
    return outcome, (outcome.rate, 1000 * percentile(outcome.latencies, 0.95), 1_000_000 * processor)


def encode(item: Item) -> bytes:
    body = {
        "title": item.title,
        "context": {"description": item.text},
        "tags": item.tags,
        "schema_name": "note.v1",
    }
    return json.dumps(body).encode()


def summarize(contenders: Sequence[Contender], size: int) -> list[Finding]:
    ours = contenders[0]
    found: list[Finding] = []
    for each in contenders:
        values: dict[str, float] = {}
        for what in ("creates", "gets"):
            values[f"{what}/s"] = median(each.column(what, RATE))
            values[f"{what} p95 ms"] = median(each.column(what, P95))
            values[f"{what} processor µs"] = median(each.column(what, PROCESSOR))
            if each.name in BARE.values():
                ratio = values[f"clew is ×, {what}"] = paired_ratio(ours.column(what, RATE), each.column(what, RATE))
                spared = paired_ratio(each.column(what, PROCESSOR), ours.column(what, PROCESSOR))
                goal = " (goal)" if each.name == BARE["starlette"] else ""
                name = f"REST {what} of {each.name}{goal}"
                found.append(Promise(name=name, records=size, value=ratio, target=LEAST))
                found.append(Promise(name=f"{name}, by processor time", records=size, value=spared, target=LEAST))
        found.append(Row(measure=MEASURE, records=size, contender=each.name, values=values))
    return found
