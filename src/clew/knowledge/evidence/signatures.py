"""Signatures of nodes that were read from files: they show that a program of this user wrote the node and that nobody
changed it since. A node that came with a repository has no valid signature."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from clew.knowledge.code.store import record_signer
from clew.trail.breadcrumb import Breadcrumb, Draft

MARK = "mark"
"""The key of the signature in the metadata of a node."""
_UNSIGNED = frozenset(("superseded_by",))
"""Fields that are written after the signature."""


def with_marks(drafts: Iterable[Draft]) -> list[Draft]:
    """Sign the drafts of nodes that have their ids."""
    mark = record_signer()
    return [_signed(draft, mark) for draft in drafts]


def mark_check() -> Callable[[Breadcrumb], bool]:
    """A function that checks the signature of a breadcrumb. It reads the user's secret once."""
    mark = record_signer()
    return lambda found: _is_signed(found, mark)


def _signed(draft: Draft, mark: Callable[[bytes], str]) -> Draft:
    metadata = {**draft.context["metadata"], MARK: mark(_payload(str(draft.id), draft.title, draft.context))}
    return msgspec.structs.replace(draft, context={**draft.context, "metadata": metadata})


def _is_signed(found: Breadcrumb, mark: Callable[[bytes], str]) -> bool:
    metadata = found.context.get("metadata")
    given = metadata.get(MARK) if isinstance(metadata, dict) else None
    wanted = mark(_payload(found.id, found.title, found.context))
    return isinstance(given, str) and hmac.compare_digest(given.encode(errors="replace"), wanted.encode())


def _payload(id: str, title: str, context: Mapping[str, Any]) -> bytes:
    signed = {key: value for key, value in context.items() if key not in _UNSIGNED}
    metadata = signed.get("metadata")
    if isinstance(metadata, dict):
        signed["metadata"] = {key: value for key, value in metadata.items() if key != MARK}
    return msgspec.json.encode([id, title, signed], order="deterministic")
