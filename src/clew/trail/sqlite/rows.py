"""Rows and records: how a breadcrumb, a version and an event are read from SQLite."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import Corrupted
from clew.sqlite_file import Sql
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Ttl, View, checksum_of
from clew.trail.model.event import Event, EventType
from clew.trail.sqlite.engine import Writing, from_micros

EVENT_TYPES: tuple[EventType, ...] = ("breadcrumb.created", "breadcrumb.updated", "breadcrumb.deleted")

CURRENT = (
    "SELECT b.rid, b.id, b.audience, b.version, b.schema_name, b.title, b.context, b.tags, b.llm_hints, b.entities,"
    " b.entity_keywords, b.ttl_kind, b.expires_at, b.max_reads, b.read_count, b.checksum, b.created_at,"
    " b.updated_at, b.created_by, b.updated_by FROM breadcrumbs b"
)
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
"""Not yet expired, whether or not hygiene has come by."""

_decode = msgspec.json.Decoder().decode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode

Audience = tuple[str, tuple[str, ...]]


class Audiences(threading.local):
    """The owner-and-scopes pairs, and those of them that a caller may see. Each thread has a cache of its own:
    those of a transaction that may be undone are known to the writing thread alone."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop what this thread has read: a transaction that made audiences was undone; their ids may come again."""
        self._known: dict[int, Audience] = {}
        self._of_owner: dict[str, list[int]] = {}
        self._visible: dict[tuple[str, frozenset[str]], tuple[int, tuple[int, ...]]] = {}

    def of(self, connection: Sql, id: int) -> Audience:
        if id not in self._known:
            self._read_new(connection)
        return self._known[id]

    def may_see(self, connection: Sql, id: int, by: Principal) -> bool:
        """Whether a caller is of the audience's owner and holds all its scopes."""
        owner_id, scopes = self.of(connection, id)
        return owner_id == by.owner_id and by.scopes.issuperset(scopes)

    def visible(self, connection: Sql, owner_id: str, scopes: frozenset[str]) -> tuple[int, ...]:
        """The audiences of an owner whose scopes the caller holds, all of them."""
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
    """The id of an owner-and-scopes pair, made when new, and the id of the owner's first pair."""
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


def to_breadcrumb(row: Sequence[Any], audience: Audience) -> Breadcrumb:
    """The record of a row. Raises Corrupted when its content does not fit its checksum."""
    (_, id, _, version, schema_name, title, context, tags, llm_hints, entities, keywords, *rest) = row
    (
        ttl_kind,
        expires_at,
        max_reads,
        read_count,
        checksum,
        created_at,
        updated_at,
        created_by,
        updated_by,
    ) = rest
    checksum = to_checksum(checksum)
    hints = llm_hints.encode() if llm_hints is not None else None
    named = entities.encode() if entities is not None else None
    try:
        content = context.encode()
        tag_list = _decode_texts(tags)
        if checksum_of(id, title, content, tag_list, schema_name, hints, named) != checksum:
            raise Corrupted(f"the content of {id} version {version} does not fit its checksum")
        return Breadcrumb(
            id=id,
            owner_id=audience[0],
            title=title,
            context=_decode(content),
            tags=tag_list,
            schema_name=schema_name,
            version=version,
            scopes=audience[1],
            llm_hints=_decode(hints) if hints is not None else None,
            ttl=NEVER if ttl_kind == "never" else to_ttl(ttl_kind, expires_at, max_reads, read_count),
            entities=_decode(named) if named is not None else None,
            entity_keywords=_decode_texts(keywords),
            checksum=checksum,
            created_at=from_micros(created_at),
            updated_at=from_micros(updated_at),
            created_by=created_by,
            updated_by=updated_by,
        )
    except (msgspec.DecodeError, AttributeError) as error:
        raise Corrupted(f"the content of {id} version {version} cannot be read: {error}") from error


def to_view(id: str, row: Sequence[Any]) -> tuple[View, dict[str, Any] | None]:
    """A row of VIEWED as it is stored, and its own llm_hints. Raises Corrupted as `to_breadcrumb` does."""
    _, version, schema_name, title, context, tags, llm_hints, entities, _, checksum, updated_at = row
    hints = llm_hints.encode() if llm_hints is not None else None
    named = entities.encode() if entities is not None else None
    try:
        content = context.encode()
        tag_list = _decode_texts(tags)
        if checksum_of(id, title, content, tag_list, schema_name, hints, named) != to_checksum(checksum):
            raise Corrupted(f"the content of {id} version {version} does not fit its checksum")
        view = View(
            id=id,
            title=title,
            context=_decode(content),
            tags=tag_list,
            schema_name=schema_name,
            version=version,
            updated_at=from_micros(updated_at),
        )
        return view, _decode(hints) if hints is not None else None
    except (msgspec.DecodeError, AttributeError) as error:
        raise Corrupted(f"the content of {id} version {version} cannot be read: {error}") from error


def to_id(stored: bytes) -> str:
    """The id of an event's breadcrumb, which is stored as bytes, and by earlier versions as text."""
    digits = stored.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def to_checksum(stored: Any) -> str:
    """A checksum as it is shown. It is stored as bytes, and by earlier versions as text."""
    return stored.hex() if isinstance(stored, bytes) else str(stored)


def to_ttl(kind: Any, expires_at: int | None, max_reads: int | None, read_count: int) -> Ttl:
    return Ttl(
        kind=kind,
        expires_at=from_micros(expires_at) if expires_at is not None else None,
        max_reads=max_reads,
        read_count=read_count,
    )


def to_event(row: Sequence[Any], owner_id: str, breadcrumb: Breadcrumb | None) -> Event:
    """The event of a row (seq, type, rid, id, version, audience, schema_name, tags, at)."""
    seq, type_, _, id, version, _, schema_name, tags, at = row
    return Event(
        seq=seq,
        type=EVENT_TYPES[type_],
        breadcrumb_id=id if isinstance(id, str) else to_id(id),
        owner_id=owner_id,
        version=version,
        schema_name=schema_name,
        tags=_decode_texts(tags),
        at=from_micros(at),
        breadcrumb=breadcrumb,
    )


def find_version(connection: Sql, audiences: Audiences, rid: int, version: int) -> Breadcrumb | None:
    """A version of a breadcrumb, present or past, without asking who wants it."""
    row = connection.execute(f"{CURRENT} WHERE b.rid = ? AND b.version = ?", (rid, version)).fetchone()
    if row is None:
        row = connection.execute(f"{OLDER} WHERE v.rid = ? AND v.version = ?", (rid, version)).fetchone()
    return None if row is None else to_breadcrumb(row, audiences.of(connection, row[2]))
