"""The writes of one version: row, tags, vector and event. They run in a transaction that holds the lock of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import to_micros
from clew.errors import AlreadyExists, EmbedderMismatch
from clew.trail.model.definitions import DEFINITIONS
from clew.trail.model.prepare import Prepared
from clew.trail.postgres.definitions import NEWEST
from clew.trail.postgres.rows import COLUMNS, AudienceIds
from clew.trail.postgres.transactions import LogEnd, WriteTransaction
from clew.trail.postgres.vectors import StoredVector

CREATED, UPDATED, DELETED = 0, 1, 2
ROW = (
    "INSERT INTO breadcrumbs (rid, id, owner, audience, version, schema_name, title, context, tags, llm_hints,"
    " entities, entity_keywords, ttl_kind, expires_at, max_reads, checksum, created_at, updated_at, created_by,"
    " updated_by, request_id, request_id_camel, pattern)"
    " VALUES (%s, %s, %s, %s, 1, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
TAGS = "INSERT INTO tags (audience, tag, rid) SELECT %s, unnest(%s::text[]), %s"
VECTOR = "INSERT INTO vectors (rid, audience, vector) VALUES (%s, %s, %b)"
EVENT = (
    "INSERT INTO events (seq, type, rid, id, version, audience, schema_name, tags, at)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
MARK = (
    "INSERT INTO definition_marks (owner_id, seq) VALUES (%s, %s)"
    " ON CONFLICT (owner_id) DO UPDATE SET seq = excluded.seq"
)
KEYS = ("request_id", "requestId", "pattern")
INDEXED_DIMENSIONS = 4_000
"""The longest vectors that pgvector indexes as halfvec."""


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def find_keys(context: str) -> tuple[str | None, ...]:
    """The values of a context that have a column and an index of their own: texts without NUL."""
    if not any(f'"{name}"' in context for name in KEYS):
        return (None,) * len(KEYS)
    values = _decode(context)
    found = (values.get(name) for name in KEYS)
    return tuple(value if isinstance(value, str) and "\0" not in value else None for value in found)


def log_end(writing: WriteTransaction) -> LogEnd:
    if writing.log is None:
        raise AssertionError("only a unit of work given to `append` may write events")
    return writing.log


def newest_definition(writing: WriteTransaction, owner_id: str) -> int | None:
    """The event that last changed a definition of an owner; read once."""
    key = "newest", owner_id
    if key not in writing.memo:
        writing.memo[key] = writing.value(NEWEST, {"owner": owner_id})
    found: int | None = writing.memo[key]
    return found


def insert(
    writing: WriteTransaction, audiences: AudienceIds, prepared: Sequence[Prepared], by: Principal, space: str | None
) -> int:
    """Write version 1 of breadcrumbs that have their ids, all of them or none; the row of the first, the others follow.
    Raises AlreadyExists."""
    now, agent, first = writing.now, by.agent_id or None, log_end(writing).head + 1
    rows, tags, vectors, events = [], [], [], []
    for rid, each in enumerate(prepared, first):
        audience, owner = audiences.ensure(writing, by.owner_id, each.scopes)
        ttl, end = each.ttl, each.ttl.expires_at
        rows.append(
            (
                *(rid, each.id, owner, audience, each.schema_name, each.title, each.context, each.tags_json),
                *(each.llm_hints, each.entities, each.keywords_json, ttl.kind),
                *(to_micros(end) if end is not None else None, ttl.max_reads, bytes.fromhex(each.checksum)),
                *(now, now, agent, agent, *find_keys(each.context)),
            )
        )
        if each.tags:
            tags.append((audience, list(each.tags), rid))
        if each.vector is not None:
            check_space(writing, each.vector, space)
            vectors.append((rid, audience, StoredVector(each.vector)))
        events.append((rid, CREATED, rid, each.id, 1, audience, each.schema_name, each.tags_json, now))
    if writing.careful:
        _refuse_taken(writing, [each.id for each in prepared], owner)
    for sql, values in ((ROW, rows), (TAGS, tags), (VECTOR, vectors)):
        writing.send_many(sql, values)
    _log(writing, events, by.owner_id)
    return first


def _refuse_taken(writing: WriteTransaction, ids: Sequence[str], owner: int) -> None:
    """Raise AlreadyExists for the first id that another breadcrumb of the owner has, before or in this batch."""
    with writing.acting_for(None):
        sql = "SELECT id FROM breadcrumbs WHERE id = ANY (%s) AND owner = %s"
        taken = {id for (id,) in writing.rows(sql, (list(ids), owner))}
    for id in ids:
        if id in taken:
            raise AlreadyExists("breadcrumb", id)
        taken.add(id)


def replace(
    writing: WriteTransaction,
    audiences: AudienceIds,
    row: Sequence[Any],
    prepared: Prepared,
    by: Principal,
    space: str | None,
) -> None:
    """Keep the present version in the history and write the next one."""
    rid, id, old_audience, version, *_ = row
    audience, _ = audiences.ensure(writing, by.owner_id, prepared.scopes)
    # whoever may change a record may give it scopes that it lacks itself
    writing.act_for(msgspec.structs.replace(by, scopes=by.scopes.union(prepared.scopes)))
    writing.send(
        "INSERT INTO versions SELECT rid, version, schema_name, title, context, tags, llm_hints, entities,"
        " entity_keywords, checksum, updated_at, updated_by FROM breadcrumbs WHERE rid = %s",
        (rid,),
    )
    _update_row(writing, rid, audience, version + 1, prepared, by)
    if audience != old_audience:
        writing.send("UPDATE events SET audience = %s WHERE rid = %s", (audience, rid))
    writing.send("DELETE FROM tags WHERE rid = %s", (rid,))
    if prepared.tags:
        writing.send(TAGS, (audience, list(prepared.tags), rid))
    writing.send("DELETE FROM vectors WHERE rid = %s", (rid,))
    if prepared.vector is not None:
        check_space(writing, prepared.vector, space)
        writing.send(VECTOR, (rid, audience, StoredVector(prepared.vector)))
    log_event(writing, UPDATED, rid, id, version + 1, audience, prepared.schema_name, prepared.tags_json, by.owner_id)
    writing.act_for(writing.by)


def _update_row(
    writing: WriteTransaction, rid: int, audience: int, version: int, prepared: Prepared, by: Principal
) -> None:
    ttl = prepared.ttl
    writing.send(
        "UPDATE breadcrumbs SET audience = %s, version = %s, schema_name = %s, title = %s, context = %s, tags = %s,"
        " llm_hints = %s, entities = %s, entity_keywords = %s, ttl_kind = %s, expires_at = %s, max_reads = %s,"
        " read_count = read_count * %s, checksum = %s, updated_at = %s, updated_by = %s, request_id = %s,"
        " request_id_camel = %s, pattern = %s WHERE rid = %s",
        (
            audience,
            version,
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
            0 if prepared.is_new_ttl else 1,
            bytes.fromhex(prepared.checksum),
            writing.now,
            by.agent_id or None,
            *find_keys(prepared.context),
            rid,
        ),
    )


def remove(writing: WriteTransaction, row: Sequence[Any]) -> None:
    """Delete a breadcrumb with all that hangs on it, and log that it is gone."""
    rid, id, audience, version, schema_name, *_ = row
    writing.send("DELETE FROM tags WHERE rid = %s", (rid,))
    writing.send("DELETE FROM breadcrumbs WHERE rid = %s", (rid,))
    log_event(writing, DELETED, rid, id, version, audience, schema_name, row[7], row[COLUMNS])


def check_space(writing: WriteTransaction, vector: bytes, space: str | None) -> None:
    """Vectors of one trail are of one embedder. Raises EmbedderMismatch when the trail holds another's."""
    wanted = space or f"external:{len(vector) // 4}"
    if writing.memo.get("embedder") == wanted:
        return
    present = writing.value("SELECT value FROM meta WHERE key = 'embedder'")
    if present is None:
        writing.send("INSERT INTO meta VALUES ('embedder', %s)", (wanted,))
        index_vectors(writing, len(vector) // 4)
    elif present != wanted:
        raise EmbedderMismatch(str(present), wanted)
    writing.memo["embedder"] = wanted


def index_vectors(writing: WriteTransaction, dimension: int) -> None:
    """Make the index of the nearest vectors for those of this length."""
    writing.send("DROP INDEX IF EXISTS vectors_near")
    if dimension <= INDEXED_DIMENSIONS:
        writing.send(
            f"CREATE INDEX vectors_near ON vectors USING hnsw ((vector::halfvec({int(dimension)})) halfvec_cosine_ops)"
            f" WHERE vector_dims(vector) = {int(dimension)}"
        )


def log_event(
    writing: WriteTransaction,
    type: int,
    rid: int,
    id: str,
    version: int,
    audience: int,
    schema_name: str | None,
    tags: str,
    owner_id: str,
) -> None:
    seq = log_end(writing).head + 1
    _log(writing, [(seq, type, rid, id, version, audience, schema_name, tags, writing.now)], owner_id)


def _log(writing: WriteTransaction, events: Sequence[tuple[Any, ...]], owner_id: str) -> None:
    log = log_end(writing)
    writing.send_many(EVENT, events)
    log.head, log.at = events[-1][0], writing.now
    for event in events:
        writing.changed.append(event[2])
        if event[6] in DEFINITIONS:
            writing.send(MARK, (owner_id, event[0]))
            writing.memo["newest", owner_id] = event[0]
