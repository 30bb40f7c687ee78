"""The yardstick for handlers: a loop on sqlite3 that commits twice for each event, with the trail's durability."""

from __future__ import annotations

import json
import time
from pathlib import Path

from speed.durable import connect

SCHEMA = """
CREATE TABLE records (rid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, content TEXT NOT NULL);
CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, rid INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE consumers (name TEXT PRIMARY KEY, cursor INTEGER NOT NULL);
INSERT INTO consumers VALUES ('bench', 0);
"""
NEXT = (
    "SELECT e.seq, r.content FROM events e JOIN records r ON r.rid = e.rid"
    " WHERE e.seq > (SELECT cursor FROM consumers WHERE name = 'bench') ORDER BY e.seq LIMIT 1"
)


class BareLoop:
    """Writes a record with its event, commits; takes the next event, moves the cursor, commits."""

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._connection.executescript(SCHEMA)
        self._written = 0

    def rate(self, count: int) -> float:
        """Events a second."""
        began = time.perf_counter()
        for _ in range(count):
            self.write()
            self.handle()
        return count / (time.perf_counter() - began)

    def write(self) -> float:
        """Write an event; the seconds that it took."""
        execute, began = self._connection.execute, time.perf_counter()
        self._written += 1
        content = json.dumps({"title": f"ping {self._written}", "context": {"n": 1}, "tags": ["kind:ping"]})
        execute("BEGIN IMMEDIATE")
        rid = execute("INSERT INTO records (id, content) VALUES (?, ?)", (f"id-{self._written}", content)).lastrowid
        execute("INSERT INTO events (rid, at) VALUES (?, ?)", (rid, time.time()))
        execute("COMMIT")
        return time.perf_counter() - began

    def handle(self) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        seq, content = execute(NEXT).fetchone()
        json.loads(content)
        execute("UPDATE consumers SET cursor = ? WHERE name = 'bench'", (seq,))
        execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
