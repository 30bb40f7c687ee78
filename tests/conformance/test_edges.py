"""`Edges`: typed, weighted, directed, unique; gone with their ends; walked within bounds."""

from __future__ import annotations

import asyncio
import heapq
import random
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AlreadyExists, CycleRefused, InvalidInput, NotFound, TooLarge
from clew.trail.breadcrumb import Change
from clew.trail.edge import ACYCLIC, REVERSES, Edge
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.making import UNKNOWN, is_there, lasting, make, make_all, short, succeeds

pytestmark = pytest.mark.req("O6")

Names = dict[str, str]
"""From the letters of a test to ids, and back."""


async def nodes(trail: Trail, by: Principal, letters: str) -> Names:
    """Breadcrumbs called by letters; their ids sort as the letters do."""
    ids = sorted(await make_all(trail, by, *letters))
    return dict(zip(letters, ids, strict=True))


async def link(
    trail: Trail, by: Principal, ids: Names, *arrows: str, type: str = "calls", **options: Any
) -> list[Edge]:
    """Edges from arrows such as `ab` or `ab:2.5`."""
    edges = [
        Edge(source=ids[arrow[0]], target=ids[arrow[1]], type=type, weight=float(arrow[3:] or 1)) for arrow in arrows
    ]
    return await trail.edges.add(edges, by=by, **options)


async def arrows(trail: Trail, by: Principal, ids: Names, at: str, **options: Any) -> list[str]:
    letters = {id: letter for letter, id in ids.items()}
    return [letters[edge.source] + letters[edge.target] for edge in await trail.edges.of(ids[at], by=by, **options)]


async def walked(trail: Trail, by: Principal, ids: Names, starts: str, **options: Any) -> str:
    letters = {id: letter for letter, id in ids.items()}
    found = await trail.edges.walk([ids[start] for start in starts], by=by, **options)
    return "".join(letters[each.id] for each in found)


# -- adding -----------------------------------------------------------------------------------------------


@pytest.mark.req("SYL-69")
async def test_an_edge_comes_back_with_all_its_fields(
    trail: Trail, open_again: OpenAgain, me: Principal, clock: ManualClock
) -> None:
    ids = await nodes(trail, me, "ab")
    metadata = {"line": 7, "why": ["🧵", None], "nested": {"a": 1.5}}
    wanted = Edge(source=ids["a"], target=ids["b"], type="calls", weight=0.25, metadata=metadata)
    (added,) = await trail.edges.add([wanted], by=me)
    assert added == Edge(
        source=ids["a"], target=ids["b"], type="calls", weight=0.25, metadata=metadata, created_at=clock.now()
    )
    await trail.close()
    again = await open_again()
    assert await again.edges.of(ids["a"], by=me) == [added]
    assert await again.edges.of(ids["b"], by=me) == [added]


async def test_weight_and_metadata_have_defaults(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "ab")
    await trail.edges.add([Edge(source=ids["a"], target=ids["b"], type="calls")], by=me)
    (edge,) = await trail.edges.of(ids["a"], by=me)
    assert (edge.weight, edge.metadata) == (1.0, {})


@pytest.mark.req("SYL-69")
async def test_a_duplicate_is_refused_and_the_other_direction_or_type_is_not(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "ab")
    await link(trail, me, ids, "ab:5")
    with pytest.raises(AlreadyExists):
        await link(trail, me, ids, "ab:9")
    assert [edge.weight for edge in await trail.edges.of(ids["a"], by=me)] == [5.0]
    await link(trail, me, ids, "ba")
    await link(trail, me, ids, "ab", type="imports")
    assert len(await trail.edges.of(ids["a"], by=me)) == 3


async def test_replace_overwrites_what_is_there(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "abc")
    await link(trail, me, ids, "ab:5")
    await link(trail, me, ids, "ab:7", "ac:2", replace=True)
    assert [edge.weight for edge in await trail.edges.of(ids["a"], by=me)] == [7.0, 2.0]


async def test_of_many_that_add_one_edge_at_once_exactly_one_succeeds(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "ab")
    done = await asyncio.gather(*(succeeds(link(trail, me, ids, "ab"), AlreadyExists) for _ in range(10)))
    assert sum(done) == 1


@pytest.mark.parametrize("problem", ["duplicate", "missing end", "cycle"])
async def test_of_edges_that_are_added_together_all_are_written_or_none(
    trail: Trail, me: Principal, problem: str
) -> None:
    ids = await nodes(trail, me, "abc")
    good = Edge(source=ids["a"], target=ids["b"], type="depends_on")
    bad = {
        "duplicate": good,
        "missing end": Edge(source=ids["a"], target=UNKNOWN, type="calls"),
        "cycle": Edge(source=ids["b"], target=ids["a"], type="depends_on"),
    }[problem]
    with pytest.raises((AlreadyExists, NotFound, CycleRefused)):
        await trail.edges.add([good, bad], by=me)
    assert await trail.edges.of(ids["a"], by=me) == []


@pytest.mark.parametrize(("backward", "forward"), REVERSES.items())
async def test_a_reverse_name_is_the_same_edge_stored_once(
    trail: Trail, me: Principal, backward: str, forward: str
) -> None:
    ids = await nodes(trail, me, "ab")
    (stored,) = await link(trail, me, ids, "ba", type=backward)
    assert (stored.source, stored.target, stored.type) == (ids["a"], ids["b"], forward)
    with pytest.raises(AlreadyExists):
        await link(trail, me, ids, "ab", type=forward)
    assert await arrows(trail, me, ids, "b", types=[backward], direction="outgoing") == ["ab"]
    assert await arrows(trail, me, ids, "b", types=[backward], direction="incoming") == []
    assert await arrows(trail, me, ids, "b", types=[forward], direction="incoming") == ["ab"]
    await trail.edges.remove(ids["b"], ids["a"], backward, by=me)
    assert await trail.edges.of(ids["a"], by=me) == []


@pytest.mark.parametrize("type", sorted(ACYCLIC))
async def test_a_cycle_is_refused_in_a_type_that_stays_acyclic(trail: Trail, me: Principal, type: str) -> None:
    ids = await nodes(trail, me, "abcd")
    await link(trail, me, ids, "ab", "bc", "ac", "cd", type=type)
    for closing in ("ba", "da", "cb"):
        with pytest.raises(CycleRefused) as caught:
            await link(trail, me, ids, closing, type=type)
        assert caught.value.edge_type == type
    await link(trail, me, ids, "da", type="related_to")
    await trail.edges.remove(ids["c"], ids["d"], type, by=me)
    await link(trail, me, ids, "da", type=type)


async def test_a_cycle_over_hidden_breadcrumbs_is_refused_without_naming_them(trail: Trail, me: Principal) -> None:
    wide = msgspec.structs.replace(me, scopes=frozenset({"hr"}))
    ids = await nodes(trail, me, "ab")
    hidden = await make(trail, wide, "Salaries", scopes=["hr"])
    for source, target in ((ids["b"], hidden.id), (hidden.id, ids["a"])):
        await trail.edges.add([Edge(source=source, target=target, type="depends_on")], by=wide)
    with pytest.raises(CycleRefused) as caught:
        await trail.edges.add([Edge(source=ids["a"], target=ids["b"], type="depends_on")], by=me)
    assert hidden.id not in f"{caught.value} {vars(caught.value)}"
    assert await arrows(trail, me, ids, "a") == []


async def test_replacing_an_edge_of_an_acyclic_type_is_no_cycle(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "ab")
    await link(trail, me, ids, "ab", type="depends_on")
    await link(trail, me, ids, "ab:3", type="depends_on", replace=True)
    assert [edge.weight for edge in await trail.edges.of(ids["a"], by=me)] == [3.0]


async def test_two_that_close_a_cycle_together_do_not_both_succeed(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    ids, other = await nodes(trail, me, "ab"), await open_again()
    attempts = (link(trail, me, ids, "ab", type="parent"), link(other, me, ids, "ba", type="parent"))
    assert sorted(await asyncio.gather(*(succeeds(each, CycleRefused) for each in attempts))) == [False, True]


async def test_a_long_chain_is_checked_to_its_end(trail: Trail, me: Principal) -> None:
    ids = await make_all(trail, me, *map(str, range(2_000)))
    chain = [Edge(source=one, target=two, type="depends_on") for one, two in pairwise(ids)]
    await trail.edges.add(chain, by=me)
    with pytest.raises(CycleRefused):
        await trail.edges.add([Edge(source=ids[-1], target=ids[0], type="depends_on")], by=me)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": ""},
        {"type": "Calls"},
        {"type": "a b"},
        {"type": "x" * 101},
        {"weight": -0.1},
        {"weight": float("nan")},
        {"weight": float("inf")},
        {"metadata": {"a": "\ud83d"}},
        {"metadata": {"a": object()}},
        {"metadata": {"a": "x" * 64_000}},
        {"target": "same"},
    ],
    ids="+".join,
)
async def test_an_edge_that_makes_no_sense_is_refused(trail: Trail, me: Principal, fields: dict[str, Any]) -> None:
    ids = await nodes(trail, me, "ab")
    if fields.get("target") == "same":
        fields = {"target": ids["a"]}
    with pytest.raises(InvalidInput):
        await trail.edges.add([Edge(**{"source": ids["a"], "target": ids["b"], "type": "calls", **fields})], by=me)
    assert await trail.edges.of(ids["a"], by=me) == []


async def test_too_many_edges_at_once_are_refused(trail: Trail, me: Principal) -> None:
    with pytest.raises(TooLarge):
        await trail.edges.add([Edge(source=UNKNOWN, target="x", type="calls")] * 10_001, by=me)
    assert await trail.edges.add([], by=me) == []


@pytest.mark.parametrize("end", [UNKNOWN, "x", "\x00", "' --", "x" * 10_000], ids=short)
async def test_an_end_that_does_not_exist_is_not_found(trail: Trail, me: Principal, end: str) -> None:
    ids = await nodes(trail, me, "a")
    for call in (
        trail.edges.add([Edge(source=ids["a"], target=end, type="calls")], by=me),
        trail.edges.add([Edge(source=end, target=ids["a"], type="calls")], by=me),
        trail.edges.remove(ids["a"], end, "calls", by=me),
        trail.edges.of(end, by=me),
        trail.edges.walk([ids["a"], end], by=me),
        trail.edges.paths([end], by=me),
    ):
        with pytest.raises(NotFound):
            await call


async def test_an_empty_id_is_not_found(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "a")
    for call in (
        trail.edges.add([Edge(source=ids["a"], target="", type="calls")], by=me),
        trail.edges.of("", by=me),
        trail.edges.walk([""], by=me),
        trail.edges.paths([""], by=me),
    ):
        with pytest.raises(NotFound):
            await call


async def test_edges_of_another_owner_cannot_be_seen_added_or_removed(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    ids = await nodes(trail, me, "ab")
    theirs = await make(trail, stranger)
    await link(trail, me, ids, "ab")
    for call in (
        trail.edges.of(ids["a"], by=stranger),
        trail.edges.remove(ids["a"], ids["b"], "calls", by=stranger),
        trail.edges.add([Edge(source=ids["a"], target=theirs.id, type="calls")], by=stranger),
        trail.edges.add([Edge(source=ids["a"], target=theirs.id, type="calls")], by=me),
    ):
        with pytest.raises(NotFound):
            await call


# -- removing ---------------------------------------------------------------------------------------------


async def test_a_removed_edge_is_gone_and_its_ends_stay(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "ab")
    await link(trail, me, ids, "ab", "ba")
    await trail.edges.remove(ids["a"], ids["b"], "calls", by=me)
    assert await arrows(trail, me, ids, "a") == ["ba"]
    for type in ("calls", "imports"):
        with pytest.raises(NotFound):
            await trail.edges.remove(ids["a"], ids["b"], type, by=me)
    assert await is_there(trail, me, ids["a"])


@pytest.mark.req("SYL-69")
async def test_deleting_a_breadcrumb_removes_its_edges_in_both_directions_and_its_vector(
    trail: Trail, me: Principal
) -> None:
    ids = await nodes(trail, me, "abc")
    await trail.records.update(ids["b"], Change(embedding=[1.0, 0.0]), expect=1, by=me)
    await link(trail, me, ids, "ab", "bc", "ca")
    await trail.records.delete(ids["b"], by=me)
    assert await arrows(trail, me, ids, "a") == ["ca"]
    assert await arrows(trail, me, ids, "c") == ["ca"]
    assert (await trail.upkeep.stats(by=me)).edges == 1
    again = await make(trail, me, "b", id=ids["b"])
    assert await trail.edges.of(again.id, by=me) == []
    assert (await trail.records.get(again.id, by=me, vector=True)).embedding is None


@pytest.mark.req("SYL-69")
async def test_hygiene_removes_the_edges_of_what_has_expired(trail: Trail, me: Principal, clock: ManualClock) -> None:
    ids = await nodes(trail, me, "ab")
    short = await make(trail, me, ttl=lasting(clock, seconds=1))
    await trail.edges.add([Edge(source=ids["a"], target=short.id, type="calls")], by=me)
    clock.advance(seconds=1)
    assert await trail.edges.of(ids["a"], by=me) == []
    assert await trail.edges.walk([ids["a"]], by=me) == []
    await trail.upkeep.purge()
    assert (await trail.upkeep.stats(by=me)).edges == 0


async def test_an_update_keeps_the_edges(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "ab")
    await link(trail, me, ids, "ab")
    await trail.records.update(ids["a"], Change(title="A"), expect=1, by=me)
    assert await arrows(trail, me, ids, "a") == ["ab"]


# -- looking ----------------------------------------------------------------------------------------------


async def test_edges_are_given_by_type_then_source_then_target(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "abcd")
    await link(trail, me, ids, "bd", "ba", "cb", "bc", type="imports")
    await link(trail, me, ids, "bd", "ab", type="calls")
    assert await arrows(trail, me, ids, "b") == ["ab", "bd", "ba", "bc", "bd", "cb"]
    assert await arrows(trail, me, ids, "b", direction="outgoing") == ["bd", "ba", "bc", "bd"]
    assert await arrows(trail, me, ids, "b", direction="incoming") == ["ab", "cb"]
    assert await arrows(trail, me, ids, "b", types=["calls"]) == ["ab", "bd"]
    assert await arrows(trail, me, ids, "b", types=["calls", "imports"], direction="incoming") == ["ab", "cb"]
    assert await arrows(trail, me, ids, "b", types=["absent"]) == []
    assert await arrows(trail, me, ids, "b", limit=3) == ["ab", "bd", "ba"]
    with pytest.raises(InvalidInput):
        await trail.edges.of(ids["b"], by=me, types=["Not a type"])


@pytest.mark.parametrize("limit", [0, -1, 10_001])
async def test_absurd_bounds_are_refused(trail: Trail, me: Principal, limit: int) -> None:
    ids = await nodes(trail, me, "a")
    for call in (
        trail.edges.of(ids["a"], by=me, limit=limit),
        trail.edges.walk([ids["a"]], by=me, limit=limit),
        trail.edges.walk([ids["a"]], by=me, depth=limit),
        trail.edges.paths([ids["a"]], by=me, limit=limit),
        trail.edges.paths([ids["a"]], by=me, max_cost=-1.0),
        trail.edges.paths([ids["a"]], by=me, max_cost=float("nan")),
        trail.edges.paths([ids["a"]], by=me, max_cost=float("inf")),
        trail.edges.walk([], by=me),
        trail.edges.paths([], by=me),
    ):
        with pytest.raises(InvalidInput):
            await call


# -- walking ----------------------------------------------------------------------------------------------


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


# -- paths ------------------------------------------------------------------------------------------------


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


# -- around several ---------------------------------------------------------------------------------------


async def test_what_is_around_several_breadcrumbs_passes_over_what_is_gone_and_keeps_the_cheapest(
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


async def test_what_is_around_since_a_moment_was_written_then_or_later(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    ids = await nodes(trail, me, "abc")
    await link(trail, me, ids, "ab")
    clock.advance(seconds=1)
    (later,) = await link(trail, me, ids, "bc")
    assert await trail.edges.around([ids["b"]], by=me, since=later.created_at) == [(ids["b"], ids["c"], "calls", 1.0)]
    clock.advance(seconds=1)
    assert await trail.edges.around([ids["b"]], by=me, since=clock.now()) == []
