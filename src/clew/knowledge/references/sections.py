"""Documents in pieces: one for each section, or several where a section is long, each with the lines that it has in the
file."""

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
"""What a document has beyond this is left out."""
MAX_SECTIONED = 300_000
"""Characters of markdown in which headings are looked for; a longer text is given in parts."""

_BETWEEN = " › "


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A section or a part of one. `key` tells it from the others of its document and stays while its headings do. Lines
    count from 1 and are 0 where the document has none; `hash` is that of its file where a document has several."""

    key: str
    name: str
    text: str
    first: int = 0
    last: int = 0
    hash: str = ""
    metadata: dict[str, Any] = {}


def to_lines(text: str) -> list[str]:
    """The lines of a text as git counts them: other line ends do not end one."""
    return text.replace("\r\n", "\n").replace("\r", " ").replace("\0", "\ufffd").split("\n")


def markdown_pieces(text: str, title: str) -> list[Piece]:
    """A piece for every heading of markdown, and one for what stands before the first; front matter is left out."""
    lines = to_lines(text)
    plain = "\n".join(lines)
    front, said = read_front_matter(plain)
    skipped = front.count("\n")
    named = next((said[key] for key in ("title", "name") if isinstance(said.get(key), str)), title)
    headings = find_headings(plain[len(front) :], first_line=skipped) if len(plain) <= MAX_SECTIONED else []
    return section_pieces(lines, headings, named, begin=skipped)


def restructured_pieces(text: str, title: str) -> list[Piece]:
    """A piece for every title of reStructuredText."""
    lines = to_lines(text)
    return section_pieces(lines, find_titles(lines), title)


def plain_pieces(text: str, title: str) -> list[Piece]:
    """The whole text, in parts where it is long."""
    return section_pieces(to_lines(text), [], title)


def section_pieces(lines: Sequence[str], headings: Sequence[Heading], title: str, *, begin: int = 0) -> list[Piece]:
    """The pieces of a text with headings, in order. A first heading that stands above all others is the title. A
    section that has nothing but its heading gives no piece."""
    headings = headings[:MAX_PIECES]
    is_titled = bool(headings) and all(heading.level > headings[0].level for heading in headings[1:])
    title = clean_name(headings[0].name if is_titled else title, title)
    paths, pieces = Paths(), []
    for start, end, body, names in _spans(headings, len(lines), begin, is_titled=is_titled):
        if _has_words(lines[body:end]):
            key = paths.claim("section", *(slug(name) for name in names))
            name = cut(_BETWEEN.join((title, *names)), MAX_NAME)
            pieces += _parts(lines[start:end], start, key, name)
    return pieces[:MAX_PIECES] or _parts(lines, 0, "section", title)[:1]


def _spans(
    headings: Sequence[Heading], count: int, begin: int, *, is_titled: bool
) -> Iterator[tuple[int, int, int, tuple[str, ...]]]:
    """First line, line after the last, first line below the heading, and the headings on the way, of each section."""
    yield begin, headings[0].start if headings else count, begin, ()
    above: list[tuple[int, str]] = []
    ends = [*(heading.start for heading in headings[1:]), count]
    for at, (heading, end) in enumerate(zip(headings, ends, strict=False)):
        if at == 0 and is_titled:
            yield heading.start, end, heading.end, ()
            continue
        while above and above[-1][0] >= heading.level:
            above.pop()
        above.append((heading.level, heading.name))
        yield heading.start, end, heading.end, tuple(name for _, name in above[-4:])


def _parts(lines: Sequence[str], start: int, key: str, name: str) -> list[Piece]:
    pieces: list[Piece] = []
    line = start + 1
    for number, part in enumerate(split_parts("\n".join(lines)), 1):
        ahead = len(part) - len(part.lstrip("\n"))
        text = part.strip("\n")
        if content := clean(text).strip():
            first = line + ahead
            label = f"{name} (part {number})" if number > 1 else name
            here = f"{key}#{number}" if number > 1 else key
            pieces.append(Piece(key=here, name=label, text=content, first=first, last=first + text.count("\n")))
        line += part.count("\n")
    return pieces


def _has_words(lines: Sequence[str]) -> bool:
    return any(character.isalnum() for line in lines for character in line)
