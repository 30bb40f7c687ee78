"""The text of an RFC: its number, title, date and authors from the first page, its sections by their numbers. The lines
that only divide pages are left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from clew.catalog.formats.outline import Heading
from clew.catalog.formats.prose import clean_name
from clew.knowledge.references.sections import to_lines

_NUMBER = re.compile(r"(?:Request for Comments:|\bRFC)\s*(\d{1,5})\b")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DATE = re.compile(rf"\b({'|'.join(_MONTHS)})\s+(?:\d{{1,2}},?\s+)?(\d{{4}})\b")
_AUTHOR = re.compile(r"(?<!\s)\s{3,}+((?:[A-Z]\.[ -]?){1,3}(?:[a-z]+ )?[A-Z][\w'’-]+(?:, Ed\.)?)\s*$")
_SECTION = re.compile(r"(?:Appendix\s+)?(\d{1,2}(?:\.\d{1,3}){0,4}|[A-Z](?:\.\d{1,2}){0,3})\.?\s{1,3}(\S.*)")
_FOOT = re.compile(r".{0,120}\[Page \d+\]\s*$")
_RUNNING = re.compile(r"RFC \d{1,5}\s{2,}.*\s{2,}.*\d{4}\s*$")
_CONTENTS = re.compile(r"(?:\.\s?){3,}\s*\d+\s*$|\s{3,}\d+\s*$")
_NAMED = frozenset(("abstract", "status of this memo", "copyright notice", "table of contents", "acknowledgements"))
_HEAD = 60
"""Lines at the top that tell what it is."""
_WIDTH = 200
"""No line of an RFC is longer; of one that is, only the beginning is looked at."""


class Rfc(msgspec.Struct, frozen=True, kw_only=True):
    """What an RFC says of itself. `number` is empty where it names none."""

    number: str
    title: str
    authors: tuple[str, ...]
    published_at: datetime | None
    lines: list[str]
    headings: list[Heading]


def read_rfc(text: str) -> Rfc:
    """An RFC as it is published in text. Lines stay where they are: those between pages are blank."""
    lines = [_without_page(line) for line in to_lines(text.replace("\f", " "))]
    head = [line[:_WIDTH] for line in lines[:_HEAD]]
    number = next((found[1] for line in head if (found := _NUMBER.search(line))), "")
    return Rfc(
        number=number,
        title=_title(head, number),
        authors=tuple(dict.fromkeys(found[1] for line in head[:20] if (found := _AUTHOR.search(line)))),
        published_at=_date(head),
        lines=lines,
        headings=_headings(lines),
    )


def _without_page(line: str) -> str:
    is_short = len(line) <= _WIDTH
    return "" if is_short and (_FOOT.fullmatch(line) or _RUNNING.fullmatch(line)) else line.rstrip()


def _date(head: Sequence[str]) -> datetime | None:
    found = next((found for line in head if (found := _DATE.search(line))), None)
    return datetime(int(found[2]), _MONTHS.index(found[1]) + 1, 1, tzinfo=UTC) if found else None


def _title(head: Sequence[str], number: str) -> str:
    """The first lines after the block of names that stand by themselves, as they do in the middle of the page."""
    at = next((at for at, line in enumerate(head) if _NUMBER.search(line)), 0)
    while at < len(head) and head[at].strip():
        at += 1
    while at < len(head) and not head[at].strip():
        at += 1
    said = []
    while at < len(head) and head[at].strip():
        said.append(head[at].strip())
        at += 1
    title = clean_name(" ".join(said[:3]), f"RFC {number}")
    return f"RFC {number}: {title}" if number else title


def _headings(lines: Sequence[str]) -> list[Heading]:
    found = []
    for at, line in enumerate(lines):
        is_free = at == 0 or not lines[at - 1].strip()
        if not line or line[0].isspace() or not is_free or len(line) > 100 or _CONTENTS.search(line):
            continue
        numbered = _SECTION.fullmatch(line)
        if numbered or line.strip().lower() in _NAMED:
            level = numbered[1].count(".") + 1 if numbered else 1
            found.append(Heading(level=level, start=at, end=at + 1, name=clean_name(line, "Section")))
    return found
