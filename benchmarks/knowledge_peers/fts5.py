"""SQLite's own BM25 over paths and contents, with porter stems and without stop words."""

from __future__ import annotations

import sqlite3

from knowledge_peers.contender import FOUND
from knowledge_peers.words import words_of


class Fts5:
    def __init__(self) -> None:
        self._sql = sqlite3.connect(":memory:")
        self._sql.execute("CREATE VIRTUAL TABLE t USING fts5(path, body, tokenize='porter unicode61')")
        self._rows: dict[str, int] = {}

    def put(self, path: str, body: bytes) -> None:
        self.drop(path)
        text = body.decode("utf-8", errors="replace")
        self._rows[path] = int(self._sql.execute("INSERT INTO t VALUES (?, ?)", (path, text)).lastrowid or 0)

    def drop(self, path: str) -> None:
        self._sql.execute("DELETE FROM t WHERE rowid = ?", (self._rows.pop(path, -1),))

    def settle(self) -> None:
        self._sql.commit()

    def search(self, question: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in words_of(question))
        sql = f"SELECT path FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT {FOUND}"
        return [path for (path,) in self._sql.execute(sql, (match,))] if match else []

    def close(self) -> None:
        self._sql.close()
