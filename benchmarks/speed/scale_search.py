"""Search on PostgreSQL: recall of its ten best against exact answers, with filters and without, and its time beside
LanceDB and the embedded backend with the same records."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psycopg

from clew.trail import open_trail
from clew.trail.postgres.search.search import PostgresSearch
from clew.trail.store import Trail
from speed.contenders import close_stores, open_stores
from speed.corpus import SHARES, Query
from speed.filters import Exact, tag_of
from speed.ours import Ours
from speed.report import Finding, Promise, Row
from speed.scale_stage import Engines, ScaleSettings
from speed.stage import LOAD_BATCH, ME, Settings, Stage, split, to_draft
from speed.timing import Rounds, paired_ratio, rotate, tell, timed

HYBRID, VECTORS, LOADING = "hybrid search, k = 10", "nearest vectors, k = 10", "loading into memory"
OURS, EMBEDDED, LANCE = "clew, PostgreSQL", "clew, embedded", "lancedb"
QUERIES = "clew, PostgreSQL, by queries"
LEAST_RECALL = 0.95
COMPARED_AT = 100_000
"""The size at which the time is compared with LanceDB. More records are not searched by queries: the graph of their
vectors takes too long to build."""
K, WARM_UP = 10, 20
Search = Callable[[Query, int], Awaitable[list[str]]]
SET_UP = "SET maintenance_work_mem = '512MB'"


class OursOnServer(Ours):
    """The trail on PostgreSQL. See `speed.contenders.SearchStore`."""

    def __init__(self, name: str, trail: Trail) -> None:
        self.name = name
        self.trail = trail


async def load(url: str, stage: Stage) -> None:
    """Write the records of a stage to a trail. The graph of vectors is built once all of them are there, if they are
    searched by queries."""
    trail = await open_trail(url, embedder=stage.corpus.embedder)
    first, *others = split(stage.items, LOAD_BATCH)
    await trail.records.create_many([to_draft(item, id=item.id) for item in first], by=ME)
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT pg_get_indexdef('vectors_near'::regclass)").fetchone()
        assert row is not None
        connection.execute("DROP INDEX vectors_near")
        for some in others:
            await trail.records.create_many([to_draft(item, id=item.id) for item in some], by=ME)
        if stage.size <= COMPARED_AT:
            tell(f"{stage.size:,} records: building the graph of vectors")
            connection.execute(SET_UP)
            connection.execute(row[0].encode())
        tell(f"{stage.size:,} records: indexing their words")
        await trail.index.warm()
        connection.execute("VACUUM ANALYZE")
    await trail.close()


async def load_into_memory(index: PostgresSearch) -> bool:
    """Return when the records are in memory, or False if they are too large for it."""
    await index.warm()
    while index._memory._loading is not None:
        await asyncio.sleep(0.02)
        await index.warm()
    return index._memory._loaded is not None


async def open_in_memory(url: str, stage: Stage) -> tuple[OursOnServer, Row]:
    """The trail with its records in the memory of this process, and the loading time."""
    trail = await open_trail(url, embedder=stage.corpus.embedder)
    tell(f"{stage.size:,} records: {LOADING}")
    assert isinstance(trail.index, PostgresSearch)
    before, worked = read_resident(), time.process_time()
    seconds, is_loaded = await timed(load_into_memory(trail.index))
    assert is_loaded
    values = {"s": seconds, "processor s": time.process_time() - worked, "MB": (read_resident() - before) / 1e6}
    return OursOnServer(OURS, trail), Row(measure=LOADING, records=stage.size, contender=OURS, values=values)


async def measure(engines: Engines, settings: ScaleSettings) -> list[Finding]:
    found: list[Finding] = []
    for size in settings.records:
        folder = settings.scratch / f"search-{size}"
        folder.mkdir(mode=0o711)
        stage = Stage(size, folder, Settings(rounds=settings.rounds, quick=False, without=settings.without))
        url = engines.make_database()
        await load(url, stage)
        ours, loading = await open_in_memory(url, stage)
        queries = OursOnServer(QUERIES, await open_trail(url, embedder=stage.corpus.embedder, search_memory=0))
        asked = [queries] if size <= COMPARED_AT else []
        try:
            stores, missing = await open_stores(stage, ("clew", LANCE), HYBRID)
            embedded = next(store for store in stores if isinstance(store, Ours))
            others = [store for store in stores if store is not embedded]
            found += [loading, *await measure_size(stage, settings, ours, embedded, [*asked, *others]), *missing]
        finally:
            await close_stores(stage)
            await ours.trail.close()
            await queries.trail.close()
    return found


def read_resident() -> int:
    """The memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def measure_size(
    stage: Stage, settings: ScaleSettings, ours: OursOnServer, embedded: Ours, others: list[Ours]
) -> list[Finding]:
    exact, count = Exact(stage), settings.count(60, 20)
    arms: dict[str, Search] = {OURS: ours.search, EMBEDDED: embedded.search}
    arms |= {store.name: store.search for store in others}
    found = await ask_hybrid(stage, arms, count)
    tell(f"{stage.size:,} records: {VECTORS}")
    for share in (100, *SHARES):
        found += await ask_nearest(stage, ours, exact, share, count)
    return found


async def ask_hybrid(stage: Stage, arms: dict[str, Search], count: int) -> list[Finding]:
    """Each question is asked of every contender in turn. The first search after a load is not timed."""
    times = {name: Rounds() for name in arms}
    same: list[float] = []
    for search in arms.values():
        for query in stage.corpus.ask(stage.items, WARM_UP):
            await search(query, K)
    for turn in range(stage.settings.rounds):
        tell(f"{stage.size:,} records: {HYBRID}: round {turn + 1} of {stage.settings.rounds}")
        for each in times.values():
            each.begin()
        for number, query in enumerate(stage.corpus.ask(stage.items, count)):
            hits: dict[str, list[str]] = {}
            for name in rotate(list(arms), turn + number):
                seconds, hits[name] = await timed(arms[name](query, K))
                times[name].add(seconds)
            same.append(len(set(hits[OURS]) & set(hits[EMBEDDED])) / K)
    rows: list[Finding] = [
        Row(measure=HYBRID, records=stage.size, contender=name, values=each.spread()) for name, each in times.items()
    ]
    agreement = sum(same) / len(same)
    rows.append(
        Row(measure=HYBRID, records=stage.size, contender=f"{OURS}: hits of the embedded", values={"share": agreement})
    )
    promises = [
        Promise(name="hybrid, recall@10 of the embedded", records=stage.size, value=agreement, target=LEAST_RECALL)
    ]
    if LANCE in times and stage.size == COMPARED_AT:
        ratio = paired_ratio(*(times[name].each_round(0.95) for name in (OURS, LANCE)))
        promises.append(
            Promise(name="hybrid p95, of lancedb's", records=stage.size, value=ratio, target=1.0, at_least=False)
        )
    return [*rows, *promises]


async def ask_nearest(stage: Stage, ours: OursOnServer, exact: Exact, share: int, count: int) -> list[Finding]:
    """The nearest vectors among the records with a tag, or among all, compared with those that numpy finds."""
    times, recalls = Rounds(), []
    asked = stage.corpus.ask(stage.items, count)
    vectors = stage.corpus.embed([query.text for query in asked])
    times.begin()
    for query, vector in zip(asked, vectors, strict=True):
        question = query._replace(vector=vector)
        tag = None if share == 100 else tag_of(share)
        nearest = await exact.find_nearest(question, tag, K)
        seconds, hits = await timed(ours.find_nearest(question, tag, K))
        times.add(seconds)
        recalls.append(exact.recall(hits, nearest))
    recall, shown = sum(recalls) / len(recalls), f"{share} % pass"
    values = {**times.spread(), "recall@10": recall}
    return [
        Row(measure=VECTORS, records=stage.size, contender=shown, values=values),
        Promise(name=f"{shown}, recall@10", records=stage.size, value=recall, target=LEAST_RECALL),
    ]
