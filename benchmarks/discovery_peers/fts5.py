"""SQLite's own BM25: as it comes, and at its best."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

from clew.trail.search.text import STOP, split_text
from discovery_peers.data import Row


class Fts5:
    """`tuned` adds porter stems, split names and no stop words; without it every word of the question counts. With
    `texts`, the body is part of the description."""

    def __init__(self, rows: Sequence[Row], *, tuned: bool, texts: bool = False) -> None:
        self._tuned = tuned
        self._ids = [row.id for row in rows]
        self._database = sqlite3.connect(":memory:")
        tokenizer = "porter unicode61" if tuned else "unicode61"
        self._database.execute(f"CREATE VIRTUAL TABLE t USING fts5(name, description, tokenize='{tokenizer}')")
        self._database.executemany(
            "INSERT INTO t (rowid, name, description) VALUES (?, ?, ?)",
            [
                (at, self._name(row), f"{row.description}\n{row.text}" if texts else row.description)
                for at, row in enumerate(rows)
            ],
        )

    def _name(self, row: Row) -> str:
        return f"{row.name} {' '.join(split_text(row.name).parts)}" if self._tuned else row.name

    async def rank(self, query: str) -> list[str]:
        words = dict.fromkeys(re.findall(r"\w+", query.lower().replace("_", " ")))
        terms = [word for word in words if word not in STOP] if self._tuned else []
        match = " OR ".join(f'"{term}"' for term in (terms or list(words))[:200])
        sql = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT 10"
        return [self._ids[row] for (row,) in self._database.execute(sql, (match,))] if match else []
