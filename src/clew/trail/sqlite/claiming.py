"""From the log to claims: what a transaction of the writing thread does for one order.

A consumer's cursor moves along the log; events that it wants become rows of `deliveries`, and of these the ones that
are due are claimed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from clew.clock import Clock
from clew.errors import Corrupted
from clew.trail.event import Claim, Event
from clew.trail.selector import matches_envelope
from clew.trail.sqlite import lanes
from clew.trail.sqlite.consumers import Stored, find_consumer, note_agent
from clew.trail.sqlite.engine import Writing, from_micros
from clew.trail.sqlite.lanes import Due
from clew.trail.sqlite.log import EVENT, load_event, load_or_bare, read_head
from clew.trail.sqlite.orders import Order
from clew.trail.sqlite.rows import Audiences, in_list, to_event

SCAN = 500

_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


class News(NamedTuple):
    """All events after a place in the log."""

    after: int
    rows: list[Any]

    @property
    def head(self) -> int:
        return int(self.rows[-1][0]) if self.rows else self.after


class Claiming:
    """Makes claims within the caller's transaction."""

    def __init__(self, audiences: Audiences, clock: Clock) -> None:
        self._audiences = audiences
        self._clock = clock

    def claim(self, writing: Writing, order: Order, news: News | None = None) -> list[Claim]:
        """Claim what is due, or what `news` brings. At most one stretch of the log is looked at: other writers want
        their turn."""
        stored = find_consumer(writing.connection, order.consumer, order.by)
        note_agent(writing, stored.owner_id, stored.consumer)
        due = lanes.find_due(writing, stored.cid, order.limit) if news is None else []
        loaded: dict[int, Event] = {}
        if (room := order.limit - len(due)) > 0:
            for event in self._scan(writing, stored, news):
                row = lanes.enqueue(writing, stored.cid, event, _lane(stored, event))
                if row is not None and len(loaded) < room:
                    due.append(row)
                    loaded[event.seq] = event
        taken = (self._take(writing, stored, order, row, loaded.get(row.seq)) for row in due)
        return [claim for claim in taken if claim is not None]

    def _scan(self, writing: Writing, stored: Stored, news: News | None) -> Iterator[Event]:
        """What the consumer wants of the next stretch of the log; the cursor is moved behind it."""
        if news is not None and news.after <= stored.cursor:
            head = cursor = news.head
            rows = [row for row in news.rows if row[0] > stored.cursor and self.sees(writing, stored, row)]
        else:
            head = read_head(writing.connection)
            rows = self._read_stretch(writing, stored) if head > stored.cursor else []
            cursor = rows[-1][0] if len(rows) == SCAN else head
        for row in rows:
            try:
                event = load_event(writing.connection, self._audiences, row, stored.consumer.selector)
            except Corrupted as error:
                event = to_event(row, stored.owner_id, None)
                lanes.enqueue(writing, stored.cid, event, lane := _lane(stored, event))
                lanes.bury(writing, stored.cid, event.seq, lane, error.message)
                continue
            if event is not None:
                yield event
        if head > stored.cursor:
            writing.execute("UPDATE consumers SET cursor = ? WHERE cid = ?", (cursor, stored.cid))

    def _read_stretch(self, writing: Writing, stored: Stored) -> list[Any]:
        visible = self._audiences.visible(writing.connection, stored.owner_id, stored.scopes)
        rows: list[Any] = writing.execute(
            f"{EVENT} WHERE seq > ? AND audience IN {in_list(visible)} ORDER BY seq LIMIT {SCAN}", (stored.cursor,)
        ).fetchall()
        return rows

    def sees(self, writing: Writing, stored: Stored, row: Any) -> bool:
        """Whether a consumer may see the event of a row."""
        owner_id, scopes = self._audiences.of(writing.connection, row[5])
        return owner_id == stored.owner_id and stored.scopes.issuperset(scopes)

    def _take(self, writing: Writing, stored: Stored, order: Order, row: Due, event: Event | None) -> Claim | None:
        """Claim one row, or bury it when its attempts or its time are used up (a worker died with it)."""
        seq, lane, attempts, first_at = row
        event = event or self._load(writing, stored, seq)
        if event is None:
            lanes.leave(writing, stored.cid, seq, lane)
            return None
        retry, first_at = stored.consumer.retry, first_at or writing.now
        if attempts >= retry.attempts or is_late(retry.deadline, first_at, writing.now):
            reason = "the workers that claimed it did not finish" if attempts >= retry.attempts else "past its deadline"
            lanes.bury(writing, stored.cid, seq, lane, reason)
            return None
        until, token, key = writing.now + order.lease, self._clock.new_id(), f"{stored.consumer.name}/{seq}"
        lanes.hold(writing, stored.cid, seq, until=until, first_at=first_at, token=token, worker=order.worker)
        return Claim(
            consumer=stored.consumer.name,
            event=msgspec.structs.replace(event, key=key, attempt=attempts + 1),
            attempt=attempts + 1,
            lease_until=from_micros(until),
            token=token,
            key=key,
        )

    def _load(self, writing: Writing, stored: Stored, seq: int) -> Event | None:
        """The event of a row that has waited, or None when its scopes were narrowed meanwhile."""
        row = writing.execute(f"{EVENT} WHERE seq = ?", (seq,)).fetchone()
        return load_or_bare(writing.connection, self._audiences, row) if self.sees(writing, stored, row) else None

    def is_meant(self, writing: Writing, stored: Stored, row: Any) -> bool:
        """Whether a consumer may want an event, as far as that shows without its content."""
        return self.sees(writing, stored, row) and matches_envelope(
            stored.consumer.selector, row[6], _decode_texts(row[7])
        )


def is_late(deadline: float | None, first_at: int, moment: int) -> bool:
    return deadline is not None and moment > first_at + int(deadline * 1_000_000)


def _lane(stored: Stored, event: Event) -> str:
    return lanes.lane_of(event, stored.consumer.ordered)
