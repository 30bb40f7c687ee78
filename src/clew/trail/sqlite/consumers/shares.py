"""Fair shares of a queue with limits: which of the waiting events may be claimed next.

Each event counts against a group: its session, or whoever wrote it. The groups take turns: the first event of each
group comes before the second of any. Events with a lower priority number come first. The seats are the claimed rows
themselves, so that the limits hold over all processes, and a dead process frees its seats with its leases.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from clew.sqlite_file import Sql
from clew.trail.model.breadcrumb import session_of
from clew.trail.model.event import ClaimLimits, Event, GroupLoad, QueueLoad
from clew.trail.sqlite.consumers.lanes import Due
from clew.trail.sqlite.engine import Writing

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


class Share(msgspec.Struct, frozen=True):
    """The group that an event counts against, and its priority."""

    group: str
    priority: int


def share_of(event: Event, limits: ClaimLimits, own: str) -> Share:
    """The group and the priority of an event. `own` is the name of the worker's agent: its events count against their
    session, and those of conversations within a session against that session. Events of others count against their
    writer, however many sessions they name."""
    priority = int(limits.second_lane in event.tags)
    writer = event.breadcrumb.created_by if event.breadcrumb is not None else own
    if writer != own:
        return Share(f"w:{writer}"[:200], priority)
    session = session_of(event.tags)
    if session is not None:
        return Share(f"s:{session.partition('.')[0]}", priority)
    root = next((tag for kind in ("root:", "run:") for tag in event.tags if tag.startswith(kind)), None)
    return Share(root or f"b:{event.breadcrumb_id}", priority)


def line_up(writing: Writing, cid: int, seq: int, share: Share) -> None:
    """Give a row that was just enqueued its turn: after the others of its group, and not before the present turn."""
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
    """Give rows a turn that were enqueued before their consumer had limits."""
    writing.execute("UPDATE deliveries SET grp = lane, priority = 0, turn = 0 WHERE cid = ? AND grp IS NULL", (cid,))


def find_claimable(connection: Sql, cid: int, limits: ClaimLimits, now: int, most: int) -> list[Due]:
    """The events that may be claimed now: those of dead workers, then by priority and turn, as far as the limits
    allow. Events of groups without room are passed by within the index."""
    seats = _Seats(connection, cid, limits, now)
    found: list[Due] = []
    for where in (_LOST, _WAITING):
        if seats.is_full or len(found) == most:
            break
        for *row, group, priority in connection.execute(f"{_DUE} {where}", (cid, now, seats.saturated())):
            if seats.take(group, priority):
                found.append(Due(*row))
            if seats.is_full or len(found) == most:
                break
    return found


class _Seats:
    """The claims that are held now, and the room for more."""

    def __init__(self, connection: Sql, cid: int, limits: ClaimLimits, now: int) -> None:
        self._limits = limits
        self._groups: Counter[str] = Counter()
        self._lanes: Counter[int] = Counter()
        rows = connection.execute(
            "SELECT grp, priority, count(*) FROM deliveries INDEXED BY deliveries_seat"
            " WHERE grp IS NOT NULL AND state = 1 AND cid = ? AND due_at > ? GROUP BY grp, priority",
            (cid, now),
        )
        for group, priority, count in rows:
            self._groups[group] += count
            self._lanes[priority] += count

    @property
    def is_full(self) -> bool:
        return self._lanes.total() >= self._limits.workers

    def saturated(self) -> str:
        """The groups that have no room, as JSON."""
        return msgspec.json.encode(
            [group for group, count in self._groups.items() if count >= self._limits.each]
        ).decode()

    def take(self, group: str, priority: int) -> bool:
        """Take a seat; whether there was one."""
        if self._groups[group] >= self._limits.each or self._lanes[priority] >= self._limits.in_one_lane:
            return False
        self._groups[group] += 1
        self._lanes[priority] += 1
        return True


def has_waiting(writing: Writing, cid: int) -> bool:
    """Whether events wait for a seat."""
    return bool(
        writing.execute(
            "SELECT EXISTS (SELECT 1 FROM deliveries INDEXED BY deliveries_turn"
            " WHERE grp IS NOT NULL AND state = 0 AND cid = ?)",
            (cid,),
        ).get
    )


def next_change(connection: Sql, cid: int, limits: ClaimLimits, now: int) -> int | None:
    """When an event can be claimed: `now`, or the time at which a pause or a lease ends; None if that takes another
    claim to end."""
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
    groups = tuple(
        GroupLoad(group=group, priority=priority, running=running, waiting=waiting)
        for group, priority, running, waiting in rows
    )
    return QueueLoad(
        limits=limits,
        running=sum(each.running for each in groups),
        waiting=sum(each.waiting for each in groups),
        groups=groups,
    )
