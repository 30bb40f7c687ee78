"""Names and descriptions from running text, and long text in parts."""

from __future__ import annotations

import re
import unicodedata

from clew.fences import fence_marker
from clew.lazy_pattern import lazy_pattern

MAX_NAME = 200
MAX_DESCRIPTION = 300
PART = 4_000
"""About how many characters a part of a long text has."""

WHOLE = 2 * PART
"""Text up to this length stays in one piece."""

_LOOKED_AT = 4_000
_BREAKS = tuple(map(re.compile, (r"\n[ \t]*\n(?=\S)", r"\n[ \t]*\n", r"\n", r"[ \t]")))
_LINK = lazy_pattern(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_ANCHOR = lazy_pattern(r"</?a\b[^<>]*>|\{#[^{}]*\}\s*$")
_ESCAPE = lazy_pattern(r"\\([!-/:-@\[-`{-~])")
_NO_PROSE = lazy_pattern(r"#|<|\||!\[|\[!\[|\.\. |:[\w-]+:(\s|$)|[-=*~^+_\s]+$")
_ASIDE = lazy_pattern(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL | re.MULTILINE)
_TABLE_RULE = lazy_pattern(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_BULLET = lazy_pattern(r"(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)")
_ROWS = 12
"""Lines of a list or a table that may serve as a description."""
_JOINERS = "\u200c\u200d"


def clean_text(text: str) -> str:
    """The text with uniform line ends and without NUL characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def clean_name(text: str, fallback: str) -> str:
    """One line for people, never empty: no control characters, at most MAX_NAME long."""
    return cut(one_line(text[: 4 * MAX_NAME]), MAX_NAME) or one_line(fallback[:MAX_NAME]) or "unnamed"


def clean_heading(text: str, fallback: str) -> str:
    """The plain text of a markdown heading: links are replaced by their text; anchors and markup are removed."""
    plain = _ANCHOR.sub("", _LINK.sub(r"\1", text[: 4 * MAX_NAME]))
    return clean_name(_ESCAPE.sub(r"\1", plain.replace("`", "").replace("**", "")), clean_name(text, fallback))


def describe(text: str) -> str:
    """The first paragraph of prose, on one line and cut at a sentence; without any, the first list or table. Empty when
    there is none of these."""
    listed = ""
    for block in re.split(r"\n[ \t]*\n", _ASIDE.sub("\n\n", clean_text(text[:_LOOKED_AT]))):
        lines = [line.strip().removeprefix("> ") for line in block.split("\n") if line.strip()]
        if items := _table_rows(lines) or _list_items(lines):
            listed = listed or "; ".join(items)
            continue
        prose = [line for line in lines if not _NO_PROSE.match(line)]
        if prose:
            return _on_one_line(" ".join(prose))
    return _on_one_line(listed)


def _on_one_line(text: str) -> str:
    return cut_sentence(one_line(_LINK.sub(r"\1", text)[: 2 * MAX_DESCRIPTION]))


def _table_rows(lines: list[str]) -> list[str]:
    """The head and the rows of a table, their cells divided by commas."""
    at = next(
        (at for at, line in enumerate(lines) if at and _TABLE_RULE.fullmatch(line) and "|" in lines[at - 1]), None
    )
    if at is None:
        return []
    rows = [lines[at - 1], *lines[at + 1 : at + 1 + _ROWS]]
    return [", ".join(filter(None, (cell.strip() for cell in row.strip("|").split("|")))) for row in rows]


def _list_items(lines: list[str]) -> list[str]:
    """The first items of a list, each with the lines that continue it."""
    if not lines or not _BULLET.match(lines[0]):
        return []
    items: list[str] = []
    for line in lines[:_ROWS]:
        plain = _BULLET.sub("", line)
        items = [*items, plain] if plain != line else [*items[:-1], f"{items[-1]} {line}"]
    return items


def one_line(text: str) -> str:
    """The text on one line, without control characters and repeated spaces."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return " ".join("".join(character if _is_readable(character) else " " for character in line).split())


def cut_sentence(text: str) -> str:
    """Truncate a text to MAX_DESCRIPTION characters: after a complete sentence if enough text remains, otherwise with
    `…`."""
    if len(text) <= MAX_DESCRIPTION:
        return text
    ends = [found.end() for found in re.finditer(r"[.!?](?=\s)|[。！？]", text[:MAX_DESCRIPTION])]
    return text[: ends[-1]] if ends and ends[-1] > MAX_DESCRIPTION // 3 else cut(text, MAX_DESCRIPTION)


def cut(text: str, limit: int) -> str:
    """Truncate a text to `limit` characters, with … at the end."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def fence(text: str, language: str = "") -> str:
    """A fenced code block that the text cannot close."""
    bar = fence_marker(text)
    return f"{bar}{language}\n{text.rstrip()}\n{bar}"


def join_blocks(*blocks: str | None) -> str:
    """Join the non-empty blocks, with a blank line between them."""
    return "\n\n".join(block.strip("\n") for block in blocks if block and block.strip())


def tell(*facts: str) -> str:
    """Join the non-empty facts on one line."""
    return one_line("; ".join(filter(None, facts)))


def split_parts(text: str) -> list[str]:
    """Split a text into pieces of about PART characters, whose concatenation is the original text. Breaks are before a
    paragraph if possible, else at the end of a line, else at a space, else anywhere. Text of at most WHOLE characters
    stays in one piece."""
    parts: list[str] = []
    start = 0
    while len(text) - start > WHOLE or (parts and len(text) - start > PART + PART // 2):
        end = _find_break(text, start)
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]


def _find_break(text: str, start: int) -> int:
    low, high = start + PART // 2, start + PART
    for pattern in _BREAKS:
        ends = [found.end() for found in pattern.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return high


def _is_readable(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cs")
