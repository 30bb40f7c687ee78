"""Fair shares of a queue with limits: the group that an event counts against, and the room that is left. No I/O.

Each event counts against a group: its session, or the agent that wrote it. The groups take turns: the first event of
each group comes before the second of any. Events with a lower priority number come first. The seats are the claimed
rows themselves, so that the limits hold over all processes, and a dead process frees its seats with its leases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from clew.trail.model.breadcrumb import session_of
from clew.trail.model.event import ClaimLimits, Event, GroupLoad, QueueLoad


class Share(msgspec.Struct, frozen=True):
    """The group that an event counts against, and its priority."""

    group: str
    priority: int


def share_of(event: Event, limits: ClaimLimits, own: str) -> Share:
    """The group and the priority of an event. `own` is the name of the worker's agent. Events that it wrote count
    against their session; a conversation within a session counts against that session. Events of other writers count
    against their writer, regardless of the session that they name."""
    priority = int(limits.second_lane in event.tags)
    writer = event.breadcrumb.created_by if event.breadcrumb is not None else own
    if writer != own:
        return Share(f"w:{writer}"[:200], priority)
    session = session_of(event.tags)
    if session is not None:
        return Share(f"s:{session.partition('.')[0]}", priority)
    root = next((tag for kind in ("root:", "run:") for tag in event.tags if tag.startswith(kind)), None)
    return Share(root or f"b:{event.breadcrumb_id}", priority)


class Seats:
    """The current claims of a queue, and the room for more."""

    def __init__(self, limits: ClaimLimits, held: Iterable[tuple[str, int, int]]) -> None:
        """`held` are the numbers of claims as rows (group, priority, count)."""
        self._limits = limits
        self._groups: Counter[str] = Counter()
        self._lanes: Counter[int] = Counter()
        for group, priority, count in held:
            self._groups[group] += count
            self._lanes[priority] += count

    @property
    def is_full(self) -> bool:
        return self._lanes.total() >= self._limits.workers

    def saturated(self) -> list[str]:
        """The groups that have no room."""
        return [group for group, count in self._groups.items() if count >= self._limits.each]

    def take(self, group: str, priority: int) -> bool:
        """Take a seat. Returns False if there is none."""
        if self._groups[group] >= self._limits.each or self._lanes[priority] >= self._limits.in_one_lane:
            return False
        self._groups[group] += 1
        self._lanes[priority] += 1
        return True


def build_load(limits: ClaimLimits, rows: Iterable[tuple[str, int, int, int]]) -> QueueLoad:
    """The load of a queue from rows (group, priority, running, waiting)."""
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
