"""The order of entries in a session, as edges `followed_by`. An entry says more together with those before and after
it, so neighbours of good hits rank higher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from clew.access import Principal
from clew.trail.edge import Edge, EdgeType
from clew.trail.store import Trail

NEXT, SECOND = 0.15, 0.10
"""The share of a neighbour's score that is added, and of the one beyond it. Chosen on memory_dev, where half or twice
as much does nearly as well."""
CANDIDATES = 60
"""Hits that are looked at for the best of them."""

_FOLLOWED_BY = EdgeType.FOLLOWED_BY.label
_Near = dict[str, set[str]]


async def link_in_order(trail: Trail, ids: Sequence[str], *, by: Principal) -> None:
    """Record that these follow each other. Doing it twice is harmless. Raises NotFound, CycleRefused."""
    edges = [Edge(source=first, target=second, type=_FOLLOWED_BY) for first, second in pairwise(ids)]
    if edges:
        await trail.edges.add(edges, by=by, replace=True)


async def boost_by_neighbours(trail: Trail, scores: Mapping[str, float], *, by: Principal) -> dict[str, float]:
    """The scores of records, each with the share of its neighbours added."""
    if not scores:
        return {}
    near = await _neighbours(trail, scores, by)
    around = {each for found in near.values() for each in found}
    if not around:
        return dict(scores)
    further = near | await _neighbours(trail, around - near.keys(), by)
    return {id: score + _added(id, scores, further) for id, score in scores.items()}


def _added(id: str, scores: Mapping[str, float], near: _Near) -> float:
    first = near.get(id, set())
    second = {far for each in first for far in near.get(each, ())} - first - {id}
    return NEXT * sum(scores.get(each, 0.0) for each in first) + SECOND * sum(scores.get(each, 0.0) for each in second)


async def _neighbours(trail: Trail, ids: Iterable[str], by: Principal) -> _Near:
    found: _Near = {}
    wanted = list(ids)
    for link in await trail.edges.around(wanted, by=by) if wanted else ():
        if link.type == _FOLLOWED_BY:
            found.setdefault(link.near, set()).add(link.far)
    return found
