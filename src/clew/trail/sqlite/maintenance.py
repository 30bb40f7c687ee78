"""Keeping a SQLite trail healthy: expiry, counts, checking every row, changing the embedder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec

from clew.access import Principal
from clew.errors import ClewError
from clew.sqlite_file import Sql
from clew.trail.model.rows import to_breadcrumb
from clew.trail.move.replica import FOREIGN
from clew.trail.search.text import are_whole
from clew.trail.sqlite import version_writes as write
from clew.trail.sqlite.engine import Engine, Writing
from clew.trail.sqlite.index.reembedding import Reembedding
from clew.trail.sqlite.log import read_head
from clew.trail.sqlite.rows import ALIVE, CURRENT, OLDER, Audiences, in_list
from clew.trail.store import Embedder, EngineFinding, Purged, TrailStats

PURGE_BATCH = 500
KEY_DAYS = 7
"""Idempotency keys are remembered this long; retries come sooner."""

_decode = msgspec.json.Decoder().decode


class SqliteUpkeep:
    """See `clew.trail.store.Upkeep`."""

    def __init__(self, engine: Engine, audiences: Audiences, embedder: Embedder | None, space: str | None) -> None:
        self._engine = engine
        self._audiences = audiences
        self._change = Reembedding(engine, audiences, embedder, space)

    # -- expiry -------------------------------------------------------------------------------------------

    async def purge(self, *, idle_after: timedelta | None = timedelta(days=7)) -> Purged:
        """Expired breadcrumbs go in batches, so that other writers are not kept waiting."""
        breadcrumbs = 0
        while batch := await self._engine.write(self._purge_some):
            breadcrumbs += batch
        if idle_after is None:
            return Purged(breadcrumbs=breadcrumbs, agents=0, subscriptions=0)
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
        writing.known.clear()
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
            f"WITH seen AS (SELECT b.rid FROM breadcrumbs b WHERE b.audience IN {visible} AND {ALIVE})"
            " SELECT count(*) FROM edges WHERE source IN seen AND target IN seen",
            now,
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

    # -- whose it is --------------------------------------------------------------------------------------

    async def identity(self) -> str:
        sql = "SELECT value FROM meta WHERE key IN ('identity', 'trail') ORDER BY key LIMIT 1"
        return self._engine.read(lambda connection: str(connection.execute(sql).get))

    async def is_foreign(self) -> bool:
        sql = f"SELECT 1 FROM meta WHERE key = '{FOREIGN}'"
        return self._engine.read(lambda connection: connection.execute(sql).get) is not None

    async def adopt(self) -> str:
        await self._engine.write(_begin_anew)
        return await self.identity()

    # -- damage -------------------------------------------------------------------------------------------

    async def check(self) -> list[str]:
        return await self._engine.read_aside(self._check)

    def _check(self, connection: Sql) -> list[str]:
        """Run SQLite's own integrity check, then check every checksum, then look for references to missing rows."""
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

    async def examine(self) -> list[EngineFinding]:
        return []

    def reembed(self, *, batch: int = 500) -> AsyncIterator[tuple[int, int]]:
        return self._change.run(batch)


def _begin_anew(writing: Writing) -> None:
    head = read_head(writing.connection)
    writing.execute("INSERT OR REPLACE INTO meta VALUES ('identity', lower(hex(randomblob(16))))")
    writing.execute("INSERT OR REPLACE INTO meta VALUES ('floor', ?)", (str(head),))
    writing.execute("DELETE FROM meta WHERE key = ?", (FOREIGN,))
    writing.execute("DELETE FROM deliveries WHERE state != 2")
    writing.execute("UPDATE consumers SET cursor = ?", (head,))
    writing.memo.clear()
    writing.known.clear()
    writing.changed.append(0)


def _bad_terms(connection: Sql) -> list[int]:
    """Row ids of records with damaged terms or missing tags."""
    bad = [rid for rid, terms in connection.execute("SELECT rid, terms FROM terms") if not are_whole(terms)]
    lacking = connection.execute(
        "SELECT b.rid FROM breadcrumbs b LEFT JOIN (SELECT rid, count(*) AS number FROM tags GROUP BY rid) g"
        " ON g.rid = b.rid"
        " WHERE iif(json_valid(b.tags), json_array_length(b.tags), -1) != coalesce(g.number, 0)"
    )
    return sorted({*bad, *(rid for (rid,) in lacking)})
