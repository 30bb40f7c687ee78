"""Edges of a trail: adding them, all or none, and refusals."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AlreadyExists, CycleRefused, InvalidInput, NotFound, TooLarge
from clew.trail.model.edge import ACYCLIC, REVERSES, Edge
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.lettered_edges import arrows, link, nodes
from tests.conformance.records import UNKNOWN, make, make_all, short, succeeds

pytestmark = pytest.mark.req("O6")


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


async def test_exactly_one_of_many_concurrent_adds_of_an_edge_succeeds(trail: Trail, me: Principal) -> None:
    ids = await nodes(trail, me, "ab")
    done = await asyncio.gather(*(succeeds(link(trail, me, ids, "ab"), AlreadyExists) for _ in range(10)))
    assert sum(done) == 1


@pytest.mark.parametrize("problem", ["duplicate", "missing end", "cycle"])
async def test_edges_that_are_added_together_are_written_all_or_none(trail: Trail, me: Principal, problem: str) -> None:
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
