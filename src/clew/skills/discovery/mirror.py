"""Mirrors files as records: the searchable text, and the update of records whose files changed."""

from __future__ import annotations

from collections.abc import Iterable

from clew.access import Principal
from clew.secrecy import mask_document
from clew.trail.mirror import Mirrored
from clew.trail.mirror import mirror as mirror_drafts
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

MAX_CONTENT = 20_000
"""The number of characters that a record stores, which are those that search uses. The file has the rest."""

__all__ = ["Mirrored", "mirror", "searchable_text"]


def searchable_text(text: str, limit: int = MAX_CONTENT) -> str:
    """Return the beginning of a text for the trail. Secrets are masked before the text is cut."""
    return mask_document(text)[:limit]


async def mirror(trail: Trail, drafts: Iterable[Draft], selector: Selector, *, by: Principal) -> Mirrored:
    """Make the records of the selector equal to the drafts. A record whose content is the same stays unchanged."""
    return await mirror_drafts(trail, drafts, selector, by=by, same=_is_same)


def _is_same(known: Breadcrumb, draft: Draft) -> bool:
    return {**known.context, "mtime": 0} == {**draft.context, "mtime": 0}
