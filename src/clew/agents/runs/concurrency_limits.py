"""Concurrency limits for each session and each writer of requests, so that none of them blocks the others.

The limits hold for one process. A call beyond them stays in the queue, for this process later or for another one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from clew.access import Principal
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.work.claims import NotNow
from clew.trail.work.correlation import find_root

RUNNING = 8
"""Calls that run at once for one session, and for one writer of requests."""
PRESENT = 32
"""Calls that run or wait in this process, so that the next one starts without delay."""
LATER = 1.0
"""Seconds until a call beyond the limit is tried again."""


class ConcurrencyLimits:
    """The limits for calls of one kind."""

    def __init__(self, *, running: int = RUNNING, present: int = PRESENT) -> None:
        self._running = running
        self._most = present
        self._present: Counter[str] = Counter()
        self._gates: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def taken(self, names: tuple[str, ...]) -> AsyncIterator[None]:
        """Work within the limits of these groups, once there is room. Raises NotNow where too many calls wait."""
        if any(self._present[name] >= self._most for name in names):
            raise NotNow(LATER)
        self._present.update(names)
        try:
            async with AsyncExitStack() as stack:
                for name in sorted(names):  # in one order, so that no two wait for each other
                    await stack.enter_async_context(self._gate(name))
                yield
        finally:
            for name in names:
                self._leave(name)

    def _gate(self, name: str) -> asyncio.Semaphore:
        return self._gates.setdefault(name, asyncio.Semaphore(self._running))

    def _leave(self, name: str) -> None:
        self._present[name] -= 1
        if not self._present[name]:
            del self._present[name]
            self._gates.pop(name, None)


def limit_groups(request: Breadcrumb, own: Principal) -> tuple[str, ...]:
    """The groups whose limits a request counts against: its session, or the root of its run; and its writer, unless the
    runtime wrote it. The conversations of a team, whose names begin with its session and a dot, share one limit."""
    session = (request.session or "").partition(".")[0]
    group = f"session:{session}" if session else f"root:{find_root(request)}"
    writer = request.created_by
    return (group,) if writer == own.agent_id else (group, f"writer:{writer}")
