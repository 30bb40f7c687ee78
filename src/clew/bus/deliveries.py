"""The `Deliveries` of a trail with a bus: commits of other processes wake waiting claims, and outputs are announced."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from clew.access import Principal
from clew.bus.bell import Bell
from clew.bus.log import may_mean
from clew.bus.notice import Notice
from clew.bus.records import Announce
from clew.errors import ClewError
from clew.trail.delegation import DelegatingDeliveries
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import DEFAULT_LEASE, Claim, Consumer, ConsumerState
from clew.trail.store import Deliveries


class WokenDeliveries(DelegatingDeliveries):
    """See `clew.trail.store.Deliveries`."""

    def __init__(self, deliveries: Deliveries, bell: Bell, announce: Announce) -> None:
        super().__init__(deliveries)
        self._bell = bell
        self._announce = announce
        self._registered: dict[tuple[str, str], Consumer] = {}

    async def register(self, consumer: Consumer, *, by: Principal) -> ConsumerState:
        state = await self._deliveries.register(consumer, by=by)
        self._registered[by.owner_id, consumer.name] = consumer
        return state

    async def unregister(self, name: str, *, by: Principal) -> None:
        await self._deliveries.unregister(name, by=by)
        self._registered.pop((by.owner_id, name), None)

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
        known = self._registered.get((by.owner_id, consumer))

        def is_meant(notice: Notice) -> bool:
            if known is None:
                return True
            return notice.owner_id == by.owner_id and (
                (known.agent_id or "") in notice.agents or may_mean(known.selector, notice)
            )

        async def give_back(claims: list[Claim]) -> None:
            for claim in claims:
                try:
                    await self._deliveries.release(claim, by=by)
                except ClewError:  # its lease ends
                    continue

        return await self._bell.attempt(
            lambda seconds: self._deliveries.claim(
                consumer, by=by, worker=worker, limit=limit, lease=lease, wait=seconds, with_refused=with_refused
            ),
            wait,
            is_meant,
            give_back,
        )

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        written = await self._deliveries.finish(claim, outputs, by=by)
        self._announce(written)
        return written
