"""Records that mirror what lies elsewhere: the trail is made to hold exactly what is wanted, in few writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TypeVar

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict, NotFound
from clew.trail.breadcrumb import Breadcrumb, Change, Draft, Update
from clew.trail.selector import Selector
from clew.trail.store import Trail

BATCH = 200
PAGE = 500
_TRIES = 10

T = TypeVar("T")


class Mirrored(msgspec.Struct, frozen=True, kw_only=True):
    """How many records were written anew, changed and removed."""

    created: int = 0
    updated: int = 0
    deleted: int = 0


async def mirror(trail: Trail, drafts: Iterable[Draft], selector: Selector, *, by: Principal) -> Mirrored:
    """Make the drafts, which have ids, all that the selector selects. A record whose context is as it was is left
    alone. Where another process does the same at the same time, it is looked at again."""
    wanted = {str(draft.id): draft for draft in drafts}
    for _ in range(_TRIES - 1):
        try:
            return await _mirror(trail, wanted, selector, by)
        except (AlreadyExists, Conflict, NotFound):
            continue
    return await _mirror(trail, wanted, selector, by)


async def each_record(trail: Trail, selector: Selector, *, by: Principal) -> AsyncIterator[Breadcrumb]:
    """All that a selector selects, oldest first, a page at a time."""
    cursor: str | None = None
    while True:
        page = await trail.records.list(selector, by=by, limit=PAGE, cursor=cursor, oldest_first=True)
        for record in page.items:
            yield record
        if (cursor := page.cursor) is None:
            return


async def _mirror(trail: Trail, wanted: dict[str, Draft], selector: Selector, by: Principal) -> Mirrored:
    known = {each.id: each async for each in each_record(trail, selector, by=by)}
    gone = [id for id in known if id not in wanted]
    for ids in _batches(gone):
        await asyncio.gather(*(trail.records.delete(id, by=by) for id in ids))
    new = [draft for id, draft in wanted.items() if id not in known]
    for drafts in _batches(new):
        await trail.records.create_many(drafts, by=by)
    changed = [(known[id], draft) for id, draft in wanted.items() if id in known and known[id].context != draft.context]
    for pairs in _batches(changed):
        await trail.records.update_many([_update(*pair) for pair in pairs], by=by)
    return Mirrored(created=len(new), updated=len(changed), deleted=len(gone))


def _update(known: Breadcrumb, draft: Draft) -> Update:
    change = Change(title=draft.title, context=draft.context, tags=draft.tags)
    return Update(id=known.id, change=change, expect=known.version)


def _batches(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[first : first + BATCH] for first in range(0, len(items), BATCH)]
