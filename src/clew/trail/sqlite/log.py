"""The event log on SQLite: the `Log` interface. Reading is by cursor; waiting is for a signal, not for a clock."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import ClewError, Corrupted, InvalidInput, NotFound
from clew.sqlite_file import Sql
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.event import Event
from clew.trail.model.rows import to_event
from clew.trail.model.selector import EVERYTHING, Selector, check_selector, matches_content, matches_envelope
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.rows import Audiences, find_version, in_list
from clew.trail.sqlite.version_writes import Marks
from clew.trail.work.recent_events import EmptyLists, Envelope, Tail, is_meant

EVENT = "SELECT seq, type, rid, id, version, audience, schema_name, tags, at FROM events"
MAX_EVENTS = 10_000
FEW = 50
"""Up to this many events are read in the calling thread; more are read in another thread."""
MAX_BYTES = 8_000_000
"""A page of events or records ends when its contexts reach this many bytes. The cursor continues from there."""
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode
Remake = Callable[[], Breadcrumb]
NOTHING: Mapping[int, Remake] = MappingProxyType({})
OTHER_PROCESSES = 0.02
"""Seconds between polls for writes of other processes. Writes of this process are signalled at once."""
IDLE_LOOKS = 5
"""The number of polls without a commit of this process after which it checks whether another process wrote right after
its last commit. New events are seen at once; the check finds claims that were released."""


def _never() -> float:
    return math.inf


class SqliteLog:
    """See `clew.trail.store.Log`."""

    def __init__(self, engine: Engine, audiences: Audiences) -> None:
        self._engine = engine
        self._audiences = audiences
        self._watches: dict[asyncio.AbstractEventLoop, LogWatch] = {}
        self._tail = Tail()
        self.empty = EmptyLists(self._tail)
        self._lock = threading.Lock()

    async def read(
        self, after: int, *, by: Principal, selector: Selector = EVERYTHING, limit: int = 500
    ) -> tuple[list[Event], int]:
        by.require("subscribe")
        check_selector(selector)
        if not 1 <= limit <= MAX_EVENTS:
            raise InvalidInput("limit", f"must be between 1 and {MAX_EVENTS:,}")
        head = self._engine.read(read_head)
        after = self._tail.pass_by(after, head, selector)
        if after >= head:
            return [], head
        work = partial(self._read, after=after, by=by, selector=selector, limit=limit)
        return self._engine.read_snapshot(work) if head - after <= FEW else await self._engine.read_aside(work)

    def _read(
        self, connection: Sql, after: int, by: Principal, selector: Selector, limit: int
    ) -> tuple[list[Event], int]:
        visible = self._audiences.visible(connection, by.owner_id, by.scopes)
        head = int(connection.execute("SELECT coalesce(max(seq), 0) FROM events").get)
        found: list[Event] = []
        room = MAX_BYTES
        rows = connection.execute(
            f"{EVENT} WHERE seq > ? AND seq <= ? AND audience IN {in_list(visible)} ORDER BY seq",
            (after, head),
        )
        for row in rows:
            try:
                event = load_event(connection, self._audiences, row, selector)
            except Corrupted:  # the reader learns of the change, and of the damage when it asks for the record
                event = to_event(row, self._audiences.of(connection, row[5])[0], None)
            if event is not None:
                found.append(event)
                room -= weigh(event.breadcrumb)
                if len(found) == limit or room <= 0:
                    return found, event.seq
        return found, head

    def may_match_new_events(self, after: int, head: int, selector: Selector) -> bool:
        """Whether an event after `after` and up to `head` may match, judged by the cached events without reading the
        file."""
        return self._tail.may_match_new_events(after, head, selector)

    async def head(self) -> int:
        return self._engine.read(read_head)

    async def creation_of(self, breadcrumb_id: str, *, by: Principal) -> int:
        by.require("subscribe")

        def find(connection: Sql) -> int:
            visible = self._audiences.visible(connection, by.owner_id, by.scopes)
            sql = f"SELECT rid FROM breadcrumbs WHERE id = ? AND audience IN {in_list(visible)}"  # rid is that number
            found = connection.execute(sql, (breadcrumb_id,)).get
            if found is None:
                raise NotFound("breadcrumb", breadcrumb_id)
            return int(found)

        return self._engine.read(find)

    async def wait(self, after: int, timeout: float, *, selector: Selector = EVERYTHING) -> bool:
        loop = asyncio.get_running_loop()
        woken, is_over = asyncio.Event(), False

        def end() -> None:
            nonlocal is_over
            is_over = True
            woken.set()

        timer = loop.call_later(timeout, end)
        try:
            with self.watching(woken.set, selector):
                while not self._tail.may_match_new_events(after, self._engine.read(read_head), selector):
                    if is_over:
                        return False
                    woken.clear()
                    await woken.wait()
                return True
        finally:
            timer.cancel()

    @contextlib.contextmanager
    def watching(
        self, wake: Callable[[], object], selector: Selector | None = None, *, until: Callable[[], float] = _never
    ) -> Iterator[LogWatch]:
        """Have `wake` called on this event loop whenever matching events may have been committed. Without a selector,
        it is called soon after another process has committed anything, for callers that learn of this process's commits
        in another way; and soon after the time `until` of the loop."""
        watch = self._watch(asyncio.get_running_loop())
        watch.add(wake, selector, until)
        try:
            yield watch
        finally:
            watch.discard(wake)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> LogWatch:
        found = self._watches.get(loop)
        if found is None:
            found = LogWatch(loop, self._engine, self._tail)
            with self._lock:
                open_ones = {each: watch for each, watch in self._watches.items() if not each.is_closed()}
                self._watches = {**open_ones, loop: found}
        return found

    async def follow(self, after: int, *, by: Principal, selector: Selector = EVERYTHING) -> AsyncIterator[Event]:
        while True:
            events, after = await self.read(after, by=by, selector=selector)
            for event in events:
                yield event
            if not events:
                await self.wait(after, 60.0, selector=selector)

    def signal(self, changed: Sequence[int]) -> None:
        """Wake the waiting callers of this process that may want the written events. The writing thread calls this
        after a commit."""
        if max(changed) <= 0:
            return  # no events
        written: Marks | None = self._engine.memo.get(Marks)
        events = self._tail.add(written.after, written.rows) if written is not None and written.rows else []
        for loop, watch in self._watches.items():
            if watch.is_awaited:
                self._engine.calls.add(loop, partial(watch.wake, events))


class LogWatch:
    """The waiting callers of one event loop. Writes of this process wake them directly. For writes of other processes,
    one timer polls the file as long as a caller waits. `looks` counts the polls that found a change."""

    def __init__(self, loop: asyncio.AbstractEventLoop, engine: Engine, tail: Tail) -> None:
        self._loop = loop
        self._engine = engine
        self._tail = tail
        self._timer: asyncio.TimerHandle | None = None
        self._version = -1
        self._commits = 0, 0
        self._unsure = 0
        self.looks = 0
        self._waiting: dict[Callable[[], object], Selector] = {}
        self._for_others: dict[Callable[[], object], Callable[[], float]] = {}

    @property
    def is_awaited(self) -> bool:
        """Whether a caller waits for commits of this process."""
        return bool(self._waiting)

    def add(self, wake: Callable[[], object], selector: Selector | None, until: Callable[[], float]) -> None:
        if selector is None:
            self._for_others[wake] = until
        else:
            self._waiting[wake] = selector
        if self._timer is None:
            self._timer = self._loop.call_later(OTHER_PROCESSES, self._look)

    def discard(self, wake: Callable[[], object]) -> None:
        self._waiting.pop(wake, None)
        self._for_others.pop(wake, None)

    def wake(self, events: Sequence[Envelope]) -> None:
        """Wake the callers whose selectors may match one of these events. If the events are not known, wake all."""
        for wake, selector in tuple(self._waiting.items()):
            if not events or is_meant(selector, events):
                wake()

    def _look(self) -> None:
        is_wanted = self._waiting or self._for_others
        self._timer = self._loop.call_later(OTHER_PROCESSES, self._look) if is_wanted else None
        now = self._loop.time()
        for wake in [wake for wake, until in self._for_others.items() if until() <= now]:
            wake()
        with contextlib.suppress(ClewError):  # those who wait will meet it themselves
            if not self._have_others_written():
                return
        self.looks += 1
        for wake in tuple(self._for_others):
            wake()

    def _have_others_written(self) -> bool:
        """Whether another process is known to have written to the file since the last poll. Also wakes the callers that
        wait for events."""
        before, self._commits = self._commits, (self._engine.own_commits, self._engine.foreign_commits)
        version = self._engine.read(lambda connection: connection.execute("PRAGMA data_version").get)
        is_known = version == self._version and self._commits[1] == before[1]
        self._version = version
        if is_known:
            self._unsure -= self._unsure > 0
            if self._unsure == 1:
                self._engine.post(lambda writing: None)  # a transaction sees whether others have written
            return False
        if self._engine.read(read_head) != self._tail.head:
            self.wake(())
        elif self._commits[0] != before[0] and self._commits[1] == before[1]:
            self._unsure = 1 + IDLE_LOOKS
            return False
        self._unsure = 0
        return True


def load_event(
    connection: Sql, audiences: Audiences, row: Any, selector: Selector, fresh: Mapping[int, Remake] = NOTHING
) -> Event | None:
    """The event of a row with its breadcrumb, or None if the selector does not match. Records in `fresh` were written
    in this transaction and need not be read. If the breadcrumb is gone, only schema and tags are compared.
    """
    if not matches_envelope(selector, row[6], _decode_texts(row[7])):
        return None
    event = to_event(row, audiences.of(connection, row[5])[0], None)
    if event.type == "breadcrumb.deleted":
        return event
    fresh_copy = fresh.get(row[2]) if row[4] == 1 else None
    breadcrumb = fresh_copy() if fresh_copy else find_version(connection, audiences, row[2], row[4])
    if breadcrumb is None:
        return event
    if not matches_content(selector, breadcrumb):
        return None
    return msgspec.structs.replace(event, breadcrumb=breadcrumb)


def load_or_bare(connection: Sql, audiences: Audiences, row: Any) -> Event:
    """The event of a row with its breadcrumb, or without it when that is damaged."""
    try:
        event = load_event(connection, audiences, row, EVERYTHING)
    except Corrupted:
        event = None
    return event or to_event(row, audiences.of(connection, row[5])[0], None)


def weigh(breadcrumb: Breadcrumb | None) -> int:
    """About how many bytes of JSON a record has."""
    return 0 if breadcrumb is None else len(msgspec.json.encode(breadcrumb.context))


def read_head(connection: Sql) -> int:
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM events").get)
