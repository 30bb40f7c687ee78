"""The writes of one version: row, tags, vector and event. They run inside a transaction of the writing thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from clew.access import Principal
from clew.clock import to_micros
from clew.errors import AlreadyExists, EmbedderMismatch
from clew.trail.model.definitions import DEFINITIONS
from clew.trail.model.prepare import Prepared
from clew.trail.sqlite.definitions import NEWEST
from clew.trail.sqlite.engine import Writing
from clew.trail.sqlite.rows import ensure_audience

CREATED, UPDATED, DELETED = 0, 1, 2
ROW = (
    "INSERT INTO breadcrumbs (rid, id, owner, audience, version, schema_name, title, context, tags, llm_hints,"
    " entities, entity_keywords, ttl_kind, expires_at, max_reads, checksum, created_at, updated_at, created_by,"
    " updated_by) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
TAG = "INSERT INTO tags (audience, tag, rid) VALUES (?, ?, ?)"
VECTOR = "INSERT OR REPLACE INTO vectors (rid, vector) VALUES (?, ?)"
EVENT = (
    "INSERT INTO events (seq, type, rid, id, version, audience, schema_name, tags, at)"
    " VALUES (?, ?, ?, unhex(?, '-'), ?, ?, ?, ?, ?)"
)


FRESH = "fresh"
"""The memo of the records that this transaction has written: it maps a row id to a function that builds the record as a
read would."""


class Marks:
    """The state of the log in a transaction: its newest event, the newest event that changed a definition, and the rows
    that the transaction has added after the event `after`."""

    __slots__ = ("after", "head", "newest", "rows")

    def __init__(self, head: int, newest: int | None) -> None:
        self.after = self.head = head
        self.newest = newest
        self.rows: list[tuple[Any, ...]] = []

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.rows += rows
        self.head = rows[-1][0]
        for row in rows:
            if row[6] in DEFINITIONS:
                self.newest = row[0]


def marks(writing: Writing) -> Marks:
    """The current marks of the transaction. They continue those of the transaction before, or are read from the
    database."""
    found: Marks | None = writing.memo.get(Marks)
    if found is None:
        before: Marks | None = writing.known.get(Marks)
        if before is not None:
            head, newest = before.head, before.newest
        else:
            head, newest = writing.execute(f"SELECT coalesce(max(seq), 0), ({NEWEST}) FROM events").fetchone()
        found = writing.memo[Marks] = writing.known[Marks] = Marks(head, newest)
    return found


def insert(writing: Writing, prepared: Sequence[Prepared], by: Principal, space: str | None) -> int:
    """Write version 1 of breadcrumbs that have ids, all or none. Returns the row id of the first; the row ids of the
    others follow it. Raises AlreadyExists."""
    now, agent, log = writing.now, by.agent_id or None, marks(writing)
    first = 1 + log.head
    rows, tags, vectors, events = [], [], [], []
    for rid, each in enumerate(prepared, first):
        audience, owner = ensure_audience(writing, by.owner_id, each.scopes)
        ttl, end = each.ttl, each.ttl.expires_at
        rows.append(
            (
                *(rid, each.id, owner, audience, each.schema_name, each.title, each.context, each.tags_json),
                *(
                    each.llm_hints,
                    each.entities,
                    each.keywords_json,
                    ttl.kind,
                    to_micros(end) if end is not None else None,
                ),
                *(ttl.max_reads, bytes.fromhex(each.checksum), now, now, agent, agent),
            )
        )
        tags += [(audience, tag, rid) for tag in each.tags]
        if each.vector is not None:
            check_space(writing, each.vector, space)
            vectors.append((rid, each.vector))
        events.append((rid, CREATED, rid, each.id, 1, audience, each.schema_name, each.tags_json, now))
    try:
        writing.executemany(ROW, rows)
    except apsw.ConstraintError:
        raise _taken(writing, prepared, rows[0]) from None
    for sql, values in ((TAG, sorted(tags)), (VECTOR, vectors), (EVENT, events)):
        if values:
            writing.executemany(sql, values)
    log.add(events)
    writing.changed += range(first, first + len(rows))
    return first


def _taken(writing: Writing, prepared: Sequence[Prepared], first: tuple[Any, ...]) -> AlreadyExists:
    """The error that names the first id which another breadcrumb of the owner has, before or in this batch."""
    rid, _, owner, *_ = first
    seen: set[str] = set()
    for each in prepared:
        sql = "SELECT 1 FROM breadcrumbs WHERE id = ? AND owner = ? AND rid < ?"
        if each.id in seen or writing.execute(sql, (each.id, owner, rid)).get:
            break
        seen.add(each.id)
    return AlreadyExists("breadcrumb", each.id)


def replace(writing: Writing, row: Any, prepared: Prepared, by: Principal, space: str | None) -> None:
    """Keep the present version in the history and write the next one."""
    rid, id, old_audience, version, *_ = row
    execute, ttl = writing.execute, prepared.ttl
    execute(
        "INSERT INTO versions SELECT rid, version, schema_name, title, context, tags, llm_hints, entities,"
        " entity_keywords, checksum, updated_at, updated_by FROM breadcrumbs WHERE rid = ?",
        (rid,),
    )
    audience, _ = ensure_audience(writing, by.owner_id, prepared.scopes)
    execute(
        "UPDATE breadcrumbs SET audience = ?, version = ?, schema_name = ?, title = ?, context = ?, tags = ?,"
        " llm_hints = ?, entities = ?, entity_keywords = ?, ttl_kind = ?, expires_at = ?, max_reads = ?,"
        " read_count = read_count * ?, checksum = ?, updated_at = ?, updated_by = ? WHERE rid = ?",
        (
            audience,
            version + 1,
            prepared.schema_name,
            prepared.title,
            prepared.context,
            prepared.tags_json,
            prepared.llm_hints,
            prepared.entities,
            prepared.keywords_json,
            ttl.kind,
            to_micros(ttl.expires_at) if ttl.expires_at is not None else None,
            ttl.max_reads,
            not prepared.is_new_ttl,
            bytes.fromhex(prepared.checksum),
            writing.now,
            by.agent_id or None,
            rid,
        ),
    )
    if audience != old_audience:
        execute("UPDATE events SET audience = ? WHERE rid = ?", (audience, rid))
    drop_tags(writing, old_audience, rid, row[7])
    put_tags(writing, audience, rid, prepared.tags)
    execute("DELETE FROM terms WHERE rid = ?", (rid,))
    put_vector(writing, rid, prepared.vector, space)
    log_event(writing, UPDATED, rid, id, version + 1, audience, prepared.schema_name, prepared.tags_json)


def remove(writing: Writing, row: Any) -> None:
    """Delete a breadcrumb and everything that depends on it, and log the deletion."""
    rid, id, audience, version, schema_name, *_ = row
    writing.memo.get(FRESH, {}).pop(rid, None)
    drop_tags(writing, audience, rid, row[7])
    writing.execute("DELETE FROM breadcrumbs WHERE rid = ?", (rid,))
    log_event(writing, DELETED, rid, id, version, audience, schema_name, row[7])


def put_tags(writing: Writing, audience: int, rid: int, tags: tuple[str, ...]) -> None:
    if tags:
        writing.executemany(TAG, [(audience, tag, rid) for tag in tags])


def drop_tags(writing: Writing, audience: int, rid: int, tags_json: str) -> None:
    writing.execute(
        "DELETE FROM tags WHERE audience = ? AND rid = ? AND tag IN (SELECT value FROM json_each(?))",
        (audience, rid, tags_json),
    )


def put_vector(writing: Writing, rid: int, vector: bytes | None, space: str | None) -> None:
    """Store the vector of the next version. If it has none, delete the old vector."""
    if vector is None:
        writing.execute("DELETE FROM vectors WHERE rid = ?", (rid,))
    else:
        check_space(writing, vector, space)
        writing.execute(VECTOR, (rid, vector))


def check_space(writing: Writing, vector: bytes, space: str | None) -> None:
    """Check that a vector comes from the embedder of the trail. The first vector sets that embedder. Raises
    EmbedderMismatch."""
    wanted = space or f"external:{len(vector) // 4}"
    if writing.memo.get("embedder") == wanted:
        return
    present = writing.execute("SELECT value FROM meta WHERE key = 'embedder'").get
    if present is None:
        writing.execute("INSERT INTO meta VALUES ('embedder', ?)", (wanted,))
    elif present != wanted:
        raise EmbedderMismatch(str(present), wanted)
    writing.memo["embedder"] = wanted


def log_event(
    writing: Writing,
    type: int,
    rid: int,
    id: str,
    version: int,
    audience: int,
    schema_name: str | None,
    tags: str,
) -> None:
    log = marks(writing)
    row = (log.head + 1, type, rid, id, version, audience, schema_name, tags, writing.now)
    writing.execute(EVENT, row)
    log.add([row])
    writing.changed.append(rid)
