"""Sources that are taken in: files, pages, RFCs, papers and plain text, as references of a kind that says how far they
are believed. Nothing is fetched: an address is only kept. The same source again is one set of nodes; a changed one
supersedes what there was."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

import msgspec

from clew.access import Principal
from clew.catalog.formats.prose import clean_name
from clew.errors import FormatError, InvalidInput, SourceError, TooLarge
from clew.files import open_inside, read_file
from clew.knowledge.code.file_content import readable_text
from clew.knowledge.code.secret_files import is_text, looks_secret
from clew.knowledge.references.documents import pieces_of
from clew.knowledge.references.keeping import Document, keep_version
from clew.knowledge.references.pages import is_html, read_page, to_moment
from clew.knowledge.references.papers import read_paper
from clew.knowledge.references.rfc import read_rfc
from clew.knowledge.references.sections import Piece, markdown_pieces, section_pieces
from clew.secrecy import is_secret_file, mask_in_place, mask_keys
from clew.trail.kinds import NodeType, Trust, Verification
from clew.trail.nodes import NodeFields
from clew.trail.store import Trail

COLLECTION = "sources"
MAX_BYTES = 20_000_000
"""Of a PDF."""
MAX_TEXT = 2_000_000
"""Bytes of a text or a page."""

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
"""What a source of a kind is, and how far it is believed. Nobody answers for what is only a page or a text."""


class NewSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source to take in: a file, or its text itself. What is said here of title, authors, date and address counts
    more than what the source says of itself."""

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
    """What became of a source: its nodes in order, how many were written, and how many older ones they supersede."""

    title: str
    node_type: str
    trust: int
    ids: tuple[str, ...]
    written: int
    superseded: int
    is_verified: bool


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    pieces: Sequence[Piece]
    authors: Sequence[str] = ()
    published_at: datetime | None = None
    url: str = ""
    claimed_url: str = ""
    """The address that a page says it is from: anybody can say so, and nobody is led there."""
    abstract: str = ""


async def ingest_source(trail: Trail, source: NewSource, *, by: Principal, root: Path | None = None) -> Ingested:
    """Take a source in. A relative path is one below `root`, where no link is followed.

    What a person takes in stands for what it is. What an agent's own tool takes in is unverified, whatever it says that
    it is, and marked so, until a person has looked at it; it supersedes nothing that a person took in. Raises
    InvalidInput, TooLarge, SourceError, FormatError.
    """
    by.require("create")
    node_type, trust = _kind_of(source)
    if not by.scopes.issuperset(source.scopes):
        raise InvalidInput("scopes", "must be among those that the caller holds")
    source = msgspec.structs.replace(source, url=mask_keys(source.url), title=mask_keys(source.title))
    body, name = await asyncio.to_thread(_content, source, root, by)
    read = await asyncio.to_thread(_read, source, body, name)
    if not read.pieces:
        raise FormatError(name, "has no text")
    state = hashlib.sha256("\n".join((hashlib.sha256(body).hexdigest(), *_said(source))).encode()).hexdigest()
    kept = await keep_version(trail, _document(source, read, state, is_verified=by.steers), by=by)
    return Ingested(
        title=read.title,
        node_type=node_type.label,
        trust=int(trust if by.steers else Trust.LLM),
        ids=kept.ids,
        written=kept.written,
        superseded=kept.removed,
        is_verified=by.steers,
    )


def _document(source: NewSource, read: _Read, state: str, *, is_verified: bool) -> Document:
    node_type, trust = KINDS[source.kind]
    name = source.url or (read.url if is_verified else "") or source.path or read.title
    return Document(
        key=f"source:{name}" if is_verified else f"unverified source:{name}",
        collection=COLLECTION,
        state=state,
        node_type=node_type,
        pieces=read.pieces,
        fields=_fields(source, read, state, trust, is_verified=is_verified),
    )


def _kind_of(source: NewSource) -> tuple[NodeType, Trust]:
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
    return KINDS[source.kind]


def _content(source: NewSource, root: Path | None, by: Principal) -> tuple[bytes, str]:
    """The bytes of a source, and what it is called in errors."""
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
        raise SourceError(source.path, f"is not taken in: it is {reason}")
    return body, source.path


def _read_path(path: str, root: Path | None, by: Principal) -> bytes:
    if is_secret_file(path.replace("\\", "/").rpartition("/")[2]):
        raise SourceError(path, "is not taken in: files of this name hold keys")
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


def _read(source: NewSource, body: bytes, name: str) -> _Read:
    if body.startswith(b"%PDF-"):
        paper = read_paper(body, name)
        title = clean_name(source.title, paper.title)
        return _Read(
            title=title,
            pieces=paper.pieces,
            authors=paper.authors,
            published_at=paper.published_at,
            abstract=paper.abstract,
        )
    if not is_text(body):
        raise FormatError(name, "is neither text nor a PDF")
    text = readable_text(body)
    if source.kind == "rfc":
        return _read_rfc(source, text, name)
    if is_html(text) or name.lower().endswith((".html", ".htm", ".xhtml")):
        return _read_page(source, text)
    title = clean_name(source.title, name)
    pieces = pieces_of(name, text) if source.path else markdown_pieces(text, title)
    return _Read(title=title, pieces=pieces)


def _read_rfc(source: NewSource, text: str, name: str) -> _Read:
    rfc = read_rfc(text)
    if not rfc.number:
        raise FormatError(name, "is no RFC: it names no number")
    title = clean_name(source.title, rfc.title)
    return _Read(
        title=title,
        pieces=section_pieces(rfc.lines, rfc.headings, title),
        authors=rfc.authors,
        published_at=rfc.published_at,
        url=f"https://www.rfc-editor.org/rfc/rfc{rfc.number}",
    )


def _read_page(source: NewSource, text: str) -> _Read:
    page = read_page(text)
    title = clean_name(source.title, page.title)
    pieces = [
        msgspec.structs.replace(piece, first=0, last=0) for piece in section_pieces(page.lines, page.headings, title)
    ]
    return _Read(
        title=title,
        pieces=pieces,
        authors=page.authors,
        published_at=to_moment(page.published_at),
        claimed_url=page.url[:2_000] if page.url.startswith(("https://", "http://")) else "",
    )


def _fields(source: NewSource, read: _Read, state: str, trust: Trust, *, is_verified: bool) -> NodeFields:
    metadata = {
        "kind": source.kind,
        "title": read.title,
        **({"abstract": mask_in_place(read.abstract)} if read.abstract else {}),
        **({"venue": source.venue[:200]} if source.venue else {}),
        **({} if is_verified else {"needs_review": True}),
    }
    claimed = read.claimed_url if is_verified else read.claimed_url or read.url
    if claimed and claimed != source.url:
        metadata["claimed_url"] = mask_keys(claimed)
    fields: NodeFields = {
        "source": source.path or source.url or read.title,
        "authors": [each[:200] for each in (source.authors or read.authors)][:50],
        "published_at": source.published_at or read.published_at,
        "content_hash": state,
        "metadata": metadata,
        "trust": trust if is_verified else Trust.LLM,
        "verification": Verification.USER if is_verified else Verification.NONE,
        "scopes": source.scopes,
    }
    address = mask_keys(source.url or (read.url if is_verified else ""))
    return {**fields, **({"url": address} if address else {})}


def _said(source: NewSource) -> tuple[str, ...]:
    when = source.published_at.isoformat() if source.published_at else ""
    return source.kind, source.title, source.url, *source.authors, when, source.venue
