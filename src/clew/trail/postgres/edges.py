"""Edges on PostgreSQL: the `Edges` interface. Walks load one level of the graph a query, in one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import starmap
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import from_micros, to_micros
from clew.errors import AlreadyExists, CycleRefused, NotFound, TooLarge
from clew.trail.graphs.walks import Hops, Search, cheapest, run, to_hops, walk
from clew.trail.model.edge import (
    ACYCLIC,
    MAX_REACHED,
    Direction,
    Edge,
    Link,
    Reached,
    check_edge,
    check_limit,
    check_walk,
    pack_edges,
    read_ways,
    stored_types,
)
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.rows import ALIVE, SEEN, seen_by
from clew.trail.postgres.transactions import ReadTransaction, WriteTransaction

EDGES_LOCK = 0x65646765  # "edge"
"""The advisory lock for adding edges. Without it, two concurrent writes could close a cycle together."""

_WAYS = (("source", "target"), ("target", "source"))
_NEAR_SEEN, _NEAR_ALIVE = SEEN.replace("b.", "n.", 1), ALIVE.replace("b.", "n.")
_LINKS = (
    "SELECT n.id, b.id, e.type, e.weight FROM breadcrumbs n JOIN edges e ON e.{0} = n.rid"
    " JOIN breadcrumbs b ON b.rid = e.{1} WHERE n.id = ANY (%(ids)s)"
    f" AND {_NEAR_SEEN} AND {_NEAR_ALIVE} AND {SEEN} AND {ALIVE} AND e.created_at >= %(after)s"
)
"""The other ends of the edges at some breadcrumbs."""

_decode = msgspec.json.Decoder().decode


class PostgresEdges:
    """See `clew.trail.store.Edges`."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine

    async def add(self, edges: Sequence[Edge], *, by: Principal, replace: bool = False) -> list[Edge]:
        by.require("create")
        packed = pack_edges(edges)
        return await self._engine.write(lambda writing: self._add_all(writing, packed, by, replace), by=by)

    def _add_all(
        self, writing: WriteTransaction, edges: Sequence[tuple[Edge, str]], by: Principal, replace: bool
    ) -> list[Edge]:
        if any(edge.type in ACYCLIC for edge, _ in edges):
            writing.row("SELECT pg_advisory_xact_lock(%s)", (EDGES_LOCK,))
        wanted = {id for edge, _ in edges for id in (edge.source, edge.target)}
        rids = self._rids(writing, wanted, by, lock=True)
        return [self._add(writing, edge, packed, rids, replace) for edge, packed in edges]

    def _add(self, writing: WriteTransaction, edge: Edge, packed: str, rids: dict[str, int], replace: bool) -> Edge:
        source, target = rids[edge.source], rids[edge.target]
        if edge.type in ACYCLIC and _reaches(writing, edge.type, target, source):
            raise CycleRefused(edge.type, edge.source, edge.target)
        change = (
            "DO UPDATE SET weight = excluded.weight, metadata = excluded.metadata, created_at = excluded.created_at"
            if replace
            else "DO NOTHING"
        )
        added = writing.run(
            "INSERT INTO edges (source, type, target, weight, metadata, created_at) VALUES (%s, %s, %s, %s, %s, %s)"
            f" ON CONFLICT (source, type, target) {change}",
            (source, edge.type, target, edge.weight, packed, writing.now),
        )
        if not added:
            raise AlreadyExists("edge", f"{edge.source} -{edge.type}-> {edge.target}")
        return msgspec.structs.replace(edge, created_at=from_micros(writing.now))

    async def remove(self, source: str, target: str, type: str, *, by: Principal) -> None:
        by.require("update")
        edge = check_edge(Edge(source=source, target=target, type=type))

        def work(writing: WriteTransaction) -> None:
            rids = self._rids(writing, {edge.source, edge.target}, by)
            removed = writing.run(
                "DELETE FROM edges WHERE source = %s AND type = %s AND target = %s",
                (rids[edge.source], edge.type, rids[edge.target]),
            )
            if not removed:
                raise NotFound("edge", f"{edge.source} -{edge.type}-> {edge.target}")

        await self._engine.write(work, by=by)

    async def of(
        self,
        id: str,
        *,
        by: Principal,
        types: Sequence[str] = (),
        direction: Direction = "both",
        limit: int = 1000,
    ) -> list[Edge]:
        by.require("read")
        check_limit(limit)
        wanted = stored_types(types, direction)

        def work(reading: ReadTransaction) -> list[Edge]:
            self._rids(reading, {id}, by)
            found = {_key(edge): edge for _, edge in self._around(reading, [id], wanted, direction, by)}
            return [found[key] for key in sorted(found)][:limit]

        return await self._engine.read(work, by=by)

    async def around(
        self, ids: Sequence[str], *, by: Principal, since: datetime | None = None, limit: int = MAX_REACHED
    ) -> list[Link]:
        by.require("read")
        check_limit(limit)
        if len(ids) > MAX_REACHED:
            raise TooLarge("ids", len(ids), MAX_REACHED, "breadcrumbs")
        values = {"ids": _plain(ids), "after": to_micros(since) if since is not None else 0, **seen_by(by)}
        both = " UNION ALL ".join(_LINKS.format(*way) for way in _WAYS)
        sql = (
            f"SELECT * FROM ({both}) AS links (near, far, type, weight) ORDER BY weight, near, far, type LIMIT {limit}"
        )

        def work(reading: ReadTransaction) -> list[Link]:
            return list(starmap(Link, reading.rows(sql, {**values, "now": self._engine.wall()})))

        return await self._engine.read(work, by=by)

    async def walk(
        self,
        starts: Sequence[str],
        *,
        by: Principal,
        types: Sequence[str] = (),
        direction: Direction = "outgoing",
        depth: int = 3,
        limit: int = 1000,
    ) -> list[Reached]:
        check_walk(starts, limit=limit, depth=depth)
        return await self._search(lambda ids: walk(ids, depth=depth, limit=limit), starts, by, types, direction)

    async def paths(
        self,
        starts: Sequence[str],
        *,
        by: Principal,
        types: Sequence[str] = (),
        direction: Direction = "both",
        max_cost: float = 3.0,
        limit: int = 1000,
    ) -> list[Reached]:
        check_walk(starts, limit=limit, max_cost=max_cost)
        return await self._search(
            lambda ids: cheapest(ids, max_cost=max_cost, limit=limit), starts, by, types, direction
        )

    async def _search(
        self,
        build: Callable[[Sequence[str]], Search[Hops, list[Reached]]],
        starts: Sequence[str],
        by: Principal,
        types: Sequence[str],
        direction: Direction,
    ) -> list[Reached]:
        by.require("read")
        wanted = stored_types(types, direction)

        def work(reading: ReadTransaction) -> list[Reached]:
            self._rids(reading, set(starts), by)
            return run(build(starts), lambda ids: to_hops(ids, self._around(reading, ids, wanted, direction, by)))

        return await self._engine.read(work, by=by)

    def _around(
        self,
        reading: ReadTransaction,
        ids: Sequence[str],
        wanted: Sequence[tuple[str, Direction]],
        direction: Direction,
        by: Principal,
    ) -> list[tuple[Direction, Edge]]:
        """The edges of these breadcrumbs with two live and visible ends, each with the direction in which it is
        followed. An edge that is followed in both directions appears twice."""
        found: list[tuple[Direction, Edge]] = []
        for towards, types in read_ways(wanted, direction):
            near, far = ("source", "target") if towards == "outgoing" else ("target", "source")
            source, target = ("n.id", "b.id") if towards == "outgoing" else ("b.id", "n.id")
            rows = reading.rows(
                f"SELECT {source}, {target}, e.type, e.weight, e.metadata, e.created_at FROM breadcrumbs n"
                f" JOIN edges e ON e.{near} = n.rid JOIN breadcrumbs b ON b.rid = e.{far}"
                f" WHERE n.id = ANY (%(ids)s) AND {_NEAR_SEEN} AND {SEEN} AND {ALIVE}"
                + (" AND e.type = ANY (%(types)s)" if types else ""),
                {"ids": list(ids), "types": types, "now": self._engine.wall(), **seen_by(by)},
            )
            found += [(towards, _to_edge(row)) for row in rows]
        return found

    def _rids(self, reading: ReadTransaction, ids: set[str], by: Principal, *, lock: bool = False) -> dict[str, int]:
        """Row ids of live breadcrumbs that may be seen. Raises NotFound for the first that may not."""
        sql = f"SELECT b.id, b.rid FROM breadcrumbs b WHERE b.id = ANY (%(ids)s) AND {SEEN} AND {ALIVE} ORDER BY b.rid"
        values = {"ids": _plain(ids), "now": self._engine.wall(), **seen_by(by)}
        found: dict[str, int] = dict(reading.rows(sql + " FOR KEY SHARE" * lock, values))
        missing = min(ids - found.keys(), default=None)
        if missing is not None:
            raise NotFound("breadcrumb", missing)
        return found


def _reaches(writing: WriteTransaction, type: str, start: int, goal: int) -> bool:
    """Whether edges of one type lead from `start` to `goal`. The search includes breadcrumbs that the caller may not
    see, because they can be part of a cycle too. The error names only the two ends that the caller gave, and no
    breadcrumb between them."""
    with writing.acting_for(None):
        found = writing.value(
            # OFFSET forces an index lookup for each row: a join would read all edges at every level
            "WITH RECURSIVE reached (rid) AS (SELECT %(start)s::bigint UNION SELECT n.target FROM reached r,"
            " LATERAL (SELECT e.target FROM edges e WHERE e.source = r.rid AND e.type = %(type)s OFFSET 0) n)"
            " SELECT 1 FROM reached WHERE rid = %(goal)s LIMIT 1",
            {"start": start, "type": type, "goal": goal},
        )
    return found is not None


def _plain(ids: Iterable[str]) -> list[str]:
    """The ids that have the form of a breadcrumb id."""
    return [id for id in ids if id.isascii() and "\0" not in id]


def _to_edge(row: Sequence[Any]) -> Edge:
    source, target, type, weight, metadata, created_at = row
    return Edge(
        source=source,
        target=target,
        type=type,
        weight=weight,
        metadata=_decode(metadata),
        created_at=from_micros(created_at),
    )


def _key(edge: Edge) -> tuple[str, str, str]:
    return edge.type, edge.source, edge.target
