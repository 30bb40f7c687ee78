"""How long a context takes to build on a large trail: sessions with messages and notes, tags that they share, tools,
and the edges between all of them."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.access import Principal
from clew.clock import SystemClock
from clew.context.builder import ContextBuilder
from clew.context.definition import definition_of
from clew.context.edges import CAUSAL, COSTS, SEMANTIC, TAG, TEMPORAL
from clew.llm.embedders import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap, read_pieces
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.edge import Edge
from clew.trail.model.flow import Flow, shipped_flow
from clew.trail.store import Trail
from speed.corpus import Corpus
from speed.timing import percentile, settle, tell

ME = Principal(owner_id="bench")
SESSION = 100
"""Records in a session."""
TOOLS = 14
BATCH = 2_000
RANDOM_EDGES = 6
"""Edges by tag and meaning at each record, besides those of its session."""


async def measure(scratch: Path, *, records: int = 100_000, builds: int = 200) -> dict[str, float]:
    """Milliseconds for a context whose session is new to the builder, and for the next one of that session."""
    trail = await open_trail(f"sqlite://{scratch}/contexts.db", embedder=open_embedder("wordllama"))
    try:
        flow = shipped_flow(read_pieces())
        corpus = Corpus()
        questions = await fill(trail, flow, corpus, records, builds)
        return await time_builds(trail, flow, questions, records)
    finally:
        await trail.close()


async def fill(trail: Trail, flow: Flow, corpus: Corpus, records: int, questions: int) -> list[str]:
    """Write the records and their edges; questions about them."""
    await bootstrap(trail, ME)
    await trail.records.create_many([_tool(flow, at) for at in range(TOOLS)], by=ME)
    ids: list[str] = []
    items = []
    for start in range(0, records, BATCH):
        items = corpus.make(min(BATCH, records - start))
        drafts = [_record(flow, at, item.text) for at, item in enumerate(items, start)]
        ids += [each.id for each in await trail.records.create_many(drafts, by=ME)]
    tell(f"{records:,} records written")
    edges = list(make_edges(ids))
    for start in range(0, len(edges), 5 * BATCH):
        await trail.edges.add(edges[start : start + 5 * BATCH], by=ME, replace=True)
    tell(f"{len(edges):,} edges written")
    return [query.text for query in corpus.ask(items, questions + 1)]


def _tool(flow: Flow, at: int) -> Draft:
    schema = {"type": "object", "properties": {"query": {"type": "string", "description": "what to look for"}}}
    context = {"name": f"tool-{at}", "description": f"Does the work number {at}", "code": "x", "input_schema": schema}
    return Draft(title=f"Tool {at}", schema_name=flow.tool, context=context)


def _record(flow: Flow, at: int, text: str) -> Draft:
    session, place = divmod(at, SESSION)
    tags = (f"session:s{session}", f"topic-{at % 997}", "shared-by-all")
    if place % 4 == 0:
        context = {"message": text, "content": text, "source": "benchmark"}
        return Draft(title="Message", schema_name=flow.message, context=context, tags=tags)
    return Draft(title=f"Note {at}", schema_name="note.v1", context={"text": text}, tags=tags)


def make_edges(ids: Sequence[str]) -> Iterator[Edge]:
    """The order of each session, causes within it, and edges by tag and meaning across all."""
    chance = random.Random(7)
    for at, id in enumerate(ids):
        if at % SESSION:
            yield Edge(source=ids[at - 1], target=id, type=TEMPORAL, weight=COSTS[TEMPORAL])
        if at % 4:
            yield Edge(source=ids[at - at % 4], target=id, type=CAUSAL, weight=COSTS[CAUSAL])
        for number in range(min(at, RANDOM_EDGES)):
            kind = (TAG, SEMANTIC)[number % 2]
            other = ids[chance.randrange(at)]
            yield Edge(source=other, target=id, type=kind, weight=COSTS[kind] + chance.random() / 2)


async def time_builds(trail: Trail, flow: Flow, questions: Sequence[str], records: int) -> dict[str, float]:
    """Build contexts for messages of many sessions, each session twice; the first is not counted."""
    always = [{"schema_name": flow.tool, "method": "all", "limit": 50}]
    agent = definition_of({"agent_id": "assistant", "context_sources": {"always": always}})
    builder = ContextBuilder(trail, None, flow, SystemClock())
    await builder.warm()
    await builder.build(await _ask(trail, flow, "s0", questions[0]), agent, by=ME)
    await settle()  # the first search writes the index of these records in the background
    first: list[float] = []
    second: list[float] = []
    tokens: list[int] = []
    sessions = max(1, records // SESSION)
    for at, question in enumerate(questions):
        for times, text in ((first, question), (second, f"And what of {question}?")):
            asked = await _ask(trail, flow, f"s{(at * 37) % sessions}", text)
            began = time.perf_counter()
            draft = await builder.build(asked, agent, by=ME)
            times.append(1000 * (time.perf_counter() - began))
            tokens.append(draft.token_estimate)
        gc.collect()
    return {
        "records": records,
        "p50 ms": round(percentile(first[1:], 0.5), 2),
        "p95 ms": round(percentile(first[1:], 0.95), 2),
        "p50 ms, session known": round(percentile(second[1:], 0.5), 2),
        "p95 ms, session known": round(percentile(second[1:], 0.95), 2),
        "tokens": percentile(tokens, 0.5),
    }


async def _ask(trail: Trail, flow: Flow, session: str, text: str) -> Breadcrumb:
    context = {"message": text, "content": text, "source": "benchmark"}
    draft = Draft(title="Message", schema_name=flow.message, context=context, tags=(f"session:{session}",))
    return await trail.records.create(draft, by=ME)
