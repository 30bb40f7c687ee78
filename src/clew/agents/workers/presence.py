"""Signs of life of processes. A sign is renewed in place: it leaves neither an event nor a version behind."""

from __future__ import annotations

import contextlib
from datetime import datetime

from clew.access import Principal
from clew.agents.workers.worker_names import worker_name
from clew.clock import Clock
from clew.errors import NotFound
from clew.trail.model.event import Consumer
from clew.trail.model.flow import PRESENCE
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

NOTHING = Selector(schema_name=PRESENCE)


class Presence:
    """The sign of this process: a consumer whose `seen_at` is the time of the last renewal. A process can give signs of
    several kinds. Hygiene removes the sign of a process that died."""

    def __init__(self, trail: Trail, clock: Clock, kind: str, *, by: Principal) -> None:
        self._trail = trail
        self._clock = clock
        self._by = by
        self._name = f"{kind}/{worker_name()}"

    async def renew(self) -> None:
        """Say that this process is alive."""
        # A consumer that is registered again without a change is not written, so each sign has another number.
        number = int(self._clock.now().timestamp() * 1_000)
        consumer = Consumer(name=self._name, selector=NOTHING, agent_id=self._name, after=number)
        await self._trail.deliveries.register(consumer, by=self._by)

    async def end(self) -> None:
        """Remove the sign of life of this process."""
        with contextlib.suppress(NotFound):
            await self._trail.deliveries.unregister(self._name, by=self._by)


async def read_presences(trail: Trail, kind: str, *, by: Principal) -> dict[str, datetime]:
    """The time of the last sign of life of this kind, by worker name."""
    prefix = f"{kind}/"
    return {
        each.consumer.name.removeprefix(prefix): each.seen_at
        for each in await trail.deliveries.consumers(by=by)
        if each.consumer.name.startswith(prefix) and each.seen_at is not None
    }
