"""The layout of code, by counting: indentation, quotation marks, semicolons, trailing commas. Comments and the contents
of strings are blanked first; lines stay in place."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

Counts = dict[str, Counter[str]]

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
_CHOOSES_QUOTES = frozenset(("python", "javascript", "typescript", "ruby"))
_CHOOSES_SEMICOLONS = frozenset(("javascript", "typescript"))
_NEEDS_SEMICOLONS = frozenset(("java", "c", "cpp", "rust"))
_INDENT = re.compile(r"^([ \t]*)(?=\S)", re.MULTILINE)
_STATEMENT = re.compile(
    r"^[ \t]*(?:import\b|const\b|let\b|var\b|return\b|throw\b|await\b|break\b|continue\b|export\s+\*|[\w.]+\()"
    r".*(?<![,{(\[=+\-*/&|?:<>])$"
)
_GOES_ON = re.compile(r"^\s*(?:[.?:+\-*/&|=)\]}]|$)")
_BRACKETS = re.compile(r"[\[({]|[\])}]|,|;")
_PAIRS = {")": "(", "]": "[", "}": "{"}
_MAX_STEP = 8
_MAX_DEPTH = 200


class Plain(NamedTuple):
    """Code with empty strings and without comments, and how often each quotation mark was chosen."""

    text: str
    double: int
    single: int


def strip_code(text: str, language: str) -> Plain:
    """Blank comments and strings of any text. Attributes of markup and strings with a quote inside count for no
    mark."""
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


class _Open(NamedTuple):
    mark: str
    ends_line: bool
    commas: list[int]


def count_layout(plain: Plain, language: str) -> Counts:
    """Count the choices of one file."""
    counts: Counts = {
        "indent_style": Counter(),
        "indent_size": Counter(),
        "quote_style": Counter(),
        "semicolons": Counter(),
        "trailing_comma": Counter(),
    }
    _count_indents(plain.text, counts)
    if language in _CHOOSES_QUOTES:
        counts["quote_style"].update({"double": plain.double, "single": plain.single})
    if language in _CHOOSES_SEMICOLONS:
        counts["semicolons"].update(_semicolons(plain.text))
    counts["trailing_comma"].update(_last_commas(plain.text, language))
    return counts


def has_semicolons(counts: Counter[str], language: str) -> bool:
    return language in _NEEDS_SEMICOLONS or counts["yes"] > counts["no"]


def name_comma(counts: Counter[str]) -> str:
    """`all`, `es5` (in lists and objects, not in calls) or `none`; empty where no list goes over several lines."""
    inside = counts["item yes"] > counts["item no"]
    in_calls = counts["call yes"] > counts["call no"]
    if not counts.total():
        return ""
    if counts["call yes"] + counts["call no"] == 0:
        return "es5" if inside else "none"
    if counts["item yes"] + counts["item no"] == 0:
        return "all" if in_calls else "none"
    return ("all" if in_calls else "es5") if inside else "none"


def _count_indents(text: str, counts: Counts) -> None:
    before = 0
    for found in _INDENT.finditer(text):
        indent = found[1]
        if indent:
            counts["indent_style"]["tabs" if "\t" in indent else "spaces"] += 1
        step = len(indent) - before
        if 0 < step <= _MAX_STEP and "\t" not in indent and step != 1:
            counts["indent_size"][str(step)] += 1
        before = len(indent)


def _semicolons(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    lines = text.split("\n")
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        end = line.rstrip()
        if end.endswith(";"):
            counts["yes"] += 1
        elif len(end) < 1_000 and _STATEMENT.match(end) and (not _GOES_ON.match(after) or after.strip() in ("", "}")):
            counts["no"] += 1
    return counts


def _last_commas(text: str, language: str) -> Counter[str]:
    """For each bracket that closes on a line of its own after several items: whether the last has a comma."""
    counts: Counter[str] = Counter()
    stack: list[_Open] = []
    for found in _BRACKETS.finditer(text):
        mark, at = found[0], found.start()
        if mark == "," and stack:
            stack[-1].commas.append(at)
        elif mark == ";" and stack:
            stack[-1].commas.clear()
        elif mark in "[({" and len(stack) < _MAX_DEPTH:
            stack.append(_Open(mark, text[at + 1 : at + 40].split("\n")[0].strip() == "", []))
        elif mark in _PAIRS and stack and stack[-1].mark == _PAIRS[mark]:
            opened = stack.pop()
            if opened.ends_line and opened.commas:
                _count_comma(text, at, opened, counts)
    return counts


def _count_comma(text: str, at: int, opened: _Open, counts: Counter[str]) -> None:
    last = text[opened.commas[-1] + 1 : at]
    if "\n" not in text[max(0, at - 200) : at] or text[max(0, at - 200) : at].rpartition("\n")[2].strip():
        return
    where = "call" if opened.mark == "(" else "item"
    counts[f"{where} {'no' if last.strip() else 'yes'}"] += 1
