"""Documents on the trail: a signed node for each piece, found by the key of the document, in versions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict
from clew.knowledge.documents.sections import Piece
from clew.knowledge.evidence.provenance import FIELD, Source
from clew.knowledge.evidence.signatures import mark_check, with_marks
from clew.knowledge.upsert import keyed_id
from clew.trail.breadcrumb import Breadcrumb, Draft
from clew.trail.bulk import drop_records, each_record
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import SCHEMA, NodeFields, NodeGraph, build_node
from clew.trail.selector import Selector
from clew.trail.store import Trail

READER = 1
"""Increase it when documents are cut differently: documents of another number are read again."""
FIRST = "reference:first"
"""Tag of the first piece of a document, which describes the whole."""
TRIES = 5


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document cut into pieces. `state` changes with its content; `fields` and `sources` belong to all nodes."""

    key: str
    collection: str
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


async def find_saved(trail: Trail, key: str, state: str, *, by: Principal) -> Saved | None:
    """The nodes of a document if it is stored in this state, signed, and cut by the present reader."""
    is_signed = mark_check()
    for each in await read_pieces(trail, key, by=by):
        metadata = each.context["metadata"]
        is_present = (metadata.get("state"), metadata.get("reader")) == (state, READER)
        if is_present and "pieces" in metadata and each.context.get("superseded_by") is None and is_signed(each):
            return Saved(ids=tuple(metadata["pieces"]))
    return None


async def read_pieces(trail: Trail, key: str, *, by: Principal) -> list[Breadcrumb]:
    """All stored pieces of a document, of all versions."""
    wanted = Selector(schema_name=SCHEMA, all_tags=(_tag(key),))
    return [each async for each in each_record(trail, wanted, by=by)]


async def supersede(trail: Trail, earlier: Sequence[Breadcrumb], ids: Sequence[str], *, by: Principal) -> None:
    """Supersede each piece by the new one of the same key, or else by the first."""
    graph = NodeGraph(trail, by)
    later = {(await trail.records.get(id, by=by)).context["metadata"]["piece"]: id for id in ids} if earlier else {}
    for each in earlier:
        await graph.supersede(each.id, later.get(each.context["metadata"]["piece"], ids[0]))


def version_of(piece: Breadcrumb) -> int:
    return int(piece.context["metadata"].get("version", 0))


async def _save_once(trail: Trail, document: Document, by: Principal, *, keep_earlier: bool) -> Saved:
    present = await read_pieces(trail, document.key, by=by)
    newest = max(map(version_of, present), default=0)
    current = {each.id: each for each in present if version_of(each) == newest}
    ids, written = tuple(str(draft.id) for draft in draft_nodes(document, by, newest)), 0
    if not is_saved(document, ids, current):
        newest += 1
        drafts = draft_nodes(document, by, newest)
        ids, written = tuple(str(draft.id) for draft in drafts), len(await trail.records.create_many(drafts, by=by))
    earlier = [each for each in present if version_of(each) < newest and each.context.get("superseded_by") is None]
    if keep_earlier:
        await supersede(trail, earlier, ids, by=by)
    else:
        await drop_records(trail, [each.id for each in earlier], by=by)
    return Saved(ids=ids, written=written, removed=len(earlier))


def draft_nodes(document: Document, by: Principal, version: int = 0) -> list[Draft]:
    """The signed drafts of a document. Their ids follow from its key, the version and the keys of the pieces."""
    name = f"reference:{document.key}@{version}" if version else f"reference:{document.key}"
    ids = [keyed_id(by.owner_id, f"{name}#{piece.key}") for piece in document.pieces]
    own = {"document": document.key, "state": document.state, "reader": READER, "version": version}
    drafts = []
    for number, (id, piece) in enumerate(zip(ids, document.pieces, strict=True)):
        metadata = {**(document.fields.get("metadata") or {}), **piece.metadata, **own, "piece": piece.key}
        first: dict[str, Any] = {"pieces": ids} if number == 0 else {}
        tags = (collection_tag(document.collection), _tag(document.key), *((FIRST,) if number == 0 else ()))
        fields: NodeFields = {
            **document.fields,
            "id": id,
            "content_hash": piece.hash or document.fields.get("content_hash"),
            "metadata": {**metadata, **first},
            "tags": tags,
            **({"line_start": piece.first, "line_end": piece.last} if piece.first else {}),
        }
        draft = build_node(piece.name, NodeDomain.ACADEMIC, document.node_type, piece.text, fields)
        if document.sources:
            context = {**draft.context, FIELD: msgspec.to_builtins(document.sources)}
            draft = msgspec.structs.replace(draft, context=context)
        drafts.append(draft)
    return with_marks(drafts)


def is_saved(document: Document, ids: tuple[str, ...], present: Mapping[str, Breadcrumb]) -> bool:
    """Whether the present pieces are those of the document, complete and signed."""
    first = present.get(ids[0])
    metadata = first.context.get("metadata", {}) if first is not None else {}
    is_same = (metadata.get("state"), metadata.get("reader"), metadata.get("pieces")) == (
        document.state,
        READER,
        list(ids),
    )
    return is_same and present.keys() == set(ids) and all(map(mark_check(), present.values()))


def collection_tag(name: str) -> str:
    return f"collection:{name}"


def _tag(key: str) -> str:
    return f"reference:{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:24]}"
