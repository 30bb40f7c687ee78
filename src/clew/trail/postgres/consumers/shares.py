"""Fair shares of a queue with limits: which of the waiting events may be claimed next. See `queue_shares`.

Code that claims from such a queue must hold the lock of its lanes, so that the limits apply across all processes.
"""

from __future__ import annotations

from clew.trail.model.event import ClaimLimits, QueueLoad
from clew.trail.postgres.transactions import ReadTransaction, WriteTransaction
from clew.trail.work.queue_lanes import Due
from clew.trail.work.queue_shares import Seats, Share, build_load

_DUE = "SELECT seq, lane, state, attempts, deaths, first_at, grp, priority FROM deliveries"
_GROUPS = "grp != ALL (%(full)s::text[])"
_LOST = (
    f"WHERE grp IS NOT NULL AND state = 1 AND cid = %(cid)s AND due_at <= %(now)s AND {_GROUPS}"
    " ORDER BY due_at LIMIT 1000"
)
_WAITING = (
    f"WHERE grp IS NOT NULL AND state = 0 AND cid = %(cid)s AND due_at <= %(now)s AND {_GROUPS}"
    " ORDER BY priority, turn, seq LIMIT 1000"
)
_LINE_UP = (
    "UPDATE deliveries SET grp = %(grp)s, priority = %(priority)s, turn = greatest("
    " (SELECT max(turn) + 1 FROM deliveries"
    " WHERE cid = %(cid)s AND grp = %(grp)s AND priority = %(priority)s AND state < 2),"
    " coalesce((SELECT turn FROM deliveries WHERE grp IS NOT NULL AND state = 0 AND cid = %(cid)s"
    " AND priority = %(priority)s AND due_at <= %(now)s AND seq != %(seq)s ORDER BY turn LIMIT 1),"
    " (SELECT max(turn) FROM deliveries WHERE grp IS NOT NULL AND state = 1 AND cid = %(cid)s), 0))"
    " WHERE cid = %(cid)s AND seq = %(seq)s"
)


def line_up(writing: WriteTransaction, cid: int, seq: int, share: Share) -> None:
    """Set the turn of a row that was just enqueued: after the other rows of its group, and not before the current
    turn."""
    writing.send(_LINE_UP, {"cid": cid, "seq": seq, "grp": share.group, "priority": share.priority, "now": writing.now})


def line_up_older(writing: WriteTransaction, cid: int) -> None:
    """Set the turn of rows that were enqueued before their consumer had limits."""
    writing.send("UPDATE deliveries SET grp = lane, priority = 0, turn = 0 WHERE cid = %s AND grp IS NULL", (cid,))


def find_claimable(reading: ReadTransaction, cid: int, limits: ClaimLimits, now: int, most: int) -> list[Due]:
    """The events that may be claimed now within the limits: first those of dead workers, then by priority and turn.
    Events of groups without room are not read."""
    seats = _read_seats(reading, cid, limits, now)
    found: list[Due] = []
    for where in (_LOST, _WAITING):
        read = -1
        while not seats.is_full and len(found) < most and read != 0:
            taken = [row.seq for row in found]
            sql = f"{_DUE} {where.replace(' ORDER BY', ' AND seq != ALL (%(taken)s::bigint[]) ORDER BY')}"
            rows = reading.rows(sql, {"cid": cid, "now": now, "full": seats.saturated(), "taken": taken})
            read = 0
            for *row, group, priority in rows:
                if not seats.is_full and len(found) < most and seats.take(group, priority):
                    found.append(Due(*row))
                    read += 1
    return found


def _read_seats(reading: ReadTransaction, cid: int, limits: ClaimLimits, now: int) -> Seats:
    rows = reading.rows(
        "SELECT grp, priority, count(*) FROM deliveries WHERE grp IS NOT NULL AND state = 1 AND cid = %s"
        " AND due_at > %s GROUP BY grp, priority",
        (cid, now),
    )
    return Seats(limits, [(group, priority, count) for group, priority, count in rows])


def next_change(reading: ReadTransaction, cid: int, limits: ClaimLimits, now: int) -> int | None:
    """When an event can be claimed: `now`, or the time at which a pause or a lease ends; None if no event can be
    claimed until another claim ends."""
    if find_claimable(reading, cid, limits, now, 1):
        return now
    due: int | None = reading.value(
        "SELECT min(due_at) FROM deliveries WHERE cid = %s AND state < 2 AND due_at > %s", (cid, now)
    )
    return due


def read_load(reading: ReadTransaction, cid: int, limits: ClaimLimits) -> QueueLoad:
    """The claimed and the waiting events of each group."""
    rows = reading.rows(
        "SELECT grp, priority, count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state != 1) FROM deliveries"
        " WHERE cid = %s AND grp IS NOT NULL AND state != 2 GROUP BY grp, priority ORDER BY grp, priority",
        (cid,),
    )
    return build_load(limits, [(group, priority, running, waiting) for group, priority, running, waiting in rows])
