"""Documents cut into sections, with the lines that each has in its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from clew.catalog.formats.markdown import find_headings, read_front_matter
from clew.catalog.formats.outline import Heading
from clew.catalog.formats.paths import Paths, slug
from clew.catalog.formats.prose import MAX_NAME, clean_name, cut, split_parts
from clew.catalog.formats.restructured_text import find_titles
from clew.fences import clean

MAX_PIECES = 500
"""The rest of a longer document is left out."""
MAX_SECTIONED = 300_000
"""Characters of markdown in which headings are looked for; a longer text is cut into parts."""

_BETWEEN = " › "


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A section or a part of one. `key` is unique in its document. Lines count from 1, and are 0 for a document without
    lines; `hash` is that of its file where a document has several files."""

    key: str
    name: str
    text: str
    first: int = 0
    last: int = 0
    hash: str = ""
    metadata: dict[str, Any] = {}


def to_lines(text: str) -> list[str]:
    """Split a text into lines as git counts them."""
    return text.replace("\r\n", "\n").replace("\r", " ").replace("\0", "\ufffd").split("\n")


def text_pieces(form: str, text: str, title: str) -> list[Piece]:
    """The sections of a text in a format: `md` or `rst`, or else the whole text, in parts if it is long."""
    lines = to_lines(text)
    if form == "rst":
        return section_pieces(lines, find_titles(lines), title)
    if form not in ("md", "markdown", "mdx"):
        return section_pieces(lines, [], title)
    plain = "\n".join(lines)
    front, metadata = read_front_matter(plain)
    skipped = front.count("\n")
    named = next((metadata[key] for key in ("title", "name") if isinstance(metadata.get(key), str)), title)
    headings = find_headings(plain[len(front) :], first_line=skipped) if len(plain) <= MAX_SECTIONED else []
    return section_pieces(lines, headings, named, begin=skipped)


def section_pieces(lines: Sequence[str], headings: Sequence[Heading], title: str, *, begin: int = 0) -> list[Piece]:
    """The pieces of a text with headings, in order. A single top heading at the start becomes the title; sections
    without text are left out."""
    headings = headings[:MAX_PIECES]
    is_titled = bool(headings) and all(heading.level > headings[0].level for heading in headings[1:])
    title = clean_name(headings[0].name if is_titled else title, title)
    paths, pieces = Paths(), []
    for start, end, body, names in _spans(headings, len(lines), begin, is_titled=is_titled):
        if any(character.isalnum() for line in lines[body:end] for character in line):
            key = paths.claim("section", *(slug(name) for name in names))
            name = cut(_BETWEEN.join((title, *names)), MAX_NAME)
            pieces += _parts(lines[start:end], start, key, name)
    return pieces[:MAX_PIECES] or _parts(lines, 0, "section", title)[:1]


def _spans(
    headings: Sequence[Heading], count: int, begin: int, *, is_titled: bool
) -> Iterator[tuple[int, int, int, tuple[str, ...]]]:
    """For each section: first line, line after the last, first line below the heading, and the path of headings."""
    yield begin, headings[0].start if headings else count, begin, ()
    above: list[tuple[int, str]] = []
    ends = [*(heading.start for heading in headings[1:]), count]
    for at, (heading, end) in enumerate(zip(headings, ends, strict=False)):
        above = [each for each in above if each[0] < heading.level]
        above += [] if at == 0 and is_titled else [(heading.level, heading.name)]
        yield heading.start, end, heading.end, tuple(name for _, name in above[-4:])


def _parts(lines: Sequence[str], start: int, key: str, name: str) -> list[Piece]:
    pieces: list[Piece] = []
    line = start + 1
    for number, part in enumerate(split_parts("\n".join(lines)), 1):
        first = line + len(part) - len(part.lstrip("\n"))
        text = part.strip("\n")
        if content := clean(text).strip():
            label, here = (f"{name} (part {number})", f"{key}#{number}") if number > 1 else (name, key)
            pieces.append(Piece(key=here, name=label, text=content, first=first, last=first + text.count("\n")))
        line += part.count("\n")
    return pieces
