"""PostgreSQL 18 with pgvector on a private server: the same tables with a generated tsvector and its GIN index, and
`synchronous_commit` on. One statement a record, prepared; a batch is one pipelined transaction of them."""

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

from speed.corpus import Item
from speed.postgres_server import PostgresServer
from speed.stage import LOAD_BATCH, Stage, split

SCHEMA = """
CREATE EXTENSION vector;
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

INSERT = """
WITH record AS (
  INSERT INTO records (id, owner, version, schema_name, title, context, tags, checksum, created_at, updated_at, embedding)
  VALUES (%(id)s, 'local', 1, %(schema_name)s, %(title)s, %(context)s::text::jsonb, %(tags)s, %(checksum)s,
          %(now)s, %(now)s, %(embedding)s)
  RETURNING rid
), tagged AS (
  INSERT INTO tags SELECT DISTINCT tag, rid FROM record, unnest(%(tags)s) AS tag
)
INSERT INTO events (type, rid, id, version, tags, at) SELECT 0, rid, %(id)s, 1, %(tags)s, %(now)s FROM record
"""


class Postgres:
    """See `speed.contenders.Store`."""

    name = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._connection = psycopg.connect(server.conninfo, autocommit=True, prepare_threshold=0)
        self._connection.execute(SCHEMA, prepare=False)
        teach_vectors(self._connection)

    def prepare(self, items: Sequence[Item]) -> list[Item]:
        return list(items)

    async def create(self, prepared: Item) -> str:
        self._connection.execute(INSERT, self._values(prepared))
        return prepared.id

    async def create_batch(self, prepared: Sequence[Item]) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(INSERT, [self._values(item) for item in prepared])

    def _values(self, item: Item) -> dict[str, Any]:
        context = json.dumps({"description": item.text}, sort_keys=True)
        summed = f"{item.title}\0{context}\0{item.tags}\0note.v1"
        return {
            "id": item.id,
            "schema_name": "note.v1",
            "title": item.title,
            "context": context,
            "tags": list(item.tags),
            "checksum": hashlib.sha256(summed.encode()).hexdigest(),
            "now": time.time_ns() // 1000,
            "embedding": item.vector,
        }

    async def close(self) -> None:
        self._connection.close()
        self._server.stop()


def teach_vectors(connection: psycopg.Connection) -> None:
    """Send arrays as pgvector's binary form, which costs a tenth of its text."""
    found = TypeInfo.fetch(connection, "vector")
    assert found is not None, "the extension was created before"

    class VectorDumper(Dumper):
        format = Format.BINARY
        oid = found.oid

        def dump(self, obj: Any) -> bytes:
            return struct.pack(">HH", len(obj), 0) + obj.astype(">f4").tobytes()

    connection.adapters.register_dumper(np.ndarray, VectorDumper)


async def open_store(stage: Stage) -> Postgres:
    server = PostgresServer(stage.folder / "postgres")
    try:
        store = Postgres(server)
        for some in split(stage.items, LOAD_BATCH):
            await store.create_batch(some)
        store._connection.execute("VACUUM ANALYZE", prepare=False)
    except BaseException:
        server.stop()
        raise
    return store
