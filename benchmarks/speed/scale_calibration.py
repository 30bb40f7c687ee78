"""The service times of the model, and the points that it is compared with, measured on this machine in one run.

The times come from claims and finishes of 1, 4 and 16 events in one process, and from one worker with 16 sessions. The
points come from other runs: more workers, calls of a model, wake-ups. The first of them has the same load as the
service times, so it is a weak test.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import nats
import numpy as np
import psycopg

import wakeups
from clew.trail import open_trail
from clew.trail.model.event import Claim, Consumer
from clew.trail.model.selector import Selector
from clew.trail.postgres.wakeups import INTERVAL
from clew.trail.store import Trail
from speed.corpus import Corpus
from speed.scale_model import Line, ServiceTimes
from speed.scale_stage import Engines, ScaleSettings, running_nats
from speed.scale_steps import CALL_MS, OURS, SESSIONS
from speed.scale_workers import Workers, working
from speed.stage import to_draft
from speed.step_clew import DEFINITION, ME, SCHEMA, draft_of
from speed.step_payload import first_payload
from speed.timing import percentile, tell

STEPS_WITH = (1, 2, 4, 8)
CALLS_WITH = (1, 2, 8)
STEPS, CALL_STEPS = 20, 12
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


async def calibrate(engines: Engines, settings: ScaleSettings) -> dict[str, Any]:
    """Service times, points and sizes, as JSON."""
    tell("service times: claims and finishes")
    batches = (1, 4, 16)
    claims, finishes, look = await measure_queue(engines, settings, batches)
    tell("service times: one worker")
    cycle = await measure_cycle(engines, settings)
    claim, log, flush = lines_of(claims), lines_of(finishes), measure_flush(engines)
    known = claims[SESSIONS].worker + finishes[SESSIONS].worker
    handler = max(0.0, cycle.worker - known) / SESSIONS
    times = ServiceTimes(
        claim_worker=Line(claim["worker"].fixed, claim["worker"].each + handler),
        claim_server=claim["server"],
        claim_wait=claim["wait"],
        log_worker=log["worker"],
        log_server=log["server"],
        log_wait=Line(max(flush, log["wait"].fixed), log["wait"].each),  # processors that overlap hide it
        look_worker=look.worker,
        look_server=look.server,
        interval=INTERVAL,
        bus=await measure_bus(settings),
    )
    return {
        "times": {name: getattr(times, name) for name in ServiceTimes.__slots__},
        "flush": flush,
        "sizes": await measure_sizes(engines),
        "points": await measure_points(engines, settings),
    }


async def measure_cycle(engines: Engines, settings: ScaleSettings) -> Parts:
    """The seconds of one worker from a claim of an event of each session to the next one."""
    steps, found = settings.count(40, 20), []
    async with working(OURS, engines, settings.scratch, 1) as workers:
        await workers.run(1, 20)
        for _ in range(settings.rounds):
            before = engines.processor_seconds
            spent = await workers.run(SESSIONS, steps)
            server = engines.processor_seconds - before
            found.append(Parts(*(each / (steps + 1) for each in (spent.seconds, spent.processor - server, server))))
    return undisturbed(found)


async def measure_queue(
    engines: Engines, settings: ScaleSettings, batches: Sequence[int]
) -> tuple[dict[int, Parts], dict[int, Parts], Parts]:
    """Of claims of so many events, of their finishes with an output each, and of a look at the end of the log."""
    trail = await open_trail(engines.make_database(), embedder=None)
    try:
        await trail.records.create(DEFINITION, by=ME)
        consumer = Consumer(name="step", selector=Selector(schema_name=SCHEMA), after=await trail.log.head())
        await trail.deliveries.register(consumer, by=ME)
        claims: dict[int, Parts] = {}
        finishes: dict[int, Parts] = {}
        for count in batches:
            queue = _Queue(engines, trail)
            await queue.fill(count)
            rounds = [await queue.turn(count, settings.count(60, 20)) for _ in range(settings.rounds + 1)][1:]
            claims[count] = undisturbed([claim for claim, _ in rounds])
            finishes[count] = undisturbed([finish for _, finish in rounds])
            await queue.drain()

        async def look() -> None:
            await trail.log.head()

        return claims, finishes, await repeat(engines, look, 300)
    finally:
        await trail.close()


class _Queue:
    """Events that go round: each is claimed, and finished with the next one of its session."""

    def __init__(self, engines: Engines, trail: Trail) -> None:
        self._engines = engines
        self._trail = trail

    async def fill(self, count: int) -> None:
        drafts = [draft_of({**first_payload(), "last": 9}, (f"session:{at}",)) for at in range(count)]
        await asyncio.gather(*(self._trail.records.create(draft, by=ME) for draft in drafts))

    async def turn(self, count: int, times: int) -> tuple[Parts, Parts]:
        """The means of some claims and of their finishes."""
        spent = {"claim": np.zeros(3), "finish": np.zeros(3)}
        for _ in range(times):
            began = self._now()
            claims = await self._claim()
            claimed = self._now()
            assert len(claims) == count
            await asyncio.gather(*(self._finish(claim) for claim in claims))
            spent["claim"] += claimed - began
            spent["finish"] += self._now() - claimed
        claim, finish = (Parts(*(each / times).tolist()) for each in spent.values())
        return claim, finish

    async def drain(self) -> None:
        for claim in await self._claim():
            await self._trail.deliveries.finish(claim, [], by=ME)

    async def _claim(self) -> list[Claim]:
        return await self._trail.deliveries.claim("step", by=ME, worker="bench", limit=32, wait=5.0)

    async def _finish(self, claim: Claim) -> None:
        found = claim.event.breadcrumb
        assert found is not None
        await self._trail.deliveries.finish(claim, [draft_of(found.context, found.tags)], by=ME)

    def _now(self) -> Any:
        return np.array([time.perf_counter(), time.process_time(), self._engines.processor_seconds])


async def repeat(engines: Engines, work: Callable[[], Awaitable[None]], times: int) -> Parts:
    await work()
    server, worker, began = engines.processor_seconds, time.process_time(), time.perf_counter()
    for _ in range(times):
        await work()
    spent = (time.perf_counter() - began, time.process_time() - worker, engines.processor_seconds - server)
    return Parts(*(each / times for each in spent))


def undisturbed(found: Sequence[Parts]) -> Parts:
    """The processor time of the median round, and the elapsed time of the fastest: other programs lengthen it."""
    return Parts(
        min(parts.elapsed for parts in found),
        median(parts.worker for parts in found),
        median(parts.server for parts in found),
    )


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
    """The additional seconds of a small commit that waits for the disk."""
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


async def measure_points(engines: Engines, settings: ScaleSettings) -> dict[str, float]:
    """The measured points for a comparison with the model, by name: see `speed.scale_reproduction`."""
    points: dict[str, float] = {}
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
    points["wake-up ms, polling"] = percentile(took["poll"], 0.5)
    points["wake-up ms, NATS"] = percentile(took["bus"], 0.5)
    return points


async def measure_rate(workers: Workers, sessions: int, steps: int, rounds: int) -> float:
    """The median of the steps a second."""
    return median([sessions * steps / (await workers.run(sessions, steps)).seconds for _ in range(rounds)])
