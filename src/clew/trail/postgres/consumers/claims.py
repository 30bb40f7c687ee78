"""From the log to claims: what one transaction does for a worker that asks for events.

A consumer's cursor moves along the log; events that it wants become rows of `deliveries`, and of these the ones that
are due are claimed. Many workers claim at once: one of them reads the log for all, the rows are locked one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from clew.access import Principal
from clew.clock import Clock
from clew.errors import Corrupted
from clew.trail.model.consumer import StoredConsumer
from clew.trail.model.event import Claim, Event
from clew.trail.model.rows import to_event
from clew.trail.model.selector import EVERYTHING
from clew.trail.postgres.consumers import lanes, shares
from clew.trail.postgres.consumers.consumers import QueueStanding, begin_claim, lock_lanes, note_agent, read_standing
from clew.trail.postgres.log import EVENT, Row, load_events
from clew.trail.postgres.rows import SEEN
from clew.trail.postgres.transactions import WriteTransaction, pack_texts
from clew.trail.work.queue_lanes import Attempt, Due, lane_of, make_claim, next_attempt
from clew.trail.work.queue_shares import share_of

SCAN = 500
"""At most so many events of the log are looked at in one transaction: other workers want their turn."""
MOVE_CURSOR = "UPDATE consumers SET cursor = %s WHERE cid = %s"


class ClaimRequest(NamedTuple):
    """The request of a worker for events; the lease is in microseconds."""

    consumer: str
    by: Principal
    worker: str
    limit: int
    lease: int


class Claimed(NamedTuple):
    """The claims that a transaction made, and how the consumer stood: whether more of the log waits to be read, and
    when the next of its events is due."""

    claims: list[Claim]
    stored: StoredConsumer
    has_more: bool
    next_due: int | None


def claim_events(writing: WriteTransaction, request: ClaimRequest, clock: Clock) -> Claimed:
    """Claim what is due. Raises NotFound."""
    standing, is_alone = begin_claim(writing, request.consumer, request.by)
    stored = standing.stored
    note_agent(writing, stored.owner_id, stored.consumer)
    has_news = standing.head > stored.cursor
    if stored.consumer.limits is not None and not is_alone:
        lock_lanes(writing, stored.owner_id, stored.consumer.name, shared=False)
        standing, is_alone = read_standing(writing, request.consumer, request.by, writing.now), True
    if is_alone:
        standing = _scan(writing, standing, request)
    claims = _claim_due(writing, standing.stored, request, clock, is_alone=is_alone)
    if not claims and has_news and not is_alone:  # another worker reads the log: after it there may be something
        lock_lanes(writing, stored.owner_id, stored.consumer.name, shared=False)
        standing = read_standing(writing, request.consumer, request.by, writing.now)
        standing = _scan(writing, standing, request)
        claims = _claim_due(writing, standing.stored, request, clock, is_alone=True)
    due = None
    if not claims:
        due = read_standing(writing, request.consumer, request.by, writing.now).next_due
    return Claimed(claims, standing.stored, standing.head > standing.stored.cursor, due)


# -- reading the log ----------------------------------------------------------------------------------------


def _scan(writing: WriteTransaction, standing: QueueStanding, request: ClaimRequest) -> QueueStanding:
    """Put the events of the next stretch of the log that the consumer wants into their lanes, and move its cursor. The
    caller holds the lock of the lanes."""
    stored, head, due = standing
    if head <= stored.cursor:
        return standing
    rows = writing.rows(
        f"{EVENT} WHERE b.seq > %(after)s AND b.seq <= %(head)s AND {SEEN} ORDER BY b.seq LIMIT {SCAN}",
        {"after": stored.cursor, "head": head, "owner": stored.owner_id, "scopes": pack_texts(stored.scopes)},
    )
    cursor = rows[-1][0] if len(rows) == SCAN else head
    damaged: list[tuple[Event, str]] = []

    def note_damage(row: Row, error: Corrupted) -> None:
        damaged.append((to_event(row, stored.owner_id, None), error.message))

    events = load_events(writing, rows, stored.consumer.selector, stored.owner_id, note_damage)
    wanted = sorted([*events, *(event for event, _ in damaged)], key=lambda event: event.seq)
    in_lanes = [lane_of(event, stored.consumer.ordered) for event in wanted]
    lanes.enqueue(writing, stored.cid, [event.seq for event in wanted], in_lanes)
    limits = stored.consumer.limits
    if limits is not None:
        for event in wanted:
            shares.line_up(writing, stored.cid, event.seq, share_of(event, limits, request.by.agent_id))
    for event, message in damaged:
        lanes.bury(writing, stored.cid, event.seq, lane_of(event, stored.consumer.ordered), message)
    writing.send(MOVE_CURSOR, (cursor, stored.cid))
    moved = StoredConsumer(stored.cid, stored.consumer, stored.owner_id, stored.scopes, cursor)
    return QueueStanding(moved, head, due)


# -- claiming -----------------------------------------------------------------------------------------------


def _claim_due(
    writing: WriteTransaction, stored: StoredConsumer, request: ClaimRequest, clock: Clock, *, is_alone: bool
) -> list[Claim]:
    """Claim up to the limit. Rows that are given up make room for others."""
    claims: list[Claim] = []
    while (room := request.limit - len(claims)) > 0:
        due, found = _find_due(writing, stored, room)
        events = {event.seq: event for event in found}
        attempts = {row.seq: next_attempt(row, stored.consumer.retry_policy, writing.now) for row in due}
        refused = [row for row in due if row.seq not in events or attempts[row.seq].refusal is not None]
        if refused and not is_alone:
            lock_lanes(writing, stored.owner_id, stored.consumer.name, shared=True)
        for row in refused:
            _refuse(writing, stored.cid, row, attempts[row.seq] if row.seq in events else None)
        taken = [(events[row.seq], attempts[row.seq], clock.new_id()) for row in due if row not in refused]
        claims += _hold(writing, stored, request, taken)
        if not refused:
            break
    return claims


def _find_due(writing: WriteTransaction, stored: StoredConsumer, limit: int) -> tuple[list[Due], list[Event]]:
    limits = stored.consumer.limits
    if limits is None:
        return lanes.find_due(writing, stored, limit)
    due = shares.find_claimable(writing, stored.cid, limits, writing.now, limit)
    return due, _load(writing, stored, [row.seq for row in due]) if due else []


def _hold(
    writing: WriteTransaction, stored: StoredConsumer, request: ClaimRequest, taken: list[tuple[Event, Attempt, str]]
) -> list[Claim]:
    until = writing.now + request.lease
    if taken:
        held = [(event.seq, attempt.first_at, token) for event, attempt, token in taken]
        lanes.hold(writing, stored.cid, held, until, request.worker)
    return [
        make_claim(stored.consumer, event, attempt=attempt.number, until=until, token=token)
        for event, attempt, token in taken
    ]


def _refuse(writing: WriteTransaction, cid: int, row: Due, attempt: Attempt | None) -> None:
    """Bury a row that was tried for too long. One whose event the consumer may no longer see is forgotten."""
    if attempt is None:
        lanes.drop_first(writing, cid, row.seq, row.lane)
    else:
        lanes.bury(writing, cid, row.seq, row.lane, attempt.refusal or "")


def _load(writing: WriteTransaction, stored: StoredConsumer, seqs: Sequence[int]) -> list[Event]:
    """The events of rows, without those that the consumer may no longer see."""
    values = {"seqs": list(seqs), "owner": stored.owner_id, "scopes": pack_texts(stored.scopes)}
    rows = writing.rows(f"{EVENT} WHERE b.seq = ANY (%(seqs)s) AND {SEEN}", values)
    return load_events(writing, rows, EVERYTHING, stored.owner_id)
