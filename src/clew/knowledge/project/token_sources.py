"""Readers of design tokens: custom properties of CSS, variables of SCSS, JSON of the W3C or of Style Dictionary, and
the theme of Tailwind. Nothing is run; a file that cannot be parsed has no tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from clew.knowledge.project.formats import parse_json
from clew.knowledge.project.texts import FileText

MAX_DEPTH = 12
MAX_LEAVES = 50_000
"""Tokens of JavaScript that are read."""
_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)")
_PROPERTY = re.compile(
    r"(?<![\w-])(--[A-Za-z_][\w-]{0,100}|[$@][A-Za-z_][\w-]{0,100})\s*:\s*([^;{}\n]{1,300})(?=[;}\n])"
)
_FLAG = re.compile(r"(?:(?<!\s)\s++)?!(?:default|global|important)\s*+")
_THEME = re.compile(r"(?<![\w.])theme\s*:\s*\{")
_JSON_FILE = re.compile(
    r"(?:^|/)(?:[\w.-]*tokens?[\w.-]*|theme|colou?rs|spacing|typography|design[\w.-]*)\.json$"
    r"|(?:^|/)(?:design-)?tokens?/.*\.json$",
    re.IGNORECASE,
)
_TAILWIND = re.compile(r"(?:^|/)tailwind\.config\.[cm]?[jt]s$")
_SHEET = re.compile(r"\.(?:css|scss|sass|less|pcss)$")
_TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\$]|\\.)*+`)"
    r"|(?P<word>[\w$.-]+)|(?P<mark>[{}\[\]:,()])|(?P<other>.)",
    re.DOTALL,
)
_SECTIONS = {
    "colors": "color",
    "spacing": "spacing",
    "borderRadius": "radius",
    "boxShadow": "shadow",
    "fontFamily": "font-family",
    "fontSize": "font-size",
    "fontWeight": "font-weight",
    "lineHeight": "line-height",
    "letterSpacing": "letter-spacing",
}


class RawToken(NamedTuple):
    """A token as written: the key that refers to it, its name, value, type and line."""

    key: str
    name: str
    value: str
    type: str
    line: int


Reader = Callable[[FileText], Iterator[RawToken]]


def token_reader_of(path: str) -> Reader | None:
    """The reader of a file of this name, if it may hold tokens."""
    if _TAILWIND.search(path):
        return _tailwind
    if _SHEET.search(path):
        return _sheet
    return _json if _JSON_FILE.search(path) else None


def _sheet(file: FileText) -> Iterator[RawToken]:
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), file.text)
    if not file.path.endswith(".css"):
        text = re.sub(r"(?<!:)//[^\n]*", "", text)
    line, at = 1, 0
    for found in _PROPERTY.finditer(text + "\n"):
        line, at = line + text.count("\n", at, found.start(1)), found.start(1)
        value = _FLAG.sub("", found[2]).strip()
        if value:
            yield RawToken(found[1], found[1].lstrip("-$@"), value, "", line)


def _json(file: FileText) -> Iterator[RawToken]:
    parsed = parse_json(file.text)
    for path, value, type in _groups(parsed.data, (), "", 0):
        yield RawToken(f"{{{'.'.join(path)}}}", "-".join(path), value, type, parsed.span(path)[0])


def _groups(group: object, path: tuple[str, ...], type: str, depth: int) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The tokens below a group, each with its path, value and type; members inherit the type of a group."""
    if not isinstance(group, dict) or depth > MAX_DEPTH:
        return
    said = group.get("$type", group.get("type"))
    type = said if isinstance(said, str) else type
    value = group.get("$value", group.get("value"))
    if path and value is not None and not (isinstance(value, dict) and "$value" not in group and "value" in value):
        if shown := _shown(value):
            yield path, shown, type
        return
    for name, inner in group.items():
        if isinstance(inner, dict) and not name.startswith("$"):
            yield from _groups(inner, (*path, name), type, depth + 1)


def _shown(value: Any) -> str:
    """A value of JSON as CSS would write it."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)[:300]
    if isinstance(value, list):
        return ", ".join(_shown(each) for each in value[:20])[:300]
    if not isinstance(value, dict):
        return ""
    if isinstance(value.get("hex"), str):
        return str(value["hex"])[:20]
    if set(value) == {"value", "unit"}:
        return f"{value['value']}{value['unit']}"[:40]
    return "; ".join(f"{name}: {_shown(each)}" for name, each in list(value.items())[:20])[:300]


def _tailwind(file: FileText) -> Iterator[RawToken]:
    found = _THEME.search(file.text)
    for path, value, position in _read_object(file.text, found.end() - 1) if found else ():
        keys = path[1:] if path[0] == "extend" else path
        if len(keys) > 1 and keys[0] in _SECTIONS:
            name = "-".join((_SECTIONS[keys[0]], *(part for part in keys[1:] if part != "DEFAULT")))
            yield RawToken(".".join(("theme", *keys)), name, value[:300], "", file.line_of(position))


def _read_object(text: str, start: int) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """The literal values of the object of JavaScript whose brace is at `start`, each with its keys and position. Items
    of an array are one value, with commas; computed values are skipped."""
    keys: list[str] = []
    opened: list[str] = []
    key, said, is_plain, position = "", list[str](), True, start
    for token in islice(_TOKEN.finditer(text, start), MAX_LEAVES):
        mark = token["mark"] or ""
        if not token.lastgroup:
            continue  # blanks and comments
        if token["string"] or token["word"]:
            said.append(token[0].strip("\"'`"))
        elif mark == "[" or (mark == "]" and opened[-1:] == ["["]):
            opened.append(mark) if mark == "[" else opened.pop()
        elif opened[-1:] == ["["]:
            is_plain = is_plain and mark == ","
        elif mark == ":" and not key:
            key, said, position = said[-1] if said else "", [], token.start()
        elif mark in ("{", ",", "}"):
            if key and said and is_plain and mark != "{":
                yield (*keys[1:], key), ", ".join(said), position
            if mark == "{":
                opened.append(mark)
                keys.append(key)
            elif mark == "}":
                opened.pop()
                keys.pop()
            key, said, is_plain = "", [], True
        else:
            is_plain = False
        if not opened or len(opened) > MAX_DEPTH:
            return
