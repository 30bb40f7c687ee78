"""Walks over the edges of a trail, cheapest paths, and edges around several breadcrumbs."""

from __future__ import annotations

import heapq
import random
from itertools import pairwise

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.trail.model.edge import Edge
from clew.trail.store import Trail
from tests.conformance.lettered_edges import link, nodes, walked
from tests.conformance.records import lasting, make, make_all

pytestmark = pytest.mark.req("O6")


async def test_a_walk_goes_breadth_first_once_to_each_without_the_starts(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "abcdefg")
    await link(trail, me, ids, "ab", "ac", "bd", "cd", "de", "ea", "ef", "fg")
    assert await walked(trail, me, ids, "a") == "bcde"
    assert await walked(trail, me, ids, "a", depth=1) == "bc"
    assert await walked(trail, me, ids, "a", depth=32) == "bcdefg"
    assert await walked(trail, me, ids, "a", depth=32, limit=3) == "bcd"
    assert await walked(trail, me, ids, "d", direction="incoming", depth=1) == "bc"
    assert await walked(trail, me, ids, "e", direction="both", depth=1) == "adf"
    assert await walked(trail, me, ids, "ae", depth=1) == "bcf"
    assert await walked(trail, me, ids, "aa", depth=1) == "bc"
    assert await walked(trail, me, ids, "g") == ""


async def test_a_walk_tells_hops_cost_and_way(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "abcd")
    await link(trail, me, ids, "ab:5", "ac:1", "bd:1", "cd:2")
    found = {each.id: each for each in await trail.edges.walk([ids["a"]], by=me)}
    reached = found[ids["d"]]
    assert (reached.depth, reached.cost) == (2, 3.0)
    assert reached.path == (ids["a"], ids["c"], ids["d"])
    assert (found[ids["b"]].depth, found[ids["b"]].cost) == (1, 5.0)


async def test_a_walk_follows_only_the_types_it_was_given(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "abcd")
    await link(trail, me, ids, "ab", "bc")
    await link(trail, me, ids, "bd", type="imports")
    assert await walked(trail, me, ids, "a", types=["calls"]) == "bc"
    assert await walked(trail, me, ids, "a", types=["imports"]) == ""
    assert await walked(trail, me, ids, "a", types=["calls", "imports"]) == "bcd"
    assert await walked(trail, me, ids, "c", types=["called_by"]) == "ba"
    assert await walked(trail, me, ids, "a", types=["called_by"], direction="incoming") == "bc"


async def test_a_walk_along_a_type_and_its_reverse_goes_both_ways(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "abc")
    await link(trail, me, ids, "ab", "bc")
    assert await walked(trail, me, ids, "b", types=["called_by", "calls"], depth=1) == "ac"
    assert await walked(trail, me, ids, "b", types=["calls", "called_by"], depth=1) == "ac"


async def test_a_walk_does_not_pass_through_what_has_expired(trail: Trail, me: Principal, clock: ManualClock) -> None:
    ids = await nodes(trail, me, "ab")
    bridge = await make(trail, me, ttl=lasting(clock, seconds=1))
    ids["x"] = bridge.id
    await link(trail, me, ids, "ax", "xb")
    assert await walked(trail, me, ids, "a") == "xb"
    clock.advance(seconds=1)
    assert await walked(trail, me, ids, "a") == ""
    assert len(await trail.edges.paths([ids["a"]], by=me)) == 1


async def test_the_cheapest_ways_from_any_start_come_cheapest_first(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "abcdef")
    letters = {id: letter for letter, id in ids.items()}
    await link(trail, me, ids, "ab:1", "bc:1", "ac:3", "cd:1", "ed:0.5", "df:9")
    found = await trail.edges.paths([ids["a"], ids["e"]], by=me, direction="outgoing")
    assert [(letters[each.id], each.cost) for each in found] == [
        ("a", 0.0), ("e", 0.0), ("d", 0.5), ("b", 1.0), ("c", 2.0),
    ]  # fmt: skip
    assert ["".join(letters[id] for id in each.path) for each in found] == ["a", "e", "ed", "ab", "abc"]
    assert [each.depth for each in found] == [0, 0, 1, 1, 2]
    near = await trail.edges.paths([ids["a"]], by=me, direction="outgoing", max_cost=2.0, limit=2)
    assert [letters[each.id] for each in near] == ["a", "b"]
    assert [letters[each.id] for each in await trail.edges.paths([ids["f"]], by=me, max_cost=0.0)] == ["f"]
    back = await trail.edges.paths([ids["d"]], by=me, direction="incoming")
    assert [letters[each.id] for each in back] == ["d", "e", "c", "b", "a"]


async def test_a_bound_includes_what_costs_exactly_as_much(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "abc")
    await link(trail, me, ids, "ab:1.5", "bc:1.5")
    assert len(await trail.edges.paths([ids["a"]], by=me, max_cost=3.0)) == 3
    assert len(await trail.edges.paths([ids["a"]], by=me, max_cost=2.999)) == 2


def dijkstra(edges: dict[tuple[int, int], float], starts: list[int], bound: float) -> dict[int, float]:
    """The reference: costs over undirected edges."""
    costs: dict[int, float] = {}
    queue = [(0.0, start) for start in starts]
    while queue:
        cost, node = heapq.heappop(queue)
        if node in costs or cost > bound:
            continue
        costs[node] = cost
        for (one, two), weight in edges.items():
            if node in (one, two):
                heapq.heappush(queue, (cost + weight, two if node == one else one))
    return costs


async def test_paths_agree_with_a_plain_dijkstra_on_random_graphs(trail: Trail, me: Principal) -> None:
    for seed in range(5):
        dice = random.Random(seed)
        ids = await make_all(trail, me, *(f"{seed}-{number}" for number in range(25)))
        pairs = {tuple(dice.sample(range(25), 2)): dice.randrange(0, 16) / 4 for _ in range(45)}
        edges = [Edge(source=ids[a], target=ids[b], type="calls", weight=cost) for (a, b), cost in pairs.items()]
        await trail.edges.add(edges, by=me)
        starts = dice.sample(range(25), 3)
        found = await trail.edges.paths([ids[start] for start in starts], by=me, max_cost=5.0)
        assert {each.id: each.cost for each in found} == {
            ids[node]: cost for node, cost in dijkstra(pairs, starts, 5.0).items()
        }
        assert [each.cost for each in found] == sorted(each.cost for each in found)
        for each in found:
            at = [(ids.index(one), ids.index(two)) for one, two in pairwise(each.path)]
            assert sum(min(pairs.get(step, 99), pairs.get(step[::-1], 99)) for step in at) == each.cost


async def test_edges_around_several_breadcrumbs_skip_deleted_ends_and_keep_the_cheapest(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    ids = await nodes(trail, me, "abcd")
    await link(trail, me, ids, "ab:2", "bc:1", "cd:1")
    await trail.records.delete(ids["d"], by=me)
    found = await trail.edges.around([ids["a"], ids["b"], ids["d"], "none"], by=me)
    assert sorted(found) == [
        (ids["a"], ids["b"], "calls", 2.0),
        (ids["b"], ids["a"], "calls", 2.0),
        (ids["b"], ids["c"], "calls", 1.0),
    ]
    assert await trail.edges.around(list(ids.values()), by=me, limit=1) == [(ids["b"], ids["c"], "calls", 1.0)]
    assert await trail.edges.around([], by=me) == []
    assert await trail.edges.around(list(ids.values()), by=stranger) == []


async def test_edges_around_since_a_moment_were_written_then_or_later(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    ids = await nodes(trail, me, "abc")
    await link(trail, me, ids, "ab")
    clock.advance(seconds=1)
    (later,) = await link(trail, me, ids, "bc")
    assert await trail.edges.around([ids["b"]], by=me, since=later.created_at) == [(ids["b"], ids["c"], "calls", 1.0)]
    clock.advance(seconds=1)
    assert await trail.edges.around([ids["b"]], by=me, since=clock.now()) == []
