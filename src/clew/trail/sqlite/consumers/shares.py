"""Fair shares of a queue with limits on SQLite: which of the waiting events may be claimed next. See `queue_shares`."""

from __future__ import annotations

import msgspec

from clew.sqlite_file import Sql
from clew.trail.model.event import ClaimLimits, QueueLoad
from clew.trail.sqlite.engine import Writing
from clew.trail.work.queue_lanes import Due
from clew.trail.work.queue_shares import Seats, Share, build_load

_DUE = "SELECT seq, lane, state, attempts, deaths, first_at, grp, priority FROM deliveries"
_GROUPS = "grp NOT IN (SELECT value FROM json_each(?3))"
_LOST = (
    "INDEXED BY deliveries_seat WHERE grp IS NOT NULL AND state = 1 AND cid = ?1 AND due_at <= ?2"
    f" AND {_GROUPS} ORDER BY due_at LIMIT 1000"
)
_WAITING = (
    "INDEXED BY deliveries_turn WHERE grp IS NOT NULL AND state = 0 AND cid = ?1 AND due_at <= ?2"
    f" AND {_GROUPS} ORDER BY priority, turn, seq"
)


def line_up(writing: Writing, cid: int, seq: int, share: Share) -> None:
    """Set the turn of a row that was just enqueued: after the other rows of its group, and not before the current
    turn."""
    writing.execute(
        "UPDATE deliveries SET grp = ?3, priority = ?4, turn = max("
        " coalesce((SELECT max(turn) + 1 FROM deliveries"
        " WHERE cid = ?1 AND grp = ?3 AND priority = ?4 AND state < 2), 0),"
        " coalesce((SELECT turn FROM deliveries WHERE grp IS NOT NULL AND state = 0 AND cid = ?1 AND priority = ?4"
        " AND due_at <= ?5 AND seq != ?2 ORDER BY turn LIMIT 1),"
        " (SELECT max(turn) FROM deliveries INDEXED BY deliveries_seat"
        " WHERE grp IS NOT NULL AND state = 1 AND cid = ?1), 0))"
        " WHERE cid = ?1 AND seq = ?2",
        (cid, seq, share.group, share.priority, writing.now),
    )


def line_up_older(writing: Writing, cid: int) -> None:
    """Set the turn of rows that were enqueued before their consumer had limits."""
    writing.execute("UPDATE deliveries SET grp = lane, priority = 0, turn = 0 WHERE cid = ? AND grp IS NULL", (cid,))


def find_claimable(connection: Sql, cid: int, limits: ClaimLimits, now: int, most: int) -> list[Due]:
    """The events that may be claimed now within the limits: first those of dead workers, then by priority and turn.
    Events of groups without room are skipped within the index."""
    seats = _read_seats(connection, cid, limits, now)
    found: list[Due] = []
    for where in (_LOST, _WAITING):
        if seats.is_full or len(found) == most:
            break
        for *row, group, priority in connection.execute(f"{_DUE} {where}", (cid, now, _json(seats.saturated()))):
            if seats.take(group, priority):
                found.append(Due(*row))
            if seats.is_full or len(found) == most:
                break
    return found


def _read_seats(connection: Sql, cid: int, limits: ClaimLimits, now: int) -> Seats:
    rows = connection.execute(
        "SELECT grp, priority, count(*) FROM deliveries INDEXED BY deliveries_seat"
        " WHERE grp IS NOT NULL AND state = 1 AND cid = ? AND due_at > ? GROUP BY grp, priority",
        (cid, now),
    )
    return Seats(limits, rows)


def _json(texts: list[str]) -> str:
    return msgspec.json.encode(texts).decode()


def has_waiting(writing: Writing, cid: int) -> bool:
    """Whether events wait for room within the limits."""
    return bool(
        writing.execute(
            "SELECT EXISTS (SELECT 1 FROM deliveries INDEXED BY deliveries_turn"
            " WHERE grp IS NOT NULL AND state = 0 AND cid = ?)",
            (cid,),
        ).get
    )


def next_change(connection: Sql, cid: int, limits: ClaimLimits, now: int) -> int | None:
    """When an event can be claimed: `now`, or the time at which a pause or a lease ends; None if no event can be
    claimed until another claim ends."""
    if find_claimable(connection, cid, limits, now, 1):
        return now
    due: int | None = connection.execute(
        "SELECT min(due_at) FROM deliveries WHERE cid = ? AND state < 2 AND due_at > ?", (cid, now)
    ).get
    return due


def read_load(connection: Sql, cid: int, limits: ClaimLimits) -> QueueLoad:
    """The claimed and the waiting events of each group."""
    rows = connection.execute(
        "SELECT grp, priority, sum(state = 1), sum(state != 1) FROM deliveries WHERE cid = ? AND grp IS NOT NULL"
        " AND state != 2 GROUP BY grp, priority ORDER BY grp, priority",
        (cid,),
    )
    return build_load(limits, rows)
