"""Readers of source formats: text, HTML and PDF. Each is bounded, and cuts a source into pieces."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgspec

from clew.catalog.formats.paths import NodePaths, slug
from clew.catalog.formats.prose import MAX_NAME, clean_name, cut, split_parts
from clew.errors import FormatError
from clew.fences import clean
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.search.passages import BETWEEN, format_of
from clew.knowledge.code.search.passages import cut as cut_passages
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_document

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_PIECES = 500
"""The rest of a longer document is left out."""
MAX_PAGES = 300
MAX_TEXT = 3_000_000
MAX_STREAM, MAX_MARKS = 20_000_000, 400_000
"""Bytes and drawing operations of a PDF page, unpacked. A page with more is a drawing or a bomb, and is left out."""
MAX_SECONDS = 20.0
"""The time limit for all pages of a PDF; the pages read until then are used."""
_log = logging.getLogger(__name__)


class DocumentPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A section or a part of one. `key` is unique in its document. Lines count from 1, and are 0 for a document without
    lines."""

    key: str
    name: str
    text: str
    first: int = 0
    last: int = 0
    metadata: dict[str, Any] = {}


class SourceText(msgspec.Struct, frozen=True, kw_only=True):
    """A source as text, with the authors, date and address that it states; they are not verified."""

    title: str
    pieces: Sequence[DocumentPiece]
    authors: Sequence[str] = ()
    published_at: datetime | None = None
    url: str = ""


def text_pieces(path: str, text: str, title: str) -> list[DocumentPiece]:
    """The sections of a text in the format of its path, with their headings as names."""
    plain = text.replace("\r\n", "\n").replace("\r", " ").replace("\0", "\ufffd")
    paths, pieces = NodePaths(), []
    for passage in cut_passages(FileFacts(format_of(path)), plain)[:MAX_PIECES]:
        headings = [each for each in (*passage.owner.split(BETWEEN), passage.name) if each and each != title]
        name = cut(clean_name(BETWEEN.join((title, *headings)), title), MAX_NAME)
        for part in split_parts("\n".join(passage.lines)):
            key, content = paths.claim("section", *map(slug, headings)), clean(part).strip()
            piece = DocumentPiece(key=key, name=name, text=content, first=passage.start, last=passage.end)
            pieces += [piece] if content else []
    return pieces[:MAX_PIECES]


def parse_date(text: str) -> datetime | None:
    """A date as pages and files write it, in UTC if it names no zone; None if it is not a date."""
    plain = text.strip().replace("/", "-")
    for form in (plain, plain[:10], f"{plain}-01", f"{plain}-01-01"):
        try:
            found = datetime.fromisoformat(form)
        except ValueError:
            continue
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None


# -- HTML ------------------------------------------------------------------------------------------------------

_NO_CONTENT = frozenset(("nav", "form", "button", "select", "textarea", "math"))
_AUTHOR = ("article:author", "author", "citation_author", "dc.creator")
_DATE = ("article:published_time", "citation_date", "citation_publication_date", "date", "dc.date")
_HTML = lazy_pattern(
    r"\s*(?:<!--.*?-->\s*)?(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])", re.IGNORECASE | re.DOTALL
)


def is_html(text: str) -> bool:
    """Whether a text begins like a page."""
    return _HTML.match(text[:4_000]) is not None


def read_page(text: str, title: str = "") -> SourceText:
    """The visible text of a page, by section. Its lines are not those of a file."""
    from clew.tools.html_text import read_html  # for pages alone

    page = read_html(text, skip=_NO_CONTENT)
    title = clean_name(title, page.title or "Page")
    pieces = [msgspec.structs.replace(each, first=0, last=0) for each in text_pieces("page.md", page.text, title)]
    dates = [page.meta[key][0] for key in _DATE if key in page.meta]
    return SourceText(
        title=title,
        pieces=pieces if page.text else (),
        authors=tuple(name for key in _AUTHOR for name in page.meta.get(key, ())),
        published_at=parse_date(dates[0]) if dates else None,
        url=page.url if page.url.startswith(("https://", "http://")) else "",
    )


# -- PDF -------------------------------------------------------------------------------------------------------

_AND = lazy_pattern(r"\s*(?:;|,|\band\b|&)\s*")
_NO_TITLE = lazy_pattern(r"untitled|microsoft word|.*\.(?:docx?|tex|dvi|pdf|indd)$", re.IGNORECASE)


def read_paper(body: bytes, name: str, title: str = "") -> SourceText:
    """The text of a PDF, page by page. Raises FormatError for a file that is broken, encrypted or without text."""
    from pypdf import apply_configuration  # a slow import that only papers need

    try:
        with apply_configuration(
            zlib_maximum_output_length=MAX_STREAM,
            array_based_stream_maximum_output_length=MAX_STREAM,
            stream_decoding_work_maximum_length=2 * MAX_STREAM,
            stream_parsing_work_maximum_count=MAX_MARKS,
        ):
            reader = _open_pdf(body, name)
            texts, info = _page_texts(reader), reader.metadata
            own_title, author = (str(info.title or ""), str(info.author or "")) if info else ("", "")
            created = info.creation_date if info else None
    except FormatError:
        raise
    except Exception as error:  # the parser may raise anything for a hostile file
        _log.debug("%s could not be read as a PDF: %s", name, type(error).__name__)
        raise FormatError(name, "is not a readable PDF: it may be damaged") from None
    if not any(text.strip() for text in texts):
        raise FormatError(name, "has no text; its pages may be pictures")
    title = clean_name(title, _paper_title(own_title, texts[0], name))
    return SourceText(
        title=title,
        pieces=_page_pieces(texts, title),
        authors=tuple(each[:200] for each in _AND.split(" ".join(clean(author).split())) if each)[:50],
        published_at=created if created is None or created.tzinfo else created.replace(tzinfo=UTC),
    )


def _open_pdf(body: bytes, name: str) -> PdfReader:
    from pypdf import PdfReader  # as above

    reader = PdfReader(BytesIO(body), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise FormatError(name, "is encrypted; save it without its password first")
    return reader


def _page_texts(reader: PdfReader) -> list[str]:
    from pypdf.errors import LimitReachedError  # as above

    texts, size, began = [], 0, time.thread_time()
    for number, page in enumerate(reader.pages):
        if number >= MAX_PAGES or size >= MAX_TEXT or time.thread_time() - began > MAX_SECONDS:
            break
        try:
            extracted = page.extract_text() or ""
        except LimitReachedError:
            extracted = ""
        texts.append(clean(mask_document(extracted[: MAX_TEXT - size])))
        size += len(texts[-1])
    return texts


def _page_pieces(texts: Sequence[str], title: str) -> list[DocumentPiece]:
    pieces = []
    for page, text in enumerate(texts, 1):
        for part, content in enumerate(split_parts(text), 1):
            if content.strip():
                name = f"{title}, page {page}" + (f" (part {part})" if part > 1 else "")
                key = f"page-{page}" + (f"#{part}" if part > 1 else "")
                pieces.append(DocumentPiece(key=key, name=name, text=content.strip(), metadata={"page": page}))
    return pieces[:MAX_PIECES]


def _paper_title(given: str, first: str, name: str) -> str:
    if given.strip() and not _NO_TITLE.match(given.strip()):
        return clean_name(given, name)
    lines = (" ".join(line.split()) for line in first.split("\n"))
    return clean_name(next((line for line in lines if len(line) > 8), name), name)
