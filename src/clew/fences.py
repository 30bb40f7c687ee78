"""Presents untrusted text as data: without invisible characters, in a fence that its content cannot close."""

from __future__ import annotations

import re
import unicodedata

from clew.lazy_pattern import lazy_pattern

FENCE = 4
"""The minimum number of backticks of a fence."""

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_FILLERS = lazy_pattern("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Letters and marks that have no shape of their own."""
_BREAKS = lazy_pattern("\r\n|[\r\v\f\x85\u2028\u2029]")
_BARS = lazy_pattern("`{3,}")
_MARKS = lazy_pattern(r"^([ \t]*)(#|\[\d)", re.MULTILINE)
_ESCAPED = r"\1\\\2"


def clean(text: str) -> str:
    """Remove invisible characters, which could hide or reorder others. Tabs stay, and all line ends become line
    feeds."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    lines = _BREAKS.sub("\n", text)
    unseen = [each for each in set(lines) if is_unseen(each)]
    return lines.translate(dict.fromkeys(map(ord, unseen))) if unseen else lines


def is_unseen(character: str) -> bool:
    """Whether `clean` removes the character."""
    if character in "\n\t":
        return False
    return unicodedata.category(character) in _INVISIBLE or _FILLERS.match(character) is not None


def fenced(text: str, language: str) -> str:
    """A clean text as a fenced block that its content cannot close."""
    bar = fence_marker(text, FENCE)
    return f"{bar}{language}\n{text}\n{bar}"


def fence_marker(text: str, least: int = 3) -> str:
    """The backticks for a fence: one more than the longest run in the text, and at least `least`."""
    return "`" * max([least, *(len(found) + 1 for found in _BARS.findall(text))])


def escape_headings(text: str) -> str:
    """Escape the markup that would begin a section or an item at the start of a line."""
    return _MARKS.sub(_ESCAPED, text)
