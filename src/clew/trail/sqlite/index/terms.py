"""The terms of records. Stored terms are read; missing terms are computed and stored. A write does not wait for terms:
the index computes those that it lacks in batches, before it answers the next search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.sqlite_file import Sql
from clew.trail.model.definitions import Definitions
from clew.trail.search.packing import pack_all
from clew.trail.search.record_text import read_text
from clew.trail.search.text import owner_salt
from clew.trail.sqlite.definitions import SqliteDefinitions
from clew.trail.sqlite.engine import Engine, Writing
from clew.trail.sqlite.rows import Audiences, in_list

STORE_AT = 256
TEXTS = "SELECT rid, version, audience, schema_name, title, context, llm_hints FROM breadcrumbs"


class TermStore:
    """Adds missing terms to rows (rid, audience, expires_at, terms, vector)."""

    def __init__(self, engine: Engine, audiences: Audiences) -> None:
        self._engine = engine
        self._audiences = audiences
        self._definitions = SqliteDefinitions(engine)
        self._unstored: list[tuple[bytes, int, int]] = []

    def complete(self, connection: Sql, rows: list[Any]) -> list[Any]:
        """The rows, all with terms. Rows of records that no longer exist are left out."""
        lacking = [row[0] for row in rows if row[3] is None]
        if not lacking:
            return rows
        found = connection.execute(f"{TEXTS} WHERE rid IN {in_list(lacking)}").fetchall()
        of = {audience: self._meaning(connection, audience) for audience in {row[2] for row in found}}
        packed = pack_all([(read_text(of[row[2]][0], *row[3:]), of[row[2]][1]) for row in found])
        made = {row[0]: terms for row, terms in zip(found, packed, strict=True)}
        self._unstored += [(terms, row[0], row[1]) for row, terms in zip(found, packed, strict=True)]
        if len(self._unstored) >= STORE_AT:
            self.store()
        return [(*row[:3], made[row[0]], row[4]) if row[3] is None else row for row in rows if row[3] or row[0] in made]

    def store(self) -> None:
        """Store the computed terms. Terms lost in a crash are computed again."""
        rows, self._unstored = self._unstored, []
        if rows:
            self._engine.post(lambda writing: put_terms(writing, rows))

    def _meaning(self, connection: Sql, audience: int) -> tuple[Definitions, int]:
        """The definitions and the salt of an audience's owner."""
        owner_id, _ = self._audiences.of(connection, audience)
        return self._definitions.of(connection, owner_id), owner_salt(owner_id, self._engine.secret)


def put_terms(writing: Writing, rows: Sequence[tuple[bytes, int, int]]) -> None:
    """Store packed terms given as (terms, rid, version). Rows with an outdated version are ignored."""
    writing.executemany(
        "INSERT OR REPLACE INTO terms (terms, rid) SELECT ?1, rid FROM breadcrumbs WHERE rid = ?2 AND version = ?3",
        rows,
    )
