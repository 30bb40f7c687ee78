"""Papers as PDF: their text page by page, and what the file and its first page say of title, authors, year and
abstract."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING

import msgspec

from clew.catalog.formats.prose import clean_name, split_parts
from clew.errors import FormatError
from clew.fences import clean
from clew.knowledge.references.sections import MAX_PIECES, Piece
from clew.secrecy import mask_document

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_PAGES = 300
MAX_TEXT = 3_000_000
MAX_ABSTRACT = 2_000
MAX_STREAM, MAX_MARKS = 20_000_000, 400_000
"""Bytes and marks of a page, unpacked: one with more is a drawing, or made to keep us busy, and left out."""
MAX_SECONDS = 20.0
"""Of computing for all pages; what was read until then counts."""
MAX_FIRST = 20_000
"""Letters of the first page in which an abstract is looked for."""

_ARXIV = re.compile(r"arXiv:\d{4}\.\d{4,5}(?:v\d+)?\s+\[[\w.-]+\]\s+(\d{1,2})\s+([A-Z][a-z]{2})\s+(\d{4})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ABSTRACT = re.compile(
    r"^\s*abstract\b[\s.:—–-]*(.+?)"
    r"(?=\n\s*(?:keywords?\b|index terms\b|ccs concepts\b|(?:1|I)\.?\s*introduction\b)|\Z)",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_AND = re.compile(r"\s*(?:;|,|\band\b|&)\s*")
_NO_TITLE = re.compile(r"untitled|microsoft word|.*\.(?:docx?|tex|dvi|pdf|indd)$", re.IGNORECASE)
_log = logging.getLogger(__name__)


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """A paper as it was read. `pages` is how many it has, of which the first MAX_PAGES were read."""

    title: str
    authors: tuple[str, ...]
    published_at: datetime | None
    abstract: str
    pages: int
    pieces: list[Piece]


def read_paper(body: bytes, name: str) -> Paper:
    """The text of a PDF without keys. Raises FormatError for a file that is broken, encrypted or has no text."""
    from pypdf import apply_configuration  # native-sized import that only papers need

    try:
        with apply_configuration(
            zlib_maximum_output_length=MAX_STREAM,
            array_based_stream_maximum_output_length=MAX_STREAM,
            stream_decoding_work_maximum_length=2 * MAX_STREAM,
            stream_parsing_work_maximum_count=MAX_MARKS,
        ):
            reader = _open(body, name)
            texts = _texts(reader)
            told = reader.metadata
            title, author = (told.title or "", told.author or "") if told else ("", "")
            created = told.creation_date if told else None
            count = len(reader.pages)
    except FormatError:
        raise
    except Exception as error:  # a stranger's file: the parser promises no more than that it may raise anything
        _log.debug("%s could not be read as a PDF: %s", name, type(error).__name__)
        raise FormatError(name, "is no PDF that can be read; it may be broken") from None
    if not any(text.strip() for text in texts):
        raise FormatError(name, "has no text; its pages may be pictures")
    title = _title(str(title), texts[0], name)
    return Paper(
        title=title,
        authors=tuple(each[:200] for each in _AND.split(" ".join(clean(str(author)).split())) if each)[:50],
        published_at=_published(texts[0], created),
        abstract=_abstract(texts[0]),
        pages=count,
        pieces=_pieces(texts, title),
    )


def _open(body: bytes, name: str) -> PdfReader:
    from pypdf import PdfReader  # as above

    reader = PdfReader(BytesIO(body), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise FormatError(name, "is encrypted; save it without its password first")
    return reader


def _texts(reader: PdfReader) -> list[str]:
    from pypdf.errors import LimitReachedError  # as above

    texts, size, began = [], 0, time.thread_time()
    for number, page in enumerate(reader.pages):
        if number >= MAX_PAGES or size >= MAX_TEXT or time.thread_time() - began > MAX_SECONDS:
            break
        try:
            said = page.extract_text() or ""
        except LimitReachedError:
            said = ""
        text = clean(mask_document(said[: MAX_TEXT - size]))
        size += len(text)
        texts.append(text)
    return texts


def _pieces(texts: Sequence[str], title: str) -> list[Piece]:
    pieces = []
    for page, text in enumerate(texts, 1):
        for part, content in enumerate(split_parts(text), 1):
            if content.strip():
                name = f"{title}, page {page}" + (f" (part {part})" if part > 1 else "")
                key = f"page-{page}" + (f"#{part}" if part > 1 else "")
                pieces.append(Piece(key=key, name=name, text=content.strip(), metadata={"page": page}))
    return pieces[:MAX_PIECES]


def _title(told: str, first: str, name: str) -> str:
    if told.strip() and not _NO_TITLE.match(told.strip()):
        return clean_name(told, name)
    lines = (" ".join(line.split()) for line in first.split("\n"))
    return clean_name(next((line for line in lines if len(line) > 8 and not _ARXIV.search(line)), name), name)


def _published(first: str, created: datetime | None) -> datetime | None:
    """What a preprint's stamp says, or else when the file was made."""
    stamp = _ARXIV.search(first)
    if stamp and stamp[2] in _MONTHS and 1 <= int(stamp[1]) <= 28:
        return datetime(int(stamp[3]), _MONTHS.index(stamp[2]) + 1, int(stamp[1]), tzinfo=UTC)
    if created is None:
        return None
    return created if created.tzinfo else created.replace(tzinfo=UTC)


def _abstract(first: str) -> str:
    lines = (line.strip() for line in first[:MAX_FIRST].split("\n"))
    found = _ABSTRACT.search("\n".join(line for line in lines if line))
    return " ".join(found[1].split())[:MAX_ABSTRACT] if found else ""
