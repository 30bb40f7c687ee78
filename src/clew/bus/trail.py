"""A trail that announces its commits on a bus, and wakes its waiting consumers at the commits of other processes. It
works on every backend."""

from __future__ import annotations

from collections.abc import Sequence

from clew.access import Principal
from clew.bus.bell import Bell
from clew.bus.deliveries import WokenDeliveries
from clew.bus.log import WokenLog
from clew.bus.notice import Bus, Notice, notice_of
from clew.bus.records import AnnouncedRecords
from clew.bus.subscriptions import AgentSubscriptions
from clew.trail.delegation import DelegatingTrail
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.store import Trail


class BusTrail(DelegatingTrail):
    """See `clew.trail.store.Trail`. If the bus does not work, it behaves like the trail that it wraps."""

    def __init__(self, trail: Trail, bus: Bus) -> None:
        super().__init__(trail)
        self._bus = bus
        self._agents = AgentSubscriptions(trail.deliveries)
        bell = Bell()
        self.records = AnnouncedRecords(trail.records, self._announce, self._announce_gone)
        self.log = WokenLog(trail.log, bell)
        self.deliveries = WokenDeliveries(trail.deliveries, bell, self._announce)
        bus.listen(bell.ring)

    def _announce(self, written: Sequence[Breadcrumb]) -> None:
        self._bus.publish([notice_of(each, self._agents.find_agents(each)) for each in written])

    def _announce_gone(self, id: str, by: Principal) -> None:
        self._bus.publish((Notice(id=id, owner_id=by.owner_id),))

    async def close(self) -> None:
        """Close the bus, then the trail."""
        await self._agents.close()
        await self._bus.close()
        await self._trail.close()
