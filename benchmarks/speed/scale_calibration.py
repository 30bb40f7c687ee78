"""The service times of the model, and the points that it must reproduce, measured on this machine in one run.

The times come from one worker with 1, 4 and 16 sessions, and from writes without a worker. The points come from other
runs: more workers, calls of a model, wake-ups. So to reproduce them is a prediction.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import nats
import numpy as np
import psycopg

import wakeups
from clew.trail import open_trail
from clew.trail.postgres.wakeups import INTERVAL
from speed.corpus import Corpus
from speed.scale_model import Line, ServiceTimes
from speed.scale_stage import TICKS, Engines, ScaleSettings, running_nats
from speed.scale_steps import CALL_MS, OURS, SESSIONS
from speed.scale_workers import Workers, working
from speed.stage import ME, to_draft
from speed.step_clew import DEFINITION, draft_of
from speed.step_payload import first_payload
from speed.timing import percentile, tell

STEPS_WITH = (1, 2, 4, 8)
CALLS_WITH = (1, 2, 8)
STEPS, CALL_STEPS = 20, 12
CORES = len(os.sched_getaffinity(0))
LEAST_CORES = 0.25
"""What is taken for left to us where other programs seem to have used everything."""
SIZES = {
    "event": ("events",),
    "record": ("breadcrumbs", "tags"),
    "terms": ("terms", "term_counts"),
    "vector": ("vectors",),
}
"""The tables, with their indexes, that grow with each event or record."""


class Parts(NamedTuple):
    """Seconds of a batch: of the clock, of the workers' and of the server's processor."""

    elapsed: float
    worker: float
    server: float

    @property
    def wait(self) -> float:
        return max(0.0, self.elapsed - self.worker - self.server)


def fit(samples: dict[int, float]) -> Line:
    """The line through seconds by size of batch, none of its parts below zero."""
    counts, seconds = np.array(list(samples), float), np.array(list(samples.values()), float)
    # small batches count as much as large ones: errors are relative
    weights = 1 / np.maximum(seconds, 1e-6)
    matrix = np.stack([np.ones_like(counts), counts], 1)
    fixed, each = np.linalg.lstsq(matrix * weights[:, None], seconds * weights, rcond=None)[0]
    if each < 0:
        return Line(float(np.mean(seconds)), 0.0)
    if fixed < 0:
        return Line(0.0, float(np.mean(seconds / counts)))
    return Line(float(fixed), float(each))


def lines_of(samples: dict[int, Parts]) -> dict[str, Line]:
    return {
        name: fit({count: getattr(parts, name) for count, parts in samples.items()})
        for name in ("worker", "server", "wait")
    }


def less(whole: dict[int, Parts], part: dict[int, Parts]) -> dict[int, Parts]:
    """What is left of batches without a part of them."""
    return {
        count: Parts(*(max(0.0, mine - other) for mine, other in zip(whole[count], part[count], strict=True)))
        for count in whole
    }


async def calibrate(engines: Engines, settings: ScaleSettings) -> dict[str, Any]:
    """Service times, points and sizes, as JSON."""
    tell("service times: one worker, 1 to 16 sessions")
    batches = (1, 4, 16)
    cycles = await measure_cycles(engines, settings, batches)
    tell("service times: writes without a worker")
    appends, look = await measure_appends(engines, batches)
    claim, log = lines_of(less(cycles, appends)), lines_of(appends)
    times = ServiceTimes(
        claim_worker=claim["worker"],
        claim_server=claim["server"],
        claim_wait=claim["wait"],
        log_worker=log["worker"],
        log_server=log["server"],
        log_wait=log["wait"],
        look_worker=look.worker,
        look_server=look.server,
        interval=INTERVAL,
        bus=await measure_bus(settings),
    )
    return {
        "times": {name: getattr(times, name) for name in ServiceTimes.__slots__},
        "flush": measure_flush(engines),
        "sizes": await measure_sizes(engines),
        "points": await measure_points(engines, settings),
    }


async def measure_cycles(engines: Engines, settings: ScaleSettings, batches: Sequence[int]) -> dict[int, Parts]:
    """Of one worker, from a claim of so many events to the next, for each number of sessions."""
    found: dict[int, list[Parts]] = {count: [] for count in batches}
    async with working(OURS, engines, settings.scratch, 1) as workers:
        await workers.run(1, 20)
        for _ in range(settings.rounds):
            for count in batches:
                steps = max(20, settings.count(400, 60) // count)
                before = engines.processor_seconds
                spent = await workers.run(count, steps)
                server = engines.processor_seconds - before
                parts = (spent.seconds, spent.processor - server, server)
                found[count].append(Parts(*(each / (steps + 1) for each in parts)))
    return medians(found)


async def measure_appends(engines: Engines, batches: Sequence[int]) -> tuple[dict[int, Parts], Parts]:
    """Of creates that are committed together, and of a look at the end of the log."""
    url = engines.make_database()
    trail = await open_trail(url, embedder=None)
    try:
        await trail.records.create(DEFINITION, by=ME)

        async def write(count: int) -> None:
            drafts = [draft_of({**first_payload(), "last": 9}, (f"session:{at}",)) for at in range(count)]
            await asyncio.gather(*(trail.records.create(draft, by=ME) for draft in drafts))

        async def look(_: int) -> None:
            await trail.log.head()

        found: dict[int, list[Parts]] = {count: [] for count in batches}
        for _ in range(3):
            for count in batches:
                found[count].append(await repeat(engines, lambda: write(count), 100))  # noqa: B023 - awaited here
        return medians(found), await repeat(engines, lambda: look(0), 300)
    finally:
        await trail.close()


async def repeat(engines: Engines, work: Callable[[], Awaitable[None]], times: int) -> Parts:
    await work()
    server, worker, began = engines.processor_seconds, time.process_time(), time.perf_counter()
    for _ in range(times):
        await work()
    spent = (time.perf_counter() - began, time.process_time() - worker, engines.processor_seconds - server)
    return Parts(*(each / times for each in spent))


def medians(found: dict[int, list[Parts]]) -> dict[int, Parts]:
    """The processor time of the median round, and the elapsed time of the fastest: other programs lengthen it."""
    return {
        count: Parts(
            min(parts.elapsed for parts in each),
            median(parts.worker for parts in each),
            median(parts.server for parts in each),
        )
        for count, each in found.items()
    }


async def measure_bus(settings: ScaleSettings) -> float:
    """The median seconds of a notice from one connection to another."""
    with running_nats(settings.scratch / "nats-calibration") as url:
        sender, receiver = await nats.connect(url), await nats.connect(url)
        heard: asyncio.Queue[float] = asyncio.Queue()

        async def hear(_: Any) -> None:
            heard.put_nowait(time.perf_counter())

        await receiver.subscribe("notice", cb=hear)
        await receiver.flush()
        took = []
        for _ in range(100):
            began = time.perf_counter()
            await sender.publish("notice", b"x" * 200)
            took.append(await heard.get() - began)
        await sender.close()
        await receiver.close()
    return median(took)


def measure_flush(engines: Engines) -> float:
    """By how many seconds a small commit is longer when it waits for the disk."""
    with psycopg.connect(engines.make_database(), autocommit=True) as connection:
        connection.execute("CREATE TABLE flushed (at bigint)")
        took: dict[str, list[float]] = {"on": [], "off": []}
        for _ in range(200):
            for setting, each in took.items():
                connection.execute(f"SET synchronous_commit TO {setting}".encode())
                began = time.perf_counter()
                connection.execute("INSERT INTO flushed VALUES (1)")
                each.append(time.perf_counter() - began)
    return max(0.0, median(took["on"]) - median(took["off"]))


async def measure_sizes(engines: Engines) -> dict[str, float]:
    """Bytes of tables and indexes for each record of about 60 words with five tags and its vector."""
    count, corpus, url = 2_000, Corpus(), engines.make_database()
    trail = await open_trail(url, embedder=corpus.embedder)
    try:
        items = corpus.make(count)
        for at in range(0, count, 500):
            await trail.records.create_many([to_draft(item, id=item.id) for item in items[at : at + 500]], by=ME)
        await trail.index.warm()
    finally:
        await trail.close()
    with psycopg.connect(url, autocommit=True) as connection:
        sql = b"SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name"
        return {
            name: float((connection.execute(sql, (list(tables),)).fetchone() or (0,))[0]) / count
            for name, tables in SIZES.items()
        }


async def measure_points(engines: Engines, settings: ScaleSettings) -> dict[str, dict[str, float]]:
    """What the model is held against, by name (`speed.scale_reproduction`): each value, and the cores that other
    programs left meanwhile."""
    points: dict[str, dict[str, float]] = {}
    for count in STEPS_WITH:
        tell(f"points: steps of {count} workers")
        async with working(OURS, engines, settings.scratch, count) as workers:
            await workers.run(count, 5)
            points[f"steps/s, {count} workers"] = await measure_rate(workers, SESSIONS, STEPS, settings.rounds)
    for count in CALLS_WITH:
        tell(f"points: calls of {count} workers")
        group = working(OURS, engines, settings.scratch, count, pause_ms=CALL_MS, concurrency=1)
        async with group as workers:
            await workers.run(count, 3)
            points[f"calls/s, {count} workers"] = await measure_rate(workers, 2 * count, CALL_STEPS, settings.rounds)
    tell("points: wake-ups")
    with running_nats(settings.scratch / "nats") as bus:
        took = await asyncio.to_thread(wakeups.measure, engines.make_database(), bus, settings.count(150, 60))
    for name, each in (("polling", took["poll"]), ("NATS", took["bus"])):
        points[f"wake-up ms, {name}"] = {"value": percentile(each, 0.5), "cores": float(CORES)}
    return points


async def measure_rate(workers: Workers, sessions: int, steps: int, rounds: int) -> dict[str, float]:
    """The median steps a second, and the mean of the cores that other programs left."""
    rates, left = [], []
    for _ in range(rounds):
        before = busy_seconds()
        spent = await workers.run(sessions, steps)
        others = max(0.0, busy_seconds() - before - spent.processor)
        rates.append(sessions * steps / spent.seconds)
        left.append(max(LEAST_CORES, CORES - others / spent.seconds))
    return {"value": median(rates), "cores": sum(left) / len(left)}


def busy_seconds() -> float:
    """The processor time of all programs since the machine started."""
    fields = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
    return (sum(fields) - fields[3] - fields[4]) / TICKS  # without idle, and idle for a disk
