"""Ingest with embedding, next to embedding alone: the same texts and vectors, in the batches that suit each embedder
best. Embedding alone is measured with our embedder, and with the code of the package that its weights come from."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from statistics import median

from clew.llm.wordllama import WordLlamaEmbedder, find_weights
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.prepare import embedding_text, read_as
from clew.trail.store import Trail
from speed.contenders import OURS
from speed.corpus import read_real_texts
from speed.report import Finding, Promise, Row
from speed.stage import ME, Stage, open_file
from speed.timing import paired_ratio, tell

MEASURE = "ingest with embedding"
BATCH = 1_000
BATCHINGS = (32, 256, 1_000, 10_000)
WARM_UP = 500
LEAST = 0.8

Embed = Callable[[Sequence[str], int], object]
"""Embeds texts in batches of a size."""


async def measure(stage: Stage) -> list[Finding]:
    """One store for each kind of text; each round brings texts that no contender has seen."""
    made = [(item.title, {"description": item.text}) for item in stage.corpus.make(stage.size)]
    found = await measure_texts(stage, "made texts", made)
    real = read_real_texts(stage.size)
    if not real:
        return [*found, Row(measure=MEASURE, records=0, contender="real texts", note="no data in ../shared/data")]
    return [*found, *await measure_texts(stage, "real texts", real)]


async def measure_texts(stage: Stage, kind: str, texts: Sequence[tuple[str, dict[str, str]]]) -> list[Finding]:
    drafts = [Draft(title=title, context=context) for title, context in texts]
    words = [embedding_text(read_as(title, context, None, None)) for title, context in texts]
    warm, rounds = min(WARM_UP, len(drafts) // 5), stage.settings.rounds
    alone = {"our embedder alone": open_ours(), "wordllama's code alone": open_package()}
    batching = {name: find_batching(embed, words[:warm]) for name, embed in alone.items()}
    rates: dict[str, list[float]] = {OURS: [], **{name: [] for name in alone}}
    trail = await open_file(stage.folder / f"ingest-{kind.partition(' ')[0]}", WordLlamaEmbedder())
    try:
        await rate_of_ingest(trail, drafts[:warm])
        step = max(1, (len(drafts) - warm) // rounds)
        for turn, at in enumerate(range(warm, warm + step * rounds, step)):
            tell(f"{MEASURE}, {kind}: round {turn + 1} of {rounds}")
            rates[OURS].append(await rate_of_ingest(trail, drafts[at : at + step]))
            for name, embed in alone.items():
                rates[name].append(rate_of_embedding(embed, words[at : at + step], batching[name]))
    finally:
        await trail.close()
    return summarize(rates, batching, kind, len(drafts))


def summarize(rates: dict[str, list[float]], batching: dict[str, int], kind: str, size: int) -> list[Finding]:
    first = {"texts/s": median(rates[OURS])}
    found: list[Finding] = [Row(measure=MEASURE, records=size, contender=f"{OURS}, {kind}", values=first)]
    for name, batch in batching.items():
        ratio = paired_ratio(rates[OURS], rates[name])
        values = {"texts/s": median(rates[name]), "clew is ×": ratio, "batch": batch}
        found += [
            Row(measure=MEASURE, records=size, contender=f"{name}, {kind}", values=values),
            Promise(name=f"ingest of {name}, {kind}", records=size, value=ratio, target=LEAST),
        ]
    return found


async def rate_of_ingest(trail: Trail, drafts: Sequence[Draft]) -> float:
    began = time.perf_counter()
    for at in range(0, len(drafts), BATCH):
        await trail.records.create_many(drafts[at : at + BATCH], by=ME)
    return len(drafts) / (time.perf_counter() - began)


def rate_of_embedding(embed: Embed, texts: Sequence[str], batch: int) -> float:
    began = time.perf_counter()
    embed(texts, batch)
    return len(texts) / (time.perf_counter() - began)


def find_batching(embed: Embed, texts: Sequence[str]) -> int:
    """The batch size at which an embedder is fastest, after it has seen the texts once."""
    embed(texts, BATCHINGS[0])
    return max(BATCHINGS, key=lambda batch: median(rate_of_embedding(embed, texts, batch) for _ in range(3)))


def open_ours() -> Embed:
    embedder = WordLlamaEmbedder()

    def embed(texts: Sequence[str], batch: int) -> object:
        return [embedder.embed(texts[at : at + batch]) for at in range(0, len(texts), batch)]

    return embed


@cache
def open_package() -> Embed:
    """The package pads each batch to its longest text, so the texts are sorted by length."""
    from wordllama import WordLlama  # takes seconds to import, and only this measure needs it

    model = WordLlama.load(config="l2_supercat", dim=256, cache_dir=find_weights(), disable_download=True)

    def embed(texts: Sequence[str], batch: int) -> object:
        return model.embed(sorted(texts, key=len), norm=True, batch_size=batch)

    return embed
