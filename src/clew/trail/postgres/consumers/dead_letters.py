"""Events that a consumer gave up on: the `DeadLetters` interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew.access import Principal
from clew.clock import from_micros
from clew.errors import NotFound
from clew.trail.model.event import DeadLetter
from clew.trail.model.rows import to_event
from clew.trail.model.selector import EVERYTHING
from clew.trail.postgres.consumers import lanes
from clew.trail.postgres.consumers.consumers import lock_lanes
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.log import load_events
from clew.trail.postgres.rows import SEEN, seen_by
from clew.trail.postgres.transactions import ReadTransaction, WriteTransaction

LIST = (
    "SELECT c.cid, c.name, d.attempts, coalesce(d.reason, ''), d.due_at, b.seq, b.type, b.rid, b.id, b.version,"
    " b.audience, b.schema_name, b.tags, b.at FROM deliveries d JOIN consumers c ON c.cid = d.cid"
    f" JOIN events b ON b.seq = d.seq WHERE d.state = 2 AND c.owner_id = %(owner)s AND {SEEN}"
    " AND (%(name)s::text IS NULL OR c.name = %(name)s) ORDER BY d.seq, c.cid LIMIT %(limit)s"
)
FIND = (
    "SELECT d.cid, d.seq, c.name FROM deliveries d JOIN consumers c ON c.cid = d.cid JOIN events b ON b.seq = d.seq"
    f" WHERE d.cid = %(cid)s AND d.seq = %(seq)s AND d.state = 2 AND c.owner_id = %(owner)s AND {SEEN}"
)


class PostgresDeadLetters:
    """See `clew.trail.store.DeadLetters`. `on_change` is called with the consumer whose events may be claimed again."""

    def __init__(self, engine: PostgresEngine, on_change: Callable[[int], None]) -> None:
        self._engine = engine
        self._on_change = on_change

    async def list(self, *, by: Principal, consumer: str | None = None, limit: int = 100) -> Sequence[DeadLetter]:
        by.require("administer")
        if consumer is not None and not consumer.isprintable():  # no consumer can have that name
            return []
        values = {**seen_by(by), "name": consumer, "limit": max(1, min(limit, 1_000))}
        return await self._engine.read(
            lambda reading: _letters(reading, reading.rows(LIST, values), by.owner_id), by=by
        )

    async def replay(self, id: str, *, by: Principal) -> None:
        await self._change(id, by, lanes.revive)

    async def drop(self, id: str, *, by: Principal) -> None:
        await self._change(id, by, lanes.forget)

    async def _change(self, id: str, by: Principal, change: Callable[[WriteTransaction, int, int], None]) -> None:
        by.require("administer")

        def work(writing: WriteTransaction) -> int:
            cid, seq, name = _find(writing, id, by)
            lock_lanes(writing, by.owner_id, name, shared=False)
            cid, seq, _ = _find(writing, id, by)  # its current state: nobody else can move it now
            change(writing, cid, seq)
            return cid

        self._on_change(await self._engine.write(work, by=by))


def _letters(reading: ReadTransaction, rows: Sequence[Any], owner_id: str) -> list[DeadLetter]:
    events = {event.seq: event for event in load_events(reading, [row[5:] for row in rows], EVERYTHING, owner_id)}
    return [
        DeadLetter(
            id=f"{row[0]}-{row[5]}",
            consumer=row[1],
            event=events.get(row[5]) or to_event(row[5:], owner_id, None),
            attempts=row[2],
            reason=lanes.unpack_reason(row[3]),
            failed_at=from_micros(row[4]),
        )
        for row in rows
    ]


def _find(writing: WriteTransaction, id: str, by: Principal) -> tuple[int, int, str]:
    """Consumer and event of a letter that the caller may see. Raises NotFound."""
    cid, _, seq = id.partition("-")
    if cid.isascii() and cid.isdecimal() and seq.isascii() and seq.isdecimal() and max(len(cid), len(seq)) < 19:
        found = writing.row(FIND, {"cid": int(cid), "seq": int(seq), **seen_by(by)})
        if found is not None:
            return found[0], found[1], found[2]
    raise NotFound("dead letter", id)
