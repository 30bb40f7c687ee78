"""A markdown file with front matter, parsed: values with their places, and the body with its first line. Parsing never
fails: problems are reported beside the result."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.lazy_pattern import lazy_pattern
from clew.skills.checks.problems import Fix, Problem
from clew.skills.files.front_matter import FieldPlace, read_front_matter

MAX_BYTES = 1_048_576
"""A larger file is not a definition."""
_FENCE = lazy_pattern(r"-{3,}[ \t]*")
_OF_META = lazy_pattern(r"[A-Za-z][\w-]*[ \t]*:(?:[ \t].*)?|[ \t]+\S.*|-[ \t].*|#.*")


class MarkdownDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One file. `lines` has the line of each key of the front matter (1-based), `body_line` the first line of the body.

    `keys` and `values` have places within lines, by path: `triggers.words[1]`. `head` are the lines of the front matter
    with its fences. `has_meta` is False without front matter. A body has `\\n` for its line ends.
    """

    path: str
    meta: dict[str, Any] = {}
    lines: dict[str, int] = {}
    keys: dict[str, FieldPlace] = {}
    values: dict[str, FieldPlace] = {}
    head: tuple[str, ...] = ()
    body: str = ""
    body_line: int = 1
    has_meta: bool = False
    problems: tuple[Problem, ...] = ()

    def line_of(self, key: str) -> int:
        """Return the line of a key or list item, or the first line."""
        return self.lines.get(key, 1)


def read_document(raw: bytes, path: str) -> MarkdownDocument:
    """Parse a file. Never raises: a file that is not text has no body, and a problem."""
    if len(raw) > MAX_BYTES:
        return _unreadable(path, f"{len(raw):,} bytes are over the limit of {MAX_BYTES:,}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unreadable(path, f"is not UTF-8 text (byte {error.start})")
    if "\x00" in text:
        return _unreadable(path, "is not text: it has NUL characters")
    return _split(text.replace("\r\n", "\n").replace("\r", "\n"), path)


def _split(text: str, path: str) -> MarkdownDocument:
    lines = text.split("\n")
    if not _FENCE.fullmatch(lines[0]):
        return MarkdownDocument(path=path, body=text)
    end = next((n for n, line in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), None)
    if end is None:
        return MarkdownDocument(path=path, body=text, problems=(_unclosed(lines, path),))
    found = read_front_matter("\n".join(lines[1:end]), path)
    items = {key: place.line for key, place in found.values.items()}
    return MarkdownDocument(
        path=path,
        meta=found.meta,
        lines={**items, **{key: place.line for key, place in found.keys.items()}},
        keys=found.keys,
        values=found.values,
        head=tuple(lines[: end + 1]),
        body="\n".join(lines[end + 1 :]),
        body_line=end + 2,
        has_meta=True,
        problems=found.problems,
    )


def _unclosed(lines: list[str], path: str) -> Problem:
    """Return the problem of unclosed front matter, with a fix if its end is obvious."""
    end = next((n for n, line in enumerate(lines[1:], 1) if not _OF_META.fullmatch(line)), len(lines))
    fix = Fix(first=end + 1, last=end, text=("---",), says="close the front matter with ---") if end > 1 else None
    message = "the front matter has no end"
    return Problem(kind="parse", path=path, line=1, message=message, hint="Close it with ---", fix=fix)


def _unreadable(path: str, reason: str) -> MarkdownDocument:
    return MarkdownDocument(path=path, problems=(Problem(kind="parse", path=path, message=reason),))
