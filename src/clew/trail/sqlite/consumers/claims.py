"""Makes the claims for one order, in a transaction of the writing thread.

A consumer's cursor moves along the log; events that it wants become rows of `deliveries`, and of these the ones that
are due are claimed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from clew.clock import Clock
from clew.errors import Corrupted, NotFound
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.consumer import StoredConsumer
from clew.trail.model.event import Claim, ClaimLimits, Event
from clew.trail.model.rows import to_event
from clew.trail.model.selector import matches_content, matches_envelope, needs_record
from clew.trail.sqlite.consumers import lanes, shares
from clew.trail.sqlite.consumers.claim_orders import Order
from clew.trail.sqlite.consumers.consumers import find_consumer, move_cursor, note_agent
from clew.trail.sqlite.engine import Writing
from clew.trail.sqlite.log import EVENT, NOTHING, load_event, load_or_bare, read_head
from clew.trail.sqlite.rows import Audiences, in_list
from clew.trail.sqlite.version_writes import FRESH
from clew.trail.work.queue_lanes import Due, lane_of, make_claim, next_attempt
from clew.trail.work.queue_shares import share_of

SCAN = 500
FAR = 250
"""The stored cursor may lag this many events behind the consumer: after a crash they are checked again."""

SEEN = 1_000_000
"""Claims note the time of their agent at most once in so many microseconds."""


class News(NamedTuple):
    """All events after a place in the log up to `head`, and their schemas. `records` are copies of new records, by row
    id, that are only compared with selectors."""

    after: int
    head: int
    rows: list[Any]
    tags: list[tuple[str, ...]]
    schemas: frozenset[str | None]
    records: dict[int, Breadcrumb]


class Claiming:
    """Makes claims within the caller's transaction."""

    def __init__(self, audiences: Audiences, clock: Clock) -> None:
        self._audiences = audiences
        self._clock = clock
        self._passed: dict[int, tuple[StoredConsumer, int]] = {}
        self._passing: dict[int, tuple[StoredConsumer, int]] = {}
        self._moved: list[tuple[Order, StoredConsumer]] = []

    def claim(self, writing: Writing, order: Order, news: News | None = None) -> list[Claim]:
        """Claim due events, or with `news` only new ones. It reads at most SCAN events of the log, so that other
        writers get their turn."""
        stored = find_consumer(writing, order.consumer, order.by)
        note_agent(writing, stored.owner_id, stored.consumer, every=SEEN)
        if stored.consumer.limits is not None:
            return self._claim_shares(writing, stored, stored.consumer.limits, order, news)
        due = lanes.find_due(writing, stored.cid, order.limit) if news is None else []
        claims = [claim for row in due if (claim := self._take(writing, stored, order, row)) is not None]
        if (room := order.limit - len(due)) > 0:
            for event in self._scan(writing, stored, news):
                if not room or stored.consumer.delay:
                    _enqueue(writing, stored, event)
                elif (claim := self._enter(writing, stored, order, event)) is not None:
                    claims.append(claim)
                    room -= 1
        order.stored = find_consumer(writing, order.consumer, order.by)
        return claims

    def _claim_shares(
        self, writing: Writing, stored: StoredConsumer, limits: ClaimLimits, order: Order, news: News | None
    ) -> list[Claim]:
        """Enqueue the new events with their turns, and then claim due events in order of turn, as far as the limits
        allow."""
        new: dict[int, Event] = {}
        for event in self._scan(writing, stored, news):
            new[event.seq] = event
            _enqueue(writing, stored, event)
            shares.line_up(writing, stored.cid, event.seq, share_of(event, limits, order.by.agent_id))
        due = shares.find_claimable(writing.connection, stored.cid, limits, writing.now, order.limit)
        taken = (self._take(writing, stored, order, row, new.get(row.seq)) for row in due)
        claims = [claim for claim in taken if claim is not None]
        order.stored = find_consumer(writing, order.consumer, order.by)
        return claims

    def _scan(self, writing: Writing, stored: StoredConsumer, news: News | None) -> Iterator[Event]:
        """Yield the events that the consumer wants from the next part of the log, and then move the cursor to the end
        of that part."""
        begin = self.position(stored)
        if news is not None and news.after <= begin:
            head = cursor = news.head
            rows = [row for row in news.rows if row[0] > begin and self.sees(writing, stored, row)]
        else:
            head = read_head(writing.connection)
            rows = self._read_stretch(writing, stored, begin) if head > begin else []
            cursor = rows[-1][0] if len(rows) == SCAN else head
        fresh = writing.memo.get(FRESH, NOTHING)
        for row in rows:
            try:
                event = load_event(writing.connection, self._audiences, row, stored.consumer.selector, fresh)
            except Corrupted as error:
                event = to_event(row, stored.owner_id, None)
                _enqueue(writing, stored, event)
                lanes.bury(writing, stored.cid, event.seq, _lane(stored, event), error.message)
                continue
            if event is not None:
                yield event
        if head > stored.cursor:
            move_cursor(writing, stored, cursor)

    def _read_stretch(self, writing: Writing, stored: StoredConsumer, after: int) -> list[Any]:
        visible = self._audiences.visible(writing.connection, stored.owner_id, stored.scopes)
        rows: list[Any] = writing.execute(
            f"{EVENT} WHERE seq > ? AND audience IN {in_list(visible)} ORDER BY seq LIMIT {SCAN}", (after,)
        ).fetchall()
        return rows

    def sees(self, writing: Writing, stored: StoredConsumer, row: Any) -> bool:
        """Whether a consumer may see the event of a row."""
        owner_id, scopes = self._audiences.of(writing.connection, row[5])
        return owner_id == stored.owner_id and stored.scopes.issuperset(scopes)

    def _enter(self, writing: Writing, stored: StoredConsumer, order: Order, event: Event) -> Claim | None:
        """Claim a new event. If its lane has others, enqueue it behind them and return None."""
        until, token = writing.now + order.lease, self._clock.new_id()
        is_claimed = lanes.enter(
            writing, stored.cid, event.seq, _lane(stored, event), until=until, token=token, worker=order.worker
        )
        return make_claim(stored.consumer, event, attempt=1, until=until, token=token) if is_claimed else None

    def _take(
        self, writing: Writing, stored: StoredConsumer, order: Order, row: Due, event: Event | None = None
    ) -> Claim | None:
        """Claim one row, whose event is read unless it is given. If too many workers died with it or its deadline has
        passed, make it a dead letter and return None, unless the order is also for refused events."""
        event = event or self._load(writing, stored, row.seq)
        if event is None:
            lanes.leave(writing, stored.cid, row.seq, row.lane)
            return None
        attempt = next_attempt(row, stored.consumer.retry_policy, writing.now)
        if attempt.refusal is not None and not order.with_refused:
            lanes.bury(writing, stored.cid, row.seq, row.lane, attempt.refusal)
            return None
        until, token = writing.now + order.lease, self._clock.new_id()
        lanes.hold(
            writing, stored.cid, row.seq, until=until, first_at=attempt.first_at, token=token, worker=order.worker
        )
        return make_claim(
            stored.consumer, event, attempt=attempt.number, until=until, token=token, refusal=attempt.refusal
        )

    def _load(self, writing: Writing, stored: StoredConsumer, seq: int) -> Event | None:
        """The event of a waiting row, or None if the consumer may no longer see it."""
        row = writing.execute(f"{EVENT} WHERE seq = ?", (seq,)).fetchone()
        return load_or_bare(writing.connection, self._audiences, row) if self.sees(writing, stored, row) else None

    def is_meant(self, writing: Writing, stored: StoredConsumer, news: News) -> bool:
        """Whether a consumer may want an event of the news, as far as that shows without reading its content. The
        content of a record that was written in this transaction need not be read."""
        if stored.schemas and news.schemas.isdisjoint(stored.schemas):
            return False
        selector = stored.consumer.selector
        fresh = writing.memo.get(FRESH, NOTHING) if needs_record(selector) else NOTHING
        for row, tags in zip(news.rows, news.tags, strict=True):
            if not matches_envelope(selector, row[6], tags) or not self.sees(writing, stored, row):
                continue
            remake = fresh.get(row[2]) if row[4] == 1 else None
            if remake is None:
                return True
            record = news.records.get(row[2]) or news.records.setdefault(row[2], remake())
            if matches_content(selector, record):
                return True
        return False

    # -- events that a consumer does not want -------------------------------------------------------------

    def position(self, stored: StoredConsumer) -> int:
        """The event up to which a consumer has seen all events that it wants. The stored cursor may be lower, because
        skipping unwanted events does not write it: each write would be a transaction."""
        passed = self._passed.get(stored.cid)
        return max(stored.cursor, passed[1]) if passed and passed[0].has_terms_of(stored) else stored.cursor

    def skip(self, stored: StoredConsumer, news: News) -> bool:
        """Note that a consumer wants none of the new events, if their schemas alone show it. Otherwise return False:
        `pass_by` decides. This is the usual case, and it compares no content."""
        passed = self._passed.get(stored.cid)
        if passed is None or passed[0] is not stored or not news.after <= passed[1] or not stored.schemas:
            return False
        if news.head - stored.cursor > FAR or not news.schemas.isdisjoint(stored.schemas):
            return False
        self._passing[stored.cid] = stored, news.head
        return True

    def pass_by(self, writing: Writing, order: Order, stored: StoredConsumer, news: News) -> bool:
        """Note that a consumer wants none of the new events; this takes effect with the commit. A cursor that is far
        behind moves with this transaction. Returns False if the consumer must look for itself, because it has not seen
        earlier events or has other terms by now."""
        if news.after > self.position(stored):
            return False
        if news.head - stored.cursor > FAR:
            with contextlib.suppress(NotFound):
                present = find_consumer(writing, order.consumer, order.by)
                if present.cid == stored.cid and present.has_terms_of(stored):
                    self._moved.append((order, move_cursor(writing, present, news.head)))
                    self._passing[stored.cid] = stored, news.head
                    return True
            return False
        self._passing[stored.cid] = stored, news.head
        return True

    def note_passed(self, stored: StoredConsumer, head: int) -> None:
        """Note that a consumer wants none of the committed events up to `head`."""
        if head > self.position(stored):
            self._passed[stored.cid] = stored, head

    def committed(self) -> None:
        self._passed.update(self._passing)
        for order, stored in self._moved:
            order.stored = stored
        self.rolled_back()

    def rolled_back(self) -> None:
        self._passing.clear()
        self._moved.clear()


def _enqueue(writing: Writing, stored: StoredConsumer, event: Event) -> None:
    lanes.enqueue(writing, stored.cid, event.seq, _lane(stored, event), stored.due_at(writing.now))


def _lane(stored: StoredConsumer, event: Event) -> str:
    return lane_of(event, stored.consumer.ordered)
