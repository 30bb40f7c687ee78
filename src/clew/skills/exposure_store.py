"""Storage of exposure sets: on the trail, or in memory for use as a library.

On the trail a set is one breadcrumb. Its id is derived from the handle, which is never stored. Each change is one
write.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5
from weakref import WeakValueDictionary

import msgspec

from clew.access import ROLES, Principal
from clew.clock import Clock
from clew.errors import AlreadyExists, Conflict, HandleRefused, NotFound
from clew.skills.exposure import (
    LIFE,
    Edit,
    EndedExposure,
    Exposed,
    Exposure,
    adding,
    apply,
    at_time,
    check_handle,
    mint_handle,
)
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Ttl
from clew.trail.store import Trail

SCHEMA = "exposure.v1"
SCOPE = "clew:exposure"
"""A scope that no caller has, so that sets never appear in searches and do not change rankings."""
REMEMBERED = 1_000
"""The number of sets in the LRU cache."""
_TRIES = 100
_LONGEST_WAIT = 0.05
_NAMESPACE = UUID("5ad32f4b-8e0c-5b43-a6a7-38ab8b8c6b1d")
_UNKNOWN = -1

Key = tuple[str, str, str]


class TrailExposures:
    """The exposure sets of a trail. Safe for several tasks and processes: after a conflict, an edit is applied again to
    the newer set. Changes are durable when a call returns."""

    def __init__(self, trail: Trail, clock: Clock, *, remembered: int = REMEMBERED) -> None:
        self._trail = trail
        self._clock = clock
        self._remembered = remembered
        self._known: OrderedDict[Key, tuple[Exposure, int]] = OrderedDict()
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    async def open(self, handle: str | None, *, by: Principal) -> Exposure:
        named = check_handle(handle, by)
        if named is None:
            return Exposure(handle=mint_handle())
        key, now = _key(by, named), self._clock.now()
        known, seen = self._known.get(key, (None, _UNKNOWN))
        if known is None or known.ends_at is None or known.ends_at <= now or seen != await self._trail.log.head():
            return await self.reload(named, by=by)
        self._known.move_to_end(key)
        return at_time(known, now)

    async def reload(self, handle: str, *, by: Principal) -> Exposure:
        seen = await self._trail.log.head()
        try:
            found = await self._trail.records.get(_id_of(by, handle), by=_writer(by))
        except NotFound:
            self._known.pop(_key(by, handle), None)
            if by.session is not None and handle == f"session:{by.session}":
                return Exposure(handle=handle)
            raise HandleRefused from None
        return at_time(self._remember(by, _read(found, handle), seen), self._clock.now())

    async def reveal(self, exposure: Exposure, found: Sequence[Exposed], *, by: Principal) -> Exposure:
        return await self.change(exposure, adding(found), by=by)

    async def change(
        self, exposure: Exposure, edit: Edit, *, by: Principal, ended_by: str = "", reason: str = ""
    ) -> Exposure:
        key = _key(by, exposure.handle)
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            if exposure.version or key in self._known:
                exposure = await self.open(exposure.handle, by=by)
            return await self._apply(exposure, edit, by, ended_by, reason)

    async def _apply(self, exposure: Exposure, edit: Edit, by: Principal, ended_by: str, reason: str) -> Exposure:
        for attempt in range(_TRIES):
            after = apply(exposure, edit, self._clock.now(), ended_by=ended_by, reason=reason)
            if after.items == exposure.items and exposure.version:
                return after
            try:
                return await self._write(after, by)
            except (Conflict, AlreadyExists, NotFound) as error:
                await asyncio.sleep(random.uniform(0, min(_LONGEST_WAIT, 0.002 * attempt)))  # other processes write too
                exposure = await self.reload(exposure.handle, by=by)
                if isinstance(error, AlreadyExists) and not exposure.version:
                    # the expired set of the session still has the id; the sweeper removes those of idle agents
                    await self._trail.upkeep.purge(idle_after=None)
        raise Conflict(exposure.handle, expected=exposure.version, actual=exposure.version + 1)

    async def _write(self, exposure: Exposure, by: Principal) -> Exposure:
        """Write a set. Raises Conflict, AlreadyExists or NotFound if the stored set has changed."""
        ends_at = self._clock.now() + LIFE
        # no other writer can know a new handle
        is_minted = not exposure.version and not exposure.handle.startswith("session:")
        before = None if is_minted else await self._trail.log.head()
        written = await self._store(exposure, Ttl(kind="datetime", expires_at=ends_at), by)
        after = await self._trail.log.head()
        kept = msgspec.structs.replace(exposure, version=written.version, ends_at=ends_at)
        is_newest = before is None or after == before + 1
        return self._remember(by, kept, after if is_newest else _UNKNOWN)

    async def _store(self, exposure: Exposure, ttl: Ttl, by: Principal) -> Breadcrumb:
        context: dict[str, Any] = {"agent_id": by.agent_id, "items": msgspec.to_builtins([*exposure.items.values()])}
        if exposure.ended:
            context["ended"] = msgspec.to_builtins(exposure.ended)
        id, keeper = _id_of(by, exposure.handle), _writer(by)
        if exposure.version:
            change = Change(context=context, ttl=ttl, embed="never")
            return await self._trail.records.update(id, change, expect=exposure.version, by=keeper)
        tags = (f"agent:{by.agent_id}",) if by.agent_id else ()
        session = (f"session:{by.session}",) if by.session else ()
        draft = Draft(
            title="What an agent was shown",
            schema_name=SCHEMA,
            context=context,
            tags=(*tags, *session),
            scopes=(SCOPE,),
            ttl=ttl,
            embed="never",
            id=id,
        )
        return await self._trail.records.create(draft, by=keeper)

    def _remember(self, by: Principal, exposure: Exposure, seen: int) -> Exposure:
        """Cache a set as of position `seen` in the log."""
        key = _key(by, exposure.handle)
        self._known[key] = exposure, seen
        self._known.move_to_end(key)
        while len(self._known) > self._remembered:
            self._known.popitem(last=False)
        return exposure


class MemoryExposures:
    """Exposure sets in memory, for one event loop. Calls never await, so they cannot interleave."""

    def __init__(self, clock: Clock, *, remembered: int = REMEMBERED) -> None:
        self._clock = clock
        self._remembered = remembered
        self._kept: OrderedDict[Key, Exposure] = OrderedDict()

    @property
    def live(self) -> int:
        """The number of sets in memory."""
        return len(self._kept)

    async def open(self, handle: str | None, *, by: Principal) -> Exposure:
        named = check_handle(handle, by)
        return Exposure(handle=mint_handle()) if named is None else await self.reload(named, by=by)

    async def reload(self, handle: str, *, by: Principal) -> Exposure:
        return self._find(handle, by)

    async def reveal(self, exposure: Exposure, found: Sequence[Exposed], *, by: Principal) -> Exposure:
        return await self.change(exposure, adding(found), by=by)

    async def change(
        self, exposure: Exposure, edit: Edit, *, by: Principal, ended_by: str = "", reason: str = ""
    ) -> Exposure:
        key, now = _key(by, exposure.handle), self._clock.now()
        if exposure.version or key in self._kept:
            exposure = self._find(exposure.handle, by)
        after = apply(exposure, edit, now, ended_by=ended_by, reason=reason)
        if after.items == exposure.items and exposure.version:
            return after
        kept = msgspec.structs.replace(after, version=exposure.version + 1, ends_at=now + LIFE)
        self._kept[key] = kept
        self._kept.move_to_end(key)
        while len(self._kept) > self._remembered:
            self._kept.popitem(last=False)
        return kept

    def _find(self, handle: str, by: Principal) -> Exposure:
        key, now = _key(by, handle), self._clock.now()
        kept = self._kept.get(key)
        if kept is not None and _is_alive(kept, now):
            self._kept.move_to_end(key)
            return at_time(kept, now)
        self._kept.pop(key, None)
        if by.session is not None and handle == f"session:{by.session}":
            return Exposure(handle=handle)
        raise HandleRefused


class _Stored(msgspec.Struct):
    """The context of a set's breadcrumb. Sets of earlier versions have no `ended`."""

    items: list[Exposed]
    ended: tuple[EndedExposure, ...] = ()


def _read(found: Breadcrumb, handle: str) -> Exposure:
    """Parse a stored set. Raises HandleRefused for a record that is not a set."""
    if found.schema_name != SCHEMA or SCOPE not in found.scopes:
        raise HandleRefused
    try:
        stored = msgspec.convert(found.context, _Stored, strict=False)
    except msgspec.ValidationError:
        raise HandleRefused from None
    return Exposure(
        handle=handle,
        items={each.item: each for each in stored.items},
        version=found.version,
        ends_at=found.ttl.expires_at,
        ended=stored.ended,
    )


def _is_alive(exposure: Exposure, now: datetime) -> bool:
    return exposure.ends_at is not None and exposure.ends_at > now


def _key(by: Principal, handle: str) -> Key:
    return (by.owner_id, by.agent_id, handle)


def _id_of(by: Principal, handle: str) -> str:
    """Return the record id for an owner, agent and handle."""
    return str(uuid5(_NAMESPACE, "\n".join(_key(by, handle))))


def _writer(by: Principal) -> Principal:
    """Return the principal that writes sets: a caller without write permission has a set too."""
    return Principal(owner_id=by.owner_id, agent_id="exposure", roles=ROLES, scopes=frozenset({SCOPE}))
