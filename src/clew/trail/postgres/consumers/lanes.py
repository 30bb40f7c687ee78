"""Rows of `deliveries`: one for each event that a consumer wants and has not acknowledged. See `queue_lanes`.

A unique index allows one first event per lane, and only that event can be claimed. Code that moves rows within lanes
holds the lock of `lock_lanes`. Without the lock, an event that is added while the first one leaves would wait for an
event that is gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from clew.access import Principal
from clew.errors import Corrupted, LeaseLost, NotFound
from clew.trail.model.consumer import StoredConsumer, to_stored
from clew.trail.model.event import MAX_DEATHS, Claim, Event
from clew.trail.model.selector import EVERYTHING
from clew.trail.postgres.consumers.consumers import lock_lanes
from clew.trail.postgres.log import EVENT, EVENT_COLUMNS, Row, load_events
from clew.trail.postgres.rows import CURRENT, SEEN
from clew.trail.postgres.transactions import WriteTransaction, pack_texts
from clew.trail.work.queue_lanes import Due

CLAIM_DUE = (
    "WITH due AS MATERIALIZED (SELECT seq, lane, state, attempts, deaths, first_at, due_at FROM deliveries"
    " WHERE cid = %(cid)s AND state < 2 AND due_at <= %(now)s ORDER BY due_at, seq LIMIT %(limit)s"
    " FOR UPDATE SKIP LOCKED),"
    " held AS (UPDATE deliveries d SET attempts = due.attempts + (due.state = 0)::integer,"
    " deaths = due.deaths + (due.state = 1)::integer, state = 1, due_at = %(until)s,"
    " first_at = coalesce(nullif(due.first_at, 0), %(now)s), token = %(token)s || '.' || due.seq, worker = %(worker)s"
    " FROM due WHERE d.cid = %(cid)s AND d.seq = due.seq AND due.deaths + (due.state = 1)::integer < %(deaths)s"
    " AND (%(time)s::bigint IS NULL OR due.first_at = 0 OR due.first_at + %(time)s >= %(now)s))"
    " SELECT due.seq, due.lane, due.state, due.attempts, due.deaths, due.first_at, e.*, r.* FROM due"
    f" LEFT JOIN LATERAL ({EVENT} WHERE b.seq = due.seq AND {SEEN} OFFSET 0) e ON true"
    f" LEFT JOIN LATERAL ({CURRENT} WHERE b.rid = e.rid AND b.version = e.version OFFSET 0) r ON true"
    " ORDER BY due.due_at, due.seq"
)
"""Claims rows that are due, except those that `next_attempt` gives up. Returns all due rows as they were before, the
events that the consumer may see, and the records that still have the version of the event."""
ENQUEUE = (
    "INSERT INTO deliveries (cid, seq, lane, state, due_at, first_at)"
    " SELECT %(cid)s, n.seq, n.lane, CASE WHEN row_number() OVER (PARTITION BY n.lane ORDER BY n.seq) > 1 OR EXISTS"
    " (SELECT 1 FROM deliveries d WHERE d.cid = %(cid)s AND d.lane = n.lane AND d.state < 2) THEN 3 ELSE 0 END,"
    " %(due)s, 0 FROM unnest(%(seqs)s::bigint[], %(lanes)s::text[]) AS n (seq, lane)"
    " WHERE (SELECT cursor FROM consumers WHERE cid = %(cid)s FOR NO KEY UPDATE) = %(cursor)s"
)
"""The row lock waits for a worker that has moved the cursor but has not committed yet, so that its events are not added
twice."""
HOLD = (
    "UPDATE deliveries d SET attempts = d.attempts + (d.state = 0)::integer,"
    " deaths = d.deaths + (d.state = 1)::integer, state = 1, due_at = %(until)s, first_at = h.first_at,"
    " token = h.token, worker = %(worker)s"
    " FROM unnest(%(seqs)s::bigint[], %(first)s::bigint[], %(tokens)s::text[]) AS h (seq, first_at, token)"
    " WHERE d.cid = %(cid)s AND d.seq = h.seq"
)
COME_UP = (
    "UPDATE deliveries SET state = 0 WHERE cid = %(cid)s AND seq ="
    " (SELECT min(seq) FROM deliveries WHERE cid = %(cid)s AND lane = %(lane)s AND state = 3)"
    " AND NOT EXISTS (SELECT 1 FROM deliveries WHERE cid = %(cid)s AND lane = %(lane)s AND state < 2)"
)
WAIT_AGAIN = (
    "UPDATE deliveries SET state = 0, attempts = attempts - (%(reason)s::text IS NULL)::integer, due_at = %(due)s,"
    " token = NULL, worker = NULL, reason = coalesce(%(reason)s, reason) WHERE cid = %(cid)s AND seq = %(seq)s"
)
FIND_HELD = (
    "SELECT c.cid, c.definition, c.scopes, c.cursor, d.lane, d.first_at, d.token FROM consumers c"
    " LEFT JOIN LATERAL (SELECT lane, first_at, token FROM deliveries WHERE cid = c.cid AND seq = %(seq)s AND state = 1"
    " FOR UPDATE) d ON true WHERE c.owner_id = %(owner)s AND c.name = %(name)s"
)
LEAVE = (
    "WITH c AS (SELECT cid, scopes <@ %(scopes)s::text[] AS may FROM consumers"
    " WHERE owner_id = %(owner)s AND name = %(name)s),"
    " gone AS (DELETE FROM deliveries d USING c WHERE c.may AND d.cid = c.cid AND d.seq = %(seq)s AND d.state = 1"
    " AND d.token = %(token)s RETURNING d.cid, d.lane, d.grp),"
    " up AS (UPDATE deliveries n SET state = 0 FROM gone WHERE n.cid = gone.cid AND n.seq ="
    " (SELECT min(b.seq) FROM deliveries b WHERE b.cid = gone.cid AND b.lane = gone.lane AND b.state = 3)"
    " RETURNING n.seq)"
    " SELECT c.cid, c.may, (SELECT count(*) FROM gone), (SELECT count(*) FROM up),"
    " (SELECT count(*) FROM gone WHERE grp IS NOT NULL) FROM c"
)
"""Acknowledges a claim and makes the next event of its lane the first. This is a single statement, because it runs once
per step."""
LEAVE_ALL = (
    "WITH held AS (SELECT c.cid, w.seq, w.token FROM unnest(%(names)s::text[], %(seqs)s::bigint[], %(tokens)s::text[])"
    " AS w (name, seq, token) JOIN consumers c ON c.owner_id = %(owner)s AND c.name = w.name"
    " WHERE c.scopes <@ %(scopes)s::text[]),"
    " gone AS (DELETE FROM deliveries d USING held WHERE d.cid = held.cid AND d.seq = held.seq AND d.state = 1"
    " AND d.token = held.token RETURNING d.cid, d.lane, d.grp),"
    " up AS (UPDATE deliveries n SET state = 0 FROM gone WHERE n.cid = gone.cid AND n.seq ="
    " (SELECT min(b.seq) FROM deliveries b WHERE b.cid = gone.cid AND b.lane = gone.lane AND b.state = 3)"
    " RETURNING n.cid)"
    " SELECT 1 / ((SELECT count(*) FROM gone) = %(number)s)::integer,"
    " ARRAY(SELECT cid FROM up UNION SELECT cid FROM gone WHERE grp IS NOT NULL)"
)
"""Acknowledges several claims of one caller. Fails (with a division by zero) if one of the claims no longer holds."""


class HeldClaim(NamedTuple):
    """A claim that still holds."""

    stored: StoredConsumer
    lane: str
    first_at: int


def find_held(writing: WriteTransaction, claim: Claim, by: Principal) -> HeldClaim:
    """Lock the row of a claim. Raises NotFound if the consumer does not exist, and LeaseLost if the claim no longer
    holds."""
    row = writing.row(FIND_HELD, {"owner": by.owner_id, "name": claim.consumer, "seq": claim.event.seq})
    if row is None:
        raise NotFound("consumer", claim.consumer)
    stored = to_stored(row[0], row[1], row[2], row[3], claim.consumer, by)
    if row[6] is None or row[6] != claim.token:
        raise LeaseLost(claim.consumer, claim.event.seq)
    return HeldClaim(stored, row[4], row[5])


class BatchAcknowledgement:
    """Claims that a group of writes acknowledges together at the end of its transaction. This shortens the time for
    which the lanes are locked."""

    def __init__(self, by: Principal) -> None:
        self._by = by
        self._claims: list[Claim] = []
        self._answer: Callable[[], TupleRow | None] = lambda: None

    def add(self, claim: Claim) -> None:
        self._claims.append(claim)

    def send(self, writing: WriteTransaction) -> None:
        """Acknowledge all claims. If one no longer holds, the transaction fails and must be run again in careful
        mode."""
        by, names = self._by, [claim.consumer for claim in self._claims]
        writing.act_for(by)
        for name in sorted(set(names)):
            lock_lanes(writing, by.owner_id, name, shared=True)
        seqs, tokens = [claim.event.seq for claim in self._claims], [claim.token for claim in self._claims]
        values = {"owner": by.owner_id, "scopes": pack_texts(by.scopes), "number": len(names)}
        self._answer = writing.ask(LEAVE_ALL, {**values, "names": names, "seqs": seqs, "tokens": tokens})

    def freed(self) -> list[int]:
        """Return the consumers that now have another event to claim. Call this after the commit. The list is empty if
        the result was lost with the connection; waiting workers then look again by themselves."""
        with contextlib.suppress(psycopg.Error):
            row = self._answer()
            return [] if row is None else row[1]
        return []


def leave(writing: WriteTransaction, claim: Claim, by: Principal) -> Callable[[], list[int]]:
    """Acknowledge a claim. Call the returned function after the commit: it returns the consumers that can claim another
    event. Raises as `find_held`."""
    writing.is_dirty = True
    if writing.log is not None and not writing.careful:
        found = writing.log.endings.setdefault(("leave", by), BatchAcknowledgement(by))
        assert isinstance(found, BatchAcknowledgement)
        found.add(claim)
        return found.freed
    lock_lanes(writing, by.owner_id, claim.consumer, shared=True)
    values = {"owner": by.owner_id, "name": claim.consumer, "scopes": pack_texts(by.scopes)}
    row = writing.row(LEAVE, {**values, "seq": claim.event.seq, "token": claim.token})
    if row is None or not row[1]:
        raise NotFound("consumer", claim.consumer)
    cid, _, gone, risen, seats = row
    if not gone:
        raise LeaseLost(claim.consumer, claim.event.seq)
    return lambda: [int(cid)] if risen or seats else []


def cut_worker(name: str) -> str:
    """The name of a worker as it is stored."""
    return name.replace("\0", "\ufffd")[:200]


def pack_reason(reason: str) -> str:
    """The reason of a failure as a text of PostgreSQL, which cannot hold a NUL."""
    return reason.replace("\\", "\\\\").replace("\0", "\\0")


def unpack_reason(stored: str) -> str:
    return "\\".join(part.replace("\\0", "\0") for part in stored.split("\\\\"))


def enqueue(writing: WriteTransaction, stored: StoredConsumer, seqs: Sequence[int], lanes: Sequence[str]) -> None:
    """Add events at the ends of their lanes, unless another worker has moved the consumer's cursor. If a lane was
    empty, its first new event can be claimed when it is due."""
    if seqs:
        values = {"cid": stored.cid, "cursor": stored.cursor, "due": stored.due_at(writing.now)}
        writing.send(ENQUEUE, {**values, "seqs": list(seqs), "lanes": list(lanes)})


class DueBatch(NamedTuple):
    """The due rows, the events of them that the consumer may see, and the reasons why records are damaged. `events` and
    `damage` are keyed by event number."""

    due: list[Due]
    events: dict[int, Event]
    damage: dict[int, str]


def claim_due(
    writing: WriteTransaction, stored: StoredConsumer, *, token: str, until: int, worker: str, limit: int
) -> DueBatch:
    """Claim rows that are pending, due for a retry, or left by a worker whose lease has ended, and read their events.
    Rows that another worker is claiming are skipped. Rows that must be given up are locked but not changed."""
    values = {"owner": stored.owner_id, "scopes": pack_texts(stored.scopes), "cid": stored.cid, "now": writing.now}
    values |= {"limit": limit, "token": token, "until": until, "worker": worker, "deaths": MAX_DEATHS}
    deadline = stored.consumer.retry_policy.deadline
    writing.is_dirty = True
    rows = writing.rows(CLAIM_DUE, {**values, "time": None if deadline is None else int(deadline * 1_000_000)})
    first, last = len(Due._fields), len(Due._fields) + EVENT_COLUMNS
    known = {(row[last], row[last + 3]): row[last:] for row in rows if row[last] is not None}
    seen = [row[first:last] for row in rows if row[first] is not None]
    damage: dict[int, str] = {}

    def note_damage(row: Row, error: Corrupted) -> None:
        damage[row[0]] = error.message

    events = load_events(writing, seen, EVERYTHING, stored.owner_id, note_damage, known=known)
    return DueBatch([Due(*row[:first]) for row in rows], {event.seq: event for event in events}, damage)


def token_of(token: str, seq: int) -> str:
    """The token of one claim of a batch. `token` is the token of the batch."""
    return f"{token}.{seq}"


def hold(writing: WriteTransaction, cid: int, rows: Sequence[tuple[int, int, str]], until: int, worker: str) -> None:
    """Claim rows given as (seq, first_at, token). If a row is still claimed, its lease has ended and its worker is
    treated as dead: `deaths` grows instead of `attempts`."""
    seqs, first, tokens = (list(column) for column in zip(*rows, strict=True))
    values = {"cid": cid, "until": until, "worker": worker, "seqs": seqs, "first": first, "tokens": tokens}
    writing.send(HOLD, values)


def wait_again(writing: WriteTransaction, cid: int, seq: int, *, due_at: int, reason: str | None = None) -> None:
    """Release a claim; the row stays the first of its lane. Without a reason its attempt does not count."""
    packed = None if reason is None else pack_reason(reason)
    writing.send(WAIT_AGAIN, {"cid": cid, "seq": seq, "due": due_at, "reason": packed})


def abandon(writing: WriteTransaction, owner_id: str, worker: str) -> list[int]:
    """End the leases of a dead worker. Returns the consumers that now have an event to claim."""
    writing.is_dirty = True
    rows = writing.rows(
        "UPDATE deliveries SET state = 0, attempts = attempts - 1, deaths = deaths + 1, due_at = %s, token = NULL,"
        " worker = NULL WHERE state = 1 AND worker = %s"
        " AND cid IN (SELECT cid FROM consumers WHERE owner_id = %s) RETURNING cid",
        (writing.now, worker, owner_id),
    )
    return [row[0] for row in rows]


def forget(writing: WriteTransaction, cid: int, seq: int) -> None:
    writing.send("DELETE FROM deliveries WHERE cid = %s AND seq = %s", (cid, seq))


def drop_first(writing: WriteTransaction, cid: int, seq: int, lane: str) -> None:
    """Forget the first row of a lane, and let the next one come up."""
    forget(writing, cid, seq)
    writing.send(COME_UP, {"cid": cid, "lane": lane})


def bury(writing: WriteTransaction, cid: int, seq: int, lane: str, reason: str) -> None:
    """Make a row a dead letter, and let the next of its lane come up."""
    writing.send(
        "UPDATE deliveries SET state = 2, due_at = %s, token = NULL, reason = coalesce(nullif(%s, ''), reason)"
        " WHERE cid = %s AND seq = %s",
        (writing.now, pack_reason(reason), cid, seq),
    )
    writing.send(COME_UP, {"cid": cid, "lane": lane})


def revive(writing: WriteTransaction, cid: int, seq: int) -> None:
    """Put a dead letter back into its lane, in the order of the log. If a later event of the lane is claimed, the dead
    letter comes after it."""
    lane: Any = writing.change(
        "UPDATE deliveries SET state = 3, attempts = 0, deaths = 0, due_at = %s, first_at = 0"
        " WHERE cid = %s AND seq = %s RETURNING lane",
        (writing.now, cid, seq),
    )
    writing.send("UPDATE deliveries SET state = 3 WHERE cid = %s AND lane = %s AND state = 0", (cid, lane))
    writing.send(COME_UP, {"cid": cid, "lane": lane})
