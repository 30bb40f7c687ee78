"""The writes of one version: row, tags, vector and event. They run in a transaction that holds the lock of the log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
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
from clew.trail.work.recent_events import to_envelope

CREATED, UPDATED, DELETED = 0, 1, 2
COLUMNS_OF_ROW = (
    "rid, id, owner, audience, version, schema_name, title, context, tags, llm_hints, entities, entity_keywords,"
    " ttl_kind, expires_at, max_reads, checksum, created_at, updated_at, created_by, updated_by, request_id,"
    " request_id_camel, pattern"
)
CREATE = (
    "WITH {vector}tagged AS (INSERT INTO tags (audience, tag, rid)"
    " SELECT %(audience)s, unnest(%(tag_list)s::text[]), %(rid)s),"
    " logged AS (INSERT INTO events (seq, type, rid, id, version, audience, schema_name, tags, at)"
    " VALUES (%(rid)s, 0, %(rid)s, %(id)s, 1, %(audience)s, %(schema_name)s, %(tags)s, %(now)s))"
    f" INSERT INTO breadcrumbs ({COLUMNS_OF_ROW}) VALUES (%(rid)s, %(id)s, %(owner)s, %(audience)s, 1, %(schema_name)s,"
    " %(title)s, %(context)s, %(tags)s, %(llm_hints)s, %(entities)s, %(keywords)s, %(ttl_kind)s, %(expires_at)s,"
    " %(max_reads)s, %(checksum)s, %(now)s, %(now)s, %(agent)s, %(agent)s, %(request_id)s, %(request_id_camel)s,"
    " %(pattern)s)"
)
"""A new breadcrumb with its tags, its vector and its event, in one statement."""
CREATE_PLAIN = CREATE.format(vector="")
CREATE_EMBEDDED = CREATE.format(
    vector="embedded AS (INSERT INTO vectors (rid, audience, vector) VALUES (%(rid)s, %(audience)s, %(vector)b)), "
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
    """Write version 1 of breadcrumbs that have ids, all or none. Returns the row id of the first; the row ids of the
    others follow it. Raises AlreadyExists."""
    first, owner, agent = log_end(writing).head + 1, 0, by.agent_id or None
    rows = []
    for rid, each in enumerate(prepared, first):
        audience, owner = audiences.ensure(writing, by.owner_id, each.scopes)
        if each.vector is not None:
            check_space(writing, each.vector, space)
        rows.append(_to_row(each, rid, audience, owner, writing.now, agent))
    if writing.careful:
        _refuse_taken(writing, [each.id for each in prepared], owner)
    for has_vector, some in groupby(rows, key=lambda row: row["vector"] is not None):
        writing.send_many(CREATE_EMBEDDED if has_vector else CREATE_PLAIN, list(some))
    _note_events(
        writing,
        [(row["rid"], row["rid"], row["schema_name"], row["tags"]) for row in rows],
        rows[-1]["id"],
        by.owner_id,
    )
    return first


def _to_row(prepared: Prepared, rid: int, audience: int, owner: int, now: int, agent: str | None) -> dict[str, Any]:
    ttl, end = prepared.ttl, prepared.ttl.expires_at
    request_id, request_id_camel, pattern = find_keys(prepared.context)
    return {
        "rid": rid,
        "id": prepared.id,
        "owner": owner,
        "audience": audience,
        "schema_name": prepared.schema_name,
        "title": prepared.title,
        "context": prepared.context,
        "tags": prepared.tags_json,
        "tag_list": list(prepared.tags),
        "llm_hints": prepared.llm_hints,
        "entities": prepared.entities,
        "keywords": prepared.keywords_json,
        "ttl_kind": ttl.kind,
        "expires_at": to_micros(end) if end is not None else None,
        "max_reads": ttl.max_reads,
        "checksum": bytes.fromhex(prepared.checksum),
        "now": now,
        "agent": agent,
        "request_id": request_id,
        "request_id_camel": request_id_camel,
        "pattern": pattern,
        "vector": StoredVector(prepared.vector) if prepared.vector is not None else None,
    }


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
    # a caller who may change a record may give it scopes that the caller lacks
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
    """Delete a breadcrumb and everything that depends on it, and log the deletion."""
    rid, id, audience, version, schema_name, *_ = row
    writing.send("DELETE FROM tags WHERE rid = %s", (rid,))
    writing.send("DELETE FROM breadcrumbs WHERE rid = %s", (rid,))
    log_event(writing, DELETED, rid, id, version, audience, schema_name, row[7], row[COLUMNS])


def check_space(writing: WriteTransaction, vector: bytes, space: str | None) -> None:
    """Check that a vector comes from the embedder of the trail. The first vector sets that embedder. Raises
    EmbedderMismatch."""
    wanted = space or f"external:{len(vector) // 4}"
    if "embedder" not in writing.memo:
        writing.memo["embedder"] = writing.value("SELECT value FROM meta WHERE key = 'embedder'")
    present = writing.memo["embedder"]
    if present is None:
        writing.send("INSERT INTO meta VALUES ('embedder', %s)", (wanted,))
        index_vectors(writing, len(vector) // 4)
    elif present != wanted:
        raise EmbedderMismatch(str(present), wanted)
    writing.memo["embedder"] = wanted


def index_vectors(writing: WriteTransaction, dimension: int) -> None:
    """Create the nearest-neighbour index again for vectors of this dimension. Vectors with more than INDEXED_DIMENSIONS
    numbers get no index."""
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
    writing.send(EVENT, (seq, type, rid, id, version, audience, schema_name, tags, writing.now))
    _note_events(writing, [(seq, rid, schema_name, tags)], id, owner_id)


def _note_events(
    writing: WriteTransaction, events: Sequence[tuple[int, int, str | None, str]], last: str, owner_id: str
) -> None:
    """Record appended events (seq, rid, schema_name, tags) of an owner in the end of the log. `last` is the record of
    the last event."""
    log = log_end(writing)
    log.head, log.at, log.id = events[-1][0], writing.now, last
    for seq, rid, schema_name, tags in events:
        writing.changed.append(rid)
        log.events.append(to_envelope(seq, schema_name, tags))
        if schema_name in DEFINITIONS:
            writing.send(MARK, (owner_id, seq))
            writing.memo["newest", owner_id] = seq
