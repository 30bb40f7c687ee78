"""The walk from the seeds of a context along the edges of the trail: the cheapest path from any seed, up to a number of
hops. The cost of an edge is its weight, which depends on its kind (see edges.py), times the agent's factor for the
kind.
"""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

FANOUT = 64
"""The number of edges of one record that the walk follows, the cheapest first. It bounds the work at hubs."""
STARTS = 64
"""The number of seeds at which the walk starts, the cheapest first."""
EXPANDED = 32
"""The number of records of each level from which the walk goes on, the nearest first."""
WIDER = 2
"""The factor by which more candidates are read than needed, because some cannot be shown."""


class GraphHop(NamedTuple):
    """One step along an edge."""

    cost: float
    to: str
    kind: str


Links = Mapping[str, Sequence[GraphHop]]
"""The edges of each breadcrumb that was expanded."""

Expand = Callable[[Sequence[str]], Awaitable[Links]]
"""Loads the edges at a batch of breadcrumbs."""


class ReachedBreadcrumb(NamedTuple):
    """A breadcrumb that the walk reached: the cost, the ids from the seed to it, and the kinds of edges. The order of
    the fields is the sort order."""

    cost: float
    hops: int
    id: str
    path: tuple[str, ...]
    kinds: tuple[str, ...]


async def walk(
    starts: Mapping[str, float], expand: Expand, *, hops: int, limit: int, costs: Mapping[str, float] | None = None
) -> list[ReachedBreadcrumb]:
    """Return the breadcrumbs within `hops` of the starts, nearest first, without the starts; at most `limit`.

    Each level calls `expand` once, for the starts and then for the nearest breadcrumbs found, so the work is bounded
    for any graph.
    """
    links: dict[str, Sequence[GraphHop]] = {}
    nearest = dict(sorted(starts.items(), key=lambda each: (each[1], each[0]))[:STARTS])
    reached = [ReachedBreadcrumb(cost, 0, id, (id,), ()) for id, cost in nearest.items()]
    for level in range(hops):
        near = [each.id for each in reached if each.id not in nearest][:EXPANDED] if level else list(nearest)
        wanted = [id for id in near if id not in links]
        if not wanted:
            break
        found = await expand(wanted)
        links.update((id, _weighted(found.get(id, ()), costs or {})) for id in wanted)
        reached = spread(nearest, links, hops=level + 1, limit=limit + len(starts))
    return [each for each in reached if each.id not in starts][:limit]


def _weighted(hops: Sequence[GraphHop], costs: Mapping[str, float]) -> Sequence[GraphHop]:
    """Return the cheapest edges of one breadcrumb, with the agent's factors."""
    factored = [GraphHop(hop.cost * costs.get(hop.kind, 1.0), hop.to, hop.kind) for hop in hops] if costs else hops
    return factored if len(factored) <= FANOUT else heapq.nsmallest(FANOUT, factored)


def spread(
    starts: Mapping[str, float], links: Links, *, hops: int, limit: int | None = None
) -> list[ReachedBreadcrumb]:
    """Dijkstra's algorithm from several starts with their costs, over at most `hops`. Returns every breadcrumb once, by
    its cheapest path, nearest first, up to `limit`, with the starts. The order of the links does not matter."""
    queue = [ReachedBreadcrumb(cost, 0, id, (id,), ()) for id, cost in starts.items()]
    heapq.heapify(queue)
    fewest: dict[str, int] = {}
    cheapest: dict[tuple[str, int], float] = {}
    settled: list[ReachedBreadcrumb] = []
    while queue and (limit is None or len(settled) < limit):
        at = heapq.heappop(queue)
        if at.hops >= fewest.get(at.id, hops + 1):
            continue
        if at.id not in fewest:
            settled.append(at)
        fewest[at.id] = at.hops  # a more expensive path with fewer hops may lead farther
        farther = at.hops + 1
        if farther > hops:
            continue
        for cost, to, kind in links.get(at.id, ()):
            total = at.cost + cost
            if farther < fewest.get(to, hops + 1) and total <= cheapest.get((to, farther), total):
                cheapest[to, farther] = total
                heapq.heappush(queue, ReachedBreadcrumb(total, farther, to, (*at.path, to), (*at.kinds, kind)))
    return settled
