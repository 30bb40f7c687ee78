"""Text on one line, cut to a length."""

from __future__ import annotations

from clew.lazy_pattern import lazy_pattern

_SPACE = lazy_pattern(r"\s+")


def clip(text: str, limit: int = 200) -> str:
    """A text on one line, of `limit` characters at the most."""
    return cut(_SPACE.sub(" ", text).strip(), limit)


def cut(line: str, limit: int) -> str:
    """A line of `limit` characters at the most; `…` marks the omitted text."""
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
