"""Bases of trails around another trail: every part and call goes to the inner one, unless a subclass replaces it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from clew.access import Principal
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import DEFAULT_LEASE, Claim, Consumer, ConsumerState, QueueLoad
from clew.trail.store import DeadLetters, Deliveries, Edges, Log, Records, Search, Secrets, Trail, Upkeep


class DelegatingTrail:
    """See `clew.trail.store.Trail`. A subclass replaces parts by assigning them after this constructor."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self.records: Records = trail.records
        self.log: Log = trail.log
        self.deliveries: Deliveries = trail.deliveries
        self.dead_letters: DeadLetters = trail.dead_letters
        self.index: Search = trail.index
        self.edges: Edges = trail.edges
        self.upkeep: Upkeep = trail.upkeep
        self.secrets: Secrets = trail.secrets

    async def close(self) -> None:
        await self._trail.close()


class DelegatingDeliveries:
    """See `clew.trail.store.Deliveries`."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries

    async def register(self, consumer: Consumer, *, by: Principal) -> ConsumerState:
        return await self._deliveries.register(consumer, by=by)

    async def unregister(self, name: str, *, by: Principal) -> None:
        await self._deliveries.unregister(name, by=by)

    async def consumers(self, *, by: Principal) -> list[ConsumerState]:
        return await self._deliveries.consumers(by=by)

    async def claim(
        self,
        consumer: str,
        *,
        by: Principal,
        worker: str,
        limit: int = 1,
        lease: timedelta = DEFAULT_LEASE,
        wait: float = 0.0,
        with_refused: bool = False,
    ) -> list[Claim]:
        return await self._deliveries.claim(
            consumer, by=by, worker=worker, limit=limit, lease=lease, wait=wait, with_refused=with_refused
        )

    async def extend(self, claim: Claim, *, by: Principal, lease: timedelta) -> Claim:
        return await self._deliveries.extend(claim, by=by, lease=lease)

    async def release(self, claim: Claim, *, by: Principal, delay: float = 0.0) -> None:
        await self._deliveries.release(claim, by=by, delay=delay)

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        return await self._deliveries.finish(claim, outputs, by=by)

    async def fail(self, claim: Claim, reason: str, *, by: Principal, retry: bool = True) -> bool:
        return await self._deliveries.fail(claim, reason, by=by, retry=retry)

    async def workers(self, *, by: Principal) -> list[str]:
        return await self._deliveries.workers(by=by)

    async def abandon(self, worker: str, *, by: Principal) -> int:
        return await self._deliveries.abandon(worker, by=by)

    async def load(self, consumer: str, *, by: Principal) -> QueueLoad | None:
        return await self._deliveries.load(consumer, by=by)

    async def due_in(self, consumer: str, *, by: Principal) -> float | None:
        return await self._deliveries.due_in(consumer, by=by)
