"""The walk from the seeds of a context along the edges of the trail: the cheapest way from any seed, up to a number of
hops. What an edge costs is its weight, which its kind decides (see edges.py), times what the agent makes of the kind.
"""

from __future__ import annotations

import heapq
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

FANOUT = 64
"""Of the edges at one breadcrumb so many are followed, the cheapest: a hub leads everywhere, which is nowhere."""
STARTS = 64
"""From so many seeds the walk begins, the cheapest."""
WIDER = 2
"""So many times what is wanted is looked at, because not all of it can be shown."""


class Hop(NamedTuple):
    """An edge as it is followed."""

    cost: float
    to: str
    kind: str


Links = Mapping[str, Sequence[Hop]]
"""For each breadcrumb that was looked at where its edges lead."""

Expand = Callable[[Sequence[str]], Awaitable[Links]]
"""Loads the edges at a batch of breadcrumbs."""


class Walked(NamedTuple):
    """A breadcrumb that was reached: at which cost, by which ids from the seed to it, and along which kinds of edges.
    In this order, which is also that of nearness, such are compared."""

    cost: float
    hops: int
    id: str
    path: tuple[str, ...]
    kinds: tuple[str, ...]


async def walk(
    starts: Mapping[str, float], expand: Expand, *, hops: int, limit: int, costs: Mapping[str, float] | None = None
) -> list[Walked]:
    """What lies within so many hops of the starts, nearest first, without them; at most `limit`.

    Each level is one call of `expand`. Only what can be among the nearest is expanded, so the work is bounded by
    `limit` however dense the graph is."""
    links: dict[str, Sequence[Hop]] = {}
    nearest = dict(sorted(starts.items(), key=lambda each: (each[1], each[0]))[:STARTS])
    for level in range(hops):
        reached = spread(nearest, links, hops=level)
        near = [each.id for each in reached if each.id in nearest or level][: len(nearest) + limit]
        wanted = [id for id in near if id not in links]
        if not wanted:
            break
        found = await expand(wanted)
        links.update((id, _weighted(found.get(id, ()), costs or {})) for id in wanted)
    return [each for each in spread(nearest, links, hops=hops) if each.id not in starts][:limit]


def _weighted(hops: Iterable[Hop], costs: Mapping[str, float]) -> list[Hop]:
    """The cheapest of the edges at one breadcrumb, as the agent weighs them."""
    factored = (Hop(hop.cost * costs.get(hop.kind, 1.0), hop.to, hop.kind) for hop in hops) if costs else hops
    return heapq.nsmallest(FANOUT, factored)


def spread(starts: Mapping[str, float], links: Links, *, hops: int) -> list[Walked]:
    """Dijkstra from many starts, each with a cost of its own, over at most so many hops: every breadcrumb once, by its
    cheapest way, nearest first. The starts come as well. The order of the links does not matter."""
    queue = [Walked(cost, 0, id, (id,), ()) for id, cost in starts.items()]
    heapq.heapify(queue)
    fewest: dict[str, int] = {}
    settled: list[Walked] = []
    while queue:
        at = heapq.heappop(queue)
        if at.hops >= fewest.get(at.id, hops + 1):
            continue
        if at.id not in fewest:
            settled.append(at)
        fewest[at.id] = at.hops  # a dearer way with fewer hops may still lead farther
        if at.hops == hops:
            continue
        for cost, to, kind in links.get(at.id, ()):
            if at.hops + 1 < fewest.get(to, hops + 1):
                way = Walked(at.cost + cost, at.hops + 1, to, (*at.path, to), (*at.kinds, kind))
                heapq.heappush(queue, way)
    return settled
