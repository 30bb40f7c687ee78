"""Rows of PostgreSQL: the columns that records are made of, and the conditions for what a caller may see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.access import Principal
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.rows import to_breadcrumb
from clew.trail.postgres.transactions import ReadTransaction, WriteTransaction, pack_texts

COLUMNS = 20
CURRENT = (
    "SELECT b.rid, b.id, b.audience, b.version, b.schema_name, b.title, b.context, b.tags, b.llm_hints, b.entities,"
    " b.entity_keywords, b.ttl_kind, b.expires_at, b.max_reads, b.read_count, b.checksum, b.created_at,"
    " b.updated_at, b.created_by, b.updated_by, a.owner_id, a.scopes"
    " FROM breadcrumbs b JOIN audiences a ON a.id = b.audience"
)
OLDER = (
    "SELECT b.rid, b.id, b.audience, v.version, v.schema_name, v.title, v.context, v.tags, v.llm_hints, v.entities,"
    " v.entity_keywords, b.ttl_kind, b.expires_at, b.max_reads, b.read_count, v.checksum, b.created_at,"
    " v.updated_at, b.created_by, v.updated_by, a.owner_id, a.scopes"
    " FROM versions v JOIN breadcrumbs b ON b.rid = v.rid JOIN audiences a ON a.id = b.audience"
)
VIEWED = (
    "SELECT b.audience, b.version, b.schema_name, b.title, b.context, b.tags, b.llm_hints, b.entities, b.max_reads,"
    " b.checksum, b.updated_at"
)
ALIVE = "(b.expires_at IS NULL OR b.expires_at > %(now)s) AND (b.max_reads IS NULL OR b.read_count < b.max_reads)"
"""Matches records that have not expired. Hygiene may not have removed the others yet."""

SEEN = "b.audience = ANY ((SELECT audiences_of(%(owner)s, %(scopes)s))::integer[])"
"""Matches records of the audiences that the caller belongs to. `seen_by` returns its values."""

FIND_AUDIENCE = (
    "SELECT (SELECT id FROM audiences WHERE owner_id = %(owner)s AND scopes = %(scopes)s::text[]),"
    " (SELECT min(id) FROM audiences WHERE owner_id = %(owner)s)"
)
ADD_AUDIENCE = "INSERT INTO audiences (owner_id, scopes) VALUES (%(owner)s, %(scopes)s::text[]) RETURNING id"

Pair = tuple[str, tuple[str, ...]]


def seen_by(by: Principal) -> dict[str, Any]:
    """The values of SEEN."""
    return {"owner": by.owner_id, "scopes": pack_texts(by.scopes)}


def to_record(row: Sequence[Any]) -> Breadcrumb:
    """The record of a row of CURRENT or OLDER. Raises Corrupted when its content does not fit its checksum."""
    return to_breadcrumb(row[:COLUMNS], (row[COLUMNS], tuple(row[COLUMNS + 1])))


class AudienceIds:
    """A cache of the ids of owner-and-scopes pairs. It has only committed pairs, whose ids never change."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._known: dict[Pair, tuple[int, int]] = {}

    def ensure(self, writing: WriteTransaction, owner_id: str, scopes: tuple[str, ...]) -> tuple[int, int]:
        """The id of an owner-and-scopes pair, which is created if it is new, and the id of the owner's first pair. The
        caller holds the lock of the log."""
        pair = owner_id, scopes
        found: tuple[int, int] | None = self._known.get(pair) or writing.memo.get(pair)
        if found is None:
            values = {"owner": owner_id, "scopes": pack_texts(scopes)}
            audience, first = writing.row(FIND_AUDIENCE, values) or (None, None)
            if audience is not None:
                found = audience, first
                if ("new", owner_id) not in writing.memo:
                    self._remember(pair, found)
            else:
                audience = writing.change(ADD_AUDIENCE, values)
                found = writing.memo[pair] = audience, audience if first is None else first
                writing.memo["new", owner_id] = True  # until the commit neither may be remembered
        return found

    def _remember(self, pair: Pair, ids: tuple[int, int]) -> None:
        if len(self._known) >= self._limit:
            self._known = {}
        self._known[pair] = ids


def find_version(reading: ReadTransaction, rid: int, version: int) -> Breadcrumb | None:
    """A version of a breadcrumb, present or past, that the caller of the transaction may see."""
    row = reading.row(f"{CURRENT} WHERE b.rid = %s AND b.version = %s", (rid, version))
    if row is None:
        row = reading.row(f"{OLDER} WHERE v.rid = %s AND v.version = %s", (rid, version))
    return None if row is None else to_record(row)
