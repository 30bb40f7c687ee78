"""Edges of a trail: removal, remaining edges, and lists."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput, NotFound
from clew.trail.model.breadcrumb import Change
from clew.trail.model.edge import Edge
from clew.trail.store import Trail
from tests.conformance.lettered_edges import arrows, link, nodes
from tests.conformance.records import is_there, lasting, make

pytestmark = pytest.mark.req("O6")


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


async def test_edges_are_sorted_by_type_then_source_then_target(trail: Trail, me: Principal) -> None:
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
async def test_invalid_limits_are_refused(trail: Trail, me: Principal, limit: int) -> None:
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
