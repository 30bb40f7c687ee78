"""The event log on PostgreSQL: the `Log` interface. Reading is by cursor; waiting is for a wake-up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import Corrupted, InvalidInput, NotFound
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.event import Event
from clew.trail.model.rows import to_event
from clew.trail.model.selector import EVERYTHING, Selector, check_selector, matches_content, matches_envelope
from clew.trail.postgres.engine import READ_HEAD, PostgresEngine
from clew.trail.postgres.rows import CURRENT, OLDER, SEEN, seen_by, to_record
from clew.trail.postgres.transactions import ReadTransaction

EVENT = "SELECT b.seq, b.type, b.rid, b.id, b.version, b.audience, b.schema_name, b.tags, b.at FROM events b"
EVENT_COLUMNS = 9
MAX_EVENTS = 10_000
MAX_BYTES = 8_000_000
"""A page of events ends when its contexts reach this many bytes. The cursor continues from there."""
CHUNK = 200
"""The number of events that one query fetches."""
Row = Sequence[Any]
NOTHING: Mapping[tuple[int, int], Row] = MappingProxyType({})
decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class PostgresLog:
    """See `clew.trail.store.Log`."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine

    async def read(
        self, after: int, *, by: Principal, selector: Selector = EVERYTHING, limit: int = 500
    ) -> tuple[list[Event], int]:
        by.require("subscribe")
        check_selector(selector)
        if not 1 <= limit <= MAX_EVENTS:
            raise InvalidInput("limit", f"must be between 1 and {MAX_EVENTS:,}")
        return await self._engine.read(lambda reading: self._read(reading, after, by, selector, limit), by=by)

    def _read(
        self, reading: ReadTransaction, after: int, by: Principal, selector: Selector, limit: int
    ) -> tuple[list[Event], int]:
        head, room = int(reading.value(READ_HEAD)), MAX_BYTES
        found: list[Event] = []
        while True:
            rows = reading.rows(
                f"{EVENT} WHERE b.seq > %(after)s AND {SEEN} ORDER BY b.seq LIMIT {CHUNK}",
                {"after": after, **seen_by(by)},
            )
            for event in load_events(reading, rows, selector, by.owner_id):
                found.append(event)
                room -= weigh(event.breadcrumb)
                if len(found) == limit or room <= 0:
                    return found, event.seq
            if len(rows) < CHUNK:
                return found, head
            after = rows[-1][0]

    async def head(self) -> int:
        return await self._engine.read_head()

    async def creation_of(self, breadcrumb_id: str, *, by: Principal) -> int:
        by.require("subscribe")
        if not breadcrumb_id.isascii() or "\0" in breadcrumb_id:
            raise NotFound("breadcrumb", breadcrumb_id)
        sql = f"SELECT b.rid FROM breadcrumbs b WHERE b.id = %(id)s AND {SEEN}"  # rid is that number
        values = {"id": breadcrumb_id, **seen_by(by)}
        found = await self._engine.read(lambda reading: reading.value(sql, values), by=by)
        if found is None:
            raise NotFound("breadcrumb", breadcrumb_id)
        return int(found)

    async def wait(self, after: int, timeout: float, *, selector: Selector = EVERYTHING) -> bool:
        woken = asyncio.Event()
        wakeups = self._engine.wakeups
        with wakeups.watching(woken.set):
            if wakeups.head <= after:
                await wakeups.look()
            try:
                async with asyncio.timeout(timeout):
                    while wakeups.head <= after:
                        woken.clear()
                        await woken.wait()
            except TimeoutError:
                return wakeups.head > after
            return True

    async def follow(self, after: int, *, by: Principal, selector: Selector = EVERYTHING) -> AsyncIterator[Event]:
        while True:
            events, after = await self.read(after, by=by, selector=selector)
            for event in events:
                yield event
            if not events:
                await self.wait(after, 60.0, selector=selector)


def load_events(
    reading: ReadTransaction,
    rows: Sequence[Row],
    selector: Selector,
    owner_id: str,
    on_damage: Callable[[Row, Corrupted], None] | None = None,
    known: Mapping[tuple[int, int], Row] = NOTHING,
) -> list[Event]:
    """Turn rows of EVENT, all of one owner, into the events that match a selector, each with its breadcrumb. If the
    breadcrumb is gone, only schema and tags are compared. If the breadcrumb is damaged, the event comes without it; the
    reader gets the error when it reads the record. With `on_damage`, a damaged event is passed to that function and
    left out instead. `known` has rows of breadcrumbs, by row id and version, that need not be read again.
    """
    meant = [row for row in rows if matches_envelope(selector, row[6], decode_texts(row[7]))]
    wanted = [(row[2], row[4]) for row in meant if row[1] != 2 and (row[2], row[4]) not in known]
    stored = {**known, **_find_versions(reading, wanted)}
    found = []
    for row in meant:
        content = stored.get((row[2], row[4])) if row[1] != 2 else None
        try:
            breadcrumb = None if content is None else to_record(content)
        except Corrupted as error:
            if on_damage is not None:
                on_damage(row, error)
                continue
            breadcrumb = None
        if breadcrumb is None or matches_content(selector, breadcrumb):
            found.append(to_event(row, owner_id, breadcrumb))
    return found


def _find_versions(reading: ReadTransaction, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Sequence[Any]]:
    """Rows of versions, present or past, by row id and version."""
    if not wanted:
        return {}
    rids = list({rid for rid, _ in wanted})
    found: dict[tuple[int, int], Sequence[Any]]
    found = {(row[0], row[3]): row for row in reading.rows(f"{CURRENT} WHERE b.rid = ANY (%s)", (rids,))}
    older = [pair for pair in wanted if pair not in found]
    if older:
        sql = (
            f"{OLDER} JOIN unnest(%s::bigint[], %s::integer[]) AS w (rid, version)"
            " ON w.rid = v.rid AND w.version = v.version"
        )
        rows = reading.rows(sql, ([rid for rid, _ in older], [version for _, version in older]))
        found |= {(row[0], row[3]): row for row in rows}
    return found


def weigh(breadcrumb: Breadcrumb | None) -> int:
    """About how many bytes of JSON a record has."""
    return 0 if breadcrumb is None else len(msgspec.json.encode(breadcrumb.context))
