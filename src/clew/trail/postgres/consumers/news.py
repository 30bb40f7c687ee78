"""A cache of the newest events, which is read once for all waiting workers of this process. Most workers do not want a
given new event. They can see that in this cache, without a transaction.
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
    """The newest events, and the time at which an event of each consumer was last released."""

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
        """Note that an event of a consumer was released and can be claimed, now or later. None is ignored. May be
        called from any thread."""
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
        """Whether an event of a consumer was released after `moment`."""
        return self._freed.get(cid, 0) > moment

    async def may_match_new_events(self, after: int, selector: Selector) -> tuple[bool, int]:
        """Whether an event after `after` may match a selector, and the last event for which this was checked."""
        head = self._engine.wakeups.head
        if head <= after:
            return False, after
        if self._tail.head < head:
            await self._read()
        upto = max(head, self._tail.head)  # once: commits of this process move it at any time
        return self._tail.may_match_new_events(after, upto, selector), upto

    async def _read(self) -> None:
        """Read the new events. Concurrent calls wait for the same query."""
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
