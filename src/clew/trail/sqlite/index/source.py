"""A SQLite trail as its search index and the filters of searches read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np

from clew.sqlite_file import Sql
from clew.trail.model.selector import Selector
from clew.trail.search.columns import IndexRow
from clew.trail.search.masks import PlainCondition, plain_conditions
from clew.trail.search.ranking import Ints
from clew.trail.sqlite.index.terms import TermStore
from clew.trail.sqlite.log import read_head
from clew.trail.sqlite.rows import in_list
from clew.trail.sqlite.selector_sql import build_where

LOAD_BATCH = 1_000
LOAD = (
    "SELECT b.rid, b.audience, iif(b.read_count >= b.max_reads, 0, b.expires_at), t.terms, v.vector FROM breadcrumbs b"
    " LEFT JOIN terms t ON t.rid = b.rid LEFT JOIN vectors v ON v.rid = b.rid"
)


class SqliteSource:
    """See `clew.trail.search.search_index.IndexSource` and `clew.trail.search.masks.MaskSource`. `visible` are the
    audiences of the caller."""

    def __init__(self, connection: Sql, terms: TermStore, visible: Sequence[int] = ()) -> None:
        self._connection = connection
        self._terms = terms
        self._visible = visible
        self.viewer = None  # who sees the same audiences sees the same records

    # -- for the index ------------------------------------------------------------------------------------

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def position(self) -> int:
        return read_head(self._connection)

    def epoch(self) -> str:
        return str(self._connection.execute("SELECT value FROM meta WHERE key = 'vectors_epoch'").get)

    def size(self) -> tuple[int, int]:
        words = self._connection.execute("SELECT coalesce(sum(length(terms)), 0) / 4 FROM terms").get
        return int(self._connection.execute("SELECT count(*) FROM breadcrumbs").get), int(words)

    def all_rows(self) -> Iterator[Sequence[IndexRow]]:
        rows = self._connection.execute(f"{LOAD} ORDER BY b.rid")
        while some := list(islice(rows, LOAD_BATCH)):
            yield self._terms.complete(self._connection, some)

    def rows_of(self, rids: Sequence[int]) -> Sequence[IndexRow]:
        rows = self._connection.execute(f"{LOAD} WHERE b.rid IN {in_list(rids)} ORDER BY b.rid").fetchall()
        return self._terms.complete(self._connection, rows)

    def changes(self, after: int, upto: int) -> dict[int, int]:
        sql = "SELECT DISTINCT rid, audience FROM events WHERE seq > ? AND seq <= ?"
        return dict[int, int](self._connection.execute(sql, (after, upto)))

    def mark_of(self, seq: int) -> str:
        sql = "SELECT hex(id) || ':' || version || ':' || at FROM events WHERE seq = ?"
        return str(self._connection.execute(sql, (seq,)).get)

    # -- for the filters ----------------------------------------------------------------------------------

    def select(self, selector: Selector, among: Sequence[int] | None) -> Sequence[Ints]:
        """The row ids come as one text, because a Python object for each would take five times as long."""
        plain, only = plain_conditions(selector), "" if among is None else f" AND rid IN {in_list(among)}"
        if plain is None:
            where, values = build_where(selector, self._visible, now=0)
            return [self._read_rids(f"breadcrumbs b WHERE {where}{only}", values)]
        return [self._read_rids(*self._rows_with(condition, only)) for condition in plain]

    def changed(self, after: int, upto: int, limit: int) -> Sequence[int]:
        sql = f"SELECT DISTINCT rid FROM events WHERE seq > ? AND seq <= ? LIMIT {limit}"
        return [rid for (rid,) in self._connection.execute(sql, (after, upto))]

    def _rows_with(self, condition: PlainCondition, only: str) -> tuple[str, Any]:
        """Rows of a table with an index that answers the condition."""
        audience, marks = f"audience IN {in_list(self._visible)}", ",".join("?" * len(condition.wanted))
        match condition.kind:
            case "tag":
                source = f"tags WHERE {audience} AND tag IN ({marks})"
            case "schema":
                source = f"breadcrumbs WHERE {audience} AND schema_name IN ({marks})"
            case "other schema":
                others = f"(schema_name IS NULL OR schema_name NOT IN ({marks}))"
                source = f"breadcrumbs WHERE {audience} AND {others}"
        return source + only, condition.wanted

    def _read_rids(self, source: str, values: Any) -> Ints:
        rids = self._connection.execute(f"SELECT group_concat(rid) FROM {source}", values).get
        return np.fromstring(rids or "", np.int64, sep=",")
