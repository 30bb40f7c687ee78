"""Exposure sets: what an agent has been shown, by what, since when and at what token cost.

A set is one breadcrumb, found by a handle that the server mints. The handle is bound to owner and agent, survives a
restart, and is nowhere stored in clear.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID, uuid5
from weakref import WeakValueDictionary

import msgspec

from clew.access import ROLES, Principal
from clew.clock import Clock
from clew.errors import AlreadyExists, Conflict, HandleRefused, NotFound
from clew.trail.breadcrumb import Breadcrumb, Change, Draft, Ttl
from clew.trail.store import Trail

SCHEMA = "exposure.v1"
SCOPE = "clew:exposure"
"""Held by nobody else: sets are no finding of anybody's search, and being shown things changes no ranking."""
LIFE = timedelta(days=7)
"""A set ends when it was not added to for so long."""
MAX_ITEMS = 2_000
MAX_HANDLE = 300
REMEMBERED = 1_000
_TRIES = 20
_NAMESPACE = UUID("5ad32f4b-8e0c-5b43-a6a7-38ab8b8c6b1d")

Via = Literal["ask", "guidance", "initial", "load", "trigger", "intent", "path"]


class Exposed(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was shown."""

    item: str
    via: Via
    why: str
    since: datetime
    tokens: int = 0


class Exposure(msgspec.Struct, frozen=True, kw_only=True):
    """A set as it was last read; `version` 0 is one that nothing was added to yet, and that has no end."""

    handle: str
    items: dict[str, Exposed] = {}
    version: int = 0
    ends_at: datetime | None = None

    def find(self, item: str) -> Exposed | None:
        return self.items.get(item)


class Exposures:
    """The exposure sets of a trail. Safe to use from several tasks, which take turns, and from several processes:
    additions are merged."""

    def __init__(self, trail: Trail, clock: Clock) -> None:
        self._trail = trail
        self._clock = clock
        self._known: OrderedDict[tuple[str, str, str], Exposure] = OrderedDict()
        self._turns: WeakValueDictionary[tuple[str, str, str], asyncio.Lock] = WeakValueDictionary()

    async def open(self, handle: str | None, *, by: Principal) -> Exposure:
        """The set of a handle; without one that of the caller's session, or a new one.

        Raises HandleRefused for a handle that has ended, was never given, or was given to somebody else.
        """
        if handle is None:
            if by.session is None:
                return Exposure(handle=f"clew-{secrets.token_urlsafe(12)}")
            handle = f"session:{by.session}"
        _check(handle, by)
        known = self._known.get(_key(by, handle))
        if known is None or known.ends_at is None or known.ends_at <= self._clock.now():
            return await self.reload(handle, by=by)
        return known

    async def reload(self, handle: str, *, by: Principal) -> Exposure:
        """The set as the trail has it now. Raises as `open`."""
        try:
            found = await self._trail.records.get(_id_of(by, handle), by=_keeper(by))
        except NotFound:
            if by.session is not None and handle == f"session:{by.session}":
                return Exposure(handle=handle)
            raise HandleRefused from None
        exposure = Exposure(
            handle=handle,
            items={each.item: each for each in _items_of(found)},
            version=found.version,
            ends_at=found.ttl.expires_at,
        )
        return self._remember(by, exposure)

    async def reveal(self, exposure: Exposure, found: Sequence[Exposed], *, by: Principal) -> Exposure:
        """Add what is not in the set yet. Durable when it returns; nothing is written when nothing is new.

        Raises HandleRefused where the set has ended meanwhile.
        """
        key = _key(by, exposure.handle)
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            known = self._known.get(key)
            latest = known if known is not None and known.version > exposure.version else exposure
            return await self._add(latest, found, by)

    async def _add(self, exposure: Exposure, found: Sequence[Exposed], by: Principal) -> Exposure:
        for attempt in range(_TRIES):
            new = {each.item: each for each in found if each.item not in exposure.items}
            if not new and exposure.version:
                return exposure
            kept = dict([*exposure.items.items(), *new.items()][-MAX_ITEMS:])
            ends_at = self._clock.now() + LIFE
            try:
                version = await self._write(exposure, kept, ends_at, by)
            except (Conflict, AlreadyExists, NotFound) as error:
                exposure = await self.reload(exposure.handle, by=by)
                if isinstance(error, AlreadyExists) and not exposure.version:
                    await self._trail.upkeep.purge()  # the session's earlier set has ended, and is still in the way
                await asyncio.sleep(random.uniform(0, 0.002 * attempt))  # others are at it: take turns
                continue
            return self._remember(by, Exposure(handle=exposure.handle, items=kept, version=version, ends_at=ends_at))
        raise Conflict(exposure.handle, expected=exposure.version, actual=exposure.version + 1)

    async def _write(self, exposure: Exposure, items: dict[str, Exposed], ends_at: datetime, by: Principal) -> int:
        context: dict[str, Any] = {"agent_id": by.agent_id, "items": msgspec.to_builtins(list(items.values()))}
        ttl = Ttl(kind="datetime", expires_at=ends_at)
        id, keeper = _id_of(by, exposure.handle), _keeper(by)
        if exposure.version:
            change = Change(context=context, ttl=ttl, embed="never")
            return (await self._trail.records.update(id, change, expect=exposure.version, by=keeper)).version
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
        return (await self._trail.records.create(draft, by=keeper)).version

    def _remember(self, by: Principal, exposure: Exposure) -> Exposure:
        self._known[_key(by, exposure.handle)] = exposure
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return exposure


def _check(handle: str, by: Principal) -> None:
    """Raise HandleRefused for what we never mint, and for the name of another session than the caller's."""
    is_session = handle.startswith("session:")
    if len(handle) > MAX_HANDLE or not handle.isprintable() or (is_session and handle != f"session:{by.session}"):
        raise HandleRefused


def _items_of(found: Breadcrumb) -> list[Exposed]:
    """What a set holds. Raises HandleRefused for a record that somebody else put in its place."""
    if found.schema_name != SCHEMA or SCOPE not in found.scopes:
        raise HandleRefused
    try:
        return msgspec.convert(found.context.get("items"), list[Exposed], strict=False)
    except msgspec.ValidationError:
        raise HandleRefused from None


def _key(by: Principal, handle: str) -> tuple[str, str, str]:
    return (by.owner_id, by.agent_id, handle)


def _id_of(by: Principal, handle: str) -> str:
    """Of owner, agent and handle: where one of them is another, there is no such set."""
    return str(uuid5(_NAMESPACE, "\n".join(_key(by, handle))))


def _keeper(by: Principal) -> Principal:
    """Who writes the set down: any caller is shown things, also one who may not write."""
    return Principal(owner_id=by.owner_id, agent_id="exposure", roles=ROLES, scopes=frozenset({SCOPE}))
