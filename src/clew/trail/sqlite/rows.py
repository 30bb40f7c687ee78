"""Queries of records on SQLite, and the audiences of a trail."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.sqlite_file import Sql
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.rows import Audience, to_breadcrumb
from clew.trail.sqlite.engine import Writing

CURRENT = (
    "SELECT b.rid, b.id, b.audience, b.version, b.schema_name, b.title, b.context, b.tags, b.llm_hints, b.entities,"
    " b.entity_keywords, b.ttl_kind, b.expires_at, b.max_reads, b.read_count, b.checksum, b.created_at,"
    " b.updated_at, b.created_by, b.updated_by FROM breadcrumbs b"
)
TAGGED = CURRENT.replace(" FROM breadcrumbs b", " FROM tags t CROSS JOIN breadcrumbs b ON b.rid = t.rid")
"""As CURRENT, in the order of the tags. CROSS JOIN fixes the join order."""
VIEWED = (
    "SELECT b.audience, b.version, b.schema_name, b.title, b.context, b.tags, b.llm_hints, b.entities, b.max_reads,"
    " b.checksum, b.updated_at"
)
OLDER = (
    "SELECT b.rid, b.id, b.audience, v.version, v.schema_name, v.title, v.context, v.tags, v.llm_hints, v.entities,"
    " v.entity_keywords, b.ttl_kind, b.expires_at, b.max_reads, b.read_count, v.checksum, b.created_at,"
    " v.updated_at, b.created_by, v.updated_by FROM versions v JOIN breadcrumbs b ON b.rid = v.rid"
)
ALIVE = "(b.expires_at IS NULL OR b.expires_at > :now) AND (b.max_reads IS NULL OR b.read_count < b.max_reads)"
"""Matches records that have not expired. Hygiene may not have removed the others yet."""

_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class Audiences(threading.local):
    """A cache of the owner-and-scopes pairs, and of those that a caller may see. Each thread has its own cache, because
    only the writing thread may know pairs of a transaction that may still be undone."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Clear the cache of this thread. This is needed if a transaction that created audiences was undone, because
        their ids may be used again."""
        self._known: dict[int, Audience] = {}
        self._of_owner: dict[str, list[int]] = {}
        self._visible: dict[tuple[str, frozenset[str]], tuple[int, tuple[int, ...]]] = {}

    def of(self, connection: Sql, id: int) -> Audience:
        if id not in self._known:
            self._read_new(connection)
        return self._known[id]

    def may_see(self, connection: Sql, id: int, by: Principal) -> bool:
        """Whether a caller belongs to the audience's owner and holds all its scopes."""
        owner_id, scopes = self.of(connection, id)
        return owner_id == by.owner_id and by.scopes.issuperset(scopes)

    def visible(self, connection: Sql, owner_id: str, scopes: frozenset[str]) -> tuple[int, ...]:
        """The audiences of an owner that a caller with these scopes may see."""
        self._read_new(connection)
        mine = self._of_owner.get(owner_id, [])
        found = self._visible.get((owner_id, scopes))
        if found is None or found[0] != len(mine):
            found = len(mine), tuple(id for id in mine if scopes.issuperset(self._known[id][1]))
            if len(self._visible) > 1_000:
                self._visible.clear()
            self._visible[owner_id, scopes] = found
        return found[1]

    def _read_new(self, connection: Sql) -> None:
        """Read the audiences that were made since the last time."""
        newest = next(reversed(self._known), 0)
        sql = "SELECT id, owner_id, scopes FROM audiences WHERE id > ? ORDER BY id"
        for id, owner_id, scopes in connection.execute(sql, (newest,)).fetchall():
            self._known[id] = owner_id, _decode_texts(scopes)
            self._of_owner.setdefault(owner_id, []).append(id)


def ensure_audience(writing: Writing, owner_id: str, scopes: tuple[str, ...]) -> tuple[int, int]:
    """The id of an owner-and-scopes pair, which is created if it is new, and the id of the owner's first pair."""
    found = writing.audiences.get((owner_id, scopes))
    if found is None:
        audience = _ensure_audience(writing.execute, owner_id, scopes)
        first = writing.execute("SELECT min(id) FROM audiences WHERE owner_id = ?", (owner_id,)).get
        found = writing.audiences[owner_id, scopes] = audience, int(first)
    return found


def _ensure_audience(execute: Any, owner_id: str, scopes: tuple[str, ...]) -> int:
    packed = msgspec.json.encode(scopes).decode()
    found = execute("SELECT id FROM audiences WHERE owner_id = ? AND scopes = ?", (owner_id, packed)).get
    if found is None:
        found = execute("INSERT INTO audiences (owner_id, scopes) VALUES (?, ?) RETURNING id", (owner_id, packed)).get
    return int(found)


def in_list(ids: Sequence[int]) -> str:
    """Integers as an SQL list. An empty list matches nothing."""
    return f"({','.join(map(str, ids))})" if ids else "(NULL)"


def find_version(connection: Sql, audiences: Audiences, rid: int, version: int) -> Breadcrumb | None:
    """A version of a breadcrumb, present or past. This does not check whether the caller may see it."""
    row = connection.execute(f"{CURRENT} WHERE b.rid = ? AND b.version = ?", (rid, version)).fetchone()
    if row is None:
        row = connection.execute(f"{OLDER} WHERE v.rid = ? AND v.version = ?", (rid, version)).fetchone()
    return None if row is None else to_breadcrumb(row, audiences.of(connection, row[2]))
