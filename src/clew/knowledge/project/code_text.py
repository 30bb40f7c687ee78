"""Code without its comments and the contents of its strings, so that what is left can be counted. Lines stay where they
are."""

from __future__ import annotations

import re
from typing import NamedTuple

_C = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_LINE_STRINGS = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
_SCANNERS = {
    "python": re.compile(
        r"(?s:(?P<long>\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)|'''(?:[^\\]|\\.)*?(?:'''|\Z)))"
        rf"|(?P<comment>#[^\n]*)|(?P<string>{_LINE_STRINGS})"
    ),
    "ruby": re.compile(rf"(?P<comment>(?<![\w\"'])#(?!\{{)[^\n]*)|(?P<long>(?!))|(?P<string>{_LINE_STRINGS})"),
    "javascript": re.compile(rf"(?P<comment>{_C})|(?P<long>`(?:[^`\\]|\\.)*+`)|(?P<string>{_LINE_STRINGS})", re.DOTALL),
    "rust": re.compile(rf"(?P<comment>{_C})|(?P<long>(?!))|(?P<string>\"(?:[^\"\\]|\\.)*+\")", re.DOTALL),
    "other": re.compile(rf"(?P<comment>{_C})|(?P<long>`[^`]*`)|(?P<string>{_LINE_STRINGS})"),
}
_FAMILY = {"typescript": "javascript", "tsx": "javascript"}
_MARKUP_VALUE = re.compile(r"[\w:-]=\Z")


class Plain(NamedTuple):
    """Code to be counted: its text with empty strings, and how often each quotation mark was chosen."""

    text: str
    double: int
    single: int


def strip_code(text: str, language: str) -> Plain:
    """Never raises, for any text. Values of markup and strings that hold the other mark were no choice."""
    family = _FAMILY.get(language, language)
    marks = {'"': 0, "'": 0}

    def blank(found: re.Match[str]) -> str:
        whole = found[0]
        if found["comment"] is not None:
            return "\n" * whole.count("\n")
        if found["string"] is not None and not _is_forced(found, family):
            marks[whole[0]] += 1
        return '"' + "\n" * whole.count("\n") + '"'

    plain = _SCANNERS.get(family, _SCANNERS["other"]).sub(blank, text)
    return Plain(plain, marks['"'], marks["'"])


def _is_forced(found: re.Match[str], family: str) -> bool:
    inner = found[0][1:-1]
    start = found.start()
    is_markup = family == "javascript" and _MARKUP_VALUE.search(found.string[max(0, start - 2) : start]) is not None
    return is_markup or '"' in inner or "'" in inner
