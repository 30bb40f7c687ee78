"""The design tokens of a project, and which of them has a value: colours are compared by their look, lengths by their
measure."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, get_args

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.views import FileInfo
from clew.knowledge.lines import clip
from clew.knowledge.project.colours import Colour, read_colour
from clew.knowledge.project.texts import read_files
from clew.knowledge.project.token_sources import RawToken, token_reader_of

Category = Literal["colors", "spacing", "typography", "shadows", "radii", "other"]
CATEGORIES: tuple[str, ...] = get_args(Category)
MAX_FILES, MAX_TOKENS = 300, 5_000
MAX_VALUE = 300
MAX_CHAIN = 8
"""Tokens that may refer to each other in a row."""
NEAR = 1_200
"""The squared distance up to which a colour is suggested in place of one that has no token."""

_REFERENCE = re.compile(r"var\(\s*(--[\w-]{1,100})\s*(?:,[^()]{0,100})?\)|\{([\w.$ -]{1,200})\}|([$@][\w-]{1,100})")
_BARE_ZERO = re.compile(r"(?<![\d.])0+(?=\.\d)")
_COPIED = re.compile(r"(?:^|/)(?:node_modules|vendor|dist|build)/|\.min\.css$")
_BY_NAME: tuple[tuple[Category, re.Pattern[str]], ...] = (
    ("shadows", re.compile(r"(?:box-|drop-)?shadows?|elevations?")),
    ("radii", re.compile(r"(?:border-)?radius|radii|rounded|corners?|corner-radius")),
    ("colors", re.compile(r"colou?rs?|clr|palette")),
    ("spacing", re.compile(r"spac(?:ing|es?)|gaps?|sizes?|sizing|margins?|paddings?|gutters?|insets?")),
    (
        "typography",
        re.compile(
            r"typography|fonts?(?:-(?:size|family|weight)s?)?|text|line-heights?|letter-spacing|leading|tracking"
            r"|font-families"
        ),
    ),
)
_BY_TYPE: dict[str, Category] = {
    "color": "colors",
    "shadow": "shadows",
    "boxshadow": "shadows",
    "borderradius": "radii",
    "typography": "typography",
    **dict.fromkeys(("dimension", "spacing", "sizing"), "spacing"),
    **dict.fromkeys(("fontfamily", "fontsize", "fontweight", "lineheight", "fontfamilies"), "typography"),
    **dict.fromkeys(("fontsizes", "fontweights", "lineheights"), "typography"),
}
_OF_TEXT = frozenset(("font", "line", "leading", "tracking", "text", "letter"))
_LENGTH = re.compile(r"-?(?:\d{1,6}(?:\.\d{1,6})?|\.\d{1,6})(?:px|rem|em|pt)")
_SHADOW = re.compile(r"(?:inset\s+)?-?[\d.]+(?:px|rem)?\s+-?[\d.]+(?:px|rem)?\s.*(?:#|rgb|hsl)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class DesignToken(msgspec.Struct, frozen=True, kw_only=True):
    """A named value, at `source`, `path:line`. `value` has all references resolved; `written` is the text of the file
    where that differs."""

    category: Category
    name: str
    value: str
    source: str
    written: str = ""

    @property
    def path(self) -> str:
        """The token as code would name it: `colors.primary`."""
        return f"{self.category}.{self.name}"


class DesignTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens in the order of their files and lines, and these files."""

    tokens: Sequence[DesignToken]
    sources: Sequence[str]

    def by_category(self) -> Mapping[str, Mapping[str, str]]:
        """Values by category and name; of several with one name, the first."""
        found: dict[str, dict[str, str]] = {}
        for token in self.tokens:
            found.setdefault(token.category, {}).setdefault(token.name, token.value)
        return found


class TokenMatches(msgspec.Struct, frozen=True, kw_only=True):
    found: bool
    matches: Sequence[DesignToken] = ()
    suggestion: str = ""


async def get_design_tokens(code: CodeGraph, category: str = "all") -> DesignTokens:
    """Return the tokens of one category, or all. Raises InvalidInput for an unknown category."""
    if category not in (*CATEGORIES, "all", ""):
        hint = f"Categories are {', '.join(CATEGORIES)} and all"
        raise InvalidInput("category", f"{category[:40]!r} is none", hint=hint)
    chosen = [token for token in await _read(code) if category in (token.category, "all", "")]
    paths = dict.fromkeys(token.source.rpartition(":")[0] for token in chosen)
    return DesignTokens(tokens=chosen, sources=list(paths))


async def find_design_token(code: CodeGraph, value: str) -> TokenMatches:
    """Return the tokens with a value, or suggest the nearest colour. Raises InvalidInput for an empty value."""
    if not value.strip():
        raise InvalidInput("value", "is empty", hint="Give a value such as '#3B82F6' or '16px'")
    wanted = _comparable(value[:MAX_VALUE])
    tokens = await _read(code)
    matches = [token for token in tokens if _comparable(token.value) == wanted]
    return TokenMatches(found=bool(matches), matches=matches, suggestion="" if matches else _suggest(wanted, tokens))


async def _read(code: CodeGraph) -> list[DesignToken]:
    files = await code.files()
    return await asyncio.to_thread(lambda: list(islice(_tokens(code, files), MAX_TOKENS)))


def _tokens(code: CodeGraph, files: Sequence[FileInfo]) -> Iterator[DesignToken]:
    paths = [file.path for file in files if token_reader_of(file.path) and not _COPIED.search(file.path)]
    found: list[tuple[str, RawToken]] = []
    for file in read_files(code, paths[:MAX_FILES]):
        read = token_reader_of(file.path)
        found += ((file.path, raw) for raw in (islice(read(file), MAX_TOKENS) if read else ()))
    known: dict[str, str] = {}
    for _, raw in found:
        known.setdefault(raw.key, raw.value)
    for path, raw in found:
        value = _resolve(raw.value, known)
        category, name = classify(raw.name, value, raw.type)
        written = clip(raw.value) if value != raw.value else ""
        yield DesignToken(category=category, name=name, value=clip(value), source=f"{path}:{raw.line}", written=written)


def _resolve(value: str, known: Mapping[str, str]) -> str:
    """A value with its references replaced; one to an unknown token stays."""

    def replace(found: re.Match[str]) -> str:
        keys = (found[1], f"{{{(found[2] or '').removesuffix('.$value').removesuffix('.value')}}}", found[3])
        return next((known[key] for key in keys if key and key in known), found[0])

    for _ in range(MAX_CHAIN):
        replaced = _REFERENCE.sub(replace, value)[:MAX_VALUE]
        if replaced == value:
            break
        value = replaced
    return value


def _comparable(value: str) -> Colour | str:
    colour = read_colour(value)
    if colour is not None:
        return colour
    return _BARE_ZERO.sub("", re.sub(r"\s*([,()/])\s*", r"\1", " ".join(value.lower().replace('"', "'").split())))


def _suggest(wanted: Colour | str, tokens: Sequence[DesignToken]) -> str:
    text = "No token has this value. Add one, or use an existing one."
    if not isinstance(wanted, Colour):
        return text
    colours = [(colour.distance(wanted), token) for token in tokens if (colour := read_colour(token.value))]
    near, token = min(colours, key=lambda pair: pair[0], default=(NEAR + 1, None))
    if token is None or near > NEAR:
        return text
    return f"{text} The nearest is {token.path} ({token.value}), {token.source}."


def classify(name: str, value: str, type: str = "") -> tuple[Category, str]:
    """The category of a token and its name within it, which does not repeat the category."""
    parts = [part.lower() for part in re.split(r"[-_./\s]+", _HUMP.sub("-", name)) if part]
    category = _category(parts, value, re.sub(r"[^a-z]", "", type.lower()))
    used = _prefix(parts, category)
    rest = parts[used:] if 0 < used < len(parts) else parts
    return category, "-".join(rest) or name


def _category(parts: list[str], value: str, type: str) -> Category:
    is_colour = read_colour(value) is not None
    if type in _BY_TYPE and _BY_TYPE[type] != "spacing":
        return _BY_TYPE[type]
    for size in (2, 1):
        for at in range(max(1, len(parts) - size + 1)):
            found = _named("-".join(parts[at : at + size]))
            if found and not (found == "typography" and is_colour) and not (found == "colors" and not is_colour and at):
                return found
    if type in _BY_TYPE:
        return _BY_TYPE[type]
    if is_colour:
        return "colors"
    if _SHADOW.match(value[:MAX_VALUE]):
        return "shadows"
    return "spacing" if _LENGTH.fullmatch(value) and _OF_TEXT.isdisjoint(parts) else "other"


def _named(word: str) -> Category | None:
    return next((category for category, shape in _BY_NAME if shape.fullmatch(word)), None)


def _prefix(parts: list[str], category: Category) -> int:
    """How many parts at the start only name the category."""
    if category == "typography":
        return int(parts[:1] == ["typography"])
    return next((size for size in (2, 1) if _named("-".join(parts[:size])) == category), 0)
