"""A trail as far as it may be told. All of one that the user made or agreed to; of any other, which may have come with
a repository, only what programs of this user read in files: notes, choices and preferences on it would be a
stranger's, told as the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from clew.access import Principal
from clew.errors import ConfigError, NotFound
from clew.knowledge.evidence.signatures import MARK, mark_check
from clew.trail.breadcrumb import Breadcrumb, Change, Draft, Page, Update, View
from clew.trail.edge import Direction, Edge, Link, Reached
from clew.trail.ownership import Ownership
from clew.trail.query import SearchRequest, SearchResult
from clew.trail.selector import EVERYTHING, Selector
from clew.trail.store import (
    DeadLetters,
    Deliveries,
    Edges,
    Log,
    Records,
    Search,
    Secrets,
    Trail,
    Upkeep,
    VersionInfo,
)

WITHHELD = (
    "What was noted is left out, since you did not make the trail that it stands on: `clew trust` shows what it brings."
)
_OWN_BOOKS = "system."
"""What the schemas begin with under which programs keep what nobody noted."""


class Consent:
    """Whether all of a trail may be told: nobody's leave is needed without an `ownership`. `on_given` is called when it
    is first found out that it may."""

    def __init__(self, ownership: Ownership | None, on_given: Callable[[], None]) -> None:
        self._ownership = ownership
        self._on_given = on_given
        self._is_given = False

    async def is_given(self) -> bool:
        """Once it was, that stays so for this process. A file of what is trusted that cannot be used is no consent."""
        if not self._is_given:
            self._is_given = await self._ask()
            if self._is_given:
                self._on_given()
        return self._is_given

    async def withheld(self) -> list[str]:
        """The line that says that something is left out, where it is."""
        return [] if await self.is_given() else [WITHHELD]

    async def require(self) -> None:
        """Raises ConfigError where what was noted now would not be told."""
        if not await self.is_given():
            error = ConfigError("this is a trail that you did not make: nothing is noted on it")
            error.hint = "`clew trust` shows what it brings"
            raise error

    async def _ask(self) -> bool:
        try:
            return self._ownership is None or await self._ownership.holds()
        except ConfigError:
            return False


class ToldTrail:
    """See `clew.trail.store.Trail`. What may not be told does not exist, and no edge is followed to it."""

    def __init__(self, trail: Trail, consent: Consent) -> None:
        self._trail = trail
        self._records = _ToldRecords(trail.records, consent)
        self._edges = _ToldEdges(trail.edges, consent)
        self._consent = consent

    @property
    def records(self) -> Records:
        return self._records

    @property
    def index(self) -> Search:
        return _ToldSearch(self._trail.index, self._consent)  # the index behind it takes long to load

    @property
    def edges(self) -> Edges:
        return self._edges

    @property
    def log(self) -> Log:
        return self._trail.log

    @property
    def deliveries(self) -> Deliveries:
        return self._trail.deliveries

    @property
    def dead_letters(self) -> DeadLetters:
        return self._trail.dead_letters

    @property
    def upkeep(self) -> Upkeep:
        return self._trail.upkeep

    @property
    def secrets(self) -> Secrets:
        return self._trail.secrets

    async def close(self) -> None:
        await self._trail.close()


class _ToldRecords:
    """See `Records`. Where not all may be told, nothing is noted either, since it would not be told."""

    def __init__(self, records: Records, consent: Consent) -> None:
        self._records, self._consent = records, consent

    async def create(self, draft: Draft, *, by: Principal) -> Breadcrumb:
        await self._require([draft])
        return await self._records.create(draft, by=by)

    async def create_many(self, drafts: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        await self._require(drafts)
        return await self._records.create_many(drafts, by=by)

    async def get(self, id: str, *, by: Principal, version: int | None = None, vector: bool = False) -> Breadcrumb:
        await self._check(id, by)
        return await self._records.get(id, by=by, version=version, vector=vector)

    async def read(self, id: str, *, by: Principal) -> View:
        await self._check(id, by)
        return await self._records.read(id, by=by)

    async def update(self, id: str, change: Change, *, expect: int, by: Principal) -> Breadcrumb:
        await self._check(id, by)
        return await self._records.update(id, change, expect=expect, by=by)

    async def update_many(self, updates: Sequence[Update], *, by: Principal) -> list[Breadcrumb]:
        for each in updates:
            await self._check(each.id, by)
        return await self._records.update_many(updates, by=by)

    async def delete(self, id: str, *, by: Principal, expect: int | None = None) -> None:
        await self._check(id, by)
        await self._records.delete(id, by=by, expect=expect)

    async def list(
        self,
        selector: Selector = EVERYTHING,
        *,
        by: Principal,
        limit: int = 50,
        cursor: str | None = None,
        oldest_first: bool = False,
    ) -> Page:
        page = await self._records.list(selector, by=by, limit=limit, cursor=cursor, oldest_first=oldest_first)
        if await self._consent.is_given():
            return page
        return msgspec.structs.replace(page, items=tuple(filter(mark_check(), page.items)))

    async def history(self, id: str, *, by: Principal) -> Sequence[VersionInfo]:
        await self._check(id, by)
        return await self._records.history(id, by=by)

    async def _check(self, id: str, by: Principal) -> None:
        """Raises NotFound for what may not be told."""
        if not await self._consent.is_given() and not mark_check()(await self._records.get(id, by=by)):
            raise NotFound("breadcrumb", id)

    async def _require(self, drafts: Iterable[Draft]) -> None:
        if not all(map(_is_for_files, drafts)):
            await self._consent.require()


class _ToldSearch:
    """See `Search`."""

    def __init__(self, index: Search, consent: Consent) -> None:
        self._index, self._consent = index, consent

    async def warm(self) -> None:
        await self._index.warm()

    async def search(self, request: SearchRequest, *, by: Principal) -> SearchResult:
        found = await self._index.search(request, by=by)
        if await self._consent.is_given():
            return found
        is_marked = mark_check()
        return msgspec.structs.replace(found, hits=tuple(hit for hit in found.hits if is_marked(hit.breadcrumb)))


class _ToldEdges:
    """See `Edges`. Where not all may be told, there are none."""

    def __init__(self, edges: Edges, consent: Consent) -> None:
        self._edges, self._consent = edges, consent

    async def add(self, edges: Sequence[Edge], *, by: Principal, replace: bool = False) -> list[Edge]:
        return await self._edges.add(edges, by=by, replace=replace)

    async def remove(self, source: str, target: str, type: str, *, by: Principal) -> None:
        await self._edges.remove(source, target, type, by=by)

    async def of(
        self, id: str, *, by: Principal, types: Sequence[str] = (), direction: Direction = "both", limit: int = 1000
    ) -> list[Edge]:
        if not await self._consent.is_given():
            return []
        return await self._edges.of(id, by=by, types=types, direction=direction, limit=limit)

    async def around(
        self, ids: Sequence[str], *, by: Principal, since: datetime | None = None, limit: int = 10_000
    ) -> list[Link]:
        if not await self._consent.is_given():
            return []
        return await self._edges.around(ids, by=by, since=since, limit=limit)

    async def walk(
        self,
        starts: Sequence[str],
        *,
        by: Principal,
        types: Sequence[str] = (),
        direction: Direction = "outgoing",
        depth: int = 3,
        limit: int = 1000,
    ) -> list[Reached]:
        if not await self._consent.is_given():
            return []
        return await self._edges.walk(starts, by=by, types=types, direction=direction, depth=depth, limit=limit)

    async def paths(
        self,
        starts: Sequence[str],
        *,
        by: Principal,
        types: Sequence[str] = (),
        direction: Direction = "both",
        max_cost: float = 3.0,
        limit: int = 1000,
    ) -> list[Reached]:
        if not await self._consent.is_given():
            return []
        return await self._edges.paths(starts, by=by, types=types, direction=direction, max_cost=max_cost, limit=limit)


def _is_for_files(draft: Draft) -> bool:
    """Whether a draft tells what a program read or found out, and not what somebody noted."""
    metadata = draft.context.get("metadata")
    is_marked = isinstance(metadata, dict) and MARK in metadata
    return is_marked or (draft.schema_name or "").startswith(_OWN_BOOKS)
