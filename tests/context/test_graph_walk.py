from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.graph_cache import GraphCache
from clew.context.graph_walk import FANOUT, Expand, GraphHop, Links, spread, walk
from clew.trail.model.edge import Edge
from tests.context.conftest import Place, ids_of

GRAPH = {"a": {"b": 1.0, "c": 0.5}, "b": {"d": 1.0}, "c": {"b": 0.25, "e": 2.0}, "d": {"f": 0.1}}


def links_of(graph: dict[str, dict[str, float]], kind: str = "causal") -> Links:
    return {id: [GraphHop(cost, to, kind) for to, cost in near.items()] for id, near in graph.items()}


def expander(links: Links, asked: list[list[str]] | None = None) -> Expand:
    async def expand(ids: Sequence[str]) -> Links:
        if asked is not None:
            asked.append(list(ids))
        return {id: links.get(id, ()) for id in ids}

    return expand


@pytest.mark.req("RCR-35")
async def test_the_cheapest_path_from_any_seed_wins() -> None:
    found = await walk({"a": 0.0}, expander(links_of(GRAPH)), hops=2, limit=10)
    assert [(each.id, each.cost, each.path) for each in found] == [
        ("c", 0.5, ("a", "c")),
        ("b", 0.75, ("a", "c", "b")),
        ("d", 2.0, ("a", "b", "d")),
        ("e", 2.5, ("a", "c", "e")),
    ]


@pytest.mark.req("RCR-33")
async def test_records_beyond_the_hops_are_absent() -> None:
    found = await walk({"a": 0.0}, expander(links_of({"a": {"b": 1}, "b": {"c": 1}, "c": {"d": 1}})), hops=2, limit=10)
    assert [each.id for each in found] == ["b", "c"]
    assert max(each.hops for each in found) == 2


@pytest.mark.req("RCR-35")
async def test_the_agent_sets_the_costs_of_edge_kinds() -> None:
    links = {"a": [GraphHop(0.5, "cause", "causal"), GraphHop(1.0, "twin", "semantic")]}
    usual = await walk({"a": 0.0}, expander(links), hops=2, limit=10)
    other = await walk({"a": 0.0}, expander(links), hops=2, limit=10, costs={"causal": 4.0})
    assert [each.id for each in usual] == ["cause", "twin"]
    assert [each.id for each in other] == ["twin", "cause"]


async def test_each_level_is_one_load_and_the_edges_of_a_hub_are_limited() -> None:
    hub = {"a": {f"n{number:04}": 1.0 + number for number in range(3_000)}}
    asked: list[list[str]] = []
    found = await walk({"a": 0.0}, expander(links_of(hub), asked), hops=2, limit=1_000)
    assert len(asked) == 2
    assert len(found) == FANOUT


async def test_the_cost_of_a_start_counts_as_distance() -> None:
    links = links_of({"near": {"x": 1.0}, "far": {"x": 0.5, "y": 0.1}})
    found = await walk({"near": 0.0, "far": 2.0}, expander(links), hops=1, limit=10)
    assert [(each.id, each.path[0]) for each in found] == [("x", "near"), ("y", "far")]


@given(
    st.dictionaries(
        st.sampled_from("abcdefg"),
        st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 9).map(float), max_size=6),
        max_size=7,
    ),
    st.integers(0, 4),
)
def test_no_shorter_path_within_the_hops_exists(graph: dict[str, dict[str, float]], hops: int) -> None:
    best: dict[str, float] = {"a": 0.0}
    level = dict(best)
    for _ in range(hops):
        after: dict[str, float] = {}
        for id, cost in level.items():
            for to, more in graph.get(id, {}).items():
                after[to] = min(after.get(to, 1e9), cost + more)
        level = after
        for id, cost in level.items():
            best[id] = min(best.get(id, 1e9), cost)
    found = spread({"a": 0.0}, links_of(graph), hops=hops)
    assert {each.id: each.cost for each in found} == best
    assert [each.cost for each in found] == sorted(each.cost for each in found)


@pytest.mark.req("RCR-38")
async def test_the_second_message_of_a_session_reuses_its_graph_and_sees_new_edges(place: Place) -> None:
    one, other, third = [await place.write(text, link=False) for text in ("one", "two", "three")]
    await place.link(one, other)
    cache = GraphCache(place.clock)
    first = await walk({one.id: 0.0}, cache.expander(place.trail, "s", by=place.me), hops=2, limit=9)
    assert (cache.loaded, cache.reused) == (2, 0)
    place.clock.advance(seconds=1)
    await place.link(other, third)
    second = await walk({one.id: 0.0}, cache.expander(place.trail, "s", by=place.me), hops=2, limit=9)
    assert (cache.loaded, cache.reused) == (2, 2)
    assert ids_of(first) == [other.id]
    assert ids_of(second) == [other.id, third.id]


@pytest.mark.req("RCR-38")
async def test_the_least_recently_used_graph_is_evicted(place: Place) -> None:
    notes = [await place.write(str(number), link=False) for number in range(20)]
    edges = [Edge(source=notes[0].id, target=each.id, type="references") for each in notes[1:]]
    await place.trail.edges.add(edges, by=place.me)
    cache = GraphCache(place.clock, limit=20_000)
    for session in ("a", "b", "a", "c"):
        await walk({notes[0].id: 0.0}, cache.expander(place.trail, session, by=place.me), hops=1, limit=50)
    assert len(cache) == 2
    assert 0 < cache.size <= 20_000
    loaded = cache.loaded
    for session in ("a", "c"):
        await walk({notes[0].id: 0.0}, cache.expander(place.trail, session, by=place.me), hops=1, limit=50)
    assert cache.loaded == loaded
    await walk({notes[0].id: 0.0}, cache.expander(place.trail, "b", by=place.me), hops=1, limit=50)
    assert cache.loaded == loaded + 1


@pytest.mark.req("RCR-38")
@pytest.mark.parametrize("costs", [{}, {"causal": 0.1}])
async def test_the_cache_holds_only_the_edges_of_a_hub_that_a_walk_may_follow(
    place: Place, costs: dict[str, float]
) -> None:
    hub, *notes = [await place.write(str(number), link=False) for number in range(1 + 4 * FANOUT)]
    weights = {each.id: at / (4 * FANOUT) for at, each in enumerate(notes)}
    types = {each.id: ("references", "causal")[at % 2] for at, each in enumerate(notes)}
    cheapest = sorted(weights, key=lambda id: weights[id] * costs.get(types[id], 1.0))[:FANOUT]
    cache, sizes = GraphCache(place.clock), []
    for half in (notes[2 * FANOUT :], notes[: 2 * FANOUT]):
        edges = [Edge(source=hub.id, target=each.id, type=types[each.id], weight=weights[each.id]) for each in half]
        await place.trail.edges.add(edges, by=place.me)
        expand = cache.expander(place.trail, "s", by=place.me)
        found = await walk({hub.id: 0.0}, expand, hops=1, limit=2 * FANOUT, costs=costs)
        sizes.append(cache.size)
    assert sizes[1] == sizes[0]
    assert ids_of(found) == cheapest


@pytest.mark.req("RCR-38")
async def test_old_graphs_leave_the_cache(place: Place) -> None:
    note = await place.write("one", link=False)
    cache = GraphCache(place.clock)
    for session in ("a", "b"):
        await walk({note.id: 0.0}, cache.expander(place.trail, session, by=place.me), hops=1, limit=9)
    place.clock.advance(minutes=11)
    await walk({note.id: 0.0}, cache.expander(place.trail, "c", by=place.me), hops=1, limit=9)
    assert len(cache) == 1


async def test_a_removed_edge_expires_from_the_cache(place: Place) -> None:
    one, other = [await place.write(text, link=False) for text in ("one", "two")]
    await place.link(one, other)
    cache = GraphCache(place.clock)
    await walk({one.id: 0.0}, cache.expander(place.trail, "s", by=place.me), hops=1, limit=9)
    await place.trail.edges.remove(one.id, other.id, "references", by=place.me)
    place.clock.advance(minutes=11)
    assert await walk({one.id: 0.0}, cache.expander(place.trail, "s", by=place.me), hops=1, limit=9) == []
