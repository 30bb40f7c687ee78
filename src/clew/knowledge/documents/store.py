"""Documents on the trail: a signed node for each piece, found by the key of the document, in versions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict
from clew.knowledge.documents.readers import Piece
from clew.knowledge.evidence.provenance import FIELD, Source, mark_check, with_marks
from clew.knowledge.upsert import keyed_id
from clew.trail.breadcrumb import Breadcrumb, Draft
from clew.trail.bulk import drop_records, each_record
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import SCHEMA, NodeFields, NodeGraph, build_node
from clew.trail.selector import Selector
from clew.trail.store import Trail

READER = 2
"""Increase it when documents are cut differently: documents of another number are read again."""
TRIES = 5


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document cut into pieces. `state` changes with its content; `fields` and `sources` belong to all nodes."""

    key: str
    state: str
    node_type: NodeType
    pieces: Sequence[Piece]
    fields: NodeFields = {}
    sources: Sequence[Source] = ()


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a document in order, and how many were written, and removed or superseded."""

    ids: tuple[str, ...]
    written: int = 0
    removed: int = 0


async def save_version(trail: Trail, document: Document, *, by: Principal, keep_earlier: bool = True) -> Saved:
    """Store the document and supersede its earlier versions piece by piece, or remove them. An unchanged document is
    not written again."""
    for _ in range(TRIES - 1):
        try:
            return await _save_once(trail, document, by, keep_earlier=keep_earlier)
        except (AlreadyExists, Conflict):
            continue  # another process saves the same document
    return await _save_once(trail, document, by, keep_earlier=keep_earlier)


async def find_saved(trail: Trail, key: str, state: str, *, by: Principal) -> tuple[str, ...]:
    """The ids of a document if it is stored in this state, cut by the present reader; else none."""
    return _ids_in_state(await read_newest(trail, key, by=by), state)


async def read_newest(trail: Trail, key: str, *, by: Principal) -> list[Breadcrumb]:
    """The pieces of the newest version in order; none if a piece is missing or was changed since it was stored."""
    return _whole(await _read_pieces(trail, key, by))


async def supersede(trail: Trail, earlier: Sequence[Breadcrumb], ids: Sequence[str], *, by: Principal) -> None:
    """Supersede each piece by the new one of the same key, or else by the first."""
    graph = NodeGraph(trail, by)
    later = {(await trail.records.get(id, by=by)).context["metadata"]["piece"]: id for id in ids} if earlier else {}
    for each in earlier:
        await graph.supersede(each.id, later.get(each.context["metadata"]["piece"], ids[0]))


async def _save_once(trail: Trail, document: Document, by: Principal, *, keep_earlier: bool) -> Saved:
    present = await _read_pieces(trail, document.key, by)
    newest, written = max(map(_version_of, present), default=0), 0
    ids = _ids_in_state(_whole(present), document.state)
    if not ids:
        newest += 1
        drafts = _draft_nodes(document, by, newest)
        ids, written = tuple(str(draft.id) for draft in drafts), len(await trail.records.create_many(drafts, by=by))
    earlier = [each for each in present if _version_of(each) < newest and each.context.get("superseded_by") is None]
    if keep_earlier:
        await supersede(trail, earlier, ids, by=by)
    else:
        await drop_records(trail, [each.id for each in earlier], by=by)
    return Saved(ids=ids, written=written, removed=len(earlier))


async def _read_pieces(trail: Trail, key: str, by: Principal) -> list[Breadcrumb]:
    wanted = Selector(schema_name=SCHEMA, all_tags=(_tag(key),))
    return [each async for each in each_record(trail, wanted, by=by)]


def _whole(pieces: Sequence[Breadcrumb]) -> list[Breadcrumb]:
    newest = max(map(_version_of, pieces), default=0)
    current = {each.id: each for each in pieces if _version_of(each) == newest}
    order: list[str] = next(filter(None, (each.context["metadata"].get("pieces") for each in current.values())), [])
    is_whole = set(order) == current.keys() and all(map(mark_check(), current.values()))
    return [current[id] for id in order] if is_whole else []


def _ids_in_state(pieces: Sequence[Breadcrumb], state: str) -> tuple[str, ...]:
    states = {(each.context["metadata"].get("state"), each.context["metadata"].get("reader")) for each in pieces}
    return tuple(each.id for each in pieces) if states == {(state, READER)} else ()


def _draft_nodes(document: Document, by: Principal, version: int) -> list[Draft]:
    """The signed drafts of a document. Their ids follow from its key, the version and the keys of the pieces."""
    name = f"reference:{document.key}@{version}"
    ids = [keyed_id(by.owner_id, f"{name}#{piece.key}") for piece in document.pieces]
    own = {"document": document.key, "state": document.state, "reader": READER, "version": version}
    drafts = []
    for id, piece in zip(ids, document.pieces, strict=True):
        metadata = {**(document.fields.get("metadata") or {}), **piece.metadata, **own, "piece": piece.key}
        fields: NodeFields = {
            **document.fields,
            "id": id,
            "content_hash": piece.hash or document.fields.get("content_hash"),
            "metadata": {**metadata, **({"pieces": ids} if id == ids[0] else {})},
            "tags": (_tag(document.key),),
            **({"line_start": piece.first, "line_end": piece.last} if piece.first else {}),
        }
        draft = build_node(piece.name, NodeDomain.ACADEMIC, document.node_type, piece.text, fields)
        sources = {FIELD: msgspec.to_builtins(document.sources)} if document.sources else {}
        drafts.append(msgspec.structs.replace(draft, context={**draft.context, **sources}))
    return with_marks(drafts)


def _version_of(piece: Breadcrumb) -> int:
    return int(piece.context["metadata"].get("version", 0))


def _tag(key: str) -> str:
    return f"reference:{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:24]}"
