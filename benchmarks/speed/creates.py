"""Durable creates on top of the records that are there, one in a transaction and a hundred in one, with vectors given:
no embedding on the clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from speed.contenders import OURS, Store, open_stores
from speed.corpus import Item
from speed.report import Finding, Promise, Row
from speed.stage import Stage, split
from speed.timing import paired_ratio, rotate, tell

MEASURE = "durable creates"
CONTENDERS = (OURS, "sqlite", "postgres", "postgres-hnsw", "chroma")
SINGLES, BATCHES, BATCH = 200, 10, 100
WARM_UP = 5
MODES = ("one a transaction", "batches of 100")
LEAST = {"sqlite": (0.6, 0.5), "postgres": (1.0, 1.0), "postgres-hnsw": (1.0, 1.0), "chroma": (1.0, 1.0)}

Rates = dict[str, tuple[list[float], list[float]]]


async def measure(stage: Stage) -> list[Finding]:
    stores, missing = await open_stores(stage, CONTENDERS, MEASURE)
    rates: Rates = {store.name: ([], []) for store in stores}
    for store in stores:
        await rate_of_singles(store, stage.corpus.make(WARM_UP))
        await rate_of_batches(store, stage.corpus.make(BATCH))
    for turn in range(stage.settings.rounds):
        tell(f"{MEASURE}: round {turn + 1} of {stage.settings.rounds}")
        singles = stage.corpus.make(stage.settings.samples(SINGLES))
        batches = stage.corpus.make(BATCH * stage.settings.samples(BATCHES, least=2))
        for store in rotate(stores, turn):
            rates[store.name][0].append(await rate_of_singles(store, singles))
            rates[store.name][1].append(await rate_of_batches(store, batches))
    return [*summarize(rates, stage.size), *missing]


async def rate_of_singles(store: Store, items: Sequence[Item]) -> float:
    prepared = store.prepare(items)
    began = time.perf_counter()
    for each in prepared:
        await store.create(each)
    return len(items) / (time.perf_counter() - began)


async def rate_of_batches(store: Store, items: Sequence[Item]) -> float:
    batches = [store.prepare(some) for some in split(items, BATCH)]
    began = time.perf_counter()
    for batch in batches:
        await store.create_batch(batch)
    return len(items) / (time.perf_counter() - began)


def summarize(rates: Rates, size: int) -> list[Finding]:
    found: list[Finding] = []
    ours = rates[OURS]
    for name, theirs in rates.items():
        values = {f"{mode}, /s": median(theirs[at]) for at, mode in enumerate(MODES)}
        ratios = [paired_ratio(ours[at], theirs[at]) for at in range(2)]
        if name != OURS:
            values |= {f"clew is ×, {mode}": ratios[at] for at, mode in enumerate(MODES)}
            found += [
                Promise(name=f"creates, {mode}, of {name}", records=size, value=ratios[at], target=LEAST[name][at])
                for at, mode in enumerate(MODES)
            ]
        found.append(Row(measure=MEASURE, records=size, contender=name, values=values))
    return found
