"""The writes of one version: row, tags, vector and event. They run inside a transaction of the writing thread."""

from __future__ import annotations

from typing import Any

from clew.access import Principal
from clew.errors import AlreadyExists, EmbedderMismatch
from clew.trail.prepare import Prepared
from clew.trail.sqlite.engine import Writing, to_micros
from clew.trail.sqlite.rows import ensure_audience

CREATED, UPDATED, DELETED = 0, 1, 2
INSERT = (
    "INSERT INTO breadcrumbs (id, audience, version, schema_name, title, context, tags, llm_hints, entities,"
    " entity_keywords, ttl_kind, expires_at, max_reads, read_count, checksum, created_at, updated_at, created_by,"
    " updated_by, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def insert(writing: Writing, prepared: Prepared, id: str, by: Principal, space: str | None) -> tuple[Any, ...]:
    """Write version 1 of a breadcrumb; its row, as `rows.CURRENT` would read it. Raises AlreadyExists."""
    execute, ttl, agent = writing.execute, prepared.ttl, by.agent_id or None
    audience, owner = ensure_audience(writing, by.owner_id, prepared.scopes)
    if prepared.id is not None and execute("SELECT 1 FROM breadcrumbs WHERE id = ? AND owner = ?", (id, owner)).get:
        raise AlreadyExists("breadcrumb", id)
    row = (
        id,
        audience,
        1,
        prepared.schema_name,
        prepared.title,
        prepared.context,
        prepared.tags_json,
        prepared.llm_hints,
        prepared.entities,
        prepared.keywords,
        ttl.kind,
        to_micros(ttl.expires_at) if ttl.expires_at is not None else None,
        ttl.max_reads,
        0,
        prepared.checksum,
        writing.now,
        writing.now,
        agent,
        agent,
    )
    execute(INSERT, (*row, owner))
    rid = writing.connection.last_insert_rowid()
    put_tags(writing, audience, rid, prepared.tags)
    put_vector(writing, rid, prepared.vector, space)
    log_event(writing, CREATED, rid, id, 1, audience, prepared.schema_name, prepared.tags_json)
    return (rid, *row)


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
        " read_count = ?, checksum = ?, updated_at = ?, updated_by = ? WHERE rid = ?",
        (
            audience,
            version + 1,
            prepared.schema_name,
            prepared.title,
            prepared.context,
            prepared.tags_json,
            prepared.llm_hints,
            prepared.entities,
            prepared.keywords,
            ttl.kind,
            to_micros(ttl.expires_at) if ttl.expires_at is not None else None,
            ttl.max_reads,
            ttl.read_count,
            prepared.checksum,
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
    put_vector(writing, rid, prepared.vector, space, replacing=True)
    log_event(writing, UPDATED, rid, id, version + 1, audience, prepared.schema_name, prepared.tags_json)


def remove(writing: Writing, row: Any) -> None:
    """Delete a breadcrumb with all that hangs on it, and log that it is gone."""
    rid, id, audience, version, schema_name, *_ = row
    drop_tags(writing, audience, rid, row[7])
    writing.execute("DELETE FROM breadcrumbs WHERE rid = ?", (rid,))
    log_event(writing, DELETED, rid, id, version, audience, schema_name, row[7])


def put_tags(writing: Writing, audience: int, rid: int, tags: tuple[str, ...]) -> None:
    if tags:
        rows = [(audience, tag, rid) for tag in tags]
        writing.executemany("INSERT INTO tags (audience, tag, rid) VALUES (?, ?, ?)", rows)


def drop_tags(writing: Writing, audience: int, rid: int, tags_json: str) -> None:
    writing.execute(
        "DELETE FROM tags WHERE audience = ? AND rid = ? AND tag IN (SELECT value FROM json_each(?))",
        (audience, rid, tags_json),
    )


def put_terms(writing: Writing, rows: list[tuple[bytes, int, int]]) -> None:
    """Store packed terms given as (terms, rid, version), where that is still the present version."""
    writing.executemany(
        "INSERT OR REPLACE INTO terms (terms, rid) SELECT ?1, rid FROM breadcrumbs WHERE rid = ?2 AND version = ?3",
        rows,
    )


def put_vector(writing: Writing, rid: int, vector: bytes | None, space: str | None, *, replacing: bool = False) -> None:
    """Store a vector of the trail's embedder. Raises EmbedderMismatch when the trail holds another's."""
    if vector is None:
        if replacing:
            writing.execute("DELETE FROM vectors WHERE rid = ?", (rid,))
        return
    wanted = space or f"external:{len(vector) // 4}"
    if writing.memo.get("embedder") != wanted:
        present = writing.execute("SELECT value FROM meta WHERE key = 'embedder'").get
        if present is None:
            writing.execute("INSERT INTO meta VALUES ('embedder', ?)", (wanted,))
        elif present != wanted:
            raise EmbedderMismatch(str(present), wanted)
        writing.memo["embedder"] = wanted
    writing.execute("INSERT OR REPLACE INTO vectors (rid, vector) VALUES (?, ?)", (rid, vector))


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
    writing.execute(
        "INSERT INTO events (type, rid, id, version, audience, schema_name, tags, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (type, rid, id, version, audience, schema_name, tags, writing.now),
    )
    writing.changed.append(rid)
