"""Documents on the trail: a node for each piece, found again by the name of the document. What has not changed is not
written; what has is written whole, its first piece last, so that whoever is interrupted begins again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, Conflict, NotFound
from clew.knowledge.evidence.marks import mark_check, with_marks
from clew.knowledge.references.sections import Piece
from clew.knowledge.upsert import keyed_id
from clew.trail.breadcrumb import Breadcrumb, Change, Draft, Update
from clew.trail.bulk import drop_records, each_record
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import SCHEMA, NodeFields, NodeGraph, build_node
from clew.trail.selector import Selector
from clew.trail.store import Trail

READER = 1
"""Changes whenever documents are cut in another way: those of another number are read anew."""
FIRST = "reference:first"
"""The tag of the first piece of a document, which tells of the whole."""
_TRIES = 5


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What others wrote, read and cut. `key` is the name that it is kept by, `state` changes with its content, and
    `fields` are those that all its nodes have."""

    key: str
    collection: str
    state: str
    node_type: NodeType
    pieces: Sequence[Piece]
    fields: NodeFields = {}


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What the trail has of a document. One that no program of this user wrote, or an earlier reader, has no state: it
    is to be read anew."""

    key: str
    state: str
    ids: tuple[str, ...]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a document in order, how many were written, and how many are gone or were superseded."""

    ids: tuple[str, ...]
    written: int = 0
    removed: int = 0


async def read_heads(trail: Trail, collection: str, *, by: Principal) -> dict[str, Head]:
    """What the trail has of the documents of a collection, by key."""
    wanted = Selector(schema_name=SCHEMA, all_tags=(_collection(collection), FIRST))
    heads: dict[str, Head] = {}
    is_marked = mark_check()
    async for each in each_record(trail, wanted, by=by):
        found = each.context.get("metadata")
        told = found if isinstance(found, dict) else {}
        key = told.get("document")
        if each.context.get("superseded_by") is not None or not isinstance(key, str):
            continue
        if is_marked(each) and told["reader"] == READER:
            heads[key] = Head(key=key, state=told["state"], ids=tuple(told["pieces"]))
        else:
            heads.setdefault(key, Head(key=key, state="", ids=()))
    return heads


async def keep(trail: Trail, document: Document, *, by: Principal) -> Kept:
    """Let the trail have the document as it is now, in the place of what it had. Raises what the trail raises."""
    for _ in range(_TRIES - 1):
        try:
            return await _keep_once(trail, document, by)
        except (AlreadyExists, Conflict, NotFound):
            continue  # somebody else keeps the same document
    return await _keep_once(trail, document, by)


async def keep_version(trail: Trail, document: Document, *, by: Principal) -> Kept:
    """Let the trail have the document beside its earlier versions, which it supersedes, piece by piece. The version
    that stands is not written again."""
    for _ in range(_TRIES - 1):
        try:
            return await _keep_version_once(trail, document, by)
        except (AlreadyExists, Conflict):
            continue
    return await _keep_version_once(trail, document, by)


async def drop(trail: Trail, keys: Sequence[str], *, by: Principal) -> int:
    """Remove documents; how many nodes went."""
    dropped = 0
    for key in keys:
        dropped += await drop_records(trail, [each.id for each in await _pieces_of(trail, key, by)], by=by)
    return dropped


async def _keep_once(trail: Trail, document: Document, by: Principal) -> Kept:
    drafts = _drafts(document, by)
    ids = tuple(str(draft.id) for draft in drafts)
    present = {each.id: each for each in await _pieces_of(trail, document.key, by)}
    if (
        _is_kept(present.get(ids[0]), document, ids)
        and present.keys() == set(ids)
        and all(map(mark_check(), present.values()))
    ):
        return Kept(ids=ids)
    if not present:
        return Kept(ids=ids, written=len(await trail.records.create_many(drafts, by=by)))
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
    return Kept(ids=ids, written=len(ids), removed=len(gone))


async def _keep_version_once(trail: Trail, document: Document, by: Principal) -> Kept:
    present = await _pieces_of(trail, document.key, by)
    newest = max((_version(each) for each in present), default=0)
    head = next((each for each in present if _version(each) == newest and FIRST in each.tags), None)
    drafts = _drafts(document, by, newest)
    written = 0
    if head is None or not _is_kept(head, document, tuple(str(draft.id) for draft in drafts)):
        newest += 1
        drafts = _drafts(document, by, newest)
        written = len(await trail.records.create_many(drafts, by=by))
    earlier = [each for each in present if _version(each) < newest and each.context.get("superseded_by") is None]
    await _supersede(trail, earlier, drafts, by)
    return Kept(ids=tuple(str(draft.id) for draft in drafts), written=written, removed=len(earlier))


async def _supersede(trail: Trail, earlier: Sequence[Breadcrumb], drafts: Sequence[Draft], by: Principal) -> None:
    """Each by the piece of the same key or, where that is gone, by the first."""
    graph = NodeGraph(trail, by)
    later = {draft.context["metadata"]["piece"]: str(draft.id) for draft in drafts}
    for each in earlier:
        await graph.supersede(each.id, later.get(each.context["metadata"]["piece"], str(drafts[0].id)))


def _drafts(document: Document, by: Principal, version: int = 0) -> list[Draft]:
    name = f"reference:{document.key}@{version}" if version else f"reference:{document.key}"
    ids = [keyed_id(by.owner_id, f"{name}#{piece.key}") for piece in document.pieces]
    told = {"document": document.key, "state": document.state, "reader": READER, "version": version}
    drafts = []
    for number, (id, piece) in enumerate(zip(ids, document.pieces, strict=True)):
        metadata = {**(document.fields.get("metadata") or {}), **piece.metadata, **told, "piece": piece.key}
        first: dict[str, Any] = {"pieces": ids} if number == 0 else {}
        tags = (_collection(document.collection), _tag(document.key), *((FIRST,) if number == 0 else ()))
        fields: NodeFields = {
            **document.fields,
            "id": id,
            "content_hash": piece.hash or document.fields.get("content_hash"),
            "metadata": {**metadata, **first},
            "tags": tags,
            **({"line_start": piece.first, "line_end": piece.last} if piece.first else {}),
        }
        drafts.append(build_node(piece.name, NodeDomain.ACADEMIC, document.node_type, piece.text, fields))
    return with_marks(drafts)


async def _pieces_of(trail: Trail, key: str, by: Principal) -> list[Breadcrumb]:
    wanted = Selector(schema_name=SCHEMA, all_tags=(_tag(key),))
    return [each async for each in each_record(trail, wanted, by=by)]


def _is_kept(head: Breadcrumb | None, document: Document, ids: tuple[str, ...]) -> bool:
    told = head.context.get("metadata", {}) if head is not None else {}
    return (told.get("state"), told.get("reader"), tuple(told.get("pieces", ()))) == (document.state, READER, ids)


def _update(draft: Draft, present: Breadcrumb) -> Update:
    change = Change(title=draft.title, context=draft.context, tags=draft.tags, llm_hints=draft.llm_hints)
    return Update(id=present.id, change=change, expect=present.version)


def _version(piece: Breadcrumb) -> int:
    return int(piece.context["metadata"].get("version", 0))


def _collection(name: str) -> str:
    return f"collection:{name}"


def _tag(key: str) -> str:
    return f"reference:{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:24]}"
