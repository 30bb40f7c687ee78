"""Keeping a SQLite trail healthy: expiry, counts, checking every row, changing the embedder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import ClewError, EmbedderMismatch
from clew.trail.prepare import embedding_text, read_as
from clew.trail.sqlite import writing as write
from clew.trail.sqlite.definitions import DefinitionBook
from clew.trail.sqlite.engine import Engine, Sql, Writing
from clew.trail.sqlite.rows import ALIVE, CURRENT, OLDER, Audiences, in_list, to_breadcrumb
from clew.trail.store import Embedder, Purged, TrailStats
from clew.trail.text import are_whole

PURGE_BATCH = 500
KEY_DAYS = 7
"""Idempotency keys are remembered this long; retries come sooner."""

_decode = msgspec.json.Decoder().decode


class SqliteUpkeep:
    """See `clew.trail.store.Upkeep`."""

    def __init__(self, engine: Engine, audiences: Audiences, embedder: Embedder | None, space: str | None) -> None:
        self._engine = engine
        self._audiences = audiences
        self._embedder = embedder
        self._space = space

    # -- expiry -------------------------------------------------------------------------------------------

    async def purge(self, *, idle_after: timedelta = timedelta(days=7)) -> Purged:
        """Expired breadcrumbs go in batches, so that other writers are not kept waiting."""
        breadcrumbs = 0
        while batch := await self._engine.write(self._purge_some):
            breadcrumbs += batch
        agents, subscriptions = await self._engine.write(lambda writing: self._purge_idle(writing, idle_after))
        return Purged(breadcrumbs=breadcrumbs, agents=agents, subscriptions=subscriptions)

    def _purge_some(self, writing: Writing) -> int:
        rows = writing.execute(
            f"{CURRENT} WHERE (b.expires_at IS NOT NULL AND b.expires_at <= :now)"
            f" OR (b.max_reads IS NOT NULL AND b.read_count >= b.max_reads) LIMIT {PURGE_BATCH}",
            {"now": writing.wall},
        ).fetchall()
        for row in rows:
            write.remove(writing, row)
        return len(rows)

    def _purge_idle(self, writing: Writing, idle_after: timedelta) -> tuple[int, int]:
        before = writing.now - idle_after // timedelta(microseconds=1)
        writing.execute("DELETE FROM agents WHERE seen_at < ?", (before,))
        agents = writing.connection.changes()
        writing.execute(
            "DELETE FROM consumers WHERE agent_id IS NOT NULL AND NOT EXISTS"
            " (SELECT 1 FROM agents a WHERE a.owner_id = consumers.owner_id AND a.agent_id = consumers.agent_id)"
        )
        subscriptions = writing.connection.changes()
        forgotten = writing.now - timedelta(days=KEY_DAYS) // timedelta(microseconds=1)
        writing.execute("DELETE FROM idempotency WHERE created_at < ?", (forgotten,))
        return agents, subscriptions

    # -- looking ------------------------------------------------------------------------------------------

    async def stats(self, *, by: Principal) -> TrailStats:
        by.require("read")
        return await self._engine.read_aside(lambda connection: self._stats(connection, by))

    def _stats(self, connection: Sql, by: Principal) -> TrailStats:
        visible = in_list(self._audiences.visible(connection, by.owner_id, by.scopes))
        now = {"now": self._engine.wall()}
        schemas = connection.execute(
            f"SELECT coalesce(b.schema_name, ''), count(*) FROM breadcrumbs b WHERE b.audience IN {visible}"
            f" AND {ALIVE} GROUP BY 1 ORDER BY 2 DESC, 1",
            now,
        ).fetchall()
        edges = connection.execute(
            "SELECT count(*) FROM edges e JOIN breadcrumbs s ON s.rid = e.source JOIN breadcrumbs t ON t.rid = e.target"
            f" WHERE s.audience IN {visible} AND t.audience IN {visible}"
        ).get
        events = connection.execute(f"SELECT count(*) FROM events WHERE audience IN {visible}").get
        return TrailStats(
            breadcrumbs=sum(count for _, count in schemas), events=events, edges=edges, schemas=dict(schemas)
        )

    async def webhook_senders(self) -> list[Principal]:
        sql = (
            "SELECT owner_id, json_group_array(DISTINCT s.value) FROM consumers LEFT JOIN json_each(scopes) s"
            " WHERE json_extract(definition, '$.webhook') IS NOT NULL GROUP BY owner_id ORDER BY owner_id"
        )
        rows = self._engine.read(lambda connection: connection.execute(sql).fetchall())
        return [Principal(owner_id=owner, scopes=frozenset(filter(None, _decode(scopes)))) for owner, scopes in rows]

    async def check(self) -> list[str]:
        return await self._engine.read_aside(self._check)

    def _check(self, connection: Sql) -> list[str]:
        """SQLite's own integrity check, then every checksum, then what points to nothing."""
        found = [str(line) for (line,) in connection.execute("PRAGMA integrity_check(20)") if line != "ok"]
        if found:
            return found
        for sql in (CURRENT, OLDER):
            for row in connection.execute(sql):
                try:
                    to_breadcrumb(row, self._audiences.of(connection, row[2]))
                except ClewError as error:
                    found.append(error.message)
        found += [f"what search knows of row {rid} is damaged" for rid in _bad_terms(connection)]
        orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
        found += [f"a row of {table} points to a missing row of {parent}" for table, _, parent, _ in orphans[:20]]
        return found

    # -- changing the embedder ----------------------------------------------------------------------------

    async def reembed(self, *, batch: int = 500) -> AsyncIterator[tuple[int, int]]:
        if self._embedder is None or self._space is None:
            raise EmbedderMismatch("an embedder", "none")
        present = self._engine.read(lambda c: c.execute("SELECT value FROM meta WHERE key = 'embedder'").get)
        if present == self._space:
            return
        await self._engine.write(self._begin_change)
        while True:
            rows, total = await self._engine.read_aside(lambda connection: self._unembedded(connection, batch))
            if not rows and await self._engine.write(self._finish_change):
                yield total, total
                return
            await self._embed_rows(rows)
            yield total - self._engine.read(_count_left), total

    def _begin_change(self, writing: Writing) -> None:
        """Start anew when a change to a third embedder was left unfinished."""
        target = writing.execute("SELECT value FROM meta WHERE key = 'embedder_next'").get
        if target != self._space:
            writing.execute("DELETE FROM vectors_next")
            writing.execute("INSERT OR REPLACE INTO meta VALUES ('embedder_next', ?)", (self._space,))

    def _unembedded(self, connection: Sql, batch: int) -> tuple[list[tuple[int, str]], int]:
        rows = connection.execute(
            f"{CURRENT} JOIN vectors v ON v.rid = b.rid LEFT JOIN vectors_next n ON n.rid = b.rid"
            f" WHERE n.rid IS NULL ORDER BY b.rid LIMIT {batch}"
        ).fetchall()
        book = DefinitionBook()
        return [(row[0], self._text(connection, row, book)) for row in rows], int(
            connection.execute("SELECT count(*) FROM vectors").get
        )

    def _text(self, connection: Sql, row: Any, book: DefinitionBook) -> str:
        found = to_breadcrumb(row, self._audiences.of(connection, row[2]))
        schema_hints = book.of(connection, found.owner_id).rules(found.schema_name).llm_hints
        return embedding_text(read_as(found.title, found.context, found.llm_hints, schema_hints))

    async def _embed_rows(self, rows: list[tuple[int, str]]) -> None:
        assert self._embedder is not None
        loop = asyncio.get_running_loop()
        vectors = await loop.run_in_executor(None, self._embedder.embed, [text for _, text in rows])
        packed = [(rid, vector) for (rid, _), vector in zip(rows, vectors, strict=True)]

        def work(writing: Writing) -> None:
            writing.executemany(
                "INSERT OR REPLACE INTO vectors_next SELECT ?1, ?2 WHERE EXISTS"
                " (SELECT 1 FROM breadcrumbs WHERE rid = ?1)",
                packed,
            )

        await self._engine.write(work)

    def _finish_change(self, writing: Writing) -> bool:
        """Put the new vectors in place of the old, if none is missing by now."""
        if _count_left(writing.connection):
            return False
        writing.execute("DELETE FROM vectors")
        writing.execute("INSERT INTO vectors SELECT rid, vector FROM vectors_next WHERE length(vector) > 0")
        writing.execute("DELETE FROM vectors_next")
        writing.execute("DELETE FROM meta WHERE key = 'embedder_next'")
        writing.execute("INSERT OR REPLACE INTO meta VALUES ('embedder', ?)", (self._space,))
        writing.execute(
            "INSERT INTO meta VALUES ('vectors_epoch', '1')"
            " ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
        )
        return True


def _bad_terms(connection: Sql) -> list[int]:
    """Row ids whose packed terms are damaged, or whose tags are not all there."""
    bad = [rid for rid, terms in connection.execute("SELECT rid, terms FROM terms") if not are_whole(terms)]
    lacking = connection.execute(
        "SELECT b.rid FROM breadcrumbs b LEFT JOIN (SELECT rid, count(*) AS number FROM tags GROUP BY rid) g"
        " ON g.rid = b.rid"
        " WHERE iif(json_valid(b.tags), json_array_length(b.tags), -1) != coalesce(g.number, 0)"
    )
    return sorted({*bad, *(rid for (rid,) in lacking)})


def _count_left(connection: Sql) -> int:
    return int(
        connection.execute(
            "SELECT count(*) FROM vectors v LEFT JOIN vectors_next n ON n.rid = v.rid WHERE n.rid IS NULL"
        ).get
    )
