"""Many records at a time: iterate over a selection, and delete."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable
from itertools import islice

from clew.access import Principal
from clew.errors import NotFound
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import EVERYTHING, Selector
from clew.trail.store import Trail

PAGE = 500
AT_ONCE = 200
"""The number of single writes that run concurrently: the engine commits them in groups."""


async def each_record(
    trail: Trail, selector: Selector = EVERYTHING, *, by: Principal, oldest_first: bool = True, most: int | None = None
) -> AsyncIterator[Breadcrumb]:
    """The records that a selector selects and the caller may see, at most `most` of them, read a page at a time."""
    cursor: str | None = None
    left = sys.maxsize if most is None else most
    while left > 0:
        limit = min(PAGE, left)
        page = await trail.records.list(selector, by=by, limit=limit, cursor=cursor, oldest_first=oldest_first)
        left -= len(page.items)
        for record in page.items:
            yield record
        if (cursor := page.cursor) is None:
            return


async def drop_records(trail: Trail, ids: Iterable[str], *, by: Principal) -> int:
    """Delete those of these records that still exist, and return the number of deleted ones."""
    dropped, left = 0, iter(ids)
    while some := list(islice(left, AT_ONCE)):
        outcomes = await asyncio.gather(*(_drop(trail, id, by) for id in some))
        dropped += sum(outcomes)
    return dropped


async def drop_selected(trail: Trail, selector: Selector, most: int, *, by: Principal) -> int:
    """Delete up to `most` records of a selection, the oldest first, and return the number of deleted ones."""
    ids = [each.id async for each in each_record(trail, selector, by=by, most=most)]
    return await drop_records(trail, ids, by=by)


async def _drop(trail: Trail, id: str, by: Principal) -> bool:
    try:
        await trail.records.delete(id, by=by)
    except NotFound:
        return False
    return True
