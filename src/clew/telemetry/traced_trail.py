"""A trail whose settled claims become spans. It works on every backend, and the code that uses the trail does not know
about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from clew.access import Principal
from clew.errors import LeaseLost
from clew.telemetry.run_tracer import RunTracer
from clew.trail.delegation import DelegatingDeliveries, DelegatingTrail
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import DEFAULT_LEASE, Claim
from clew.trail.store import Deliveries, Trail


class TracedTrail(DelegatingTrail):
    """See `clew.trail.store.Trail`."""

    def __init__(self, trail: Trail, tracer: RunTracer) -> None:
        super().__init__(trail)
        self._tracer = tracer
        self.deliveries = TracedDeliveries(trail.deliveries, tracer)

    async def close(self) -> None:
        """Finish the spans of settled claims, then close the trail."""
        await self._tracer.close()
        await self._trail.close()


class TracedDeliveries(DelegatingDeliveries):
    """See `clew.trail.store.Deliveries`. A span is made after the commit, so that lost work leaves no span."""

    def __init__(self, deliveries: Deliveries, tracer: RunTracer) -> None:
        super().__init__(deliveries)
        self._tracer = tracer

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
        claims = await self._deliveries.claim(
            consumer, by=by, worker=worker, limit=limit, lease=lease, wait=wait, with_refused=with_refused
        )
        self._tracer.begin(claims)
        return claims

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        try:
            written = await self._deliveries.finish(claim, outputs, by=by)
        except LeaseLost:
            self._tracer.forget(claim)
            raise
        self._tracer.finish(claim, outputs, by)
        return written

    async def fail(self, claim: Claim, reason: str, *, by: Principal, retry: bool = True) -> bool:
        is_dead = await self._deliveries.fail(claim, reason, by=by, retry=retry)
        self._tracer.fail(claim, by, is_dead=is_dead)
        return is_dead

    async def release(self, claim: Claim, *, by: Principal, delay: float = 0.0) -> None:
        self._tracer.forget(claim)
        await self._deliveries.release(claim, by=by, delay=delay)

    async def extend(self, claim: Claim, *, by: Principal, lease: timedelta) -> Claim:
        try:
            return await self._deliveries.extend(claim, by=by, lease=lease)
        except LeaseLost:
            self._tracer.forget(claim)
            raise
