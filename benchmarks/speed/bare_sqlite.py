"""The yardstick: a script on the standard library's sqlite3 that does the same work with the same durability, and
nothing else: no checks, no owners, no versions.

Row with JSON and checksum, stemmed full text (FTS5, which keeps no second copy of the text), tags, vector, event.
"""

from __future__ import annotations

import hashlib
import json
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from speed.corpus import Item
from speed.durable import connect
from speed.stage import LOAD_BATCH, Stage, split

SCHEMA = """
CREATE TABLE records (
  rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, version INTEGER NOT NULL, schema_name TEXT,
  title TEXT NOT NULL, context TEXT NOT NULL, tags TEXT NOT NULL, checksum TEXT NOT NULL,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL
);
CREATE INDEX records_schema ON records (owner, schema_name);
CREATE TABLE tags (tag TEXT NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (tag, rid)) WITHOUT ROWID;
CREATE TABLE vectors (rid INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (title, text, content='', tokenize='porter unicode61');
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, type INTEGER NOT NULL, rid INTEGER NOT NULL, id TEXT NOT NULL,
  version INTEGER NOT NULL, tags TEXT NOT NULL, at INTEGER NOT NULL
);
"""


class BareSqlite:
    """See `speed.contenders.Store`."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._connection.executescript(SCHEMA)

    def prepare(self, items: Sequence[Item]) -> list[dict[str, Any]]:
        return [
            {
                "title": item.title,
                "context": {"description": item.text},
                "tags": item.tags,
                "schema_name": "note.v1",
                "embedding": item.vector.tolist(),
            }
            for item in items
        ]

    async def create(self, prepared: dict[str, Any]) -> str:
        self._connection.execute("BEGIN IMMEDIATE")
        id = self._insert(prepared)
        self._connection.execute("COMMIT")
        return id

    async def create_batch(self, prepared: Sequence[dict[str, Any]]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for each in prepared:
            self._insert(each)
        self._connection.execute("COMMIT")

    def _insert(self, record: dict[str, Any]) -> str:
        execute, id, now = self._connection.execute, str(uuid4()), time.time_ns() // 1000
        title, schema_name = record["title"], record["schema_name"]
        context, tags = json.dumps(record["context"], sort_keys=True), json.dumps(record["tags"])
        checksum = hashlib.sha256(f"{title}\0{context}\0{tags}\0{schema_name}".encode()).hexdigest()
        rid = execute(
            "INSERT INTO records (id, owner, version, schema_name, title, context, tags, checksum, created_at,"
            " updated_at) VALUES (?, 'local', 1, ?, ?, ?, ?, ?, ?, ?)",
            (id, schema_name, title, context, tags, checksum, now, now),
        ).lastrowid
        self._connection.executemany("INSERT INTO tags VALUES (?, ?)", [(tag, rid) for tag in record["tags"]])
        execute(
            "INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", (rid, title, record["context"]["description"])
        )
        execute("INSERT INTO vectors VALUES (?, ?)", (rid, array("f", record["embedding"]).tobytes()))
        execute("INSERT INTO events (type, rid, id, version, tags, at) VALUES (0, ?, ?, 1, ?, ?)", (rid, id, tags, now))
        return id

    async def close(self) -> None:
        self._connection.close()


async def open_store(stage: Stage) -> BareSqlite:
    store = BareSqlite(stage.folder / "bare.db")
    for some in split(stage.items, LOAD_BATCH):
        await store.create_batch(store.prepare(some))
    return store
