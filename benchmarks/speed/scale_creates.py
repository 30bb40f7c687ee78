"""Durable creates on PostgreSQL beside a bare psycopg script on the same server that stores the same: record, tags,
event and vector with its HNSW index, each commit flushed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from statistics import median
from types import SimpleNamespace
from typing import Any

import psycopg

from clew.trail import open_trail
from clew.trail.store import Trail
from speed.corpus import Corpus, Item
from speed.creates import rate_of_batches, rate_of_singles
from speed.postgres import INDEXED, VECTOR_INDEX, Postgres
from speed.report import Finding, Promise, Row
from speed.scale_stage import Engines, ScaleSettings
from speed.stage import ME, to_draft
from speed.timing import paired_ratio, rotate, tell

MEASURE = "durable creates on PostgreSQL"
OURS, BARE = "clew", "bare psycopg"
WRITERS = 16
LEAST = 0.6
MODES = ("one writer, /s", "batches of 100, /s", f"{WRITERS} writers, /s")


class OursOnPostgres:
    """See `speed.contenders.Store`."""

    name = OURS

    def __init__(self, trail: Trail) -> None:
        self._trail = trail

    def prepare(self, items: Sequence[Item]) -> Sequence[Any]:
        return [to_draft(item) for item in items]

    async def create(self, prepared: Any) -> str:
        return (await self._trail.records.create(prepared, by=ME)).id

    async def create_batch(self, prepared: Sequence[Any]) -> None:
        await self._trail.records.create_many(prepared, by=ME)

    async def close(self) -> None:
        await self._trail.close()


def open_bare(url: str) -> Postgres:
    """The contender of `make bench-trail`, on a database of this server."""
    server: Any = SimpleNamespace(conninfo=url, stop=lambda: None)
    bare = Postgres(server, INDEXED)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(VECTOR_INDEX.encode())
    bare.name = BARE
    return bare


async def measure(engines: Engines, settings: ScaleSettings) -> list[Finding]:
    corpus = Corpus()
    ours = OursOnPostgres(await open_trail(engines.make_database(), embedder=corpus.embedder))
    stores = [ours, open_bare(engines.make_database())]
    rates: dict[str, list[list[float]]] = {store.name: [] for store in stores}
    singles, batches, most = settings.count(300, 50), settings.count(10, 2), settings.count(1_000, 200)
    for store in stores:
        await rate_of_singles(store, corpus.make(50))
    for turn in range(settings.rounds):
        tell(f"{MEASURE}: round {turn + 1} of {settings.rounds}")
        some, hundreds, many = corpus.make(singles), corpus.make(100 * batches), corpus.make(most)
        for store in rotate(stores, turn):
            found = [await rate_of_singles(store, some), await rate_of_batches(store, hundreds)]
            if store is ours:
                found.append(await rate_of_writers(store, many))
            rates[store.name].append(found)
    for store in stores:
        await store.close()
    return summarize(rates, singles)


async def rate_of_writers(store: OursOnPostgres, items: Sequence[Item]) -> float:
    """Creates of many writers of one process, each of which waits for its commit."""
    prepared = list(store.prepare(items))
    began = time.perf_counter()

    async def write(some: Sequence[Any]) -> None:
        for each in some:
            await store.create(each)

    await asyncio.gather(*(write(prepared[at::WRITERS]) for at in range(WRITERS)))
    return len(items) / (time.perf_counter() - began)


def summarize(rates: dict[str, list[list[float]]], records: int) -> list[Finding]:
    rows: list[Finding] = [
        Row(
            measure=MEASURE,
            records=records,
            contender=name,
            values={mode: median(column) for mode, column in zip(MODES, zip(*rounds, strict=True), strict=False)},
        )
        for name, rounds in rates.items()
    ]
    ratio = paired_ratio(*([each[0] for each in rates[name]] for name in (OURS, BARE)))
    promise = Promise(name="creates, one writer, of bare psycopg", records=records, value=ratio, target=LEAST)
    return [*rows, promise]
