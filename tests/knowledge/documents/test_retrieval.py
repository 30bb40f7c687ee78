"""Retrieval in steps (SYL-100)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import pytest

from clew.access import Principal
from clew.knowledge.documents.research import RetrievalConfig, Retrieved, Search, judge, retrieve
from clew.knowledge.nodes.kinds import NodeType
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import NodeFilter, ScoredNode, build_node
from clew.llm import open_embedder
from clew.trail import open_trail
from tests.conftest import DATA
from tests.knowledge.nodes import HISTORY, node

FIXED_K = 20


class Library:
    """Nodes in order, and the questions of the callers."""

    def __init__(self, contents: Sequence[str]) -> None:
        self.nodes = [node(HISTORY, f"n{at}", content) for at, content in enumerate(contents)]
        self.asked: list[str] = []

    async def search(self, query: str, limit: int, exclude: Collection[str]) -> list[ScoredNode]:
        self.asked.append(query)
        return [ScoredNode(node=each, similarity=0.5) for each in self.nodes if each.id not in exclude][:limit]


@pytest.mark.req("SYL-100")
async def test_it_ends_when_what_is_there_suffices() -> None:
    library = Library(["x"] * 8 + ["lantern"] + ["x"] * 40)
    config = RetrievalConfig(initial_k=4, max_depth=9, confidence_threshold=0.8)
    found = await retrieve(library.search, "lantern", config)
    assert (found.stopped, found.depth, found.confidence) == ("sufficient", 3, 1.0)
    assert [each.node.name for each in found.found] == [f"n{at}" for at in range(12)]


@pytest.mark.req("SYL-100")
async def test_it_ends_at_its_depth_at_its_tokens_and_when_there_is_no_more() -> None:
    deep = await retrieve(Library(["x"] * 50).search, "lantern", RetrievalConfig(initial_k=2, max_depth=3))
    assert (deep.stopped, deep.depth, len(deep.found)) == ("depth", 3, 6)
    few = await retrieve(Library(["x"] * 5).search, "lantern", RetrievalConfig(initial_k=2, max_depth=9))
    assert (few.stopped, len(few.found)) == ("exhausted", 5)
    config = RetrievalConfig(initial_k=2, max_depth=9, max_retrieval_tokens=100)
    long = await retrieve(Library(["word " * 30] * 50).search, "lantern", config)
    assert long.stopped == "tokens"
    assert 0 < long.tokens <= 100
    nothing = await retrieve(Library([]).search, "lantern")
    assert (nothing.stopped, nothing.found, nothing.tokens) == ("exhausted", (), 0)


@pytest.mark.req("SYL-100")
async def test_passages_that_are_too_long_give_way_to_shorter_ones() -> None:
    library = Library(["word " * 900, "short", "word " * 900, "brief"])
    config = RetrievalConfig(initial_k=4, max_depth=2, max_retrieval_tokens=50)
    found = await retrieve(library.search, "lantern", config)
    assert [each.node.content for each in found.found] == ["short", "brief"]


@pytest.mark.req("SYL-100")
async def test_each_step_asks_for_what_the_last_one_lacked() -> None:
    library = Library(["retries are bounded", "the lantern hangs", "a zebra runs"])
    config = RetrievalConfig(initial_k=1, max_depth=3, confidence_threshold=0.9)
    asked = "which zebra retries the lantern"
    found = await retrieve(library.search, asked, config)
    assert library.asked == [asked, f"{asked} zebra lantern", f"{asked} zebra"]
    assert (found.stopped, found.confidence) == ("depth", pytest.approx(1 / 3))


@pytest.mark.req("SYL-100")
async def test_confidence_is_the_share_of_words_in_the_best_source() -> None:
    held = [ScoredNode(node=node(HISTORY, "Retry", text), similarity=1) for text in ("bounded", "the lanterns hang")]
    assert judge("retries of the lantern", held)[0] == 1.0
    assert judge("bounded lantern", held) == (0.5, "bounded lantern")
    assert judge("???", held)[0] == 0.0
    assert judge("lantern", [])[0] == 0.0


def read(name: str) -> list[dict]:
    return [msgspec.json.decode(line) for line in (DATA / name).read_text().splitlines()]


def share_found(relevant: Sequence[str], found: Sequence[ScoredNode]) -> float:
    ids = {each.node.metadata["id"] for each in found}
    return sum(id in ids for id in relevant) / len(relevant)


@pytest.mark.req("SYL-100")
@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data (memory_dev) is not beside the project")
async def test_on_real_questions_it_retrieves_fewer_than_twenty_and_finds_nearly_as_much(
    tmp_path: Path, me: Principal
) -> None:
    trail = await open_trail(f"sqlite://{tmp_path}/memory.db", embedder=open_embedder("wordllama"))
    drafts = [
        build_node(
            row["name"],
            HISTORY,
            NodeType.HISTORY_ENTRY,
            row["description"],
            {"session_id": row["set"], "metadata": {"id": row["id"]}},
        )
        for row in read("memory_dev_corpus.jsonl")
    ]
    await trail.records.create_many(drafts, by=me)
    nodes = NodeGraph(trail, me)

    def within(session: str) -> Search:
        async def search(query: str, limit: int, exclude: Collection[str]) -> list[ScoredNode]:
            filter = NodeFilter(domain=HISTORY, session_id=session)
            return await nodes.search(query, filter, limit=limit, exclude=exclude)

        return search

    questions = [row for row in read("memory_dev.jsonl")[::5] if row["relevant"]]
    stepwise: list[tuple[Retrieved, float]] = []
    fixed: list[float] = []
    known = 0
    for row in questions:
        search = within(row["set"])
        found = await retrieve(search, row["query"])
        stepwise.append((found, share_found(row["relevant"], found.found)))
        fixed.append(share_found(row["relevant"], await search(row["query"], FIXED_K, ())))
        known += await nodes.knows(row["query"], HISTORY)
    await trail.close()

    retrieved = sum(len(found.found) for found, _ in stepwise) / len(questions)
    recall, at_twenty = sum(share for _, share in stepwise) / len(questions), sum(fixed) / len(questions)
    print(f"{len(questions)} questions: {retrieved:.1f} retrieved, recall {recall:.3f}; of {FIXED_K}: {at_twenty:.3f}")
    assert retrieved < FIXED_K
    assert recall >= 0.9 * at_twenty
    assert known >= 0.99 * len(questions), "the filter keeps hardly any question from being asked"
