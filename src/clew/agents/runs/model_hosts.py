"""The processes that have a model. A process without one leaves the steps of agents to those that have one."""

from __future__ import annotations

import contextlib
from datetime import timedelta

from clew.access import Principal
from clew.agents.workers.presence import Presence, read_presences
from clew.agents.workers.worker_names import is_dead, worker_name
from clew.clock import Clock
from clew.errors import Conflict, NotFound
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Ttl
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

LIFETIME = timedelta(minutes=10)
"""A process without a sign of life for this long counts as gone. Only this time reveals that a process on another
machine has died."""
RENEWAL = LIFETIME.total_seconds() / 3
KEPT = timedelta(days=1)
"""The record of a process that died expires after this time."""
KIND = "model-host"
_LIMIT = 200


class ModelHosts:
    """Announces this process on the trail while it runs with a model, and finds other such processes."""

    def __init__(self, trail: Trail, flow: Flow, clock: Clock, *, by: Principal, has_model: bool) -> None:
        self._records = trail.records
        self._trail = trail
        self._flow = flow
        self._clock = clock
        self._by = by
        self._own: Breadcrumb | None = None
        self._presence = Presence(trail, clock, KIND, by=by)
        self.has_model = has_model

    async def announce(self) -> None:
        """Renew the sign of life of this process, and write its record if there is none. Do nothing in a process
        without a model."""
        if not self.has_model:
            return
        await self._presence.renew()
        ttl = Ttl(kind="datetime", expires_at=self._clock.now() + KEPT)
        if self._own is not None:
            if self._clock.now() - self._own.updated_at < KEPT / 2:
                return
            with contextlib.suppress(NotFound, Conflict):
                self._own = await self._records.update(
                    self._own.id, Change(ttl=ttl), expect=self._own.version, by=self._by
                )
                return
        draft = Draft(
            title="A process with a model",
            schema_name=self._flow.host,
            context={"worker": worker_name()},
            ttl=ttl,
            embed="never",
        )
        self._own = await self._records.create(draft, by=self._by)

    async def withdraw(self) -> None:
        """Delete the record of this process."""
        if self._own is not None:
            with contextlib.suppress(NotFound):
                await self._records.delete(self._own.id, by=self._by)
            await self._presence.end()
            self._own = None

    async def has_peer(self) -> bool:
        """Whether another process that runs has a model."""
        return await has_model_host(self._trail, self._flow, self._clock, by=self._by, beside=self._own)


async def has_model_host(
    trail: Trail, flow: Flow, clock: Clock, *, by: Principal, beside: Breadcrumb | None = None
) -> bool:
    """Whether a running process has a model, apart from the process of the record `beside`. Only records that Clew
    wrote count."""
    page = await trail.records.list(Selector(schema_name=flow.host), by=by, limit=_LIMIT)
    own = beside.id if beside is not None else None
    names = [
        str(each.context.get("worker")) for each in page.items if each.id != own and each.created_by == by.agent_id
    ]
    if all(is_dead(name) for name in names):
        return False
    seen = await read_presences(trail, KIND, by=by)
    return any(name in seen and clock.now() - seen[name] <= LIFETIME and not is_dead(name) for name in names)
