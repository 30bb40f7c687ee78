"""The algorithms against small graphs worked out by hand, brute force on random ones, and large ones."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from clew.errors import InvalidInput
from clew.trail.graphs.walks import Hops, cheapest, closes_cycle, layers, reach, run, walk

Graph = dict[str, list[tuple[str, float]]]

DIAMOND: Graph = {"a": [("b", 1.0), ("c", 0.5)], "b": [("d", 0.5)], "c": [("d", 2.0)], "d": [("e", 1.0)]}


class Asked:
    """A map in memory that remembers the batches it was asked for."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.batches: list[list[str]] = []

    def __call__(self, ids: list[str]) -> Hops:
        self.batches.append(ids)
        return {id: self.graph[id] for id in ids if id in self.graph}


def links(graph: dict[str, list[str]]):
    return lambda ids: {id: graph.get(id, []) for id in ids}


def random_graph(seed: int, size: int = 30) -> Graph:
    chance = random.Random(seed)
    ids = [f"n{at}" for at in range(size)]
    return {
        id: [(chance.choice(ids), chance.choice([0.0, 0.25, 0.5, 1.0, 2.0])) for _ in range(chance.randint(0, 4))]
        for id in ids
    }


def floyd_warshall(graph: Graph) -> dict[tuple[str, str], float]:
    ids = sorted({*graph, *(to for edges in graph.values() for to, _ in edges)})
    costs = {(one, one): 0.0 for one in ids}
    for id, edges in graph.items():
        for to, weight in edges:
            costs[id, to] = min(weight, costs.get((id, to), float("inf")))
    for via in ids:
        for one in ids:
            for other in ids:
                way = costs.get((one, via), float("inf")) + costs.get((via, other), float("inf"))
                if way < costs.get((one, other), float("inf")):
                    costs[one, other] = way
    return costs


@pytest.mark.req("SYL-76")
def test_a_walk_goes_breadth_first_and_leaves_the_starts_out():
    reached = run(walk(["a"], depth=3, limit=10), Asked(DIAMOND))
    assert [(one.id, one.depth) for one in reached] == [("c", 1), ("b", 1), ("d", 2), ("e", 3)]


def test_a_walk_takes_the_cheapest_of_the_ways_with_fewest_hops():
    reached = {one.id: one for one in run(walk(["a"], depth=3, limit=10), Asked(DIAMOND))}
    assert reached["d"].path == ("a", "b", "d")
    assert reached["d"].cost == 1.5
    assert reached["e"].path == ("a", "b", "d", "e")


def test_a_walk_asks_for_one_batch_a_level():
    asked = Asked(DIAMOND)
    run(walk(["a"], depth=3, limit=10), asked)
    assert asked.batches == [["a"], ["c", "b"], ["d"]]


def test_depth_and_limit_bound_a_walk():
    assert [one.id for one in run(walk(["a"], depth=1, limit=10), Asked(DIAMOND))] == ["c", "b"]
    assert [one.id for one in run(walk(["a"], depth=9, limit=3), Asked(DIAMOND))] == ["c", "b", "d"]
    assert run(walk(["a"], depth=0, limit=10), Asked(DIAMOND)) == []
    assert run(walk(["a"], depth=9, limit=0), Asked(DIAMOND)) == []
    assert run(walk([], depth=9, limit=10), Asked(DIAMOND)) == []


def test_a_walk_visits_each_id_once_although_there_are_cycles_and_several_starts():
    ring: Graph = {"a": [("b", 1.0), ("a", 1.0)], "b": [("c", 1.0)], "c": [("a", 1.0), ("d", 1.0)]}
    reached = run(walk(["a", "c", "a"], depth=9, limit=10), Asked(ring))
    assert [one.id for one in reached] == ["b", "d"]


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_the_edges_does_not_change_the_answers(seed):
    graph = random_graph(seed)
    mixed = {id: random.Random(seed).sample(edges, len(edges)) for id, edges in graph.items()}
    for search in (
        lambda: walk(["n0", "n1"], depth=4, limit=12),
        lambda: cheapest(["n0", "n1"], max_cost=2.0, limit=12),
    ):
        assert run(search(), Asked(graph)) == run(search(), Asked(mixed))


def test_cheapest_includes_the_starts_and_orders_by_cost():
    reached = run(cheapest(["a"], max_cost=2.5, limit=10), Asked(DIAMOND))
    assert [(one.id, one.cost) for one in reached] == [
        ("a", 0.0),
        ("c", 0.5),
        ("b", 1.0),
        ("d", 1.5),
        ("e", 2.5),
    ]
    assert reached[-1].path == ("a", "b", "d", "e")
    assert reached[-1].depth == 3


def test_cheapest_stops_at_the_cost_limit_and_at_the_count():
    assert [one.id for one in run(cheapest(["a"], max_cost=1.0, limit=10), Asked(DIAMOND))] == ["a", "c", "b"]
    assert [one.id for one in run(cheapest(["a"], max_cost=9.0, limit=2), Asked(DIAMOND))] == ["a", "c"]
    assert run(cheapest(["a"], max_cost=9.0, limit=0), Asked(DIAMOND)) == []
    assert run(cheapest([], max_cost=9.0, limit=5), Asked(DIAMOND)) == []


def test_equal_costs_are_decided_by_hops_and_then_by_the_id_before():
    graph: Graph = {
        "s": [("x", 1.0), ("y", 1.0), ("t", 2.0)],
        "x": [("t", 1.0), ("u", 1.0)],
        "y": [("u", 1.0)],
    }
    reached = {one.id: one.path for one in run(cheapest(["s"], max_cost=9.0, limit=10), Asked(graph))}
    assert reached["t"] == ("s", "t")
    assert reached["u"] == ("s", "x", "u")


def test_each_id_belongs_to_its_nearest_start():
    line: Graph = {"a": [("b", 1.0)], "b": [("c", 1.0)], "z": [("c", 0.5)]}
    reached = {one.id: one.path for one in run(cheapest(["a", "z"], max_cost=9.0, limit=10), Asked(line))}
    assert reached == {"a": ("a",), "z": ("z",), "c": ("z", "c"), "b": ("a", "b")}


@pytest.mark.parametrize("seed", range(30))
def test_cheapest_agrees_with_brute_force(seed):
    graph = random_graph(seed)
    costs = floyd_warshall(graph)
    starts = ["n0", "n7"]
    reached = run(cheapest(starts, max_cost=2.0, limit=1000), Asked(graph))
    expected = {}
    for (start, id), cost in costs.items():
        if start in starts and cost <= 2.0:
            expected[id] = min(cost, expected.get(id, cost))
    assert {one.id: one.cost for one in reached} == expected
    for one in reached:
        weights = [min(weight for to, weight in graph[a] if to == b) for a, b in pairwise(one.path)]
        assert sum(weights) == one.cost
        assert len(weights) == one.depth


@pytest.mark.parametrize("search", [walk(["a"], depth=9, limit=50), cheapest(["a"], max_cost=99.0, limit=50)])
def test_no_id_is_asked_for_twice_and_no_batch_is_empty(search):
    asked = Asked(random_graph(3) | {"a": [("n0", 1.0), ("n1", 2.0), ("n2", 0.5)]})
    run(search, asked)
    every = [id for batch in asked.batches for id in batch]
    assert len(every) == len(set(every)) > 5
    assert all(asked.batches)


def test_cheapest_needs_about_one_batch_a_hop_not_one_an_id():
    graph: Graph = {"s": [(f"m{at}", 1.0) for at in range(500)]}
    graph |= {f"m{at}": [(f"e{at}", 1.0)] for at in range(500)}
    asked = Asked(graph)
    assert len(run(cheapest(["s"], max_cost=2.0, limit=5000), asked)) == 1001
    assert len(asked.batches) == 3


def test_cheapest_asks_for_no_more_than_it_may_return():
    asked = Asked({"s": [(f"m{at:05}", 1.0) for at in range(10_000)]})
    assert len(run(cheapest(["s"], max_cost=2.0, limit=10), asked)) == 10
    assert sum(map(len, asked.batches)) <= 10


@pytest.mark.req("PLA-03")
def test_reach_finds_the_ancestors_of_a_diamond_once():
    parents = {"d": ["b", "c"], "b": ["a"], "c": ["a"]}
    assert run(reach(["d"]), links(parents)) == ["b", "c", "a"]
    assert run(reach(["a"]), links(parents)) == []
    assert run(reach([]), links(parents)) == []


def test_reach_leaves_the_starts_out_although_a_cycle_leads_back():
    assert run(reach(["a"]), links({"a": ["b"], "b": ["a", "c"]})) == ["b", "c"]


@pytest.mark.req("PLA-03")
def test_a_parent_that_is_a_descendant_closes_a_cycle():
    parents = {"c": ["b"], "b": ["a"]}
    assert run(closes_cycle("a", ["c"]), links(parents))
    assert run(closes_cycle("a", ["a"]), links(parents))
    assert not run(closes_cycle("d", ["c"]), links(parents))
    assert not run(closes_cycle("c", ["a"]), links(parents))
    assert not run(closes_cycle("c", []), links(parents))


def test_layers_put_each_id_after_its_parents():
    parents = {"ship": ["test", "docs"], "test": ["build"], "docs": [], "build": ["outside"]}
    assert layers(parents) == [["docs", "build"], ["test"], ["ship"]]
    assert layers({}) == []
    assert layers({"a": ["b", "b"], "b": []}) == [["b"], ["a"]]


def test_layers_refuse_a_cycle():
    with pytest.raises(InvalidInput, match="cycle"):
        layers({"free": [], "a": ["b"], "b": ["a"]})


def test_a_chain_of_20_000_needs_no_recursion():
    size = 20_000
    up = {f"n{at}": [f"n{at - 1}"] for at in range(1, size)}
    assert len(run(reach([f"n{size - 1}"]), links(up))) == size - 1
    assert run(closes_cycle("n0", [f"n{size - 1}"]), links(up))
    assert len(layers({"n0": [], **up})) == size
    down: Graph = {f"n{at}": [(f"n{at + 1}", 1.0)] for at in range(size)}
    assert run(walk(["n0"], depth=size, limit=2000), Asked(down))[-1].depth == 2000
    assert run(cheapest(["n0"], max_cost=1e9, limit=2000), Asked(down))[-1].cost == 1999.0


def test_a_hub_with_20_000_neighbours_is_walked_and_searched_in_full():
    hub: Graph = {"hub": [(f"n{at}", at / 20_000) for at in range(20_000)]}
    assert len(run(walk(["hub"], depth=2, limit=40_000), Asked(hub))) == 20_000
    assert len(run(cheapest(["hub"], max_cost=1.0, limit=40_000), Asked(hub))) == 20_001
