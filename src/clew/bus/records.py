"""Records that are announced on the bus when they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clew.access import Principal
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Page, Update, View
from clew.trail.model.selector import EVERYTHING, Selector
from clew.trail.store import Records, VersionInfo

Announce = Callable[[Sequence[Breadcrumb]], object]


class AnnouncedRecords:
    """See `clew.trail.store.Records`. The records that a write returns are announced after its commit."""

    def __init__(self, records: Records, announce: Announce, announce_gone: Callable[[str, Principal], object]) -> None:
        self._records = records
        self._announce = announce
        self._announce_gone = announce_gone

    async def create(self, draft: Draft, *, by: Principal) -> Breadcrumb:
        written = await self._records.create(draft, by=by)
        self._announce((written,))
        return written

    async def create_many(self, drafts: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        written = await self._records.create_many(drafts, by=by)
        self._announce(written)
        return written

    async def update(self, id: str, change: Change, *, expect: int, by: Principal) -> Breadcrumb:
        written = await self._records.update(id, change, expect=expect, by=by)
        self._announce((written,))
        return written

    async def update_many(self, updates: Sequence[Update], *, by: Principal) -> list[Breadcrumb]:
        written = await self._records.update_many(updates, by=by)
        self._announce(written)
        return written

    async def delete(self, id: str, *, by: Principal, expect: int | None = None) -> None:
        await self._records.delete(id, by=by, expect=expect)
        self._announce_gone(id, by)

    # -- reading ------------------------------------------------------------------------------------------

    async def get(self, id: str, *, by: Principal, version: int | None = None, vector: bool = False) -> Breadcrumb:
        return await self._records.get(id, by=by, version=version, vector=vector)

    async def find_many(self, ids: Sequence[str], *, by: Principal) -> dict[str, Breadcrumb]:
        return await self._records.find_many(ids, by=by)

    async def read(self, id: str, *, by: Principal) -> View:
        return await self._records.read(id, by=by)

    async def history(self, id: str, *, by: Principal) -> Sequence[VersionInfo]:
        return await self._records.history(id, by=by)

    async def list(
        self,
        selector: Selector = EVERYTHING,
        *,
        by: Principal,
        limit: int = 50,
        cursor: str | None = None,
        oldest_first: bool = False,
    ) -> Page:
        return await self._records.list(selector, by=by, limit=limit, cursor=cursor, oldest_first=oldest_first)
