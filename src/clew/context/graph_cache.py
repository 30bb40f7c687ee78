"""A cache of the graphs of recent sessions, so that the next message of a session reads only new edges.

The cache holds the edges of each breadcrumb. A lookup reads and adds the edges that were written since, by any process.
A deleted breadcrumb is detected when it is shown. A deleted edge stays in the cache for at most MAX_AGE.
"""

from __future__ import annotations

import heapq
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from clew.access import Principal
from clew.clock import Clock
from clew.context.graph_walk import FANOUT, Expand, GraphHop, Links
from clew.skills.lru_cache import LruCache
from clew.trail.model.edge import Link
from clew.trail.store import Trail

MAX_BYTES = 64_000_000
"""The graphs of about 250 sessions. With 1 GB, thousands of chats within MAX_AGE would take as much."""
MAX_AGE = timedelta(minutes=10)
SKEW = timedelta(seconds=60)
"""The allowed clock difference of two processes. Edges written within it before the last lookup are read again."""
_HOP_BYTES, _NODE_BYTES, _GRAPH_BYTES = 400, 400, 500
"""Estimates of memory use."""

Key = tuple[str, frozenset[str], str]
"""Owner, scopes and session, so that callers with other permissions do not share a graph."""


class SessionGraph:
    """The cached edges around one session. `size` is in bytes."""

    def __init__(self, built: datetime) -> None:
        self.built = built
        self.size = _GRAPH_BYTES
        self._hops: dict[str, dict[tuple[str, str], GraphHop]] = {}
        self._as_of: dict[str, datetime] = {}

    def knows(self, id: str) -> bool:
        return id in self._hops

    def oldest(self, ids: Iterable[str]) -> datetime:
        """Return the time of the oldest lookup for these breadcrumbs."""
        return min(self._as_of[id] for id in ids)

    def add(self, ids: Sequence[str], links: Iterable[Link], as_of: datetime) -> None:
        """Add all edges, or the new edges, of these breadcrumbs. Of many edges only the cheapest stay, because a walk
        follows no others."""
        for id in ids:
            self.size += 0 if id in self._hops else _NODE_BYTES
            self._hops.setdefault(id, {})
            self._as_of[id] = as_of
        for near, far, type, weight in links:
            hops = self._hops[near]
            self.size += 0 if (far, type) in hops else _HOP_BYTES
            to, kind = sys.intern(far), sys.intern(type)  # the graphs of many sessions share them
            hops[to, kind] = GraphHop(weight, to, kind)
        for id in ids:
            if len(self._hops[id]) > FANOUT:
                self._drop_dearest(id)

    def _drop_dearest(self, id: str) -> None:
        """Keep the cheapest edges of each type: the factors of an agent only change the order of the types."""
        before = self._hops[id]
        of_type: defaultdict[str, list[GraphHop]] = defaultdict(list)
        for hop in before.values():
            of_type[hop.kind].append(hop)
        kept = (hop for hops in of_type.values() for hop in heapq.nsmallest(FANOUT, hops))
        self._hops[id] = {(hop.to, hop.kind): hop for hop in kept}
        self.size -= _HOP_BYTES * (len(before) - len(self._hops[id]))

    def links(self, ids: Iterable[str]) -> Links:
        return {id: list(self._hops[id].values()) for id in ids}


class GraphCache:
    """The graphs of the sessions used last, together at most `limit` bytes. `loaded` counts breadcrumbs whose edges
    were read whole, `reused` those that were known."""

    def __init__(self, clock: Clock, *, limit: int = MAX_BYTES) -> None:
        self.loaded = 0
        self.reused = 0
        self._clock = clock
        self._graphs: LruCache[Key, SessionGraph] = LruCache(limit, lambda graph: graph.size)

    @property
    def size(self) -> int:
        return self._graphs.weight

    def __len__(self) -> int:
        return len(self._graphs)

    def expander(self, trail: Trail, session: str | None, *, by: Principal) -> Expand:
        """Return a function that loads edges for one walk. Without a session there is no cache."""

        async def expand(ids: Sequence[str]) -> Links:
            graph = self._find(by, session)
            await self._refresh(graph, ids, trail, by)
            if session is not None:
                self._graphs.keep((by.owner_id, by.scopes, session), graph)
                self._graphs.drop_while(self._is_stale)
            return graph.links(ids)

        return expand

    def _find(self, by: Principal, session: str | None) -> SessionGraph:
        found = self._graphs.find((by.owner_id, by.scopes, session)) if session is not None else None
        return SessionGraph(self._clock.now()) if found is None or self._is_stale(found) else found

    def _is_stale(self, graph: SessionGraph) -> bool:
        return self._clock.now() - graph.built > MAX_AGE

    async def _refresh(self, graph: SessionGraph, ids: Sequence[str], trail: Trail, by: Principal) -> None:
        now = self._clock.now()
        known = [id for id in ids if graph.knows(id)]
        new = [id for id in ids if not graph.knows(id)]
        self.reused += len(known)
        self.loaded += len(new)
        if known:
            since = graph.oldest(known) - SKEW
            graph.add(known, await trail.edges.around(known, by=by, since=since), now)
        if new:
            graph.add(new, await trail.edges.around(new, by=by), now)
