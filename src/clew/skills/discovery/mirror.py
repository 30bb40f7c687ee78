"""Records that mirror files: the text that goes to the trail, and when a record still says what its file says."""

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
"""So many characters of a text are kept, which is as many as are searched; the file has the rest."""

__all__ = ["Mirrored", "mirror", "searchable_text"]


def searchable_text(text: str, limit: int = MAX_CONTENT) -> str:
    """The part of a text that goes to the trail: its beginning, with keys masked before they could be cut."""
    return mask_document(text)[:limit]


async def mirror(trail: Trail, drafts: Iterable[Draft], selector: Selector, *, by: Principal) -> Mirrored:
    """Make the drafts all that the selector selects. A file that was only touched changes no record."""
    return await mirror_drafts(trail, drafts, selector, by=by, same=_is_same)


def _is_same(known: Breadcrumb, draft: Draft) -> bool:
    return {**known.context, "mtime": 0} == {**draft.context, "mtime": 0}
