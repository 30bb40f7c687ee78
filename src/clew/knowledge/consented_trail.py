"""Consent to a trail, and the part of a trail that may be shown without consent. A trail that the user neither made nor
agreed to may have come with a repository, so its notes may be a stranger's. On such a trail, Clew shows only the nodes
that this user's programs read from files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, cast

import msgspec

from clew.access import Principal
from clew.errors import ConfigError, NotFound
from clew.knowledge.evidence.provenance import MARK, mark_check
from clew.trail.model.breadcrumb import Draft, Page
from clew.trail.model.query import SearchResult
from clew.trail.ownership import Ownership
from clew.trail.store import Trail

WITHHELD = "Notes are withheld: you did not make this trail. `clew trust` shows what it brings."
_SYSTEM = "system."
"""Prefix of the schemas of records that programs write for themselves."""


class TrailConsent:
    """Whether all of a trail may be shown. Without an `ownership` it always may. `on_given` is called once, when
    consent is first found."""

    def __init__(self, ownership: Ownership | None, on_given: Callable[[], None]) -> None:
        self._ownership, self._on_given = ownership, on_given
        self._is_given = False

    async def is_given(self) -> bool:
        """Whether the user has consented. Consent lasts for the life of this process. If the trust file cannot be read,
        there is no consent."""
        if not self._is_given:
            try:
                self._is_given = self._ownership is None or await self._ownership.holds()
            except ConfigError:
                return False
            if self._is_given:
                self._on_given()
        return self._is_given

    async def withheld(self) -> list[str]:
        """A line that says that notes are withheld; empty with consent."""
        return [] if await self.is_given() else [WITHHELD]

    async def require(self) -> None:
        """Raises ConfigError without consent, because a note that is written then would not be shown."""
        if not await self.is_given():
            error = ConfigError("you did not make this trail, so no notes are written to it")
            error.hint = "`clew trust` shows what it brings"
            raise error


def consented_trail(trail: Trail, consent: TrailConsent) -> Trail:
    """A view of the trail that shows only permitted records. Without consent, other records do not exist, notes cannot
    be written, and there are no edges. The log and the other parts are unrestricted."""
    return cast("Trail", _ConsentedTrail(trail, consent))


class _ConsentedTrail:
    """See `Trail`."""

    def __init__(self, trail: Trail, consent: TrailConsent) -> None:
        self._trail, self._consent = trail, consent

    def __getattr__(self, name: str) -> Any:
        part = getattr(self._trail, name)
        return _Part(part, self._trail, self._consent) if name in ("records", "index", "edges") else part


class _Part:
    """The records, index or edges of a trail. Without consent, a method that is unknown here is refused."""

    def __init__(self, part: Any, trail: Trail, consent: TrailConsent) -> None:
        self._part, self._trail, self._consent = part, trail, consent

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return partial(self._call, name, getattr(self._part, name))

    async def _call(self, name: str, method: Callable[..., Awaitable[Any]], *given: Any, **named: Any) -> Any:
        if await self._consent.is_given():
            return await method(*given, **named)
        match name:
            case "create" | "create_many":
                drafts = given if name == "create" else given[0]
                if not all(map(_is_program_output, drafts)):
                    await self._consent.require()
            case "get" | "read" | "update" | "delete" | "history":
                await self._check([given[0]], named["by"])
            case "update_many":
                await self._check([each.id for each in given[0]], named["by"])
            case "of" | "around" | "walk" | "paths":
                return []
            case "list" | "search":
                return _marked_only(await method(*given, **named))
            case "add" | "remove" | "warm":
                pass
            case _:
                await self._consent.require()
        return await method(*given, **named)

    async def _check(self, ids: Iterable[str], by: Principal) -> None:
        """Raises NotFound for a record that may not be shown."""
        is_marked = mark_check()
        for id in ids:
            if not is_marked(await self._trail.records.get(id, by=by)):
                raise NotFound("breadcrumb", id)


def _marked_only(found: Page | SearchResult) -> Page | SearchResult:
    is_marked = mark_check()
    if isinstance(found, Page):
        return msgspec.structs.replace(found, items=tuple(filter(is_marked, found.items)))
    return msgspec.structs.replace(found, hits=tuple(hit for hit in found.hits if is_marked(hit.breadcrumb)))


def _is_program_output(draft: Draft) -> bool:
    """Whether a draft holds data that a program read from a file or computed."""
    metadata = draft.context.get("metadata")
    return (isinstance(metadata, dict) and MARK in metadata) or (draft.schema_name or "").startswith(_SYSTEM)
