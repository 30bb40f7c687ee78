"""News for workers that wait, as far as this process knows them without a query for each worker.

The newest events are read once for all workers that wait. Most of these are not meant by them, and need no transaction
for that.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from clew.trail.model.selector import Selector
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.log import EVENT
from clew.trail.work.recent_events import LENGTH, Tail


class ConsumerNews:
    """The newest events, and which consumers have something to claim again."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._tail = Tail()
        self._freed: Counter[int] = Counter()
        self._reading: asyncio.Task[None] | None = None

    def free(self, cid: int | None) -> None:
        """Say that something of a consumer can be claimed, now or later; of None, nothing. From any thread."""
        if cid is not None:
            self._freed[cid] += 1
            self._engine.wakeups.announce(0)

    def count_freed(self, cid: int) -> int:
        return self._freed[cid]

    async def may_bring(self, after: int, selector: Selector) -> tuple[bool, int]:
        """Whether one of the events after this one may be meant, and up to which event that is known."""
        head = self._engine.wakeups.head
        if head <= after:
            return False, after
        if self._tail.head < head:
            await self._read()
        return self._tail.may_bring(after, max(head, self._tail.head), selector), max(head, self._tail.head)

    async def _read(self) -> None:
        """Read what is new; those who ask meanwhile wait for the same answer."""
        loop = asyncio.get_running_loop()
        if self._reading is None or self._reading.done() or self._reading.get_loop() is not loop:
            self._reading = loop.create_task(self._read_new())
        await asyncio.shield(self._reading)

    async def _read_new(self) -> None:
        after = max(self._tail.head, self._engine.wakeups.head - LENGTH)
        sql = f"{EVENT} WHERE b.seq > %s ORDER BY b.seq LIMIT {LENGTH}"
        rows = await self._engine.read(lambda reading: reading.rows(sql, (after,)), by=None)
        if rows:
            self._tail.add(after, rows)
