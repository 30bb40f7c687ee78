"""Documents on the trail: a signed node for each piece, found by the key of the document."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from clew.access import Principal
from clew.knowledge.documents.readers import DocumentPiece
from clew.knowledge.evidence.provenance import FIELD, NodeSource, mark_check, with_marks
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_store import SCHEMA, NodeFields, build_node
from clew.knowledge.upsert import keyed_id
from clew.trail.bulk import each_record
from clew.trail.mirror import mirror_files
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail


class CutDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document cut into pieces. `state` changes with its content; `fields` and `sources` belong to all nodes."""

    key: str
    state: str
    node_type: NodeType
    pieces: Sequence[DocumentPiece]
    fields: NodeFields = {}
    sources: Sequence[NodeSource] = ()


class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a document in order, and how many were written and removed."""

    ids: tuple[str, ...]
    written: int = 0
    removed: int = 0


async def save_document(trail: Trail, document: CutDocument, *, by: Principal) -> Saved:
    """Make the nodes of the document those of its key. Unchanged nodes are not written again; the trail keeps the
    earlier versions of a changed one."""
    drafts = _draft_nodes(document, by)
    done = await mirror_files(trail, drafts, _selector(document.key), by=by)
    ids = tuple(str(draft.id) for draft in drafts)
    return Saved(ids=ids, written=done.created + done.updated, removed=done.deleted)


async def read_document(trail: Trail, key: str, *, by: Principal) -> list[Breadcrumb]:
    """The nodes of a document in order; none if one is missing or was changed since it was saved."""
    found = {each.id: each async for each in each_record(trail, _selector(key), by=by)}
    order: list[str] = next(filter(None, (each.context["metadata"].get("pieces") for each in found.values())), [])
    is_whole = set(order) == found.keys() and all(map(mark_check(), found.values()))
    return [found[id] for id in order] if is_whole else []


def _draft_nodes(document: CutDocument, by: Principal) -> list[Draft]:
    """The signed drafts of a document. Their ids follow from its key and the keys of the pieces."""
    ids = [keyed_id(by.owner_id, f"reference:{document.key}#{piece.key}") for piece in document.pieces]
    own = {"document": document.key, "state": document.state}
    drafts = []
    for id, piece in zip(ids, document.pieces, strict=True):
        metadata = {**(document.fields.get("metadata") or {}), **piece.metadata, **own, "piece": piece.key}
        fields: NodeFields = {
            **document.fields,
            "id": id,
            "metadata": {**metadata, **({"pieces": ids} if id == ids[0] else {})},
            "tags": (_tag(document.key),),
            **({"line_start": piece.first, "line_end": piece.last} if piece.first else {}),
        }
        draft = build_node(piece.name, NodeDomain.ACADEMIC, document.node_type, piece.text, fields)
        sources = {FIELD: msgspec.to_builtins(document.sources)} if document.sources else {}
        drafts.append(msgspec.structs.replace(draft, context={**draft.context, **sources}))
    return with_marks(drafts)


def _selector(key: str) -> Selector:
    return Selector(schema_name=SCHEMA, all_tags=(_tag(key),))


def _tag(key: str) -> str:
    return f"reference:{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:24]}"
