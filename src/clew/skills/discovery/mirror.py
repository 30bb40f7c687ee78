"""Records that mirror what lies elsewhere: the trail is made to hold exactly what is wanted, in few writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict, NotFound
from clew.secrecy import mask_document
from clew.trail.bulk import drop_records, each_record
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Update
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

BATCH = 200
MAX_CONTENT = 20_000
"""The characters of a text that are indexed; the file has the rest."""
_TRIES = 10

T = TypeVar("T")


class Mirrored(msgspec.Struct, frozen=True, kw_only=True):
    """The number of records that were created, updated and removed."""

    created: int = 0
    updated: int = 0
    deleted: int = 0


def to_kept(text: str, limit: int = MAX_CONTENT) -> str:
    """Return the beginning of a text with keys masked, for the trail. Masking comes first, so that no key is cut."""
    return mask_document(text)[:limit]


async def mirror(trail: Trail, drafts: Iterable[Draft], selector: Selector, *, by: Principal) -> Mirrored:
    """Make the drafts, which have ids, all that the selector selects. A record whose context is as it was, but for the
    time at which its file was written (`mtime`), is left alone. Where another process does the same at the same time,
    it is looked at again."""
    wanted = {str(draft.id): draft for draft in drafts}
    for _ in range(_TRIES - 1):
        try:
            return await _mirror(trail, wanted, selector, by)
        except (AlreadyExists, Conflict, NotFound):
            continue
    return await _mirror(trail, wanted, selector, by)


async def _mirror(trail: Trail, wanted: dict[str, Draft], selector: Selector, by: Principal) -> Mirrored:
    known = {each.id: each async for each in each_record(trail, selector, by=by)}
    gone = [id for id in known if id not in wanted]
    deleted = await drop_records(trail, gone, by=by)
    new = [draft for id, draft in wanted.items() if id not in known]
    for drafts in _batches(new):
        await trail.records.create_many(drafts, by=by)
    changed = [(known[id], draft) for id, draft in wanted.items() if id in known and _is_other(known[id], draft)]
    for pairs in _batches(changed):
        await trail.records.update_many([_update(*pair) for pair in pairs], by=by)
    return Mirrored(created=len(new), updated=len(changed), deleted=deleted)


def _is_other(known: Breadcrumb, draft: Draft) -> bool:
    """Whether a record says something else. A file that was only touched says the same."""
    return {**known.context, "mtime": 0} != {**draft.context, "mtime": 0}


def _update(known: Breadcrumb, draft: Draft) -> Update:
    change = Change(title=draft.title, context=draft.context, tags=draft.tags)
    return Update(id=known.id, change=change, expect=known.version)


def _batches(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[first : first + BATCH] for first in range(0, len(items), BATCH)]
