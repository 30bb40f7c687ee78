"""The mark on a node that tells what a file says: it shows that a program of this user read the file and wrote the
node, and that nobody has changed the node since. A node that came with a repository has none that counts."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from clew.knowledge.code.db_owner import marker
from clew.trail.breadcrumb import Breadcrumb, Draft

MARK = "mark"
"""Where the mark stands in the metadata of a node."""
_LATER = frozenset(("superseded_by",))
"""What is written to a node after it was marked."""


def with_marks(drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts of nodes that have their ids, each with its mark."""
    mark = marker()
    return [_marked(draft, mark) for draft in drafts]


def mark_check() -> Callable[[Breadcrumb], bool]:
    """What tells whether a breadcrumb has the mark that it would get here. The user's secret is looked up once."""
    mark = marker()
    return lambda found: _is_marked(found, mark)


def _marked(draft: Draft, mark: Callable[[bytes], str]) -> Draft:
    metadata = {**draft.context["metadata"], MARK: mark(_told(str(draft.id), draft.title, draft.context))}
    return msgspec.structs.replace(draft, context={**draft.context, "metadata": metadata})


def _is_marked(found: Breadcrumb, mark: Callable[[bytes], str]) -> bool:
    metadata = found.context.get("metadata")
    given = metadata.get(MARK) if isinstance(metadata, dict) else None
    wanted = mark(_told(found.id, found.title, found.context))
    return isinstance(given, str) and hmac.compare_digest(given.encode(errors="replace"), wanted.encode())


def _told(id: str, title: str, context: Mapping[str, Any]) -> bytes:
    """All that a node says, without its mark."""
    said = {key: value for key, value in context.items() if key not in _LATER}
    metadata = said.get("metadata")
    if isinstance(metadata, dict):
        said["metadata"] = {key: value for key, value in metadata.items() if key != MARK}
    return msgspec.json.encode([id, title, said], order="deterministic")
