"""Documents on the trail: a node for each piece, found by the key of the document. Unchanged documents are not written;
a changed one is written whole with its first piece last, so that an interrupted write is repeated."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict, NotFound
from clew.knowledge.documents.sections import Piece
from clew.knowledge.evidence.provenance import FIELD, Source
from clew.knowledge.evidence.signatures import mark_check, with_marks
from clew.knowledge.history.keyed import keyed_id
from clew.trail.breadcrumb import Breadcrumb, Change, Draft, Update
from clew.trail.bulk import drop_records, each_record
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import SCHEMA, NodeFields, NodeGraph, build_node
from clew.trail.selector import Selector
from clew.trail.store import Trail

READER = 1
"""Increase it when documents are cut differently: documents of another number are read again."""
FIRST = "reference:first"
"""Tag of the first piece of a document, which describes the whole."""
_TRIES = 5


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A document cut into pieces. `state` changes with its content; `fields` and `sources` belong to all nodes."""

    key: str
    collection: str
    state: str
    node_type: NodeType
    pieces: Sequence[Piece]
    fields: NodeFields = {}
    sources: Sequence[Source] = ()


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """A stored document. The state is empty if its signature or its reader's number is not the present one."""

    key: str
    state: str
    ids: tuple[str, ...]


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a document in order, and how many were written, and removed or superseded."""

    ids: tuple[str, ...]
    written: int = 0
    removed: int = 0


async def read_heads(trail: Trail, collection: str, *, by: Principal) -> dict[str, Head]:
    """The stored documents of a collection by key."""
    wanted = Selector(schema_name=SCHEMA, all_tags=(_collection_tag(collection), FIRST))
    heads: dict[str, Head] = {}
    is_signed = mark_check()
    async for each in each_record(trail, wanted, by=by):
        found = each.context.get("metadata")
        metadata = found if isinstance(found, dict) else {}
        key = metadata.get("document")
        if each.context.get("superseded_by") is not None or not isinstance(key, str):
            continue
        if is_signed(each) and metadata["reader"] == READER:
            heads[key] = Head(key=key, state=metadata["state"], ids=tuple(metadata["pieces"]))
        else:
            heads.setdefault(key, Head(key=key, state="", ids=()))
    return heads


async def save(trail: Trail, document: Document, *, by: Principal) -> Saved:
    """Store the document in place of what the trail has under its key."""
    for _ in range(_TRIES - 1):
        try:
            return await _save_once(trail, document, by)
        except (AlreadyExists, Conflict, NotFound):
            continue  # another process saves the same document
    return await _save_once(trail, document, by)


async def save_version(trail: Trail, document: Document, *, by: Principal) -> Saved:
    """Store the document beside its earlier versions and supersede them piece by piece. An unchanged document is not
    written again."""
    for _ in range(_TRIES - 1):
        try:
            return await _save_version_once(trail, document, by)
        except (AlreadyExists, Conflict):
            continue
    return await _save_version_once(trail, document, by)


async def remove(trail: Trail, keys: Sequence[str], *, by: Principal) -> int:
    """Remove documents and return the number of removed nodes."""
    removed = 0
    for key in keys:
        removed += await drop_records(trail, [each.id for each in await read_pieces(trail, key, by=by)], by=by)
    return removed


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


async def _save_once(trail: Trail, document: Document, by: Principal) -> Saved:
    drafts = _drafts(document, by)
    ids = tuple(str(draft.id) for draft in drafts)
    present = {each.id: each for each in await read_pieces(trail, document.key, by=by)}
    if (
        _is_saved(present.get(ids[0]), document, ids)
        and present.keys() == set(ids)
        and all(map(mark_check(), present.values()))
    ):
        return Saved(ids=ids)
    if not present:
        return Saved(ids=ids, written=len(await trail.records.create_many(drafts, by=by)))
    head, *others = drafts
    gone = [id for id in present if id not in ids]
    if head.id not in present:
        others = [*others, head]
    await trail.records.create_many([draft for draft in others if draft.id not in present], by=by)
    updates = [_update(draft, present[str(draft.id)]) for draft in others if draft.id in present]
    await trail.records.update_many(updates, by=by)
    await drop_records(trail, gone, by=by)
    if head.id in present:
        await trail.records.update_many([_update(head, present[str(head.id)])], by=by)
    return Saved(ids=ids, written=len(ids), removed=len(gone))


async def _save_version_once(trail: Trail, document: Document, by: Principal) -> Saved:
    present = await read_pieces(trail, document.key, by=by)
    newest = max(map(version_of, present), default=0)
    head = next((each for each in present if version_of(each) == newest and FIRST in each.tags), None)
    ids, written = tuple(str(draft.id) for draft in _drafts(document, by, newest)), 0
    if head is None or not _is_saved(head, document, ids):
        newest += 1
        drafts = _drafts(document, by, newest)
        ids, written = tuple(str(draft.id) for draft in drafts), len(await trail.records.create_many(drafts, by=by))
    earlier = [each for each in present if version_of(each) < newest and each.context.get("superseded_by") is None]
    await supersede(trail, earlier, ids, by=by)
    return Saved(ids=ids, written=written, removed=len(earlier))


def _drafts(document: Document, by: Principal, version: int = 0) -> list[Draft]:
    name = f"reference:{document.key}@{version}" if version else f"reference:{document.key}"
    ids = [keyed_id(by.owner_id, f"{name}#{piece.key}") for piece in document.pieces]
    told = {"document": document.key, "state": document.state, "reader": READER, "version": version}
    drafts = []
    for number, (id, piece) in enumerate(zip(ids, document.pieces, strict=True)):
        metadata = {**(document.fields.get("metadata") or {}), **piece.metadata, **told, "piece": piece.key}
        first: dict[str, Any] = {"pieces": ids} if number == 0 else {}
        tags = (_collection_tag(document.collection), _tag(document.key), *((FIRST,) if number == 0 else ()))
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


def _is_saved(head: Breadcrumb | None, document: Document, ids: tuple[str, ...]) -> bool:
    told = head.context.get("metadata", {}) if head is not None else {}
    return (told.get("state"), told.get("reader"), tuple(told.get("pieces", ()))) == (document.state, READER, ids)


def _update(draft: Draft, present: Breadcrumb) -> Update:
    change = Change(title=draft.title, context=draft.context, tags=draft.tags, llm_hints=draft.llm_hints)
    return Update(id=present.id, change=change, expect=present.version)


def _collection_tag(name: str) -> str:
    return f"collection:{name}"


def _tag(key: str) -> str:
    return f"reference:{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:24]}"
