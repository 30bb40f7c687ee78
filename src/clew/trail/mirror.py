"""Mirrors external data on the trail: with few writes, it makes the records of a selection equal to the wanted
drafts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict, NotFound
from clew.secrecy import mask_document
from clew.trail.bulk import drop_records, each_record
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Update
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

BATCH = 500
TRIES = 10
MAX_TEXT = 20_000
"""The number of characters of a file's text that a record stores. Search reads no more than this. The file has the
rest."""

T = TypeVar("T")
Same = Callable[[Breadcrumb, Draft], bool]
"""Whether a record equals a draft, so that it need not be written."""


class Mirrored(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of records that were created, updated and deleted."""

    created: int = 0
    updated: int = 0
    deleted: int = 0


def is_same(record: Breadcrumb, draft: Draft) -> bool:
    """Whether context, tags and scopes are equal."""
    return (
        record.context == draft.context
        and set(record.tags) == set(draft.tags)
        and set(record.scopes) == set(draft.scopes)
    )


async def mirror(
    trail: Trail, drafts: Iterable[Draft], selector: Selector, *, by: Principal, same: Same = is_same
) -> Mirrored:
    """Write and delete records until the selector selects exactly the drafts, which must have ids. Records for which
    `same` holds are not written. If another process writes the same records at the same time, retry. Raises
    AlreadyExists, Conflict or NotFound after too many retries.
    """
    wanted = {str(draft.id): draft for draft in drafts}
    for _ in range(TRIES - 1):
        try:
            return await _mirror(trail, wanted, selector, by, same)
        except (AlreadyExists, Conflict, NotFound):
            continue
    return await _mirror(trail, wanted, selector, by, same)


async def mirror_files(trail: Trail, drafts: Iterable[Draft], selector: Selector, *, by: Principal) -> Mirrored:
    """Mirror drafts that are read from files, like `mirror`. A new modification time alone does not change a record."""
    return await mirror(trail, drafts, selector, by=by, same=_is_same_file)


def _is_same_file(known: Breadcrumb, draft: Draft) -> bool:
    return {**known.context, "mtime": 0} == {**draft.context, "mtime": 0}


def searchable_text(text: str, limit: int = MAX_TEXT) -> str:
    """The beginning of a file's text, to be stored on the trail. Keys are masked before the text is cut, so that no
    part of a key remains."""
    return mask_document(text)[:limit]


async def _mirror(trail: Trail, wanted: dict[str, Draft], selector: Selector, by: Principal, same: Same) -> Mirrored:
    known = {each.id: each async for each in each_record(trail, selector, by=by)}
    deleted = await drop_records(trail, [id for id in known if id not in wanted], by=by)
    new = [draft for id, draft in wanted.items() if id not in known]
    for drafts in batches(new):
        await trail.records.create_many(drafts, by=by)
    updates = [
        Update(id=id, change=change_to(draft), expect=known[id].version)
        for id, draft in wanted.items()
        if id in known and not same(known[id], draft)
    ]
    for some in batches(updates):
        await trail.records.update_many(some, by=by)
    return Mirrored(created=len(new), updated=len(updates), deleted=deleted)


def change_to(draft: Draft) -> Change:
    """The change that makes a record equal to a draft."""
    return Change(
        title=draft.title,
        context=draft.context,
        tags=draft.tags,
        schema_name=draft.schema_name,
        scopes=draft.scopes,
        llm_hints=draft.llm_hints,
    )


def batches(items: Sequence[T], size: int = BATCH) -> list[Sequence[T]]:
    return [items[first : first + size] for first in range(0, len(items), size)]
