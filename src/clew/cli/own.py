"""What Clew itself keeps on a trail (definitions, policies, reports, the catalog), which people rarely want to see."""

from __future__ import annotations

import msgspec

from clew.access import OWN_SCHEMAS, Principal
from clew.app import App
from clew.trail.bootstrap import own_ids
from clew.trail.breadcrumb import Breadcrumb, Page
from clew.trail.query import MAX_LIMIT, SearchRequest, SearchResult
from clew.trail.selector import Selector

SYSTEM = "system."
PAGE = 200
ROUNDS = 5


class Own:
    """Tells Clew's own breadcrumbs of an owner: what bootstrap sets up, the catalog, and schemas `system.…`."""

    def __init__(self, by: Principal) -> None:
        self.ids = own_ids(by)

    def has(self, id: str, schema_name: str | None) -> bool:
        return id in self.ids or (schema_name or "").startswith(SYSTEM) or schema_name in OWN_SCHEMAS

    def leaves(self, breadcrumbs: tuple[Breadcrumb, ...]) -> tuple[Breadcrumb, ...]:
        """Those that are not Clew's own."""
        return tuple(each for each in breadcrumbs if not self.has(each.id, each.schema_name))


def _without_catalog(selector: Selector) -> Selector:
    return msgspec.structs.replace(selector, except_schemas=(*selector.except_schemas, *OWN_SCHEMAS))


async def list_others(
    app: App, selector: Selector, *, limit: int, cursor: str | None, oldest_first: bool
) -> tuple[Page, int]:
    """One page without Clew's own, and how many of these were passed over on the way. Raises InvalidInput."""
    own, passed = Own(app.me), 0
    selector = _without_catalog(selector)
    kept: list[Breadcrumb] = []

    async def read(number: int) -> Page:
        return await app.trail.records.list(selector, by=app.me, limit=number, cursor=cursor, oldest_first=oldest_first)

    while True:
        wanted = limit - len(kept)
        page = await read(max(wanted, PAGE) if wanted > 0 else limit)
        others = own.leaves(page.items)
        if len(others) > wanted:
            # The cursor of a page is at its end, so the page has to end with the last one that is wanted.
            page = await read(page.items.index(others[wanted - 1]) + 1)
            others = own.leaves(page.items)
        kept += others
        passed += len(page.items) - len(others)
        cursor = page.cursor
        if cursor is None or len(kept) >= limit:
            return Page(items=tuple(kept), cursor=cursor), passed


async def search_others(app: App, request: SearchRequest) -> SearchResult:
    """The best breadcrumbs that are not Clew's own."""
    own = Own(app.me)
    request = msgspec.structs.replace(request, selector=_without_catalog(request.selector))
    excluded = set(own.ids)
    for _ in range(ROUNDS):
        asked = msgspec.structs.replace(request, exclude=sorted(excluded)[:MAX_LIMIT])
        result = await app.trail.index.search(asked, by=app.me)
        found = {hit.breadcrumb.id for hit in result.hits if own.has(hit.breadcrumb.id, hit.breadcrumb.schema_name)}
        if not found:
            return result
        excluded |= found
    hits = tuple(hit for hit in result.hits if hit.breadcrumb.id not in excluded)
    return msgspec.structs.replace(result, hits=hits)
