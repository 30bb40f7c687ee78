"""Consent to a trail, and the part of it that may be shown without: a trail that the user neither made nor agreed to
may have come with a repository, and its notes would be a stranger's. Only nodes that programs of this user read from
files are shown of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from clew.access import Principal
from clew.errors import ConfigError, NotFound
from clew.knowledge.evidence.provenance import MARK, mark_check
from clew.trail.breadcrumb import Draft, Page, Update
from clew.trail.ownership import Ownership
from clew.trail.query import SearchResult
from clew.trail.store import Trail

WITHHELD = (
    "What was noted is left out, since you did not make the trail that it stands on: `clew trust` shows what it brings."
)
_SYSTEM = "system."
"""Prefix of the schemas of records that programs write for themselves."""

_BY_ID = ("get", "read", "update", "delete", "history")
_FOLLOWS = ("of", "around", "walk", "paths")
_Method = Callable[..., Awaitable[Any]]


class Consent:
    """Whether all of a trail may be shown; always without an `ownership`. `on_given` is called once, when consent is
    first found."""

    def __init__(self, ownership: Ownership | None, on_given: Callable[[], None]) -> None:
        self._ownership, self._on_given = ownership, on_given
        self._is_given = False

    async def is_given(self) -> bool:
        """Consent lasts for the life of this process. A trust file that cannot be read is no consent."""
        if not self._is_given:
            try:
                self._is_given = self._ownership is None or await self._ownership.holds()
            except ConfigError:
                return False
            if self._is_given:
                self._on_given()
        return self._is_given

    async def withheld(self) -> list[str]:
        """A line that says that notes are left out, or nothing."""
        return [] if await self.is_given() else [WITHHELD]

    async def require(self) -> None:
        """Raises ConfigError without consent: what is noted then would not be shown."""
        if not await self.is_given():
            error = ConfigError("this is a trail that you did not make: nothing is noted on it")
            error.hint = "`clew trust` shows what it brings"
            raise error


def consented_trail(trail: Trail, consent: Consent) -> Trail:
    """The trail as it may be shown. Without consent other records do not exist, nothing is noted, and there are no
    edges to follow."""
    return cast("Trail", _ConsentedTrail(trail, consent))


class _ConsentedTrail:
    """See `Trail`. Log, deliveries and the like are those of the trail."""

    def __init__(self, trail: Trail, consent: Consent) -> None:
        self._trail, self._guards = trail, _Guards(trail, consent)

    def __getattr__(self, name: str) -> Any:
        part = getattr(self._trail, name)
        guards = self._guards.of(name)
        return part if guards is None else _Guarded(part, guards)


class _Guarded:
    """A part of the trail of which every method runs behind its guard. A method without a guard does not exist."""

    def __init__(self, part: Any, guards: Mapping[str, _Method]) -> None:
        self._part, self._guards = part, guards

    def __getattr__(self, name: str) -> _Method:
        if name not in self._guards:
            raise AttributeError(name)
        guard, method = self._guards[name], getattr(self._part, name)
        return lambda *given, **named: guard(method, *given, **named)


class _Guards:
    """Each guard gets the method of the trail and the arguments of the call."""

    def __init__(self, trail: Trail, consent: Consent) -> None:
        self._trail, self._consent = trail, consent

    def of(self, part: str) -> Mapping[str, _Method] | None:
        match part:
            case "records":
                guards: dict[str, _Method] = dict.fromkeys(_BY_ID, self._by_id)
                guards |= {"create": self._create, "create_many": self._create, "update_many": self._update_many}
                return guards | {"list": self._list}
            case "index":
                return {"warm": _unguarded, "search": self._search}
            case "edges":
                return dict.fromkeys(_FOLLOWS, self._follow) | {"add": _unguarded, "remove": _unguarded}
            case _:
                return None

    async def _by_id(self, method: _Method, id: str, *given: Any, by: Principal, **named: Any) -> Any:
        await self._check(id, by)
        return await method(id, *given, by=by, **named)

    async def _update_many(self, method: _Method, updates: Sequence[Update], *, by: Principal) -> Any:
        for each in updates:
            await self._check(each.id, by)
        return await method(updates, by=by)

    async def _create(self, method: _Method, drafts: Draft | Sequence[Draft], *, by: Principal) -> Any:
        if not all(map(_is_program_output, [drafts] if isinstance(drafts, Draft) else drafts)):
            await self._consent.require()
        return await method(drafts, by=by)

    async def _list(self, method: _Method, *given: Any, **named: Any) -> Page:
        page: Page = await method(*given, **named)
        if await self._consent.is_given():
            return page
        return msgspec.structs.replace(page, items=tuple(filter(mark_check(), page.items)))

    async def _search(self, method: _Method, *given: Any, **named: Any) -> SearchResult:
        found: SearchResult = await method(*given, **named)
        if await self._consent.is_given():
            return found
        is_marked = mark_check()
        return msgspec.structs.replace(found, hits=tuple(hit for hit in found.hits if is_marked(hit.breadcrumb)))

    async def _follow(self, method: _Method, *given: Any, **named: Any) -> Any:
        return await method(*given, **named) if await self._consent.is_given() else []

    async def _check(self, id: str, by: Principal) -> None:
        """Raises NotFound for a record that may not be shown."""
        if not await self._consent.is_given() and not mark_check()(await self._trail.records.get(id, by=by)):
            raise NotFound("breadcrumb", id)


async def _unguarded(method: _Method, *given: Any, **named: Any) -> Any:
    return await method(*given, **named)


def _is_program_output(draft: Draft) -> bool:
    """Whether a draft holds what a program read from a file or found out."""
    metadata = draft.context.get("metadata")
    return (isinstance(metadata, dict) and MARK in metadata) or (draft.schema_name or "").startswith(_SYSTEM)
