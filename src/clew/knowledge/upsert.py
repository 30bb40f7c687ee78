"""Records under a name: the id follows from owner and name, so two writers of the same thing write one breadcrumb."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict, NotFound
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.store import Trail

_NAMESPACE = UUID("0b1f4f0e-6c8d-5e0b-9a7e-3f3b5b0f6a21")
_RETRIES = 20


def keyed_id(owner_id: str, key: str) -> str:
    """The id of an owner's record under a name."""
    return str(uuid5(_NAMESPACE, f"{owner_id}\n{key}"))


async def find_keyed(trail: Trail, key: str, *, by: Principal) -> Breadcrumb | None:
    """The record of the caller's owner under a name, or None when the caller cannot see one."""
    with suppress(NotFound):
        return await trail.records.get(keyed_id(by.owner_id, key), by=by)
    return None


async def put_keyed(
    trail: Trail, key: str, draft: Draft, change: Callable[[Breadcrumb], Change | None], *, by: Principal
) -> Breadcrumb:
    """Create the draft under a name, or change the existing record, as `change_record` does."""
    named = msgspec.structs.replace(draft, id=keyed_id(by.owner_id, key))
    for _ in range(_RETRIES):
        try:
            return await change_record(trail, str(named.id), change, by=by)
        except NotFound:
            with suppress(AlreadyExists):
                return await trail.records.create(named, by=by)
    return await trail.records.create(named, by=by)


async def change_record(
    trail: Trail, id: str, change: Callable[[Breadcrumb], Change | None], *, by: Principal
) -> Breadcrumb:
    """Change a record. If `change` returns None, the record stays as it is.

    Concurrent writers lose nothing: each change applies to the latest version. Raises the errors of `get` and `update`,
    Conflict only after many retries.
    """
    for tries_left in reversed(range(_RETRIES)):
        present = await trail.records.get(id, by=by)
        wanted = change(present)
        if wanted is None:
            return present
        try:
            return await trail.records.update(id, wanted, expect=present.version, by=by)
        except Conflict:
            if not tries_left:
                raise
    raise AssertionError("the last retry returns or raises")


async def keep_keyed(trail: Trail, key: str, draft: Draft, *, by: Principal) -> None:
    """Replace the record under a name, if the caller may write at all. Only callers with the same scopes see it; it is
    never embedded. The record of a concurrent writer stays."""
    if not (by.may("create") and by.may("update")):
        return
    draft = msgspec.structs.replace(draft, scopes=sorted(by.scopes), embed="never")
    with suppress(AlreadyExists, Conflict):
        await put_keyed(trail, key, draft, lambda _: Change(context=draft.context, embed="never"), by=by)
