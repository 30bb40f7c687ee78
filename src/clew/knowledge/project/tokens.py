"""The design tokens of a project, and which of them has a value: colours are compared by their look, lengths by their
measure. Sources are CSS, SCSS, and JSON of the W3C or of Style Dictionary."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, Literal, NamedTuple

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo
from clew.knowledge.lines import clip
from clew.knowledge.project.formats import parse_json
from clew.knowledge.project.texts import FileText, read_files
from clew.lazy_pattern import lazy_pattern

Category = Literal["colors", "spacing", "typography", "shadows", "radii", "other"]
MAX_FILES, MAX_TOKENS = 300, 5_000
MAX_VALUE = 300
MAX_CHAIN = 8
"""Tokens that may refer to each other in a row."""
MAX_DEPTH = 12

_REFERENCE = lazy_pattern(
    r"var\(\s*(--[\w-]{1,100})\s*(?:,[^()]{0,100})?\)|\{([\w.$ -]{1,200}?)(?:\.\$?value)?\}|([$@][\w-]{1,100})"
)
_BARE_ZERO = lazy_pattern(r"(?<![\d.])0+(?=\.\d)")
_COPIED = lazy_pattern(r"(?:^|/)(?:node_modules|vendor|dist|build)/|\.min\.css$")
_BY_NAME: tuple[tuple[Category, re.Pattern[str]], ...] = (
    ("shadows", lazy_pattern(r"(?:box-|drop-)?shadows?|elevations?")),
    ("radii", lazy_pattern(r"(?:border-|corner-)?radius|radii|rounded|corners?")),
    ("colors", lazy_pattern(r"colou?rs?|clr|palette")),
    ("spacing", lazy_pattern(r"spac(?:ing|es?)|gaps?|sizes?|sizing|margins?|paddings?|gutters?|insets?|dimension")),
    ("typography", lazy_pattern(r"typography|fonts?(?:-\w+)?|text|line-heights?|letter-spacing|leading|tracking")),
)
_OF_TEXT = frozenset(("font", "line", "leading", "tracking", "text", "letter"))
_LENGTH = lazy_pattern(r"-?(?:\d{1,6}(?:\.\d{1,6})?|\.\d{1,6})(?:px|rem|em|pt)")
_SHADOW = lazy_pattern(r"(?:inset\s+)?-?[\d.]+(?:px|rem)?\s+-?[\d.]+(?:px|rem)?\s.*(?:#|rgb|hsl)")
_HUMP = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_COMMENT = lazy_pattern(r"/\*(?>(?:[^*]|\*(?!/))*)(?:\*/|\Z)|(?<!:)//[^\n]*")
_PROPERTY = lazy_pattern(
    r"(?<![\w-])(--[A-Za-z_][\w-]{0,100}|[$@][A-Za-z_][\w-]{0,100})\s*:\s*([^;{}\n]{1,300})(?=[;}\n])"
)
_FLAG = lazy_pattern(r"(?:(?<!\s)\s++)?!(?:default|global|important)\s*+")
_JSON_FILE = lazy_pattern(
    r"(?:^|/)(?:[\w.-]*tokens?[\w.-]*|theme|colou?rs|spacing|typography|design[\w.-]*)\.json$"
    r"|(?:^|/)(?:design-)?tokens?/.*\.json$",
    re.IGNORECASE,
)
_SHEET = lazy_pattern(r"\.(?:css|scss|sass|less|pcss)$")
_HEX = lazy_pattern(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_RGB = lazy_pattern(r"rgba?\(([\d\s.,/%]{5,60})\)")


class Colour(NamedTuple):
    """Red, green, blue and opacity, each from 0 to 255."""

    red: int
    green: int
    blue: int
    opacity: int = 255


class RawToken(NamedTuple):
    """A token as written: the key that refers to it, its name, value and line."""

    key: str
    name: str
    value: str
    line: int


class DesignToken(msgspec.Struct, frozen=True, kw_only=True):
    """A named value with all references resolved, at `source`, `path:line`."""

    category: Category
    name: str
    value: str
    source: str

    @property
    def path(self) -> str:
        """The token as code would name it: `colors.primary`."""
        return f"{self.category}.{self.name}"


class TokenMatches(msgspec.Struct, frozen=True, kw_only=True):
    found: bool
    matches: Sequence[DesignToken]


async def get_design_tokens(code: CodeGraph, category: Category | Literal["all"] = "all") -> list[DesignToken]:
    """List the colours, spacings and other design tokens of the project."""
    return [token for token in await _read(code) if category in (token.category, "all")]


async def find_design_token(code: CodeGraph, value: str) -> TokenMatches:
    """Find the design token of a value, such as #3B82F6.

    Raises InvalidInput for an empty value.
    """
    if not value.strip():
        raise InvalidInput("value", "is empty", hint="Give a value such as '#3B82F6' or '16px'")
    wanted = _comparable(value[:MAX_VALUE])
    matches = [token for token in await _read(code) if _comparable(token.value) == wanted]
    return TokenMatches(found=bool(matches), matches=matches)


async def _read(code: CodeGraph) -> list[DesignToken]:
    files = await code.files()
    return await asyncio.to_thread(lambda: list(islice(_tokens(code, files), MAX_TOKENS)))


def _tokens(code: CodeGraph, files: Sequence[FileInfo]) -> Iterator[DesignToken]:
    paths = [file.path for file in files if _reader_of(file.path) and not _COPIED.search(file.path)]
    found: list[tuple[str, RawToken]] = []
    for file in read_files(code, paths[:MAX_FILES]):
        read = _reader_of(file.path)
        found += ((file.path, raw) for raw in (islice(read(file), MAX_TOKENS) if read else ()))
    known = {raw.key: raw.value for _, raw in reversed(found)}
    for path, raw in found:
        value = _resolve(raw.value, known)
        category, name = classify(raw.name, value)
        yield DesignToken(category=category, name=name, value=clip(value), source=f"{path}:{raw.line}")


def _resolve(value: str, known: Mapping[str, str]) -> str:
    """A value with its references replaced; one to an unknown token stays."""
    for _ in range(MAX_CHAIN):
        replaced = _REFERENCE.sub(lambda found: known.get(found[1] or found[2] or found[3], found[0]), value)
        if replaced == value:
            break
        value = replaced[:MAX_VALUE]
    return value


def _comparable(value: str) -> Colour | str:
    colour = read_colour(value)
    if colour is not None:
        return colour
    return _BARE_ZERO.sub("", re.sub(r"\s*([,()/])\s*", r"\1", " ".join(value.lower().replace('"', "'").split())))


def classify(name: str, value: str) -> tuple[Category, str]:
    """The category of a token and its name within it, which does not repeat the category."""
    parts = [part.lower() for part in re.split(r"[-_./\s]+", _HUMP.sub("-", name)) if part]
    category = _category(parts, value)
    used = next((size for size in (2, 1) if _named("-".join(parts[:size])) == category), 0)
    if category == "typography":
        used = int(parts[:1] == ["typography"])
    rest = parts[used:] if used < len(parts) else parts
    return category, "-".join(rest) or name


def _category(parts: list[str], value: str) -> Category:
    """Classify a token by one or two words of its name, then by its value."""
    is_colour = read_colour(value) is not None
    for words in (*pairwise(parts), *((part,) for part in parts)):
        found = _named("-".join(words))
        is_other = found == "typography" if is_colour else found == "colors" and words[0] != parts[0]
        if found and not is_other:
            return found
    if is_colour:
        return "colors"
    if _SHADOW.match(value[:MAX_VALUE]):
        return "shadows"
    return "spacing" if _LENGTH.fullmatch(value) and _OF_TEXT.isdisjoint(parts) else "other"


def _named(word: str) -> Category | None:
    return next((category for category, shape in _BY_NAME if shape.fullmatch(word)), None)


# -- sources ---------------------------------------------------------------------------------------------------


def _reader_of(path: str) -> Callable[[FileText], Iterator[RawToken]] | None:
    readers = ((_SHEET, _read_sheet), (_JSON_FILE, _read_json))
    return next((read for shape, read in readers if shape.search(path)), None)


def _read_sheet(file: FileText) -> Iterator[RawToken]:
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), file.text)
    line, at = 1, 0
    for found in _PROPERTY.finditer(text + "\n"):
        line, at = line + text.count("\n", at, found.start(1)), found.start(1)
        if value := _FLAG.sub("", found[2]).strip():
            yield RawToken(found[1], found[1].lstrip("-$@"), value, line)


def _read_json(file: FileText) -> Iterator[RawToken]:
    parsed = parse_json(file.text)
    for path, value in _values(parsed.data, ()):
        yield RawToken(".".join(path), "-".join(path), value, parsed.span(path)[0])


def _values(group: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The tokens below a group, each with its path and value."""
    value = group.get("$value", group.get("value"))
    if isinstance(value, dict):
        value = value.get("hex") or f"{value.get('value', '')}{value.get('unit', '')}"
    if isinstance(value, list):
        value = ", ".join(map(str, value[:20]))
    if path and isinstance(value, str | int | float):
        yield path, str(value)[:MAX_VALUE]
        return
    for name, inner in group.items() if len(path) <= MAX_DEPTH else ():
        if isinstance(inner, dict) and not name.startswith("$"):
            yield from _values(inner, (*path, name))


# -- colours ---------------------------------------------------------------------------------------------------


def read_colour(value: str) -> Colour | None:
    """The colour of `#rgb`, `#rrggbb`, with or without opacity, or of `rgb()`; None for anything else."""
    text = value.strip().lower()[:120]
    if found := _HEX.fullmatch(text):
        digits = found[1] if len(found[1]) >= 6 else "".join(digit * 2 for digit in found[1])
        return Colour(*bytes.fromhex(digits))
    found = _RGB.fullmatch(text)
    parts = re.findall(r"(\d+(?:\.\d+)?|\.\d+)(%?)", found[1]) if found else []
    if len(parts) not in (3, 4):
        return None
    wholes = (255.0, 255.0, 255.0, 1.0)
    shares = [float(number) / (100 if unit else whole) for (number, unit), whole in zip(parts, wholes, strict=False)]
    return Colour(*(round(255 * min(1.0, share)) for share in shares))
