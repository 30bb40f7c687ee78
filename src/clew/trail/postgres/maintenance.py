"""Keeping a trail on PostgreSQL healthy: expiry, counts, checking every row, changing the embedder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

from clew.access import Principal
from clew.errors import ClewError
from clew.trail.model.consumer import decode_consumer
from clew.trail.move.replica import FOREIGN
from clew.trail.postgres import version_writes as write
from clew.trail.postgres.consumers.consumers import LOCK
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.operations import health
from clew.trail.postgres.reembedding import PostgresReembedding
from clew.trail.postgres.rows import ALIVE, CURRENT, OLDER, SEEN, seen_by, to_record
from clew.trail.postgres.transactions import ReadTransaction, WriteTransaction
from clew.trail.search.text import are_whole
from clew.trail.store import Embedder, EngineFinding, Purged, TrailStats

PURGE_BATCH = 500
CHECK_BATCH = 1_000
KEY_DAYS = 7
"""Idempotency keys are remembered this long; retries come sooner."""


class PostgresUpkeep:
    """See `clew.trail.store.Upkeep`."""

    def __init__(
        self, engine: PostgresEngine, embedder: Embedder | None, space: str | None, *, search_memory: int
    ) -> None:
        self._engine = engine
        self._search_memory = search_memory
        self._change = PostgresReembedding(engine, embedder, space)

    # -- expiry -------------------------------------------------------------------------------------------

    async def purge(self, *, idle_after: timedelta | None = timedelta(days=7)) -> Purged:
        """Expired breadcrumbs go in batches, so that other writers are not kept waiting."""
        breadcrumbs = 0
        while batch := await self._engine.append(_purge_some, by=None):
            breadcrumbs += batch
        if idle_after is None:
            return Purged(breadcrumbs=breadcrumbs, agents=0, subscriptions=0)
        agents, subscriptions = await self._engine.write(lambda writing: _purge_idle(writing, idle_after), by=None)
        return Purged(breadcrumbs=breadcrumbs, agents=agents, subscriptions=subscriptions)

    # -- looking ------------------------------------------------------------------------------------------

    async def stats(self, *, by: Principal) -> TrailStats:
        by.require("read")
        return await self._engine.read(lambda reading: self._stats(reading, by), by=by)

    def _stats(self, reading: ReadTransaction, by: Principal) -> TrailStats:
        values = {"now": self._engine.wall(), **seen_by(by)}
        schemas = reading.rows(
            f"SELECT coalesce(b.schema_name, ''), count(*) FROM breadcrumbs b WHERE {SEEN}"
            f" AND {ALIVE} GROUP BY 1 ORDER BY 2 DESC, 1",
            values,
        )
        edges = reading.value(
            f"WITH seen AS MATERIALIZED (SELECT b.rid FROM breadcrumbs b WHERE {SEEN} AND {ALIVE})"
            " SELECT count(*) FROM edges WHERE source IN (SELECT rid FROM seen) AND target IN (SELECT rid FROM seen)",
            values,
        )
        events = reading.value(f"SELECT count(*) FROM events b WHERE {SEEN}", values)
        return TrailStats(
            breadcrumbs=sum(count for _, count in schemas), events=events, edges=edges, schemas=dict(schemas)
        )

    async def webhook_senders(self) -> list[Principal]:
        # The definitions are decoded here: one with a NUL in it would end a query that looks into JSON, for all owners.
        sql = "SELECT owner_id, scopes, definition FROM consumers ORDER BY owner_id"
        held: dict[str, set[str]] = {}
        for owner, scopes, definition in await self._engine.read(lambda reading: reading.rows(sql), by=None):
            if decode_consumer(definition).webhook is not None:
                held.setdefault(owner, set()).update(scopes or ())
        return [Principal(owner_id=owner, scopes=frozenset(scopes)) for owner, scopes in held.items()]

    # -- whose it is --------------------------------------------------------------------------------------

    async def identity(self) -> str:
        sql = "SELECT value FROM meta WHERE key IN ('identity', 'trail') ORDER BY key LIMIT 1"
        return str(await self._engine.read(lambda reading: reading.value(sql), by=None))

    async def is_foreign(self) -> bool:
        sql = f"SELECT 1 FROM meta WHERE key = '{FOREIGN}'"
        return await self._engine.read(lambda reading: reading.value(sql), by=None) is not None

    async def adopt(self) -> str:
        await self._engine.append(_begin_anew, by=None)
        return await self.identity()

    # -- damage -------------------------------------------------------------------------------------------

    async def check(self) -> list[str]:
        return await self._engine.read(_check, by=None)

    async def examine(self) -> list[EngineFinding]:
        place, memory = self._engine.server.place, self._search_memory
        return await self._engine.read(lambda reading: health.examine(reading, place, memory), by=None)

    def reembed(self, *, batch: int = 500) -> AsyncIterator[tuple[int, int]]:
        return self._change.run(batch)


def _purge_some(writing: WriteTransaction) -> int:
    rows = writing.rows(
        f"{CURRENT} WHERE (b.expires_at IS NOT NULL AND b.expires_at <= %(now)s)"
        f" OR (b.max_reads IS NOT NULL AND b.read_count >= b.max_reads) LIMIT {PURGE_BATCH}",
        {"now": writing.wall},
    )
    for row in rows:
        write.remove(writing, row)
    return len(rows)


def _purge_idle(writing: WriteTransaction, idle_after: timedelta) -> tuple[int, int]:
    before = writing.now - idle_after // timedelta(microseconds=1)
    agents = writing.run("DELETE FROM agents WHERE seen_at < %s", (before,))
    subscriptions = writing.run(
        "DELETE FROM consumers WHERE agent_id IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM agents a WHERE a.owner_id = consumers.owner_id AND a.agent_id = consumers.agent_id)"
    )
    forgotten = writing.now - timedelta(days=KEY_DAYS) // timedelta(microseconds=1)
    writing.send("DELETE FROM idempotency WHERE created_at < %s", (forgotten,))
    return agents, subscriptions


def _begin_anew(writing: WriteTransaction) -> None:
    # A running claim would move its cursor back afterwards: wait for running claims, and block new ones.
    lock = LOCK.format(mode="") % {"owner": "owner_id", "name": "name"}
    writing.rows(f"SELECT {lock} FROM (SELECT owner_id, name FROM consumers ORDER BY 1, 2 OFFSET 0) c")
    head = write.log_end(writing).head
    writing.send(
        "INSERT INTO meta VALUES ('identity', replace(gen_random_uuid()::text, '-', ''))"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    )
    writing.remember("floor", str(head))
    writing.send("DELETE FROM meta WHERE key = %s", (FOREIGN,))
    writing.send("DELETE FROM deliveries WHERE state != 2")
    writing.send("UPDATE consumers SET cursor = %s", (head,))
    writing.changed.append(0)


def _check(reading: ReadTransaction) -> list[str]:
    """Check every checksum, then compare the indexes of Clew with the records."""
    found: list[str] = []
    for sql, key in ((CURRENT, "b.rid"), (OLDER, "(v.rid, v.version)")):
        after: tuple[int, ...] = (0,) if sql is CURRENT else (0, 0)
        place = "%s" if sql is CURRENT else "(%s, %s)"
        while rows := reading.rows(f"{sql} WHERE {key} > {place} ORDER BY {key} LIMIT {CHECK_BATCH}", after):
            after = (rows[-1][0],) if sql is CURRENT else (rows[-1][0], rows[-1][3])
            for row in rows:
                try:
                    to_record(row)
                except ClewError as error:
                    found.append(error.message)
    found += [f"what search knows of row {rid} is damaged" for rid in _bad_terms(reading)]
    newest, head = reading.row("SELECT (SELECT coalesce(max(seq), 0) FROM events), head FROM log") or (0, 0)
    if newest > head:
        found.append(f"the log ends at {head}, before its newest event {newest}")
    return found


def _bad_terms(reading: ReadTransaction) -> list[int]:
    """Row ids of records with damaged terms or missing tags."""
    bad = {rid for rid, terms in reading.rows("SELECT rid, terms FROM terms") if not are_whole(terms)}
    lacking = reading.rows(
        "SELECT b.rid FROM breadcrumbs b LEFT JOIN (SELECT rid, count(*) AS number FROM tags GROUP BY rid) g"
        " ON g.rid = b.rid WHERE coalesce(g.number, 0) !="
        " CASE WHEN b.tags IS JSON ARRAY THEN json_array_length(b.tags::json) ELSE -1 END"
    )
    return sorted(bad | {rid for (rid,) in lacking})
