"""Graph algorithms without I/O. Each is a generator: it yields the ids to expand next, and the caller sends their
edges. `run` drives one:

    reached = run(walk(["a"], depth=3, limit=100), lambda ids: {id: edges.get(id, ()) for id in ids})

No algorithm recurses. The results of those with costs do not depend on the order of the edges.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from clew.errors import InvalidInput
from clew.trail.model.edge import Direction, Edge, Reached

Hops = Mapping[str, Iterable[tuple[str, float]]]
"""Maps an id to its neighbours, each with the cost of its edge (0 or more). Ids without neighbours may be absent."""

Links = Mapping[str, Iterable[str]]
"""Maps an id to its neighbours. Ids without neighbours may be absent."""

Answer = TypeVar("Answer")
Result = TypeVar("Result")
Search = Generator[list[str], Answer, Result]
"""Yields non-empty lists of ids to expand, each id at most once, and returns its result at the end."""


def run(search: Search[Answer, Result], expand: Callable[[list[str]], Answer]) -> Result:
    """Run a search to its end and return its result. `expand` returns the edges of a batch of ids."""
    try:
        wanted = next(search)
        while True:
            wanted = search.send(expand(wanted))
    except StopIteration as end:
        result: Result = end.value
        return result


def to_hops(ids: Sequence[str], edges: Iterable[tuple[Direction, Edge]]) -> Hops:
    """The neighbours of each id. Each edge is followed in the direction given with it."""
    hops: dict[str, list[tuple[str, float]]] = {id: [] for id in ids}
    for towards, edge in edges:
        near, far = (edge.source, edge.target) if towards == "outgoing" else (edge.target, edge.source)
        hops[near].append((far, edge.weight))
    return hops


def walk(starts: Sequence[str], *, depth: int, limit: int) -> Search[Hops, list[Reached]]:
    """Walk breadth-first from the starts, one batch per level. The result has each id once, without the starts.

    The order is by hops, then cost, then id; `limit` keeps the first. The path to an id is the cheapest among those
    with the fewest hops. The result contains the full path of each id, so its size is the sum of the lengths of all
    paths.
    """
    ways = dict.fromkeys(starts, _START)
    frontier, reached = list(ways), 0
    for level in range(1, depth + 1):
        if not frontier or reached >= limit:
            break
        hops = yield frontier
        found = _next_level(frontier, hops, ways)
        frontier = sorted(found, key=lambda id: (found[id][0], id))[: limit - reached]
        for id in frontier:
            cost, at = found[id]
            ways[id] = (cost, level, at)
        reached += len(frontier)
    return list(_spell_out(ways, list(ways)[len(ways) - reached :]))


def _next_level(frontier: list[str], hops: Hops, ways: Mapping[str, _Way]) -> dict[str, tuple[float, str]]:
    """The new ids one hop from the frontier, with the cheapest cost and the id it comes from."""
    found: dict[str, tuple[float, str]] = {}
    for id in frontier:
        base = ways[id][0]
        for neighbour, weight in hops.get(id, ()):
            if neighbour not in ways:
                way = (base + weight, id)
                if neighbour not in found or way < found[neighbour]:
                    found[neighbour] = way
    return found


def cheapest(starts: Sequence[str], *, max_cost: float, limit: int) -> Search[Hops, list[Reached]]:
    """The cheapest way from any start to each id within `max_cost` (Dijkstra), starts included at cost 0.

    The order is by cost, then hops, then id; `limit` keeps the first. If several paths have equal cost, the one with
    fewer hops wins. If these are equal too, the one with the smaller second-to-last id wins. Each batch has the id that
    is needed next and the ids that were found since the previous batch.
    """
    ways = dict.fromkeys(starts, _START)
    queue = sorted((0.0, 0, start) for start in ways)
    fresh = list(queue)
    edges: dict[str, Iterable[tuple[str, float]]] = {}
    settled: dict[str, None] = {}
    while queue and len(settled) < limit:
        cost, hops, id = heapq.heappop(queue)
        if id in settled:
            continue
        settled[id] = None
        if id not in edges and len(settled) < limit:
            near = (one for _, _, one in heapq.nsmallest(limit - len(settled), fresh))
            wanted = list(dict.fromkeys((id, *(one for one in near if one not in settled and one not in edges))))
            answer = yield wanted
            edges.update((one, answer.get(one, ())) for one in wanted)
            fresh.clear()
        for neighbour, weight in edges.pop(id, ()):
            way = (cost + weight, hops + 1, id)
            if way[0] <= max_cost and neighbour not in settled and way < ways.get(neighbour, _FAR):
                ways[neighbour] = way
                fresh.append((way[0], way[1], neighbour))
                heapq.heappush(queue, fresh[-1])
    return list(_spell_out(ways, settled))


_Way = tuple[float, int, str]
"""How an id was reached: cost, hops, and the id before it, which is empty for a start."""

_START: _Way = (0.0, 0, "")
_FAR: _Way = (float("inf"), 0, "")


def _spell_out(ways: Mapping[str, _Way], ids: Iterable[str]) -> Iterator[Reached]:
    """The ids as reached, each with its path. An id comes after the one before it."""
    paths: dict[str, tuple[str, ...]] = {}
    for id in ids:
        cost, hops, before = ways[id]
        paths[id] = (*paths.get(before, (before,)), id) if hops else (id,)
        yield Reached(id=id, depth=hops, cost=cost, path=paths[id])


def reach(starts: Sequence[str]) -> Search[Links, list[str]]:
    """All ids that can be reached from the starts, each once and without the starts. The order is by distance, then by
    the order of the links.

    With links to parents these are the ancestors, with links to children the descendants.
    """
    seen = yield from _spread(starts, goal=None)
    return list(seen)[len(dict.fromkeys(starts)) :]


def closes_cycle(node: str, new_parents: Sequence[str]) -> Search[Links, bool]:
    """Whether these parents would make the node its own ancestor. The caller sends links to parents. The search stops
    as soon as the answer is known."""
    seen = yield from _spread(new_parents, goal=node)
    return node in seen


def _spread(starts: Sequence[str], goal: str | None) -> Search[Links, dict[str, None]]:
    """Yield the starts and all ids that can be reached from them. Stop when the goal is found."""
    seen = dict.fromkeys(starts)
    frontier = list(seen)
    while frontier and goal not in seen:
        links = yield frontier
        found = dict.fromkeys(one for id in frontier for one in links.get(id, ()) if one not in seen)
        seen.update(found)
        frontier = list(found)
    return seen


def layers(parents: Links) -> list[list[str]]:
    """Ids in topological order, grouped in layers. Each id is in the first layer after all its parents. Within a layer
    the ids keep the order of the map. Parents that are not in the map are ignored.

    Raises InvalidInput when there is a cycle.
    """
    children: dict[str, list[str]] = {id: [] for id in parents}
    open_parents = dict.fromkeys(parents, 0)
    for id, above in parents.items():
        for one in {one for one in above if one in parents}:
            children[one].append(id)
            open_parents[id] += 1
    position = {id: at for at, id in enumerate(parents)}
    layer = [id for id, count in open_parents.items() if not count]
    ordered: list[list[str]] = []
    while layer:
        ordered.append(layer)
        below = []
        for id in layer:
            for child in children[id]:
                open_parents[child] -= 1
                if not open_parents[child]:
                    below.append(child)
        layer = sorted(below, key=position.__getitem__)
    if stuck := [id for id, count in open_parents.items() if count]:
        raise InvalidInput("graph", f"has a cycle at or above {stuck[0]!r}")
    return ordered
