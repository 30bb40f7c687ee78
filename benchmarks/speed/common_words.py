"""Searches over REST with 50 connections for words that nearly every record has: alone, and beside many writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from urllib.parse import quote

from clew.adapters.rest import open_keys
from clew.clock import SystemClock
from clew.trail.model.breadcrumb import Draft
from speed.contenders import OURS
from speed.corpus import Item
from speed.load import Outcome, build_request, send_all
from speed.processes import Server, clew_up, serving
from speed.report import Finding, Promise, Row
from speed.rest import encode
from speed.stage import LOAD_BATCH, ME, Stage, open_file, split, to_draft
from speed.timing import percentile, tell

CLIENTS, WRITERS = 50, 16
MEASURE = f"searches for common words with {CLIENTS} connections"
COMMON = "load test of a record with a note"
SEARCHES, WARM_UP = 1_500, 50
LEAST = 150.0


async def measure(stage: Stage) -> list[Finding]:
    folder = stage.folder / "common-words"
    await _fill(stage, folder)
    alone: list[Outcome] = []
    beside: list[Outcome] = []
    processor: list[float] = []
    with contextlib.ExitStack() as running:
        tell(f"{MEASURE}: starting {OURS}")
        server = running.enter_context(serving(clew_up(folder)))
        token = open_keys(folder, SystemClock()).issue(ME).token
        await send_all(server, _searches(stage, token, WARM_UP), CLIENTS)
        for turn in range(stage.settings.rounds):
            tell(f"{MEASURE}: round {turn + 1} of {stage.settings.rounds}")
            searches = _searches(stage, token, stage.settings.samples(SEARCHES, least=CLIENTS))
            before = server.processor_seconds
            alone.append(await send_all(server, searches, CLIENTS))
            processor.append(1_000 * (server.processor_seconds - before) / len(searches))
            beside.append(await _beside_writes(stage, server, token, searches))
    spent = {"processor ms a search": median(processor)}
    return [*_summarize(stage, "alone", alone, **spent), *_summarize(stage, "beside writes", beside)]


async def _fill(stage: Stage, folder: Path) -> None:
    trail = await open_file(folder, stage.corpus.embedder)
    try:
        for some in split(stage.items, LOAD_BATCH):
            await trail.records.create_many([_draft(item) for item in some], by=ME)
        await trail.index.warm()
    finally:
        await trail.close()


def _draft(item: Item) -> Draft:
    return to_draft(_common(item))


def _common(item: Item) -> Item:
    return item._replace(title=f"{COMMON}: {item.title}"[:200])


def _searches(stage: Stage, token: str, count: int) -> list[bytes]:
    """Two or three common words each; every other question has a word of some record beside them."""
    common = COMMON.split()
    words = [query.text.split()[0] for query in stage.corpus.ask(stage.items, count)]
    texts = [f"{common[at % 2]} test {common[4 + at % 3]} {words[at] if at % 2 else ''}" for at in range(count)]
    return [build_request("GET", f"/breadcrumbs/search?q={quote(text)}&limit=10", token=token) for text in texts]


async def _beside_writes(stage: Stage, server: Server, token: str, searches: Sequence[bytes]) -> Outcome:
    items = stage.corpus.make(WRITERS * 20)
    bodies = [build_request("POST", "/breadcrumbs", encode(_common(item)), token) for item in items]

    async def write() -> None:
        while True:
            await send_all(server, bodies, WRITERS)

    writing = asyncio.create_task(write())
    try:
        return await send_all(server, searches, CLIENTS)
    finally:
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writing


def _summarize(stage: Stage, how: str, outcomes: Sequence[Outcome], **more: float) -> list[Finding]:
    rate = median(each.rate for each in outcomes)
    p95 = 1_000 * median(percentile(each.latencies, 0.95) for each in outcomes)
    values = {"searches/s": rate, "p95 ms": p95, **more}
    return [
        Row(measure=MEASURE, records=stage.size, contender=f"{OURS}, {how}", values=values),
        Promise(name=f"{MEASURE}, {how}: searches/s", records=stage.size, value=rate, target=LEAST),
    ]
