"""What stands next to each other in time: a piece of history says more together with what came just before and after
it, so one whose neighbours are near to a question is nearer to it itself. The order is the edges `followed_by`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from clew.access import Principal
from clew.trail.edge import Edge, EdgeType
from clew.trail.store import Trail

NEXT, SECOND = 0.15, 0.10
"""What a neighbour's score adds, and that of the one beyond it. Chosen on memory_dev, where half or twice as much does
nearly as well."""
CANDIDATES = 60
"""So many are looked at for the best of them."""

_FOLLOWED_BY = EdgeType.FOLLOWED_BY.label
_Near = dict[str, set[str]]


async def link_in_order(trail: Trail, ids: Sequence[str], *, by: Principal) -> None:
    """Say that these records follow each other. Saying it twice is harmless. Raises NotFound, CycleRefused."""
    edges = [Edge(source=first, target=second, type=_FOLLOWED_BY) for first, second in pairwise(ids)]
    if edges:
        await trail.edges.add(edges, by=by, replace=True)


async def lift(trail: Trail, scores: Mapping[str, float], *, by: Principal) -> dict[str, float]:
    """The scores of records with what their neighbours add to them."""
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
