"""Rows of `deliveries`: one for each event that a consumer wants and has not acknowledged.

The events of a lane form a queue. A unique index allows one first event per lane, and only that event can be claimed.
When it leaves, the next one becomes the first. So the cost of a claim does not depend on the number of waiting events.
Dead letters are outside the queue.
"""

from __future__ import annotations

from clew.trail.sqlite.engine import Writing
from clew.trail.work.queue_lanes import CLAIMED, Due


def enqueue(writing: Writing, cid: int, seq: int, lane: str, due_at: int) -> None:
    """Put an event at the end of its lane. If the lane was empty, the event can be claimed when it is due."""
    writing.execute(
        "INSERT INTO deliveries (cid, seq, lane, state, due_at, first_at) SELECT ?1, ?2, ?3, iif(EXISTS"
        " (SELECT 1 FROM deliveries WHERE cid = ?1 AND lane = ?3 AND state < 2), 3, 0), ?4, 0",
        (cid, seq, lane, due_at),
    )


def enter(writing: Writing, cid: int, seq: int, lane: str, *, until: int, token: str, worker: str) -> bool:
    """As `enqueue` for an event that is due, and claim it if its lane was empty. Returns whether it was claimed."""
    state = writing.execute(
        "INSERT INTO deliveries (cid, seq, lane, state, attempts, due_at, first_at, token, worker)"
        " SELECT ?1, ?2, ?3, iif(taken, 3, 1), NOT taken, iif(taken, ?4, ?5), iif(taken, 0, ?4), iif(taken, NULL, ?6),"
        " iif(taken, NULL, ?7) FROM (SELECT EXISTS"
        " (SELECT 1 FROM deliveries WHERE cid = ?1 AND lane = ?3 AND state < 2) AS taken) RETURNING state",
        (cid, seq, lane, writing.now, until, token, worker[:200]),
    ).get
    return bool(state == CLAIMED)


def find_due(writing: Writing, cid: int, limit: int) -> list[Due]:
    """The rows that are pending, due for a retry, or left by a worker whose lease has ended."""
    rows = writing.execute(
        "SELECT seq, lane, state, attempts, deaths, first_at FROM deliveries"
        " WHERE cid = ? AND state < 2 AND due_at <= ? ORDER BY due_at, seq LIMIT ?",
        (cid, writing.now, limit),
    )
    return [Due(*row) for row in rows]


def hold(writing: Writing, cid: int, seq: int, *, until: int, first_at: int, token: str, worker: str) -> None:
    """Claim a row. If the row is still claimed, its lease has ended and its worker is treated as dead: `deaths` grows
    instead of `attempts`."""
    writing.execute(
        "UPDATE deliveries SET attempts = attempts + (state = 0), deaths = deaths + (state = 1), state = 1,"
        " due_at = ?, first_at = ?, token = ?, worker = ?"
        " WHERE cid = ? AND seq = ?",
        (until, first_at, token, worker[:200], cid, seq),
    )


def wait_again(writing: Writing, cid: int, seq: int, *, due_at: int, reason: str | None = None) -> None:
    """Release a claim; the row stays the first of its lane. Without a reason its attempt does not count."""
    writing.execute(
        "UPDATE deliveries SET state = 0, attempts = attempts - (?1 IS NULL), due_at = ?2, token = NULL,"
        " worker = NULL, reason = coalesce(?1, reason) WHERE cid = ?3 AND seq = ?4",
        (reason, due_at, cid, seq),
    )


def abandon(writing: Writing, owner_id: str, worker: str) -> list[int]:
    """End the leases of a dead worker. Returns the consumers that now have an event to claim."""
    rows = writing.execute(
        "UPDATE deliveries SET state = 0, attempts = attempts - 1, deaths = deaths + 1, due_at = ?, token = NULL,"
        " worker = NULL WHERE state = 1 AND worker = ?"
        " AND cid IN (SELECT cid FROM consumers WHERE owner_id = ?) RETURNING cid",
        (writing.now, worker[:200], owner_id),
    )
    return [row[0] for row in rows]


def forget(writing: Writing, cid: int, seq: int) -> None:
    writing.execute("DELETE FROM deliveries WHERE cid = ? AND seq = ?", (cid, seq))


def leave(writing: Writing, cid: int, seq: int, lane: str, *, is_followed: bool = True) -> bool:
    """Delete the first row of a lane. Returns whether another row became the first."""
    forget(writing, cid, seq)
    return is_followed and _come_up(writing, cid, lane)


def bury(writing: Writing, cid: int, seq: int, lane: str, reason: str) -> None:
    """Make a row a dead letter, and let the next of its lane come up."""
    writing.execute(
        "UPDATE deliveries SET state = 2, due_at = ?, token = NULL, reason = coalesce(nullif(?, ''), reason)"
        " WHERE cid = ? AND seq = ?",
        (writing.now, reason, cid, seq),
    )
    _come_up(writing, cid, lane)


def revive(writing: Writing, cid: int, seq: int) -> None:
    """Put a dead letter back into its lane, in the order of the log. If a later event of the lane is claimed, the dead
    letter comes after it."""
    lane = writing.execute(
        "UPDATE deliveries SET state = 3, attempts = 0, deaths = 0, due_at = ?, first_at = 0 WHERE cid = ? AND seq = ?"
        " RETURNING lane",
        (writing.now, cid, seq),
    ).get
    writing.execute("UPDATE deliveries SET state = 3 WHERE cid = ? AND lane = ? AND state = 0", (cid, lane))
    _come_up(writing, cid, lane)


def _come_up(writing: Writing, cid: int, lane: str) -> bool:
    """Make the oldest row of a lane its first, unless the lane has a first row."""
    writing.execute(
        "UPDATE deliveries SET state = 0 WHERE cid = ?1 AND seq ="
        " (SELECT min(seq) FROM deliveries WHERE cid = ?1 AND lane = ?2 AND state = 3)"
        " AND NOT EXISTS (SELECT 1 FROM deliveries WHERE cid = ?1 AND lane = ?2 AND state < 2)",
        (cid, lane),
    )
    return writing.connection.changes() > 0
