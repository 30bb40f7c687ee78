"""Setting up a trail: the pieces in `bootstrap_data` (schema definitions, TTL policies) as breadcrumbs.

Running it again restores missing pieces, updates pieces to a new release unless the owner has edited them,
and leaves the rest alone. A `system.bootstrap.v1` marker remembers the digest of each piece as it was set up.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Change, Draft, encode_canonical
from clew.trail.store import Trail

MARKER_SCHEMA = "system.bootstrap.v1"
_MARKER_KEY = "marker"
_NAMESPACE = UUID("6f0b7c1e-52a8-5d0e-9a53-2d6b1c0e8f41")
_RETRIES = 5


class BootstrapPiece(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One breadcrumb to set up. `key` must never change, because the id is derived from the owner and the key."""

    key: str
    title: str
    schema_name: str
    context: dict[str, Any]
    tags: tuple[str, ...] = ()
    llm_hints: dict[str, Any] | None = None


class BootstrapReport(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the pieces by outcome: created, repaired because they were missing or out of date, or unchanged."""

    created: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


def read_pieces() -> tuple[BootstrapPiece, ...]:
    """The pieces that come with Clew, in order of file name."""
    found = sorted((Path(__file__).parent / "bootstrap_data").glob("*.json"))
    return tuple(piece for file in found for piece in msgspec.json.decode(file.read_bytes(), type=list[BootstrapPiece]))


def own_ids(by: Principal) -> frozenset[str]:
    """The ids of the breadcrumbs that bootstrapping writes for the caller's owner: the pieces and the marker."""
    return frozenset(piece_id(by, key) for key in (_MARKER_KEY, *(piece.key for piece in read_pieces())))


async def bootstrap(trail: Trail, by: Principal, pieces: Sequence[BootstrapPiece] | None = None) -> BootstrapReport:
    """Make the pieces exist for the caller's owner. A second run writes nothing.

    Missing ones are written again; out of date ones are replaced unless the owner has edited them. Several
    processes may do this at once: each piece is written once.
    """
    wanted = read_pieces() if pieces is None else pieces
    for _ in range(_RETRIES):
        try:
            return await _bootstrap_once(trail, by, wanted)
        except (AlreadyExists, Conflict):
            continue
    return await _bootstrap_once(trail, by, wanted)


async def _bootstrap_once(trail: Trail, by: Principal, pieces: Sequence[BootstrapPiece]) -> BootstrapReport:
    present = await trail.records.find_many([piece_id(by, _MARKER_KEY), *(piece_id(by, p.key) for p in pieces)], by=by)
    marker = present.get(piece_id(by, _MARKER_KEY))
    known: dict[str, str] = dict(marker.context["pieces"]) if marker else {}
    report: dict[str, list[str]] = {"created": [], "repaired": [], "unchanged": []}
    drafts = []
    for piece in pieces:
        stored = present.get(piece_id(by, piece.key))
        state = judge(piece, stored, known.get(piece.key))
        if stored is None:
            drafts.append(_draft_of(piece, by))
        elif state == "repaired":
            await trail.records.update(stored.id, _change_of(piece), expect=stored.version, by=by)
        report[state].append(piece.key)
        if stored is None or state == "repaired" or digest_of(stored) == digest_of(piece):
            known[piece.key] = digest_of(piece)
    await _write(trail, by, drafts, marker, known)
    return BootstrapReport(**{state: tuple(keys) for state, keys in report.items()})


class OwnerSetup:
    """Bootstraps each owner once per process."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._ready: set[str] = set()
        self._lock = asyncio.Lock()

    async def set_up(self, owner_id: str) -> None:
        """Bootstrap the trail for an owner unless this process has done so. Raises StorageError."""
        if owner_id in self._ready:
            return
        async with self._lock:
            if owner_id not in self._ready:
                await bootstrap(self._trail, Principal(owner_id=owner_id, agent_id="cli"))
                self._ready.add(owner_id)


def judge(
    piece: BootstrapPiece, stored: Breadcrumb | None, known: str | None
) -> Literal["created", "repaired", "unchanged"]:
    """The action that a piece needs. `known` is the digest of the piece at its last setup, or None if it was never set
    up."""
    if stored is None:
        return "created" if known is None else "repaired"
    if stored.schema_name != piece.schema_name:
        return "repaired"  # something else has the id of the piece
    present = digest_of(stored)
    is_untouched = present == known
    return "repaired" if is_untouched and present != digest_of(piece) else "unchanged"


def digest_of(content: BootstrapPiece | Breadcrumb) -> str:
    """A digest of the parts that an owner can edit."""
    parts = [content.title, content.schema_name, list(content.tags), content.context, content.llm_hints]
    return hashlib.blake2b(encode_canonical(parts, "piece"), digest_size=12).hexdigest()


async def _write(
    trail: Trail, by: Principal, drafts: list[Draft], marker: Breadcrumb | None, known: dict[str, str]
) -> None:
    """Write the missing pieces and the marker. A new marker is written in the same transaction as the pieces."""
    context = {"pieces": known}
    if marker is None:
        piece = BootstrapPiece(key=_MARKER_KEY, title="What was set up", schema_name=MARKER_SCHEMA, context=context)
        drafts = [*drafts, _draft_of(piece, by)]
    if drafts:
        await trail.records.create_many(drafts, by=by)
    if marker is not None and marker.context != context:
        await trail.records.update(marker.id, Change(context=context), expect=marker.version, by=by)


def piece_id(by: Principal, key: str) -> str:
    """The id of a piece for the caller's owner."""
    return str(uuid5(_NAMESPACE, f"{by.owner_id}\n{key}"))


def _draft_of(piece: BootstrapPiece, by: Principal) -> Draft:
    return Draft(
        id=piece_id(by, piece.key),
        title=piece.title,
        schema_name=piece.schema_name,
        tags=piece.tags,
        context=piece.context,
        llm_hints=piece.llm_hints,
        ttl=NEVER,
        embed="never",
    )


def _change_of(piece: BootstrapPiece) -> Change:
    return Change(
        title=piece.title,
        schema_name=piece.schema_name,
        tags=piece.tags,
        context=piece.context,
        llm_hints=piece.llm_hints,
        embed="never",
    )
