"""Hybrid search for the ten best, from words to records: steady, right after a write that must be found, after many
writes, and the first one after opening."""

from __future__ import annotations

from collections.abc import Sequence

from speed.contenders import OURS, SearchStore, open_stores
from speed.corpus import Item, Query
from speed.ours import Ours, open_store
from speed.report import Finding, Promise, Row
from speed.stage import Stage, split
from speed.timing import Rounds, paired_ratio, rotate, settle, tell, timed

MEASURE = "hybrid search, k = 10"
AFTER_WRITE = "search right after a write"
OPENING = "search after opening and after many writes"
CONTENDERS = (OURS, "lancedb", "chroma")
RANKS_BY = {OURS: "clew", "lancedb": "lancedb", "chroma": "chroma (vectors only)"}
SEARCHES, BETWEEN_WRITES, K = 200, 25, 10
WARM_UP = 20
MANY_WRITES, BATCH, OPENINGS = 1_000, 100, 3
GOAL = 5.0


class Kept:
    """The results of one contender."""

    def __init__(self) -> None:
        self.steady, self.after_write = Rounds(), Rounds()
        self.p95: list[float] = []
        self.writes = self.found = 0


async def measure(stage: Stage) -> list[Finding]:
    stores, missing = await open_stores(stage, CONTENDERS, MEASURE)
    kept = {store.name: Kept() for store in stores}
    for store in stores:
        for query in stage.corpus.ask(stage.items, WARM_UP):
            await store.search(query, K)
    for turn in range(stage.settings.rounds):
        tell(f"{MEASURE}: round {turn + 1} of {stage.settings.rounds}")
        await run_round(stage, stores, kept, turn)
    return [*summarize(kept, stage.size), *missing, *await measure_alone(stage)]


async def run_round(stage: Stage, stores: Sequence[SearchStore], kept: dict[str, Kept], turn: int) -> None:
    """Each query is asked of every contender in turn; every so often each gets a write that it must find at once."""
    queries = stage.corpus.ask(stage.items, stage.settings.samples(SEARCHES, least=BETWEEN_WRITES))
    for each in kept.values():
        each.steady.begin()
        each.after_write.begin()
    for number, query in enumerate(queries, 1):
        for store in rotate(stores, turn + number):
            seconds, _ = await timed(store.search(query, K))
            kept[store.name].steady.add(seconds)
        if number % BETWEEN_WRITES == 0:
            item, question = stage.corpus.mark(stage.corpus.make(1)[0])
            for store in stores:
                await write_and_find(store, kept[store.name], item, question)
    for store in stores:
        kept[store.name].p95.append(kept[store.name].steady.last(0.95))
        await store.tidy()
    await settle()


async def write_and_find(store: SearchStore, kept: Kept, item: Item, question: Query) -> None:
    id = await store.create(store.prepare([item])[0])
    seconds, hits = await timed(store.search(question, K))
    kept.after_write.add(seconds)
    kept.writes += 1
    kept.found += id in hits


def summarize(kept: dict[str, Kept], size: int) -> list[Finding]:
    found: list[Finding] = []
    for name, each in kept.items():
        values = each.steady.spread()
        if name != OURS:
            values["clew's p95 is ×"] = paired_ratio(kept[OURS].p95, each.p95)
        found.append(Row(measure=MEASURE, records=size, contender=RANKS_BY[name], values=values))
        after = {**each.after_write.spread(), "writes": each.writes, "found": each.found}
        found.append(Row(measure=AFTER_WRITE, records=size, contender=RANKS_BY[name], values=after))
    share = kept[OURS].found / kept[OURS].writes
    found.append(Promise(name="writes found by the next search", records=size, value=share, target=1.0))
    if "lancedb" in kept:
        ratio = paired_ratio(kept[OURS].p95, kept["lancedb"].p95)
        found += [
            Promise(name=f"search p95 of lancedb{what}", records=size, value=ratio, target=target, at_least=False)
            for what, target in (("", 1.0), (" (goal)", 1 / GOAL))
        ]
    return found


async def measure_alone(stage: Stage) -> list[Finding]:
    """Measures of the trail alone, on a separate copy, so that these writes do not affect the comparison."""
    tell(OPENING)
    ours = await open_store(stage)
    try:
        return [await measure_opening(stage, ours), await measure_many_writes(stage, ours)]
    finally:
        await ours.close()


async def measure_opening(stage: Stage, ours: Ours) -> Row:
    """Opening a trail and searching at once, without anything loaded before."""
    opening, first, second = Rounds(), Rounds(), Rounds()
    for query in stage.corpus.ask(stage.items, OPENINGS):
        for rounds, work in ((opening, ours.reopen()), (first, ours.search(query, K)), (second, ours.search(query, K))):
            rounds.begin()
            rounds.add((await timed(work))[0])
    values = {
        "open ms": opening.milliseconds(0.5),
        "first search ms": first.milliseconds(0.5),
        "second search ms": second.milliseconds(0.5),
    }
    return Row(measure=OPENING, records=stage.size, contender=f"{OURS}, after opening", values=values)


async def measure_many_writes(stage: Stage, ours: Ours) -> Row:
    """The search that must read all writes since the last one."""
    first, second = Rounds(), Rounds()
    writes = stage.settings.samples(MANY_WRITES, least=BATCH)
    for query in stage.corpus.ask(stage.items, OPENINGS):
        for some in split(stage.corpus.make(writes), BATCH):
            await ours.create_batch(ours.prepare(some))
        for rounds in (first, second):
            rounds.begin()
            rounds.add((await timed(ours.search(query, K)))[0])
        await settle()
    values = {"first search ms": first.milliseconds(0.5), "second search ms": second.milliseconds(0.5)}
    return Row(measure=OPENING, records=stage.size, contender=f"{OURS}, after {writes:,} writes", values=values)
