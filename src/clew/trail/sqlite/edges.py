"""Edges on SQLite: the `Edges` interface. Walks load one level of the graph a query, in one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import starmap
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import from_micros, to_micros
from clew.errors import AlreadyExists, CycleRefused, NotFound, TooLarge
from clew.sqlite_file import Sql
from clew.trail.graphs.walks import Hops, Search, cheapest, run, to_hops, walk
from clew.trail.model.breadcrumb import encode_canonical
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
from clew.trail.sqlite.engine import Engine, Writing
from clew.trail.sqlite.rows import ALIVE, Audiences, in_list

_WAYS = (("source", "target"), ("target", "source"))
_LINKS = (
    "SELECT n.id, b.id, e.type, e.weight FROM breadcrumbs n CROSS JOIN edges e ON e.{0} = n.rid"
    " CROSS JOIN breadcrumbs b ON b.rid = e.{1} WHERE n.id IN (SELECT value FROM json_each(:ids))"
    f" AND +n.audience IN {{visible}} AND {ALIVE.replace('b.', 'n.')} AND +b.audience IN {{visible}} AND {ALIVE}"
    " AND e.created_at >= :after"
)
"""The other ends of the edges at some breadcrumbs. CROSS JOIN fixes the join order; without it, SQLite reads all
records that the caller sees."""

_decode = msgspec.json.Decoder().decode


class SqliteEdges:
    """See `clew.trail.store.Edges`."""

    def __init__(self, engine: Engine, audiences: Audiences) -> None:
        self._engine = engine
        self._audiences = audiences

    async def add(self, edges: Sequence[Edge], *, by: Principal, replace: bool = False) -> list[Edge]:
        by.require("create")
        checked = pack_edges(edges)
        return await self._engine.write(lambda writing: self._add_all(writing, checked, by, replace))

    def _add_all(self, writing: Writing, edges: Sequence[tuple[Edge, str]], by: Principal, replace: bool) -> list[Edge]:
        visible = self._audiences.visible(writing.connection, by.owner_id, by.scopes)
        wanted = {id for edge, _ in edges for id in (edge.source, edge.target)}
        rids = _rids(writing.execute, wanted, visible, writing.wall)
        return [self._add(writing, edge, packed, rids, replace) for edge, packed in edges]

    def _add(self, writing: Writing, edge: Edge, packed: str, rids: dict[str, int], replace: bool) -> Edge:
        source, target = rids[edge.source], rids[edge.target]
        if edge.type in ACYCLIC and _reaches(writing, edge.type, target, source):
            raise CycleRefused(edge.type, edge.source, edge.target)
        verb = "INSERT OR REPLACE" if replace else "INSERT OR IGNORE"
        writing.execute(
            f"{verb} INTO edges (source, type, target, weight, metadata, created_at) VALUES (?, ?, ?, ?, ?, ?)",
            (source, edge.type, target, edge.weight, packed, writing.now),
        )
        if not writing.connection.changes():
            raise AlreadyExists("edge", f"{edge.source} -{edge.type}-> {edge.target}")
        return msgspec.structs.replace(edge, created_at=from_micros(writing.now))

    async def remove(self, source: str, target: str, type: str, *, by: Principal) -> None:
        by.require("update")
        edge = check_edge(Edge(source=source, target=target, type=type))

        def work(writing: Writing) -> None:
            visible = self._audiences.visible(writing.connection, by.owner_id, by.scopes)
            rids = _rids(writing.execute, {edge.source, edge.target}, visible, writing.wall)
            writing.execute(
                "DELETE FROM edges WHERE source = ? AND type = ? AND target = ?",
                (rids[edge.source], edge.type, rids[edge.target]),
            )
            if not writing.connection.changes():
                raise NotFound("edge", f"{edge.source} -{edge.type}-> {edge.target}")

        await self._engine.write(work)

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

        def work(connection: Sql) -> list[Edge]:
            visible = self._audiences.visible(connection, by.owner_id, by.scopes)
            now = self._engine.wall()
            _rids(connection.execute, {id}, visible, now)
            around = self._around(connection, [id], wanted, direction, visible, now)
            found = {_key(edge): edge for _, edge in around}
            return [found[key] for key in sorted(found)][:limit]

        return await self._engine.read_aside(work)

    async def around(
        self, ids: Sequence[str], *, by: Principal, since: datetime | None = None, limit: int = MAX_REACHED
    ) -> list[Link]:
        by.require("read")
        check_limit(limit)
        if len(ids) > MAX_REACHED:
            raise TooLarge("ids", len(ids), MAX_REACHED, "breadcrumbs")
        values = {"ids": _pack(list(ids)), "after": to_micros(since) if since is not None else 0, "limit": limit}

        def work(connection: Sql) -> list[Link]:
            visible = in_list(self._audiences.visible(connection, by.owner_id, by.scopes))
            both = " UNION ALL ".join(_LINKS.format(*way, visible=visible) for way in _WAYS)
            rows = connection.execute(
                f"{both} ORDER BY 4, 1, 2, 3 LIMIT :limit", {**values, "now": self._engine.wall()}
            )
            return list(starmap(Link, rows))

        return await self._engine.read_aside(work)

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

        def work(connection: Sql) -> list[Reached]:
            visible = self._audiences.visible(connection, by.owner_id, by.scopes)
            now = self._engine.wall()
            _rids(connection.execute, set(starts), visible, now)
            return run(
                build(starts),
                lambda ids: to_hops(ids, self._around(connection, ids, wanted, direction, visible, now)),
            )

        return await self._engine.read_aside(work)

    def _around(
        self,
        connection: Sql,
        ids: Sequence[str],
        wanted: Sequence[tuple[str, Direction]],
        direction: Direction,
        visible: Sequence[int],
        now: int,
    ) -> list[tuple[Direction, Edge]]:
        """The edges of these breadcrumbs with two live and visible ends, each with the direction in which it is
        followed. An edge that is followed in both directions appears twice."""
        found: list[tuple[Direction, Edge]] = []
        for towards, types in read_ways(wanted, direction):
            near, far = ("source", "target") if towards == "outgoing" else ("target", "source")
            source, target = ("n.id", "b.id") if towards == "outgoing" else ("b.id", "n.id")
            # CROSS JOIN fixes the join order: without it SQLite reads all records that the caller may see
            rows = connection.execute(
                f"SELECT {source}, {target}, e.type, e.weight, e.metadata, e.created_at FROM breadcrumbs n"
                f" CROSS JOIN edges e ON e.{near} = n.rid CROSS JOIN breadcrumbs b ON b.rid = e.{far}"
                f" WHERE n.id IN (SELECT value FROM json_each(:ids)) AND b.audience IN {in_list(visible)} AND {ALIVE}"
                " AND (:types = '[]' OR e.type IN (SELECT value FROM json_each(:types)))",
                {"ids": _pack(list(ids)), "types": _pack(types), "now": now},
            )
            found += [(towards, _to_edge(row)) for row in rows]
        return found


def _reaches(writing: Writing, type: str, start: int, goal: int) -> bool:
    """Whether edges of one type lead from `start` to `goal`. The search includes breadcrumbs that the caller may not
    see, because they can be part of a cycle too. The error names only the two ends that the caller gave, and no
    breadcrumb between them."""
    return (
        writing.execute(
            "WITH RECURSIVE reached (rid) AS (VALUES (:start) UNION SELECT e.target FROM edges e"
            " JOIN reached r ON e.source = r.rid WHERE e.type = :type)"
            " SELECT 1 FROM reached WHERE rid = :goal LIMIT 1",
            {"start": start, "type": type, "goal": goal},
        ).get
        is not None
    )


def _rids(execute: Any, ids: set[str], visible: Sequence[int], now: int) -> dict[str, int]:
    """Row ids of live breadcrumbs that may be seen. Raises NotFound for the first that may not."""
    rows = execute(
        f"SELECT b.id, b.rid FROM breadcrumbs b WHERE b.id IN (SELECT value FROM json_each(:ids))"
        f" AND +b.audience IN {in_list(visible)} AND {ALIVE}",  # by id, because an audience may have many records
        {"ids": _pack(sorted(ids)), "now": now},
    ).fetchall()
    found = dict(rows)
    missing = min(ids - found.keys(), default=None)
    if missing is not None:
        raise NotFound("breadcrumb", missing)
    return found


def _to_edge(row: Any) -> Edge:
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


def _pack(values: Sequence[str]) -> str:
    return encode_canonical(values, "ids").decode()
