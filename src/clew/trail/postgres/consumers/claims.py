"""From the log to claims: the transaction for a worker that asks for events.

A consumer's cursor moves along the log; events that it wants become rows of `deliveries`, and of these the ones that
are due are claimed. Many workers claim at the same time: the first one moves the cursor, and rows are locked one by
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import Corrupted
from clew.trail.model.consumer import StoredConsumer
from clew.trail.model.event import Claim, Event
from clew.trail.model.rows import to_event
from clew.trail.model.selector import EVERYTHING, matches_envelope, needs_record
from clew.trail.postgres.consumers import lanes, shares
from clew.trail.postgres.consumers.consumers import QueueStanding, lock_lanes, look_at, note_agent, read_standing
from clew.trail.postgres.consumers.lanes import DueBatch
from clew.trail.postgres.log import EVENT, Row, decode_texts, load_events
from clew.trail.postgres.rows import SEEN
from clew.trail.postgres.transactions import WriteTransaction, pack_texts
from clew.trail.work.queue_lanes import Attempt, Due, lane_of, make_claim, next_attempt
from clew.trail.work.queue_shares import share_of

MOVE_CURSOR = "UPDATE consumers SET cursor = %s WHERE cid = %s AND cursor = %s RETURNING cid"


class ClaimRequest(NamedTuple):
    """The request of a worker for events; the lease is in microseconds."""

    consumer: str
    by: Principal
    worker: str
    limit: int
    lease: int
    with_refused: bool


class Claimed(NamedTuple):
    """The claims that a transaction made, and the state of the consumer: whether the log has more events to read, and
    when the consumer's next event is due."""

    claims: list[Claim]
    stored: StoredConsumer
    has_more: bool
    next_due: int | None


def claim_events(writing: WriteTransaction, request: ClaimRequest, clock: Clock) -> Claimed:
    """Claim the due events. Raises NotFound."""
    standing = look_at(writing, request.consumer, request.by)
    note_agent(writing, standing.stored.owner_id, standing.stored.consumer)
    is_alone = standing.stored.consumer.limits is not None
    if is_alone:  # a claim must see all seats that are taken
        lock_lanes(writing, request.by.owner_id, request.consumer, shared=False)
        standing = look_at(writing, request.consumer, request.by)
    if standing.is_idle(writing.now):
        return Claimed([], standing.stored, False, standing.next_due)
    scan = _scan(writing, standing, request)
    if standing.has_new_consent and not is_alone:
        writing.begin_again()  # release the locks before the claims arrive here, so that others need not wait
    claims = _claim_due(writing, standing.stored, request, clock, is_alone=is_alone)
    due = None if claims else standing.next_due
    if scan.has_added and not claims:
        due = read_standing(writing, request.consumer, request.by, writing.now).next_due
    has_more = standing.head > standing.upto or scan.was_overtaken()
    return Claimed(claims, msgspec.structs.replace(standing.stored, cursor=standing.upto), has_more, due)


# -- reading the log ----------------------------------------------------------------------------------------


class LogScan(NamedTuple):
    """Whether events were sent to their lanes, and whether another worker had already moved the cursor, in which case
    they were not added. `was_overtaken` waits for its result; after a later statement has been waited for, the result
    is there."""

    has_added: bool
    was_overtaken: Callable[[], bool]


def _scan(writing: WriteTransaction, standing: QueueStanding, request: ClaimRequest) -> LogScan:
    """Add the events that the consumer wants from the next part of the log to their lanes, and move its cursor. If
    another worker has moved the cursor since `look_at`, this changes nothing."""
    stored = standing.stored
    if not standing.has_new_consent:
        return LogScan(False, lambda: False)
    damaged: list[tuple[Event, str]] = []

    def note_damage(row: Row, error: Corrupted) -> None:
        damaged.append((to_event(row, stored.owner_id, None), error.message))

    limits, selector = stored.consumer.limits, stored.consumer.selector
    if limits is None and not needs_record(selector):
        events = [
            to_event(row, stored.owner_id, None)
            for row in standing.news
            if matches_envelope(selector, row[6], decode_texts(row[7]))
        ]
    else:
        events = load_events(writing, standing.news, selector, stored.owner_id, note_damage)
    wanted = sorted([*events, *(event for event, _ in damaged)], key=lambda event: event.seq)
    if wanted:
        lock_lanes(writing, stored.owner_id, stored.consumer.name, shared=False)
    in_lanes = [lane_of(event, stored.consumer.ordered) for event in wanted]
    lanes.enqueue(writing, stored, [event.seq for event in wanted], in_lanes)
    if limits is not None:
        for event in wanted:
            shares.line_up(writing, stored.cid, event.seq, share_of(event, limits, request.by.agent_id))
    for event, message in damaged:
        lanes.bury(writing, stored.cid, event.seq, lane_of(event, stored.consumer.ordered), message)
    writing.is_dirty = True
    moved = writing.ask(MOVE_CURSOR, (standing.upto, stored.cid, stored.cursor))
    return LogScan(bool(wanted), lambda: moved() is None)


# -- claiming -----------------------------------------------------------------------------------------------


def _claim_due(
    writing: WriteTransaction, stored: StoredConsumer, request: ClaimRequest, clock: Clock, *, is_alone: bool
) -> list[Claim]:
    """Claim due rows up to the limit. Rows that are given up do not count."""
    claims: list[Claim] = []
    while (room := request.limit - len(claims)) > 0:
        token, until = clock.new_id(), writing.now + request.lease
        batch = _take_due(writing, stored, request, token, until, room)
        attempts = {row.seq: next_attempt(row, stored.consumer.retry_policy, writing.now) for row in batch.due}
        given_up = {seq for seq, attempt in attempts.items() if attempt.refusal is not None}
        buried = set() if request.with_refused else given_up
        refused = [row for row in batch.due if row.seq not in batch.events or row.seq in buried]
        if refused and not is_alone:
            lock_lanes(writing, stored.owner_id, stored.consumer.name, shared=True)
        for row in refused:
            _refuse(writing, stored.cid, row, batch, attempts[row.seq])
        taken = [row for row in batch.due if row not in refused]
        unheld = [row for row in taken if stored.consumer.limits is not None or row.seq in given_up]
        if unheld:
            held = [(row.seq, attempts[row.seq].first_at, lanes.token_of(token, row.seq)) for row in unheld]
            lanes.hold(writing, stored.cid, held, until, request.worker)
        claims += [
            make_claim(
                stored.consumer,
                batch.events[row.seq],
                attempt=attempts[row.seq].number,
                until=until,
                token=lanes.token_of(token, row.seq),
                refusal=attempts[row.seq].refusal,
            )
            for row in taken
        ]
        if not refused:
            break
    return claims


def _take_due(
    writing: WriteTransaction, stored: StoredConsumer, request: ClaimRequest, token: str, until: int, limit: int
) -> DueBatch:
    """The due rows and their events. For a consumer without limits, the same statement also claims them."""
    limits = stored.consumer.limits
    if limits is None:
        return lanes.claim_due(writing, stored, token=token, until=until, worker=request.worker, limit=limit)
    due = shares.find_claimable(writing, stored.cid, limits, writing.now, limit)
    events = _load(writing, stored, [row.seq for row in due]) if due else []
    return DueBatch(due, {event.seq: event for event in events}, {})


def _refuse(writing: WriteTransaction, cid: int, row: Due, batch: DueBatch, attempt: Attempt) -> None:
    """Make a row that is damaged or given up a dead letter. If the consumer may no longer see the event, delete the
    row."""
    if row.seq in batch.damage:
        lanes.bury(writing, cid, row.seq, row.lane, batch.damage[row.seq])
    elif row.seq in batch.events:
        lanes.bury(writing, cid, row.seq, row.lane, attempt.refusal or "")
    else:
        lanes.drop_first(writing, cid, row.seq, row.lane)


def _load(writing: WriteTransaction, stored: StoredConsumer, seqs: Sequence[int]) -> list[Event]:
    """The events of rows, without those that the consumer may no longer see."""
    values = {"seqs": list(seqs), "owner": stored.owner_id, "scopes": pack_texts(stored.scopes)}
    rows = writing.rows(f"{EVENT} WHERE b.seq = ANY (%(seqs)s) AND {SEEN}", values)
    return load_events(writing, rows, EVERYTHING, stored.owner_id)
