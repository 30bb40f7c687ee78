"""Ingestion of sources: files, pages, RFCs, papers and texts. Nothing is fetched: an address is only stored.

A source that a tool hands in is unverified until a person verifies it. The same source again is not written twice; a
changed one supersedes its earlier version.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from clew.access import Principal
from clew.catalog.formats.prose import clean_name
from clew.errors import AccessDenied, FormatError, InvalidInput, NotFound, SourceError, TooLarge
from clew.files import open_inside, read_file
from clew.knowledge.code.file_content import is_text, looks_secret, readable_text
from clew.knowledge.documents.readers import SourceText, is_html, read_page, read_paper, read_rfc
from clew.knowledge.documents.sections import Piece, markdown_pieces, text_pieces
from clew.knowledge.documents.store import Document, read_pieces, save_version, supersede, version_of
from clew.knowledge.evidence.provenance import FIELD, Source
from clew.knowledge.evidence.signatures import MARK, mark_check
from clew.secrecy import is_secret_file, mask_keys
from clew.trail.breadcrumb import Breadcrumb
from clew.trail.kinds import NodeType, SourceKind, Trust, Verification
from clew.trail.nodes import NodeFields, to_node
from clew.trail.store import Trail

COLLECTION = "sources"
MAX_BYTES, MAX_TEXT = 20_000_000, 2_000_000
"""Size limits of a PDF, and of a text or page."""
_VERIFIED, _UNVERIFIED = "source:", "unverified source:"
"""Prefixes of document keys: an unverified source never supersedes a verified one."""
_BOOKKEEPING = frozenset(("document", "state", "reader", "version", "piece", "pieces", "needs_review", MARK))

Kind = Literal[
    "documentation", "rfc", "paper", "best_practice", "stack_overflow", "blog", "article", "tutorial", "page", "text"
]

KINDS: dict[Kind, tuple[NodeType, Trust]] = {
    "documentation": (NodeType.DOCUMENTATION, Trust.STANDARD),
    "rfc": (NodeType.RFC, Trust.STANDARD),
    "paper": (NodeType.PAPER, Trust.ACADEMIC),
    "best_practice": (NodeType.BEST_PRACTICE, Trust.ACADEMIC),
    "tutorial": (NodeType.TUTORIAL, Trust.ACADEMIC),
    "stack_overflow": (NodeType.STACK_OVERFLOW, Trust.BLOG),
    "blog": (NodeType.BLOG_POST, Trust.BLOG),
    "article": (NodeType.BLOG_POST, Trust.BLOG),
    "page": (NodeType.BLOG_POST, Trust.BLOG),
    "text": (NodeType.BLOG_POST, Trust.BLOG),
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
    scopes: Sequence[str] = ()


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """An ingested source: its nodes in order, how many were written, and how many older nodes they supersede."""

    title: str
    node_type: str
    trust: int
    ids: tuple[str, ...]
    written: int
    superseded: int
    is_verified: bool


async def ingest_source(
    trail: Trail, source: NewSource, *, by: Principal, root: Path | None = None, at: datetime | None = None
) -> Ingested:
    """Ingest a source. A relative path is below `root`, and no link is followed.

    A source from a person gets the trust of its kind. A source from the tool of an agent is unverified and marked, and
    supersedes nothing that a person verified. Raises InvalidInput, TooLarge, SourceError, FormatError.
    """
    by.require("create")
    _check(source)
    if not by.scopes.issuperset(source.scopes):
        raise InvalidInput("scopes", "must be among those that the caller holds")
    source = msgspec.structs.replace(source, url=mask_keys(source.url), title=mask_keys(source.title))
    body, name = await asyncio.to_thread(_content, source, root, by)
    text = await asyncio.to_thread(_read, source, body, name)
    if not text.pieces:
        raise FormatError(name, "has no text")
    when = source.published_at.isoformat() if source.published_at else ""
    given = (source.kind, source.title, source.url, *source.authors, when, source.venue)
    state = hashlib.sha256("\n".join((hashlib.sha256(body).hexdigest(), *given)).encode()).hexdigest()
    document = _document(source, text, state, at, is_verified=by.steers)
    saved = await save_version(trail, document, by=by)
    return _ingested(text.title, document, saved.ids, saved.written, saved.removed)


def _ingested(title: str, document: Document, ids: tuple[str, ...], written: int, superseded: int) -> Ingested:
    return Ingested(
        title=title,
        node_type=document.node_type.label,
        trust=int(document.fields["trust"]),
        ids=ids,
        written=written,
        superseded=superseded,
        is_verified=document.key.startswith(_VERIFIED),
    )


def _document(source: NewSource, text: SourceText, state: str, at: datetime | None, *, is_verified: bool) -> Document:
    node_type, trust = KINDS[source.kind]
    url = mask_keys(source.url or text.url) if is_verified else ""
    claimed = text.claimed_url if is_verified else source.url or text.claimed_url or text.url
    metadata = {
        "kind": source.kind,
        "title": text.title,
        **({"venue": source.venue[:200]} if source.venue else {}),
        **({} if is_verified else {"needs_review": True}),
        **({"claimed_url": mask_keys(claimed)} if claimed and claimed != url else {}),
    }
    trust = trust if is_verified else Trust.LLM
    fields: NodeFields = {
        "source": source.path or source.url or text.title,
        "authors": [each[:200] for each in (source.authors or text.authors)][:50],
        "published_at": source.published_at or text.published_at,
        "content_hash": state,
        "metadata": metadata,
        "trust": trust,
        "verification": Verification.USER if is_verified else Verification.NONE,
        "scopes": source.scopes,
        **({"url": url} if url else {}),
    }
    origin = Source(
        kind=SourceKind.ACADEMIC,
        path=source.path or None,
        url=url or None,
        timestamp=at,
        confidence=trust / 100,
        verified=is_verified,
    )
    return Document(
        key=f"{_VERIFIED if is_verified else _UNVERIFIED}{url or source.url or source.path or text.title}",
        collection=COLLECTION,
        state=state,
        node_type=node_type,
        pieces=text.pieces,
        fields=fields,
        sources=[origin],
    )


# -- verification by a person ----------------------------------------------------------------------------------


async def find_unverified(trail: Trail, id: str, *, by: Principal) -> list[Breadcrumb]:
    """The pieces of the unverified source that a node belongs to, in order. Raises NotFound, and SourceError if a piece
    was changed since its ingestion."""
    found = await trail.records.get(id, by=by)
    to_node(found)
    key = str(found.context["metadata"].get("document", ""))
    if not key.startswith(_UNVERIFIED) or found.context.get("superseded_by") is not None:
        raise NotFound("unverified source", id)
    pieces = [each for each in await read_pieces(trail, key, by=by) if version_of(each) == version_of(found)]
    order: list[str] = next(filter(None, (each.context["metadata"].get("pieces") for each in pieces)), [])
    if sorted(order) != sorted(each.id for each in pieces) or not all(map(mark_check(), pieces)):
        raise SourceError(key, "was changed since it was ingested", hint="Ingest it again")
    return sorted(pieces, key=lambda each: order.index(each.id))


async def verify_source(trail: Trail, id: str, *, by: Principal, at: datetime) -> Ingested:
    """Verify an ingested source as a person: it is stored again with the trust of its kind, and the new nodes supersede
    the unverified ones. Raises AccessDenied for the tool of an agent, NotFound, SourceError."""
    by.require("create")
    by.require("update")
    if not by.steers:
        raise AccessDenied("verify a source as the tool of an agent", ["a person"])
    pieces = await find_unverified(trail, id, by=by)
    context = pieces[0].context
    node_type, trust = KINDS[context["metadata"]["kind"]]
    node = to_node(pieces[0])
    checked = Source(kind=SourceKind.USER, timestamp=at, confidence=1.0, verified=True)
    document = Document(
        key=f"{_VERIFIED}{context['metadata']['document'].removeprefix(_UNVERIFIED)}",
        collection=COLLECTION,
        state=context["metadata"]["state"],
        node_type=node_type,
        pieces=list(map(_to_piece, pieces)),
        fields={
            "source": node.source,
            "authors": node.authors,
            "published_at": node.published_at,
            "content_hash": node.content_hash,
            "trust": trust,
            "verification": Verification.USER,
            "scopes": pieces[0].scopes,
            "url": node.url,
        },
        sources=[*msgspec.convert(context.get(FIELD, []), list[Source]), checked],
    )
    saved = await save_version(trail, document, by=by)
    await supersede(trail, pieces, saved.ids, by=by)
    return _ingested(context["metadata"]["title"], document, saved.ids, saved.written, len(pieces))


def _to_piece(found: Breadcrumb) -> Piece:
    context: Mapping[str, Any] = found.context
    return Piece(
        key=context["metadata"]["piece"],
        name=found.title,
        text=context["content"],
        first=context.get("line_start", 0),
        last=context.get("line_end", 0),
        metadata={key: value for key, value in context["metadata"].items() if key not in _BOOKKEEPING},
    )


# -- reading ---------------------------------------------------------------------------------------------------


def _check(source: NewSource) -> None:
    if source.kind not in KINDS:
        raise InvalidInput(
            "kind", f"{source.kind!r} is no kind of source", hint=f"Kinds are {', '.join(get_args(Kind))}"
        )
    if bool(source.path) == bool(source.text.strip()):
        raise InvalidInput("source", "needs a path or a text, and not both", hint="An address alone is not fetched")
    if source.published_at is not None and source.published_at.tzinfo is None:
        raise InvalidInput("published_at", "must carry a time zone", hint="For example 2026-01-01T00:00:00Z")
    if len(source.url) > 2_000 or not source.url.isprintable() or " " in source.url:
        raise InvalidInput("url", "is no address")


def _content(source: NewSource, root: Path | None, by: Principal) -> tuple[bytes, str]:
    """The bytes of a source, and its name for errors."""
    if source.text:
        body = source.text.encode(errors="replace")
        if len(body) > MAX_TEXT:
            raise TooLarge("text", len(body), MAX_TEXT)
        return body, source.title[:80] or "text"
    body = _read_path(source.path, root, by)
    most = MAX_BYTES if body.startswith(b"%PDF-") else MAX_TEXT
    if len(body) > most:
        raise TooLarge(source.path, len(body), most)
    if reason := looks_secret(source.path, body):
        raise SourceError(source.path, f"is not ingested: it is {reason}")
    return body, source.path


def _read_path(path: str, root: Path | None, by: Principal) -> bytes:
    if is_secret_file(path.replace("\\", "/").rpartition("/")[2]):
        raise SourceError(path, "is not ingested: files of this name hold keys")
    if not os.path.isabs(path) and root is not None:
        return _read_inside(path, root)
    if not by.steers:
        raise SourceError(path, "is outside the folder of the project", hint="Give a path relative to it")
    try:
        if os.path.getsize(path) > MAX_BYTES:
            raise TooLarge(path, os.path.getsize(path), MAX_BYTES)
        return read_file(Path(path))
    except OSError as error:
        raise SourceError(path, f"cannot be read ({error.strerror})") from None


def _read_inside(path: str, root: Path) -> bytes:
    plain = os.path.normpath(path).replace(os.sep, "/")
    try:
        if plain.startswith("../"):
            raise ValueError
        file = os.fdopen(open_inside(os.path.realpath(root), plain), "rb")
    except (OSError, ValueError):
        raise SourceError(path, "is no file below the folder of the project") from None
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SourceError(path, "is no regular file")
        return file.read(MAX_BYTES + 1)


def _read(source: NewSource, body: bytes, name: str) -> SourceText:
    if body.startswith(b"%PDF-"):
        return read_paper(body, name, source.title)
    if not is_text(body):
        raise FormatError(name, "is neither text nor a PDF")
    text = readable_text(body)
    if source.kind == "rfc":
        return read_rfc(text, name, source.title)
    if is_html(text) or name.lower().endswith((".html", ".htm", ".xhtml")):
        return read_page(text, source.title)
    title = clean_name(source.title, name)
    return SourceText(title=title, pieces=text_pieces(name, text) if source.path else markdown_pieces(text, title))
