"""The record of each worker process: its identity, its roles and its claims. The process writes the record when
something has changed. In between it gives signs of life, which leave no events or versions."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from clew.access import Principal
from clew.agents.workers.presence import Presence, read_presences
from clew.agents.workers.worker_names import is_dead, worker_name
from clew.clock import Clock
from clew.errors import ClewError, Conflict, NotFound
from clew.trail.model.breadcrumb import Breadcrumb, Draft, Ttl
from clew.trail.model.event import Claim
from clew.trail.model.flow import WORKER as SCHEMA
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.claims import retry_on_storage_error

RENEWAL = 30.0
"""Seconds between two signs of life, which is also the maximum age of the listed claims of a worker."""
LIFETIME = timedelta(seconds=3 * RENEWAL)
"""A worker that gave no sign for this long is not live."""
KEPT = timedelta(days=1)
"""The record of a process that died expires after this time."""
KIND = "worker"
MAX_HELD = 50
"""Claims that a record lists; `held_count` counts all."""
_LIMIT = 1_000

WorkerState = Literal["working", "draining"]


class HeldEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a worker works on."""

    consumer: str
    event: int
    session: str | None = None
    attempt: int = 1


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One worker process as it was at `seen_at`."""

    name: str
    host: str
    pid: int
    roles: tuple[str, ...]
    tags: tuple[str, ...] = ()
    state: WorkerState = "working"
    since: datetime
    seen_at: datetime
    held_count: int = 0
    held: tuple[HeldEvent, ...] = ()


class WorkerRecords:
    """Writes the record of this process. `held` returns its current claims."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        *,
        by: Principal,
        roles: Sequence[str],
        held: Callable[[], Sequence[Claim]] = lambda: (),
    ) -> None:
        self._trail = trail
        self._clock = clock
        self._by = by
        self._held = held
        self._id: str | None = None
        self._written: WorkerStatus | None = None
        self._presence = Presence(trail, clock, KIND, by=by)
        self._writing = asyncio.Lock()
        now = clock.now()
        self._status = WorkerStatus(
            name=worker_name(),
            host=socket.gethostname(),
            pid=os.getpid(),
            roles=tuple(sorted(roles)),
            tags=(),
            since=now,
            seen_at=now,
        )

    async def run(self) -> None:
        """Give a sign of life now and at intervals, until cancelled. After a storage failure, try again."""
        while True:
            await retry_on_storage_error(self.write, "workers")
            await asyncio.sleep(RENEWAL)

    async def write(self, state: WorkerState | None = None) -> None:
        """Give a sign of life, and write the current record if it has changed. The previous record is deleted, so that
        no versions pile up."""
        async with self._writing:
            held = self._held()
            self._status = msgspec.structs.replace(
                self._status,
                state=state or self._status.state,
                seen_at=self._clock.now(),
                held_count=len(held),
                held=tuple(_held_event(each) for each in held[:MAX_HELD]),
            )
            await self._presence.renew()
            if self._is_written():
                return
            written = await self._trail.records.create(self._draft(), by=self._by)
            before, self._id, self._written = self._id, written.id, self._status
            await self._remove(before)

    def _is_written(self) -> bool:
        """Whether the written record is up to date and does not expire soon."""
        before = self._written
        if before is None or self._status.seen_at - before.seen_at >= KEPT / 2:
            return False
        return before == msgspec.structs.replace(self._status, seen_at=before.seen_at)

    async def announce(self, tags: Sequence[str]) -> None:
        """Say that this process works for these tags from now on."""
        self._status = msgspec.structs.replace(self._status, tags=tuple(tags))
        await self.write()

    async def withdraw(self) -> None:
        """Remove the record: the process ends."""
        async with self._writing:
            before, self._id, self._written = self._id, None, None
            with contextlib.suppress(ClewError):  # both expire
                await self._remove(before)
                await self._presence.end()

    async def _remove(self, id: str | None) -> None:
        if id is not None:
            with contextlib.suppress(NotFound, Conflict):
                await self._trail.records.delete(id, by=self._by)

    def _draft(self) -> Draft:
        return Draft(
            title=f"Worker {self._status.name}",
            schema_name=SCHEMA,
            tags=self._status.tags,
            context=msgspec.to_builtins(self._status),
            ttl=Ttl(kind="datetime", expires_at=self._clock.now() + KEPT),
            embed="never",
        )


async def list_workers(trail: Trail, clock: Clock, *, by: Principal) -> list[WorkerStatus]:
    """The live workers of the caller's owner, by name, each as its newest record has it. A process of this machine that
    has ended is not live, whatever its record says."""
    newest: dict[str, WorkerStatus] = {}
    page = await trail.records.list(Selector(schema_name=SCHEMA), by=by, limit=_LIMIT)
    seen = await read_presences(trail, KIND, by=by) if page.items else {}
    for status in filter(None, map(_read, page.items)):
        if status.name not in newest or newest[status.name].seen_at < status.seen_at:
            newest[status.name] = status
    return [
        msgspec.structs.replace(newest[name], seen_at=seen[name])
        for name in sorted(newest)
        if name in seen and clock.now() - seen[name] <= LIFETIME and not is_dead(name)
    ]


async def has_worker(trail: Trail, clock: Clock, role: str, tag: str, *, by: Principal) -> bool:
    """Whether a live worker that does not drain has a role and announces a tag."""
    return any(
        role in each.roles and tag in each.tags and each.state == "working"
        for each in await list_workers(trail, clock, by=by)
    )


def _read(record: Breadcrumb) -> WorkerStatus | None:
    try:
        return msgspec.convert(record.context, WorkerStatus, strict=False)
    except msgspec.ValidationError:
        return None


def _held_event(claim: Claim) -> HeldEvent:
    record = claim.event.breadcrumb
    return HeldEvent(
        consumer=claim.consumer,
        event=claim.event.seq,
        session=record.session if record is not None else None,
        attempt=claim.attempt,
    )
