"""PostgreSQL 18 with pgvector on a private server: the same tables with a generated tsvector and its GIN index, and
`synchronous_commit` on. One record is one prepared statement; a batch is COPY, as the manual advises.

It comes twice: as it is, with vectors that only a full scan can search, and with the HNSW index that makes a written
vector as quick to find there as it is in the other stores."""

from __future__ import annotations

import hashlib
import json
import struct
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo
from psycopg.types.json import Jsonb

from speed.corpus import Item
from speed.postgres_server import PostgresServer
from speed.stage import LOAD_BATCH, Stage, split

EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"
SCHEMA = """
CREATE TABLE records (
  rid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, owner text NOT NULL,
  version integer NOT NULL, schema_name text, title text NOT NULL, context jsonb NOT NULL, tags text[] NOT NULL,
  checksum text NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL, embedding vector(256) NOT NULL,
  words tsvector GENERATED ALWAYS AS (to_tsvector('english', title || ' ' || (context ->> 'description'))) STORED
);
CREATE INDEX records_schema ON records (owner, schema_name);
CREATE INDEX records_words ON records USING gin (words);
CREATE TABLE tags (tag text NOT NULL, rid bigint NOT NULL, PRIMARY KEY (tag, rid));
CREATE TABLE events (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, type integer NOT NULL, rid bigint NOT NULL, id text NOT NULL,
  version integer NOT NULL, tags text[] NOT NULL, at bigint NOT NULL
);
"""

INDEXED = "postgres-hnsw"
VECTOR_INDEX = "CREATE INDEX records_embedding ON records USING hnsw (embedding vector_cosine_ops)"

INSERT = """
WITH record AS (
  INSERT INTO records (id, owner, version, schema_name, title, context, tags, checksum, created_at, updated_at,
                       embedding)
  VALUES (%(id)s, %(owner)s, %(version)s, %(schema_name)s, %(title)s, %(context)s, %(tags)s, %(checksum)s, %(now)s,
          %(now)s, %(embedding)s)
  RETURNING rid
), tagged AS (
  INSERT INTO tags SELECT DISTINCT tag, rid FROM record, unnest(%(tags)s) AS tag
)
INSERT INTO events (type, rid, id, version, tags, at) SELECT 0, rid, %(id)s, 1, %(tags)s, %(now)s FROM record
"""


RIDS = "SELECT nextval('records_rid_seq') FROM generate_series(1, %s)"
COPIED = ("id", "owner", "version", "schema_name", "title", "context", "tags", "checksum", "now", "now", "embedding")
COPIES = {
    "COPY records (rid, id, owner, version, schema_name, title, context, tags, checksum, created_at, updated_at,"
    " embedding) FROM STDIN (FORMAT BINARY)": "int8 text text int4 text text jsonb text[] text int8 int8 vector",
    "COPY tags FROM STDIN (FORMAT BINARY)": "text int8",
    "COPY events (type, rid, id, version, tags, at) FROM STDIN (FORMAT BINARY)": "int4 int8 text int4 text[] int8",
}


class Postgres:
    """See `speed.contenders.Store`."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.name = name
        self._server = server
        self._connection = psycopg.connect(server.conninfo, autocommit=True, prepare_threshold=0)
        self._connection.execute(EXTENSION, prepare=False)
        self._connection.execute(SCHEMA, prepare=False)
        teach_vectors(self._connection)

    async def load(self, items: Sequence[Item]) -> None:
        for some in split(items, LOAD_BATCH):
            await self.create_batch(some)
        if self.name == INDEXED:
            self._connection.execute("SET maintenance_work_mem = '1GB'", prepare=False)
            self._connection.execute(VECTOR_INDEX, prepare=False)
        self._connection.execute("VACUUM ANALYZE", prepare=False)

    def prepare(self, items: Sequence[Item]) -> list[Item]:
        return list(items)

    async def create(self, prepared: Item) -> str:
        self._connection.execute(INSERT, self._values(prepared))
        return prepared.id

    async def create_batch(self, prepared: Sequence[Item]) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            rids = cursor.execute(RIDS, (len(prepared),)).fetchall()
            records, tags, events = [], [], []
            for (rid,), item in zip(rids, prepared, strict=True):
                each = self._values(item)
                records.append((rid, *(each[name] for name in COPIED)))
                tags += [(tag, rid) for tag in dict.fromkeys(item.tags)]
                events.append((0, rid, item.id, 1, each["tags"], each["now"]))
            for (sql, types), rows in zip(COPIES.items(), (records, tags, events), strict=True):
                with cursor.copy(sql) as copy:
                    copy.set_types(types.split())
                    for row in rows:
                        copy.write_row(row)

    def _values(self, item: Item) -> dict[str, Any]:
        context = {"description": item.text}
        summed = f"{item.title}\0{json.dumps(context, sort_keys=True)}\0{item.tags}\0note.v1"
        return {
            "id": item.id,
            "owner": "local",
            "version": 1,
            "schema_name": "note.v1",
            "title": item.title,
            "context": Jsonb(context),
            "tags": list(item.tags),
            "checksum": hashlib.sha256(summed.encode()).hexdigest(),
            "now": time.time_ns() // 1000,
            "embedding": item.vector,
        }

    async def close(self) -> None:
        self._connection.close()
        self._server.stop()


def teach_vectors(connection: psycopg.Connection) -> None:
    """Send arrays in the binary form of pgvector, which spares both sides the text."""
    found = TypeInfo.fetch(connection, "vector")
    assert found is not None, "the extension was created before"
    found.register(connection)

    class VectorDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: Any) -> bytes:
            return struct.pack(">HH", len(obj), 0) + bytes(obj.astype(">f4"))

    VectorDumper.oid = found.oid
    connection.adapters.register_dumper(np.ndarray, VectorDumper)


async def open_store(stage: Stage) -> Postgres:
    return await open_named(stage, "postgres")


async def open_indexed(stage: Stage) -> Postgres:
    return await open_named(stage, INDEXED)


async def open_named(stage: Stage, name: str) -> Postgres:
    server = PostgresServer(stage.folder / name)
    try:
        store = Postgres(server, name)
        await store.load(stage.items)
    except BaseException:
        server.stop()
        raise
    return store
