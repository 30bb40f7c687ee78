"""Design tokens as projects write them down: custom properties of CSS, variables of SCSS, JSON files in the shape of
the W3C or of Style Dictionary, and the theme of Tailwind. Nothing is run; what cannot be read has no tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from clew.knowledge.project.script_objects import Leaf, read_object
from clew.knowledge.project.texts import FileText

MAX_DEPTH = 12
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


class Raw(NamedTuple):
    """A token as it is written: what refers to it, its name, value and type, and the line."""

    key: str
    name: str
    value: str
    type: str
    line: int


Reader = Callable[[FileText], Iterator[Raw]]


def reader_of(path: str) -> Reader | None:
    """What reads the tokens of a file of this name, if it may have any."""
    if _TAILWIND.search(path):
        return _tailwind
    if _SHEET.search(path):
        return _sheet
    return _json if _JSON_FILE.search(path) else None


def _sheet(file: FileText) -> Iterator[Raw]:
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), file.text)
    if not file.path.endswith(".css"):
        text = re.sub(r"(?<!:)//[^\n]*", "", text)
    line, at = 1, 0
    for found in _PROPERTY.finditer(text + "\n"):
        line, at = line + text.count("\n", at, found.start(1)), found.start(1)
        value = _FLAG.sub("", found[2]).strip()
        if value:
            yield Raw(found[1], found[1].lstrip("-$@"), value, "", line)


def _json(file: FileText) -> Iterator[Raw]:
    try:
        said = json.loads(file.text)
    except (ValueError, RecursionError):
        return
    lines = _LineFinder(file)
    for path, value, type in _groups(said, (), "", 0):
        yield Raw(f"{{{'.'.join(path)}}}", "-".join(path), value, type, lines.find(path))


def _groups(group: object, path: tuple[str, ...], type: str, depth: int) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The tokens below a group, each with its path, value and type; a group gives its type to what is in it."""
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
            yield from _groups(inner, (*path, name[:100]), type, depth + 1)


def _shown(value: Any) -> str:
    """A value of JSON as CSS would have it."""
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


class _LineFinder:
    """Finds the lines of keys, in the order in which a file has them."""

    def __init__(self, file: FileText) -> None:
        self._file = file
        self._at: dict[tuple[str, ...], int] = {(): 0}

    def find(self, path: tuple[str, ...]) -> int:
        return self._file.line_of(self._position(path))

    def _position(self, path: tuple[str, ...]) -> int:
        if path not in self._at:
            start = self._position(path[:-1])
            found = re.compile(re.escape(json.dumps(path[-1])) + r"\s*:").search(self._file.text, start + 1)
            self._at[path] = found.start() if found else start
        return self._at[path]


def _tailwind(file: FileText) -> Iterator[Raw]:
    found = _THEME.search(file.text)
    if found is None:
        return
    for leaf in read_object(file.text, found.end() - 1):
        path = leaf.path[1:] if leaf.path[0] == "extend" else leaf.path
        if len(path) > 1 and path[0] in _SECTIONS:
            yield _theme_token(file, leaf, path)


def _theme_token(file: FileText, leaf: Leaf, path: tuple[str, ...]) -> Raw:
    rest = [part for part in path[1:] if part != "DEFAULT"]
    name = "-".join((_SECTIONS[path[0]], *rest))
    return Raw(".".join(("theme", *path)), name, leaf.value[:300], "", file.line_of(leaf.position))
