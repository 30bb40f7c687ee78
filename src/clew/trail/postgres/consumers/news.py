"""Events since a worker last looked, as far as this process knows them without a query for each worker.

The newest events are read once for all workers that wait. Most of these are not meant by them, and need no transaction
for that.
"""

from __future__ import annotations

import asyncio
import threading

from clew.trail.model.selector import Selector
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.log import EVENT
from clew.trail.postgres.transactions import LogEnd
from clew.trail.work.recent_events import LENGTH, Tail


class ConsumerNews:
    """The newest events, and which consumers have something to claim again."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._tail = Tail()
        self._freed: dict[int, int] = {}
        self._moment = 0
        self._lock = threading.Lock()
        self._reading: asyncio.Task[None] | None = None
        engine.on_append.append(self._hear)

    def _hear(self, log: LogEnd) -> None:
        if log.events:
            self._tail.extend(log.after, log.events)

    def free(self, cid: int | None) -> None:
        """Say that something of a consumer can be claimed, now or later; of None, nothing. From any thread."""
        if cid is not None:
            with self._lock:
                self._moment += 1
                self._freed[cid] = self._moment
            self._engine.wakeups.announce(0)

    @property
    def moment(self) -> int:
        """A mark in time, for `is_freed_since`."""
        return self._moment

    def is_freed_since(self, cid: int, moment: int) -> bool:
        """Whether something of a consumer was freed after a moment."""
        return self._freed.get(cid, 0) > moment

    async def may_bring(self, after: int, selector: Selector) -> tuple[bool, int]:
        """Whether one of the events after this one may be meant, and up to which event that is known."""
        head = self._engine.wakeups.head
        if head <= after:
            return False, after
        if self._tail.head < head:
            await self._read()
        upto = max(head, self._tail.head)  # once: commits of this process move it at any time
        return self._tail.may_bring(after, upto, selector), upto

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
