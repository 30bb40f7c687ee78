"""Changing the embedder of a trail on PostgreSQL: new vectors gather in `vectors_next` and replace the old ones
together.

The change can be interrupted and started again. `meta` holds the new embedder ('embedder_next'), the table that lists
the records to embed ('embedder_next_of'), and the event up to which the new vectors match the current texts
('embedder_next_seq').
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from clew.errors import EmbedderMismatch
from clew.trail.model.prepare import embedding_text, read_as
from clew.trail.postgres.definitions import PostgresDefinitions
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.rows import CURRENT, to_record
from clew.trail.postgres.transactions import ReadTransaction, WriteTransaction
from clew.trail.postgres.vectors import StoredVector
from clew.trail.postgres.version_writes import UPDATED, index_vectors
from clew.trail.store import Embedder

EXTERNAL = "external:"
"""The name of the embedder of a trail whose callers provide the vectors."""
NEXT = (
    "INSERT INTO vectors_next (rid, audience, vector) SELECT rid, audience, {} FROM breadcrumbs WHERE rid = %s"
    " ON CONFLICT (rid) DO UPDATE SET vector = excluded.vector"
)

Texts = list[tuple[int, str | None]]


class PostgresReembedding:
    """Recomputes the vectors of a trail that was written with another embedder. Runs as upkeep: for all owners."""

    def __init__(self, engine: PostgresEngine, embedder: Embedder | None, space: str | None) -> None:
        self._engine = engine
        self._embedder = embedder
        self._space = space
        self._definitions = PostgresDefinitions(engine)

    async def run(self, batch: int) -> AsyncIterator[tuple[int, int]]:
        """Yield (done, total) after each batch. See `clew.trail.store.Upkeep.reembed`."""
        if self._embedder is None or self._space is None:
            raise EmbedderMismatch("an embedder", "none")
        if not await self._engine.read(self._is_wanted, by=None):
            return
        await self._engine.append(self._begin, by=None)
        while True:
            texts, total = await self._engine.read(lambda reading: self._read_texts(reading, batch), by=None)
            if not texts and await self._engine.append(self._finish, by=None):
                yield total, total
                return
            await self._embed(self._embedder, texts)
            yield total - await self._engine.read(_count_left, by=None), total

    def _is_wanted(self, reading: ReadTransaction) -> bool:
        """Whether the vectors must be recomputed: the trail has another embedder, or a change to this one is unfinished
        although new writes already recorded it as the trail's embedder."""
        return self._space != _read(reading, "embedder") or self._space == _read(reading, "embedder_next")

    def _begin(self, writing: WriteTransaction) -> None:
        """Start again if a change to a third embedder was left unfinished. If the trail had an embedder, only records
        that have a vector get a new one. If it had none, all records get one."""
        if _read(writing, "embedder_next") != self._space:
            present = _read(writing, "embedder")
            source = "breadcrumbs" if present is None or present.startswith(EXTERNAL) else "vectors"
            writing.send("DELETE FROM vectors_next")
            for key, value in (("embedder_next", self._space), ("embedder_next_of", source)):
                writing.remember(key, str(value))
        _forget_changed(writing)

    def _read_texts(self, reading: ReadTransaction, batch: int) -> tuple[Texts, int]:
        """Up to `batch` records that lack their new vector, as row ids and texts, and the total number of records to
        embed."""
        source = str(_read(reading, "embedder_next_of"))
        rows = reading.rows(
            f"{CURRENT} JOIN {source} w ON w.rid = b.rid LEFT JOIN vectors_next n ON n.rid = b.rid"
            f" WHERE n.rid IS NULL ORDER BY b.rid LIMIT {int(batch)}"
        )
        total = int(reading.value(f"SELECT count(*) FROM {source}"))
        return [(row[0], self._text(reading, row, source)) for row in rows], total

    def _text(self, reading: ReadTransaction, row: Sequence[Any], source: str) -> str | None:
        """The text of a record to embed. None if its schema excludes it and it had no vector before."""
        found = to_record(row)
        rules = self._definitions.of(reading, found.owner_id).rules(found.schema_name)
        if source != "vectors" and not rules.embeds:
            return None
        return embedding_text(read_as(found.title, found.context, found.llm_hints, rules.llm_hints))

    async def _embed(self, embedder: Embedder, texts: Texts) -> None:
        wanted = [text for _, text in texts if text is not None]
        made = iter(await asyncio.get_running_loop().run_in_executor(None, embedder.embed, wanted))
        rows = [(rid, next(made) if text is not None else b"") for rid, text in texts]

        def work(writing: WriteTransaction) -> None:
            for rid, vector in rows:
                if vector.strip(b"\0"):
                    writing.send(NEXT.format("%b::vector"), (StoredVector(vector), rid))
                else:
                    writing.send(NEXT.format("NULL"), (rid,))
            _forget_changed(writing)

        await self._engine.append(work, by=None)

    def _finish(self, writing: WriteTransaction) -> bool:
        """Replace the old vectors with the new ones. Returns False if some are still missing."""
        _forget_changed(writing)
        if _count_left(writing) or self._embedder is None:
            return False
        writing.send("SET LOCAL statement_timeout TO 0")
        writing.send("DROP INDEX IF EXISTS vectors_near")
        writing.send("DELETE FROM vectors")
        writing.send(
            "INSERT INTO vectors SELECT n.rid, b.audience, n.vector FROM vectors_next n"
            " JOIN breadcrumbs b ON b.rid = n.rid WHERE n.vector IS NOT NULL"
        )
        index_vectors(writing, self._embedder.dimension)  # after the rows: the graph is then built at once
        writing.send("DELETE FROM vectors_next")
        writing.send("DELETE FROM meta WHERE starts_with(key, 'embedder_next')")
        writing.remember("embedder", str(self._space))
        writing.send(
            "INSERT INTO meta VALUES ('vectors_epoch', '1')"
            " ON CONFLICT (key) DO UPDATE SET value = (meta.value::bigint + 1)::text"
        )
        return True


def _read(reading: ReadTransaction, key: str) -> str | None:
    value: str | None = reading.value("SELECT value FROM meta WHERE key = %s", (key,))
    return value


def _forget_changed(writing: WriteTransaction) -> None:
    """Drop new vectors of texts that were changed after they were read."""
    seen = _read(writing, "embedder_next_seq")
    writing.send(
        "DELETE FROM vectors_next WHERE rid IN (SELECT rid FROM events WHERE seq > %s AND type = %s)",
        (int(seen or 0), UPDATED),
    )
    writing.send(
        "INSERT INTO meta SELECT 'embedder_next_seq', head::text FROM log"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    )


def _count_left(reading: ReadTransaction) -> int:
    source = _read(reading, "embedder_next_of")
    sql = f"SELECT count(*) FROM {source} w LEFT JOIN vectors_next n ON n.rid = w.rid WHERE n.rid IS NULL"
    return int(reading.value(sql))
