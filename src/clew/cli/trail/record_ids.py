"""Ids as people type them: complete, or at least six characters from the start or the end."""

from __future__ import annotations

import difflib

from clew.app import App
from clew.cli.terminal.output import SHORT
from clew.errors import ClewError, InvalidInput, NotFound
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Breadcrumb, check_id

SHORTEST = 6
SEARCHED = 10_000
"""The number of latest breadcrumbs that are searched for a shortened id."""

LISTED = "`clew trail ls` shows ids, and --scopes those that need a scope"


async def find_id(app: App, given: str) -> str:
    """The full id of an existing breadcrumb. Raises NotFound, or ClewError if the shortened id is ambiguous."""
    given = given.strip().lower()
    if _is_whole(given):
        try:
            return (await app.trail.records.get(given, by=app.me)).id
        except NotFound:
            raise _missing(given, await _recent_ids(app)) from None
    if len(given) < SHORTEST:
        reason = f"{given!r} is too short to identify a breadcrumb; give  {SHORTEST} characters or more"
        raise InvalidInput("ID", reason, hint=LISTED)
    recent = await _recent_ids(app)
    found = [id for id in recent if id.startswith(given) or id.endswith(given)]
    if not found:
        raise _missing(given, recent)
    if len(found) > 1:
        raise ClewError(f"{given!r} means {len(found)} breadcrumbs", hint=f"For example {found[0]} and {found[1]}")
    return found[0]


async def get_version(app: App, id: str, version: int | None) -> Breadcrumb:
    """A breadcrumb as stored. Raises ClewError that says which versions there are."""
    if version is None:
        return await app.trail.records.get(id, by=app.me)
    numbers = [each.version for each in await app.trail.records.history(id, by=app.me)]
    if version not in numbers:
        raise ClewError(f"breadcrumb {id} has no version {version}", hint=_listed(numbers))
    return await app.trail.records.get(id, by=app.me, version=version)


def _listed(versions: list[int]) -> str:
    """A sentence that names the versions."""
    if len(versions) == 1:
        return f"There is only version {versions[0]}"
    is_unbroken = versions == list(range(versions[0], versions[-1] + 1))
    return f"There are versions {f'{versions[0]} to {versions[-1]}' if is_unbroken else ', '.join(map(str, versions))}"


def _is_whole(given: str) -> bool:
    try:
        return bool(check_id(given))
    except InvalidInput:
        return False


async def _recent_ids(app: App) -> list[str]:
    return [each.id async for each in each_record(app.trail, by=app.me, oldest_first=False, most=SEARCHED)]


def _missing(given: str, known: list[str]) -> NotFound:
    """An error that names the nearest id. It compares the ends of ids: they begin with times, which many share."""
    error = NotFound("breadcrumb", given)
    end = given[-12:]
    ends = {id[-len(end) :]: id for id in known}
    close = difflib.get_close_matches(end, ends, 1, cutoff=0.75)
    if close:
        error.hint = f"Did you mean {ends[close[0]][-SHORT:]}? {LISTED}"
    elif len(known) >= SEARCHED:
        error.hint = f"A shortened id is looked for among the newest {SEARCHED:,}; for others give all of it"
    else:
        error.hint = LISTED
    return error
