"""The state of the resources that all sessions share: the worker pool, its queues, and the locks on files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from clew.access import Principal
from clew.agents.runs.call_limits import CallLimits, read_loads
from clew.clock import Clock
from clew.errors import Busy
from clew.team.runtime.file_locks import FileLocks, LockState
from clew.trail.model.event import GroupLoad
from clew.trail.store import Trail


class PoolQueue(msgspec.Struct, frozen=True, kw_only=True):
    """One queue of the pool: calls of `models` or of `tools`. `waiting_sessions` has the waiting calls of each
    session."""

    kind: str
    workers: int
    running: int
    waiting: int
    waiting_sessions: dict[str, int]


class SharedResources(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that sessions share: the worker pool, and the locks on files in the order of their queue."""

    pool: Sequence[PoolQueue] = ()
    locks: Sequence[LockState] = ()


class TeamResources:
    """The resources of one owner."""

    def __init__(self, trail: Trail, clock: Clock, limits: CallLimits, *, by: Principal) -> None:
        self.locks = FileLocks(trail, clock, by=by)
        self._trail = trail
        self._limits = limits
        self._by = by

    async def pool(self) -> Sequence[PoolQueue]:
        """The queues of the pool; none before a runtime has opened them."""
        return [
            PoolQueue(
                kind=kind,
                workers=load.limits.workers,
                running=load.running,
                waiting=load.waiting,
                waiting_sessions=_waiting(load.groups),
            )
            for kind, load in await read_loads(self._trail, by=self._by)
        ]

    async def state(self) -> SharedResources:
        """The queues and the locks as they are now."""
        return SharedResources(pool=await self.pool(), locks=await self.locks.read())

    async def require_room(self) -> None:
        """Raise Busy if the queue of waiting calls is full."""
        waiting = sum(each.waiting for each in await self.pool())
        if waiting >= self._limits.queue:
            hint = (
                "Wait until `clew team status` shows fewer, end a session with `clew team stop`, or raise team.queue"
                " in config.toml"
            )
            raise Busy(
                f"the team is busy: {waiting:,} calls wait, and no more than {self._limits.queue:,} may", hint=hint
            )


def _waiting(groups: Sequence[GroupLoad]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in groups:
        if each.waiting:
            found[each.group.partition(":")[2]] += each.waiting
    return dict(found)
