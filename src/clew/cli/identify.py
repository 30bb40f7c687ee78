"""Ids as people type them: all of one, or its first or last six characters or more."""

from __future__ import annotations

from clew.app import App
from clew.errors import ClewError, InvalidInput, NotFound
from clew.trail.breadcrumb import check_id

SHORTEST = 6
SEARCHED = 10_000
"""How many of the newest breadcrumbs are looked at for a shortened id."""

PAGE = 1_000


async def find_id(app: App, given: str) -> str:
    """The full id. Raises NotFound, or ClewError when several breadcrumbs are meant."""
    given = given.strip().lower()
    try:
        return check_id(given)
    except InvalidInput:
        pass
    if len(given) < SHORTEST:
        raise NotFound("breadcrumb", given)
    found = await _matching(app, given)
    if not found:
        raise NotFound("breadcrumb", given)
    if len(found) > 1:
        raise ClewError(f"{given!r} means {len(found)} breadcrumbs", hint=f"For example {found[0]} and {found[1]}")
    return found[0]


async def _matching(app: App, given: str) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    for _ in range(SEARCHED // PAGE):
        page = await app.trail.records.list(by=app.me, limit=PAGE, cursor=cursor)
        found += [each.id for each in page.items if each.id.startswith(given) or each.id.endswith(given)]
        cursor = page.cursor
        if cursor is None:
            break
    return found
