"""Search among the records with a tag that a hundredth, a tenth or half of them carry: completeness, recall and time,
with a cached filter and right after a write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from speed.contenders import OURS, SearchStore, open_stores
from speed.corpus import SHARES, Floats, Query, item_number
from speed.ours import Ours
from speed.report import Finding, Promise, Row
from speed.stage import Stage
from speed.timing import Rounds, rotate, tell, timed

MEASURE = "filtered search, k = 10"
CONTENDERS = (OURS, "lancedb", "chroma")
SEARCHES, WRITES, K = 60, 10, 10
LEAST_RECALL, MOST_MS = 0.95, 10.0

Ask = Callable[[Query, str, int], Awaitable[list[str]]]


class Exact:
    """The exact answers: numpy compares all vectors with the tag."""

    def __init__(self, stage: Stage) -> None:
        self._vectors: Floats = np.stack([item.vector for item in stage.items])
        self._passing = {
            tag_of(share): np.array([at for at, item in enumerate(stage.items) if tag_of(share) in item.tags], np.int64)
            for share in SHARES
        }

    async def find_nearest(self, query: Query, tag: str | None, k: int) -> list[int]:
        """Of all records where no tag is given."""
        assert query.vector is not None
        passing = self._passing[tag] if tag is not None else np.arange(len(self._vectors))
        cosine = self._vectors[passing] @ query.vector
        best = np.argpartition(-cosine, k - 1)[:k] if k < len(cosine) else np.arange(len(cosine))
        return [int(at) for at in passing[best]]

    def recall(self, found: Sequence[str], nearest: Sequence[int]) -> float:
        return len({item_number(id) for id in found} & set(nearest)) / len(nearest) if nearest else 1.0

    def passing(self, tag: str) -> int:
        return len(self._passing[tag])


class Kept:
    def __init__(self) -> None:
        self.times = Rounds()
        self.recalls: list[float] = []
        self.shares: list[float] = []

    def add(self, seconds: float, hits: Sequence[str], wanted: int) -> None:
        self.times.add(seconds)
        self.shares.append(len(hits) / wanted if wanted else 1.0)

    def values(self) -> dict[str, float]:
        recall = {"recall@10": sum(self.recalls) / len(self.recalls)} if self.recalls else {}
        return {**self.times.spread(), "share of k": sum(self.shares) / len(self.shares), **recall}


def tag_of(share: int) -> str:
    return f"pass:{share}"


async def measure(stage: Stage) -> list[Finding]:
    stores, missing = await open_stores(stage, CONTENDERS, MEASURE)
    exact, found = Exact(stage), []
    for share in SHARES:
        tell(f"{MEASURE}: {share} % of the records pass")
        found += await measure_share(stage, stores, exact, share)
    return [*found, *missing]


async def measure_share(stage: Stage, stores: Sequence[SearchStore], exact: Exact, share: int) -> list[Finding]:
    ours = next(store for store in stores if isinstance(store, Ours))
    arms: dict[str, Ask] = {f"{store.name}, vectors": store.find_nearest for store in stores}
    hybrid, after = f"{OURS}, hybrid", f"{OURS}, hybrid, first after a write"
    arms[hybrid] = ours.search_among
    kept = {name: Kept() for name in (*arms, after, "numpy, exact")}
    for turn in range(stage.settings.rounds):
        for each in kept.values():
            each.times.begin()
        await ask_all(stage, exact, arms, kept, share, turn)
        await ask_after_writes(stage, ours, kept[after], share, min(K, exact.passing(tag_of(share))))
    rows: list[Finding] = [
        Row(measure=MEASURE, records=stage.size, contender=f"{share} %: {name}", values=each.values())
        for name, each in kept.items()
    ]
    vectors = kept[f"{OURS}, vectors"].values()
    slowest = max(vectors["p95 ms"], kept[hybrid].values()["p95 ms"])
    filled = min(vectors["share of k"], kept[hybrid].values()["share of k"])
    promises = (
        ("recall@10", vectors["recall@10"], LEAST_RECALL, True),
        ("share of k", filled, 1.0, True),
        ("p95 ms", slowest, MOST_MS, False),
    )
    return [
        *rows,
        *(
            Promise(name=f"filter of {share} %, {name}", records=stage.size, value=value, target=target, at_least=least)
            for name, value, target, least in promises
        ),
    ]


async def ask_all(
    stage: Stage, exact: Exact, arms: dict[str, Ask], kept: dict[str, Kept], share: int, turn: int
) -> None:
    tag = tag_of(share)
    asked = stage.corpus.ask(stage.items, stage.settings.samples(SEARCHES))
    vectors = stage.corpus.embed([query.text for query in asked])
    for number, (query, vector) in enumerate(zip(asked, vectors, strict=True)):
        question = query._replace(vector=vector)
        seconds, nearest = await timed(exact.find_nearest(question, tag, K))
        kept["numpy, exact"].add(seconds, [str(at) for at in nearest], len(nearest))
        for name in rotate(list(arms), turn + number):
            seconds, hits = await timed(arms[name](question, tag, K))
            kept[name].add(seconds, hits, len(nearest))
            if name.endswith("vectors"):
                kept[name].recalls.append(exact.recall(hits, nearest))


async def ask_after_writes(stage: Stage, ours: Ours, kept: Kept, share: int, wanted: int) -> None:
    """A write makes every cached filter stale, so these searches evaluate it again."""
    count = stage.settings.samples(WRITES, least=2)
    for query, item in zip(stage.corpus.ask(stage.items, count), stage.corpus.make(count), strict=True):
        untagged = item._replace(tags=item.tags[:-1])
        await ours.create(ours.prepare([untagged])[0])
        seconds, hits = await timed(ours.search_among(query, tag_of(share), K))
        kept.add(seconds, hits, wanted)
