"""The design tokens of a project, and which of them has a value: colours are compared by their look, lengths by their
measure. Sources are CSS, SCSS, JSON of the W3C or of Style Dictionary, and the theme of Tailwind; nothing is run."""

from __future__ import annotations

import asyncio
import colorsys
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo
from clew.knowledge.lines import clip
from clew.knowledge.project.formats import parse_json
from clew.knowledge.project.texts import FileText, read_files

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
_HEX = re.compile(r"#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)
_CALL = re.compile(r"(rgb|hsl)a?\(([^()]{1,100})\)", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?(?:\d{1,6}(?:\.\d{0,10})?|\.\d{1,10}))(%|deg)?")
_TRIPLE = re.compile(r"\d{1,3}(?:\.\d+)?(?:deg)?\s+\d{1,3}(?:\.\d+)?%\s+\d{1,3}(?:\.\d+)?%")
_NAMES = {
    "white": "#fff", "black": "#000", "red": "#f00", "green": "#008000", "blue": "#00f", "yellow": "#ff0",
    "orange": "#ffa500", "purple": "#800080", "gray": "#808080", "grey": "#808080", "silver": "#c0c0c0",
    "maroon": "#800000", "navy": "#000080", "teal": "#008080", "olive": "#808000", "lime": "#0f0", "aqua": "#0ff",
    "cyan": "#0ff", "magenta": "#f0f", "fuchsia": "#f0f", "transparent": "#0000",
}  # fmt: skip


class Colour(NamedTuple):
    """Red, green, blue and opacity, each from 0 to 255."""

    red: int
    green: int
    blue: int
    opacity: int = 255

    def distance(self, other: Colour) -> int:
        return sum((mine - theirs) ** 2 for mine, theirs in zip(self, other, strict=True))


class RawToken(NamedTuple):
    """A token as written: the key that refers to it, its name, value, type and line."""

    key: str
    name: str
    value: str
    type: str
    line: int


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
    """The number of leading parts that only name the category."""
    if category == "typography":
        return int(parts[:1] == ["typography"])
    return next((size for size in (2, 1) if _named("-".join(parts[:size])) == category), 0)


# -- sources ---------------------------------------------------------------------------------------------------

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


# -- colours ---------------------------------------------------------------------------------------------------


def read_colour(value: str) -> Colour | None:
    """The colour of `#rgb`, `#rrggbb`, with or without opacity, `rgb()`, `hsl()`, the three bare parts of `hsl()`, or a
    basic name; None for anything else."""
    text = value.strip().lower()[:120]
    text = _NAMES.get(text, text)
    if found := _HEX.fullmatch(text):
        digits = found[1] if len(found[1]) >= 6 else "".join(digit * 2 for digit in found[1])
        return Colour(*(int(digits[at : at + 2], 16) for at in range(0, len(digits), 2)))
    if found := _CALL.fullmatch(text):
        return _from_parts(found[1], found[2])
    return _from_parts("hsl", text) if _TRIPLE.fullmatch(text) else None


def _from_parts(kind: str, inner: str) -> Colour | None:
    parts = [_NUMBER.fullmatch(part) for part in re.split(r"[\s,/]+", inner.strip())]
    numbers = [(float(part[1]), part[2] or "") for part in parts if part is not None]
    if len(parts) not in (3, 4) or len(numbers) != len(parts):
        return None
    opacity = _share(*numbers[3], 1.0) if len(numbers) == 4 else 1.0
    if kind == "rgb":
        shares = [_share(number, unit, 255.0) for number, unit in numbers[:3]]
    else:
        hue, saturation, light = (number for number, _ in numbers[:3])
        shares = list(colorsys.hls_to_rgb(hue % 360 / 360, _share(light, "%", 1), _share(saturation, "%", 1)))
    return Colour(*(round(255 * share) for share in (*shares, opacity)))


def _share(number: float, unit: str, whole: float) -> float:
    return min(1.0, max(0.0, number / 100 if unit == "%" else number / whole))
