"""The event log on SQLite: the `Log` interface. Reading is by cursor; waiting is for a signal, not for a clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

from clew.access import Principal
from clew.errors import InvalidInput
from clew.trail.event import Event
from clew.trail.selector import EVERYTHING, Selector, check_selector, matches_content, matches_envelope
from clew.trail.sqlite.engine import Engine, Sql
from clew.trail.sqlite.rows import Audiences, find_version, in_list, to_event

EVENT = "SELECT seq, type, rid, id, version, audience, schema_name, tags, at FROM events"
MAX_EVENTS = 10_000
OTHER_PROCESSES = 0.02
"""Seconds between looks at what other processes wrote; writes of this process signal at once."""


class SqliteLog:
    """See `clew.trail.store.Log`."""

    def __init__(self, engine: Engine, audiences: Audiences) -> None:
        self._engine = engine
        self._audiences = audiences
        self._waiters: dict[asyncio.AbstractEventLoop, set[asyncio.Event]] = {}
        self._lock = threading.Lock()

    async def read(
        self, after: int, *, by: Principal, selector: Selector = EVERYTHING, limit: int = 500
    ) -> tuple[list[Event], int]:
        by.require("subscribe")
        check_selector(selector)
        if not 1 <= limit <= MAX_EVENTS:
            raise InvalidInput("limit", f"must be between 1 and {MAX_EVENTS:,}")
        return await self._engine.read_aside(lambda connection: self._read(connection, after, by, selector, limit))

    def _read(
        self, connection: Sql, after: int, by: Principal, selector: Selector, limit: int
    ) -> tuple[list[Event], int]:
        visible = self._audiences.visible(connection, by.owner_id, by.scopes)
        head = int(connection.execute("SELECT coalesce(max(seq), 0) FROM events").get)
        found: list[Event] = []
        rows = connection.execute(
            f"{EVENT} WHERE seq > ? AND seq <= ? AND audience IN {in_list(visible)} ORDER BY seq",
            (after, head),
        )
        for row in rows:
            event = load_event(connection, self._audiences, row, selector)
            if event is not None:
                found.append(event)
                if len(found) == limit:
                    return found, event.seq
        return found, head

    async def head(self) -> int:
        return self._engine.read(read_head)

    async def wait(self, after: int, timeout: float) -> bool:
        loop = asyncio.get_running_loop()
        woken, deadline = asyncio.Event(), loop.time() + timeout
        with self._lock:
            self._waiters.setdefault(loop, set()).add(woken)
        try:
            while True:
                woken.clear()
                if self._engine.read(read_head) > after:
                    return True
                left = deadline - loop.time()
                if left <= 0:
                    return False
                await _wait_for(woken, min(left, OTHER_PROCESSES))
        finally:
            with self._lock:
                self._waiters[loop].discard(woken)

    async def follow(self, after: int, *, by: Principal, selector: Selector = EVERYTHING) -> AsyncIterator[Event]:
        while True:
            events, after = await self.read(after, by=by, selector=selector)
            for event in events:
                yield event
            if not events:
                await self.wait(after, 60.0)

    def signal(self) -> None:
        """Wake everyone who waits in this process. Called by the writing thread after a commit."""
        with self._lock:
            waiting = [(loop, list(events)) for loop, events in self._waiters.items() if events]
        for loop, events in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_set_all, events)


def load_event(connection: Sql, audiences: Audiences, row: Any, selector: Selector) -> Event | None:
    """The event of a row with its breadcrumb, or None when the selector does not mean it.

    An event whose breadcrumb is gone is decided by its schema and tags alone.
    """
    event = to_event(row, audiences.of(connection, row[5])[0], None)
    if not matches_envelope(selector, event.schema_name, event.tags):
        return None
    if event.type == "breadcrumb.deleted":
        return event
    breadcrumb = find_version(connection, audiences, row[2], row[4])
    if breadcrumb is None:
        return event
    if not matches_content(selector, breadcrumb):
        return None
    return to_event(row, breadcrumb.owner_id, breadcrumb)


def read_head(connection: Sql) -> int:
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM events").get)


def _set_all(events: list[asyncio.Event]) -> None:
    for event in events:
        event.set()


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event without the cost of a task."""
    loop = asyncio.get_running_loop()
    timer = loop.call_later(seconds, event.set)
    try:
        await event.wait()
    finally:
        timer.cancel()
