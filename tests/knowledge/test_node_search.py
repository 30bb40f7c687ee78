"""Search with entries that are adjacent in time."""

from __future__ import annotations

import json
import math

import pytest

from clew.access import Principal
from clew.errors import CycleRefused
from clew.knowledge.nodes.kinds import NodeType
from clew.knowledge.nodes.node_graph import NodeGraph, link_in_order
from clew.knowledge.nodes.node_graph import boost_by_neighbours as lift
from clew.knowledge.nodes.node_store import NodeFilter, build_node
from clew.trail.model.edge import EdgeType
from clew.trail.store import Trail
from tests.conftest import DATA
from tests.knowledge.nodes import HISTORY


async def said(trail: Trail, me: Principal, texts: list[str]) -> list[str]:
    graph = NodeGraph(trail, me)
    return [(await graph.add_node(f"n{at}", HISTORY, NodeType.HISTORY_ENTRY, text)).id for at, text in enumerate(texts)]


async def test_neighbours_add_to_a_score_and_those_beyond_them_less(trail: Trail, me: Principal) -> None:
    ids = await said(trail, me, ["a"] * 5)
    await link_in_order(trail, ids, by=me)
    await link_in_order(trail, ids, by=me)
    lifted = await lift(trail, {ids[0]: 1.0, ids[2]: 1.0}, by=me)
    assert lifted == pytest.approx({ids[0]: 1.1, ids[2]: 1.1})
    lifted = await lift(trail, {ids[1]: 1.0, ids[2]: 2.0, ids[3]: 4.0}, by=me)
    assert lifted == pytest.approx({ids[1]: 1 + 0.3 + 0.4, ids[2]: 2 + 0.15 * 5, ids[3]: 4 + 0.3 + 0.1})


async def test_without_an_order_and_by_other_edges_nothing_is_added(trail: Trail, me: Principal) -> None:
    ids = await said(trail, me, ["a"] * 2)
    await NodeGraph(trail, me).add_edge(ids[0], ids[1], EdgeType.SIMILAR_TO)
    assert await lift(trail, dict.fromkeys(ids, 1.0), by=me) == dict.fromkeys(ids, 1.0)
    assert await lift(trail, {}, by=me) == {}
    await link_in_order(trail, [], by=me)
    await link_in_order(trail, ids, by=me)
    with pytest.raises(CycleRefused):
        await link_in_order(trail, list(reversed(ids)), by=me)


@pytest.mark.req("O2")
async def test_an_entry_with_better_neighbours_comes_first_among_equal_ones(trail: Trail, me) -> None:
    alone = await said(trail, me, ["It took two weeks.", "The weather was fine."])
    beside = await said(trail, me, ["How long was the lantern migration?", "It took two weeks."])
    await link_in_order(trail, alone, by=me)
    await link_in_order(trail, beside, by=me)
    found = await NodeGraph(trail, me).search("two weeks of lantern migration", NodeFilter(domain=HISTORY))
    order = [each.node.id for each in found]
    assert order.index(beside[1]) < order.index(alone[0])


@pytest.mark.req("O2")
@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data (memory_dev) is not beside the project")
async def test_on_real_questions_history_is_found_as_well_as_promised(trail: Trail, me: Principal) -> None:
    rows = [json.loads(line) for line in (DATA / "memory_dev_corpus.jsonl").read_text().splitlines()]
    drafts = [
        build_node(row["name"], HISTORY, NodeType.HISTORY_ENTRY, row["description"], {"session_id": row["set"]})
        for row in rows
    ]
    made = await trail.records.create_many(drafts, by=me)
    talks: dict[str, list[str]] = {}
    for row, found in zip(rows, made, strict=True):
        talks.setdefault(row["id"].rsplit(":", 1)[0], []).append(found.id)
    for talk in talks.values():
        await link_in_order(trail, talk, by=me)
    names = {found.id: row["id"] for row, found in zip(rows, made, strict=True)}
    nodes = NodeGraph(trail, me)
    gains: dict[str, list[float]] = {}
    questions = [json.loads(line) for line in (DATA / "memory_dev.jsonl").read_text().splitlines()]
    for row in (row for row in questions[::2] if row["relevant"]):
        hits = await nodes.search(row["query"], NodeFilter(domain=HISTORY, session_id=row["set"]))
        gained = [each in row["relevant"] for each in (names[hit.node.id] for hit in hits)]
        gains.setdefault(row["set"], []).append(ndcg(gained, len(row["relevant"])))
    macro = sum(sum(each) / len(each) for each in gains.values()) / len(gains)
    print(f"memory_dev, every other question: nDCG@10 {macro:.3f}")
    assert macro >= 0.56


def ndcg(gained: list[bool], relevant: int) -> float:
    ideal = sum(1 / math.log2(at + 2) for at in range(min(10, relevant)))
    return sum(1 / math.log2(at + 2) for at, gain in enumerate(gained) if gain) / ideal
