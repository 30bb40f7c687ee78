"""Ingestion of sources: files, pages, RFCs, papers and texts. Nothing is fetched: an address is only stored.

An ingested source is unverified until a person verifies it. An unchanged source is not written twice. A changed source
replaces the earlier one, unless a person verified that one; then both are stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.catalog.formats.prose import clean_name
from clew.errors import AccessDenied, FormatError, InvalidInput, NotFound, SourceError, TooLarge
from clew.files import open_inside
from clew.knowledge.code.file_content import is_text, looks_secret, readable_text
from clew.knowledge.documents.readers import (
    DocumentPiece,
    SourceText,
    is_html,
    read_page,
    read_paper,
    text_pieces,
)
from clew.knowledge.evidence.provenance import FIELD, MARK, NodeSource, mark_check, with_marks
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, SourceKind, TrustLevel, Verification
from clew.knowledge.nodes.node_store import SCHEMA, NodeFields, build_node, to_node
from clew.knowledge.upsert import keyed_id
from clew.secrecy import is_secret_file, mask_keys
from clew.trail.bulk import drop_records, each_record
from clew.trail.mirror import mirror_files
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

MAX_BYTES, MAX_TEXT = 20_000_000, 2_000_000
"""Size limits of a PDF, and of a text or page."""
_SOURCE, _ASIDE = "source:", "unverified "
"""Prefixes of document keys: of every source, and of one that differs from a verified source of the same key."""
_BOOKKEEPING = frozenset(("document", "state", "reader", "piece", "pieces", "needs_review", MARK))

_OWN_FOLDERS = frozenset((".git", ".clew"))

Kind = Literal[
    "documentation", "rfc", "paper", "best_practice", "stack_overflow", "blog", "article", "tutorial", "page", "text"
]
KINDS: dict[Kind, tuple[NodeType, TrustLevel]] = {
    "documentation": (NodeType.DOCUMENTATION, TrustLevel.STANDARD),
    "rfc": (NodeType.RFC, TrustLevel.STANDARD),
    "paper": (NodeType.PAPER, TrustLevel.ACADEMIC),
    "best_practice": (NodeType.BEST_PRACTICE, TrustLevel.ACADEMIC),
    "tutorial": (NodeType.TUTORIAL, TrustLevel.ACADEMIC),
    "stack_overflow": (NodeType.STACK_OVERFLOW, TrustLevel.BLOG),
    "blog": (NodeType.BLOG_POST, TrustLevel.BLOG),
    "article": (NodeType.BLOG_POST, TrustLevel.BLOG),
    "page": (NodeType.BLOG_POST, TrustLevel.BLOG),
    "text": (NodeType.BLOG_POST, TrustLevel.BLOG),
}
"""Node type and trust of a verified source of each kind."""


class NewSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source to ingest: a file or a text. Title, authors, date and address given here win over its own."""

    kind: Kind
    path: str = ""
    text: str = ""
    title: str = ""
    url: str = ""
    authors: Sequence[str] = ()
    published_at: datetime | None = None
    venue: str = ""


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """An ingested source: its nodes in order, and how many of them were written and removed."""

    title: str
    node_type: str
    trust: int
    ids: tuple[str, ...]
    written: int
    removed: int
    is_verified: bool


async def ingest_source(trail: Trail, source: NewSource, *, by: Principal, root: Path, at: datetime) -> Ingested:
    """Ingest a source as unverified, unless a person verified the same content. A path is relative to `root`, and no
    link is followed.

    Raises InvalidInput, TooLarge, SourceError, FormatError.
    """
    by.require("create")
    _check(source)
    source = msgspec.structs.replace(source, url=mask_keys(source.url), title=mask_keys(source.title))
    name = source.path or source.title[:80] or "text"
    body = await asyncio.to_thread(_content, source, root)
    text = await asyncio.to_thread(_read, source, body, name)
    if not text.pieces:
        raise FormatError(name, "has no text")
    document = _document(source, text, _state_of(source, body), at)
    known = await read_document(trail, document.key, by=by)
    if known and to_node(known[0]).verified and to_node(known[0]).metadata["state"] != document.state:
        document = msgspec.structs.replace(document, key=f"{_ASIDE}{document.key}")
        known = await read_document(trail, document.key, by=by)
    if known and to_node(known[0]).metadata["state"] == document.state:
        return _ingested(known[0], [each.id for each in known])
    return await save_document(trail, document, by=by)


def _ingested(first: Breadcrumb, ids: Sequence[str], written: int = 0, removed: int = 0) -> Ingested:
    node = to_node(first)
    return Ingested(
        title=node.metadata["title"],
        node_type=node.node_type.label,
        trust=node.trust,
        ids=tuple(ids),
        written=written,
        removed=removed,
        is_verified=node.verified,
    )


def _state_of(source: NewSource, body: bytes) -> str:
    """Changes with the content of a source and with all that was said about it."""
    given = msgspec.json.encode(msgspec.structs.replace(source, text="", path=""))
    return hashlib.sha256(hashlib.sha256(body).digest() + given).hexdigest()


def _document(source: NewSource, text: SourceText, state: str, at: datetime) -> CutDocument:
    address = mask_keys(source.url or text.url)
    metadata = {
        "kind": source.kind,
        "title": text.title,
        "needs_review": True,
        **({"venue": source.venue[:200]} if source.venue else {}),
        **({"claimed_url": address} if address else {}),
    }
    origin = NodeSource(
        kind=SourceKind.ACADEMIC,
        path=source.path or None,
        timestamp=at,
        confidence=TrustLevel.LLM / 100,
        verified=False,
    )
    return CutDocument(
        key=f"{_SOURCE}{source.url or source.path or text.title}",
        state=state,
        node_type=KINDS[source.kind][0],
        pieces=text.pieces,
        fields={
            "source": source.path or source.url or text.title,
            "authors": [each[:200] for each in (source.authors or text.authors)][:50],
            "published_at": source.published_at or text.published_at,
            "content_hash": state,
            "metadata": metadata,
            "trust": TrustLevel.LLM,
            "verification": Verification.NONE,
        },
        sources=[origin],
    )


# -- documents on the trail: a signed node for each piece, found by the key of the document ---------------------


class CutDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document cut into pieces. `state` changes with its content; `fields` and `sources` belong to all nodes."""

    key: str
    state: str
    node_type: NodeType
    pieces: Sequence[DocumentPiece]
    fields: NodeFields = {}
    sources: Sequence[NodeSource] = ()


async def save_document(trail: Trail, document: CutDocument, *, by: Principal) -> Ingested:
    """Replace the nodes that are stored under the key of the document. Unchanged nodes are not written again. The trail
    keeps the earlier versions of a changed node."""
    drafts = _draft_nodes(document, by)
    done = await mirror_files(trail, drafts, _selector(document.key), by=by)
    ids = [str(draft.id) for draft in drafts]
    return _ingested(await trail.records.get(ids[0], by=by), ids, done.created + done.updated, done.deleted)


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


# -- verification by a person ----------------------------------------------------------------------------------


async def find_unverified(trail: Trail, id: str, *, by: Principal) -> list[Breadcrumb]:
    """The pieces of the unverified source that a node belongs to, in order. Raises NotFound, and SourceError if a piece
    was changed since its ingestion."""
    found = await trail.records.get(id, by=by)
    key = str(to_node(found).metadata.get("document", ""))
    if not key.removeprefix(_ASIDE).startswith(_SOURCE) or to_node(found).verified:
        raise NotFound("unverified source", id)
    pieces = await read_document(trail, key, by=by)
    if not pieces:
        raise SourceError(key, "was changed since it was ingested", hint="Ingest it again")
    return pieces


async def verify_source(trail: Trail, id: str, *, by: Principal, at: datetime) -> Ingested:
    """Verify an ingested source as a person: it gets the trust of its kind, and replaces an earlier verified one. Its
    address stays a claim.

    Raises AccessDenied for the tool of an agent, NotFound, SourceError.
    """
    for right in ("create", "update", "delete"):
        by.require(right)
    if not by.steers:
        raise AccessDenied("verify a source as the tool of an agent", ["a person"])
    pieces = await find_unverified(trail, id, by=by)
    node = to_node(pieces[0])
    node_type, trust = KINDS[node.metadata["kind"]]
    origins = msgspec.convert(pieces[0].context.get(FIELD, []), list[NodeSource])
    checked = NodeSource(kind=SourceKind.USER, timestamp=at, confidence=1.0, verified=True)
    key = str(node.metadata["document"])
    document = CutDocument(
        key=key.removeprefix(_ASIDE),
        state=node.metadata["state"],
        node_type=node_type,
        pieces=list(map(_to_piece, pieces)),
        fields={
            "source": node.source,
            "authors": node.authors,
            "published_at": node.published_at,
            "content_hash": node.content_hash,
            "trust": trust,
            "verification": Verification.USER,
        },
        sources=[*origins, checked],
    )
    saved = await save_document(trail, document, by=by)
    if key != document.key:
        await drop_records(trail, [each.id for each in pieces], by=by)
    return saved


def _to_piece(found: Breadcrumb) -> DocumentPiece:
    context: Mapping[str, Any] = found.context
    return DocumentPiece(
        key=context["metadata"]["piece"],
        name=found.title,
        text=context["content"],
        first=context.get("line_start", 0),
        last=context.get("line_end", 0),
        metadata={key: value for key, value in context["metadata"].items() if key not in _BOOKKEEPING},
    )


# -- reading ---------------------------------------------------------------------------------------------------


def _check(source: NewSource) -> None:
    if bool(source.path) == bool(source.text.strip()):
        raise InvalidInput("source", "needs a path or a text, and not both", hint="An address alone is not fetched")
    if len(source.url) > 2_000 or not source.url.isprintable() or " " in source.url:
        raise InvalidInput("url", "is not an address")


def _content(source: NewSource, root: Path) -> bytes:
    body = _read_inside(source.path, root) if source.path else source.text.encode(errors="replace")
    most = MAX_BYTES if source.path and body.startswith(b"%PDF-") else MAX_TEXT
    if len(body) > most:
        raise TooLarge(source.path or "text", len(body), most)
    if source.path and (reason := looks_secret(source.path, body)):
        raise SourceError(source.path, f"is not ingested: it is {reason}")
    return body


def _read_inside(path: str, root: Path) -> bytes:
    if is_secret_file(path.replace("\\", "/").rpartition("/")[2]):
        raise SourceError(path, "is not ingested: files of this name hold keys")
    plain = os.path.normpath(path).replace(os.sep, "/")
    if _OWN_FOLDERS.intersection(plain.casefold().split("/")):
        raise SourceError(path, "is not ingested: it belongs to git or to Clew")
    try:
        if plain.startswith("../") or os.path.isabs(path):
            raise ValueError
        file = os.fdopen(open_inside(os.path.realpath(root), plain), "rb")
    except (OSError, ValueError):
        raise SourceError(
            path, "is not a file below the folder of the project", hint="Give a path relative to it"
        ) from None
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SourceError(path, "is not a regular file")
        return file.read(MAX_BYTES + 1)


def _read(source: NewSource, body: bytes, name: str) -> SourceText:
    if body.startswith(b"%PDF-"):
        return read_paper(body, name, source.title)
    if not is_text(body):
        raise FormatError(name, "is neither text nor a PDF")
    text = readable_text(body)
    if is_html(text) or name.lower().endswith((".html", ".htm", ".xhtml")):
        return read_page(text, source.title)
    title = clean_name(source.title, name)
    return SourceText(title=title, pieces=text_pieces(source.path or "text.md", text, title))
