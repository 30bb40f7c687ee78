"""Exposure sets: the routes, skills and toolsets that an agent was shown or has loaded, with cause, time and token
cost.

An item is a route (`domain://tools/x`), `skill:NAME`, `toolset:NAME`, or `agent:NAME`, which marks a session that has
begun. All else is derived from the items (`sessions/session.py`). A change is a pure function from items to items.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol

import msgspec

from clew.access import Principal
from clew.errors import HandleRefused, TooLarge

LIFE = timedelta(days=7)
"""A set expires this long after its last change."""
MAX_ITEMS = 2_000
MAX_ENDED = 200
"""The number of ended routes, and of ended skills and toolsets, that a set keeps. The oldest are dropped first."""
MAX_HANDLE = 300

KINDS = ("agent", "skill", "toolset")

Via = Literal["ask", "guidance", "initial", "load", "trigger", "intent", "path"]


class Exposed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item that was shown. `by` is the cause; an item with `until` expires."""

    item: str
    via: Via
    why: str
    since: datetime
    tokens: int = 0
    by: str = ""
    until: datetime | None = None


class EndedExposure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item that was shown from `since` to `until`, with the cause and the reason of its end."""

    item: str
    via: Via
    why: str
    since: datetime
    until: datetime
    ended_by: str
    reason: str
    tokens: int = 0
    by: str = ""


class Exposure(msgspec.Struct, frozen=True, kw_only=True):
    """A set at the time of the last read. Version 0 is a set without items, which does not expire. `ended` has the
    former items, in the order of their ends."""

    handle: str
    items: dict[str, Exposed] = {}
    version: int = 0
    ends_at: datetime | None = None
    ended: tuple[EndedExposure, ...] = ()

    def find(self, item: str) -> Exposed | None:
        return self.items.get(item)


Items = Mapping[str, Exposed]
Edit = Callable[[Items], Items]
"""A pure function, which may be called again with other items. If it raises, the set stays unchanged."""


class Exposures(Protocol):
    """Exposure sets by handle. Every implementation passes tests/skills/test_exposure_store.py.

    A set belongs to one owner and agent, and a session is a handle by itself. Safe to use from several tasks.
    """

    async def open(self, handle: str | None, *, by: Principal) -> Exposure:
        """Return the set of a handle; without a handle, the set of the caller's session or a new one. Raises
        HandleRefused for a handle that has expired, does not exist, or belongs to somebody else."""
        ...

    async def reload(self, handle: str, *, by: Principal) -> Exposure:
        """Return the stored set. Raises as `open`."""
        ...

    async def reveal(self, exposure: Exposure, found: Sequence[Exposed], *, by: Principal) -> Exposure:
        """Add missing items. Raises HandleRefused if the set has expired."""
        ...

    async def change(
        self, exposure: Exposure, edit: Edit, *, by: Principal, ended_by: str = "", reason: str = ""
    ) -> Exposure:
        """Apply an edit to the stored set atomically, and record the items that it ended with the cause and reason.

        An edit without effect writes nothing. Raises HandleRefused if the set has expired, and the errors of the edit.
        """
        ...


def adding(found: Iterable[Exposed]) -> Edit:
    """Return the edit that adds missing items."""
    new = {each.item: each for each in found}
    return lambda items: {**items, **{name: each for name, each in new.items() if name not in items}}


def without(*names: str) -> Edit:
    """Return the edit that removes items."""
    return lambda items: {name: each for name, each in items.items() if name not in names}


def remove_all(items: Items) -> Items:
    """Remove all items. A session with an empty set has not begun."""
    return {}


def at_time(exposure: Exposure, now: datetime) -> Exposure:
    """Return the set at a time, with expired items ended."""
    over = [each for each in exposure.items.values() if each.until is not None and each.until <= now]
    if not over:
        return exposure
    gone = {each.item for each in over}
    ended = [_end(each, each.until or now, "clock", "it expired") for each in over]
    return msgspec.structs.replace(
        exposure,
        items={name: each for name, each in exposure.items.items() if name not in gone},
        ended=_bounded((*exposure.ended, *ended)),
    )


def apply(exposure: Exposure, edit: Edit, now: datetime, *, ended_by: str = "", reason: str = "") -> Exposure:
    """Return the set after an edit. A full set drops its oldest routes. Raises TooLarge if that is not enough, and the
    errors of the edit."""
    exposure = at_time(exposure, now)
    wanted = dict(edit(exposure.items))
    items = _trimmed(wanted)
    ended = []
    for name, each in exposure.items.items():
        if (after := items.get(name)) == each:
            continue
        kept = "replaced" if after is not None else "the set was full"
        ended.append(_end(each, now, ended_by, kept if name in wanted else reason))
    if not ended and len(items) == len(exposure.items):
        return exposure
    return msgspec.structs.replace(exposure, items=items, ended=_bounded((*exposure.ended, *ended)))


def mint_handle() -> str:
    """Return a new unguessable handle."""
    return f"clew-{secrets.token_urlsafe(12)}"


def check_handle(handle: str | None, by: Principal) -> str | None:
    """Return the handle of a caller, None for a new one. Raises HandleRefused for a malformed handle, and for the
    session of another caller."""
    own = f"session:{by.session}" if by.session is not None else None
    if handle is None:
        return own
    is_foreign = handle.startswith("session:") and handle != own
    if len(handle) > MAX_HANDLE or not handle.isprintable() or is_foreign:
        raise HandleRefused
    return handle


def is_named(item: str, kinds: Sequence[str] = KINDS) -> bool:
    """Whether an item is a skill, a toolset or an agent. A route of a domain with such a name is none of them."""
    kind, colon, name = item.partition(":")
    return bool(colon) and kind in kinds and not name.startswith("//")


def _end(each: Exposed, at: datetime, ended_by: str, reason: str) -> EndedExposure:
    return EndedExposure(
        item=each.item,
        via=each.via,
        why=each.why,
        since=each.since,
        until=at,
        ended_by=ended_by,
        reason=reason,
        tokens=each.tokens,
        by=each.by,
    )


def _trimmed(items: dict[str, Exposed]) -> dict[str, Exposed]:
    """Keep at most MAX_ITEMS items: drop the oldest routes."""
    excess = len(items) - MAX_ITEMS
    if excess <= 0:
        return items
    leaving = [name for name in items if not is_named(name)][:excess]
    if len(leaving) < excess:
        raise TooLarge("items", len(items), MAX_ITEMS, "skills and toolsets in one set")
    gone = set(leaving)
    return {name: each for name, each in items.items() if name not in gone}


def _bounded(ended: Sequence[EndedExposure]) -> tuple[EndedExposure, ...]:
    """Keep the newest ended items of each kind, so that many routes do not displace skills."""
    named = [at for at, each in enumerate(ended) if is_named(each.item)]
    routes = [at for at, each in enumerate(ended) if not is_named(each.item)]
    kept = sorted((*named[-MAX_ENDED:], *routes[-MAX_ENDED:]))
    return tuple(ended[at] for at in kept)
