"""Events that a consumer gave up on: the `DeadLetters` interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clew.access import Principal
from clew.clock import from_micros
from clew.errors import NotFound
from clew.sqlite_file import Sql
from clew.trail.model.event import DeadLetter
from clew.trail.sqlite.consumers import lanes
from clew.trail.sqlite.engine import Engine, Writing
from clew.trail.sqlite.log import load_or_bare
from clew.trail.sqlite.rows import Audiences, in_list


class SqliteDeadLetters:
    """See `clew.trail.store.DeadLetters`."""

    def __init__(self, engine: Engine, audiences: Audiences) -> None:
        self._engine = engine
        self._audiences = audiences

    async def list(self, *, by: Principal, consumer: str | None = None, limit: int = 100) -> Sequence[DeadLetter]:
        by.require("administer")
        return await self._engine.read_aside(lambda connection: self._list(connection, by, consumer, limit))

    def _list(self, connection: Sql, by: Principal, consumer: str | None, limit: int) -> Sequence[DeadLetter]:
        visible = self._audiences.visible(connection, by.owner_id, by.scopes)
        rows = connection.execute(
            "SELECT c.cid, c.name, d.attempts, coalesce(d.reason, ''), d.due_at, e.seq, e.type, e.rid, e.id, e.version,"
            " e.audience, e.schema_name, e.tags, e.at FROM deliveries d JOIN consumers c ON c.cid = d.cid"
            f" JOIN events e ON e.seq = d.seq WHERE d.state = 2 AND c.owner_id = ? AND e.audience IN {in_list(visible)}"
            " AND (?2 IS NULL OR c.name = ?2) ORDER BY d.seq, c.cid LIMIT ?",
            (by.owner_id, consumer, max(1, min(limit, 1_000))),
        ).fetchall()
        return [self._letter(connection, row) for row in rows]

    def _letter(self, connection: Sql, row: Any) -> DeadLetter:
        cid, name, attempts, reason, failed_at, *event_row = row
        return DeadLetter(
            id=f"{cid}-{event_row[0]}",
            consumer=name,
            event=load_or_bare(connection, self._audiences, event_row),
            attempts=attempts,
            reason=reason,
            failed_at=from_micros(failed_at),
        )

    async def replay(self, id: str, *, by: Principal) -> None:
        await self._change(id, by, lanes.revive)

    async def drop(self, id: str, *, by: Principal) -> None:
        await self._change(id, by, lanes.forget)

    async def _change(self, id: str, by: Principal, change: Callable[[Writing, int, int], None]) -> None:
        by.require("administer")

        def work(writing: Writing) -> None:
            change(writing, *self._find(writing, id, by))
            writing.changed.append(0)

        await self._engine.write(work)

    def _find(self, writing: Writing, id: str, by: Principal) -> tuple[int, int]:
        """Consumer and event of a letter that the caller may see. Raises NotFound."""
        cid, _, seq = id.partition("-")
        if cid.isascii() and cid.isdecimal() and seq.isascii() and seq.isdecimal() and max(len(cid), len(seq)) < 19:
            visible = self._audiences.visible(writing.connection, by.owner_id, by.scopes)
            found = writing.execute(
                "SELECT d.cid, d.seq FROM deliveries d JOIN consumers c ON c.cid = d.cid JOIN events e ON e.seq = d.seq"
                " WHERE d.cid = ? AND d.seq = ? AND d.state = 2 AND c.owner_id = ?"
                f" AND e.audience IN {in_list(visible)}",
                (int(cid), int(seq), by.owner_id),
            ).fetchone()
            if found is not None:
                return found[0], found[1]
        raise NotFound("dead letter", id)
