"""Changing the embedder of a SQLite trail: new vectors gather in `vectors_next` and replace the old ones together.

The change can be interrupted and started again. `meta` holds the new embedder ('embedder_next'), the table that lists
the records to embed ('embedder_next_of'), and the event up to which the new vectors match the current texts
('embedder_next_seq').
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from clew.errors import EmbedderMismatch
from clew.sqlite_file import Sql
from clew.trail.model.prepare import embedding_text, read_as
from clew.trail.model.rows import to_breadcrumb
from clew.trail.sqlite.definitions import SqliteDefinitions
from clew.trail.sqlite.engine import Engine, Writing
from clew.trail.sqlite.rows import CURRENT, Audiences
from clew.trail.sqlite.version_writes import UPDATED
from clew.trail.store import Embedder

EXTERNAL = "external:"
"""The name of the embedder of a trail whose callers provide the vectors."""

Texts = list[tuple[int, str | None]]


class Reembedding:
    """Recomputes the vectors of a trail that was written with another embedder."""

    def __init__(self, engine: Engine, audiences: Audiences, embedder: Embedder | None, space: str | None) -> None:
        self._engine = engine
        self._audiences = audiences
        self._embedder = embedder
        self._space = space
        self._book = SqliteDefinitions(engine)

    async def run(self, batch: int) -> AsyncIterator[tuple[int, int]]:
        """Yield (done, total) after each batch. See `clew.trail.store.Upkeep.reembed`."""
        if self._embedder is None or self._space is None:
            raise EmbedderMismatch("an embedder", "none")
        if not self._engine.read(self._is_wanted):
            return
        await self._engine.write(self._begin)
        while True:
            texts, total = await self._engine.read_aside(lambda connection: self._read_texts(connection, batch))
            if not texts and await self._engine.write(self._finish):
                yield total, total
                return
            await self._embed(self._embedder, texts)
            yield total - self._engine.read(_count_left), total

    def _is_wanted(self, connection: Sql) -> bool:
        """Whether the vectors must be recomputed: the trail has another embedder, or a change to this one is unfinished
        although new writes already recorded it as the trail's embedder."""
        return self._space != _read(connection, "embedder") or self._space == _read(connection, "embedder_next")

    def _begin(self, writing: Writing) -> None:
        """Start again if a change to a third embedder was left unfinished. If the trail had an embedder, only records
        that have a vector get a new one. If it had none, all records get one."""
        if _read(writing.connection, "embedder_next") != self._space:
            present = _read(writing.connection, "embedder")
            source = "breadcrumbs" if present is None or present.startswith(EXTERNAL) else "vectors"
            writing.execute("DELETE FROM vectors_next")
            for key, value in (("embedder_next", self._space), ("embedder_next_of", source)):
                writing.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
        _forget_changed(writing)

    def _read_texts(self, connection: Sql, batch: int) -> tuple[Texts, int]:
        """Up to `batch` records that lack their new vector, as row ids and texts, and the total number of records to
        embed."""
        source = str(_read(connection, "embedder_next_of"))
        rows = connection.execute(
            f"{CURRENT} JOIN {source} w ON w.rid = b.rid LEFT JOIN vectors_next n ON n.rid = b.rid"
            f" WHERE n.rid IS NULL ORDER BY b.rid LIMIT {batch}"
        ).fetchall()
        total = int(connection.execute(f"SELECT count(*) FROM {source}").get)
        return [(row[0], self._text(connection, row, source)) for row in rows], total

    def _text(self, connection: Sql, row: Any, source: str) -> str | None:
        """The text of a record to embed. None if its schema excludes it and it had no vector before."""
        found = to_breadcrumb(row, self._audiences.of(connection, row[2]))
        rules = self._book.of(connection, found.owner_id).rules(found.schema_name)
        if source != "vectors" and not rules.embeds:
            return None
        return embedding_text(read_as(found.title, found.context, found.llm_hints, rules.llm_hints))

    async def _embed(self, embedder: Embedder, texts: Texts) -> None:
        wanted = [text for _, text in texts if text is not None]
        made = iter(await asyncio.get_running_loop().run_in_executor(None, embedder.embed, wanted))
        rows = [(rid, next(made) if text is not None else b"") for rid, text in texts]

        def work(writing: Writing) -> None:
            writing.executemany(
                "INSERT OR REPLACE INTO vectors_next SELECT ?1, ?2 WHERE EXISTS"
                " (SELECT 1 FROM breadcrumbs WHERE rid = ?1)",
                [(rid, vector if vector.strip(b"\0") else b"") for rid, vector in rows],
            )
            _forget_changed(writing)

        await self._engine.write(work)

    def _finish(self, writing: Writing) -> bool:
        """Replace the old vectors with the new ones. Returns False if some are still missing."""
        _forget_changed(writing)
        if _count_left(writing.connection):
            return False
        writing.execute("DELETE FROM vectors")
        writing.execute("INSERT INTO vectors SELECT rid, vector FROM vectors_next WHERE length(vector) > 0")
        writing.execute("DELETE FROM vectors_next")
        writing.execute("DELETE FROM meta WHERE key LIKE 'embedder_next%'")
        writing.execute("INSERT OR REPLACE INTO meta VALUES ('embedder', ?)", (self._space,))
        writing.execute(
            "INSERT INTO meta VALUES ('vectors_epoch', '1')"
            " ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
        )
        return True


def _read(connection: Sql, key: str) -> str | None:
    value: str | None = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    return value


def _forget_changed(writing: Writing) -> None:
    """Drop new vectors of texts that were changed after they were read."""
    seen = _read(writing.connection, "embedder_next_seq")
    writing.execute(
        "DELETE FROM vectors_next WHERE rid IN (SELECT rid FROM events WHERE seq > ? AND type = ?)",
        (int(seen or 0), UPDATED),
    )
    writing.execute(
        "INSERT OR REPLACE INTO meta SELECT 'embedder_next_seq', CAST(coalesce(max(seq), 0) AS TEXT) FROM events"
    )


def _count_left(connection: Sql) -> int:
    source = _read(connection, "embedder_next_of")
    sql = f"SELECT count(*) FROM {source} w LEFT JOIN vectors_next n ON n.rid = w.rid WHERE n.rid IS NULL"
    return int(connection.execute(sql).get)
