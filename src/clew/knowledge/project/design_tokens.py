"""The design tokens of a project, and which of them a value has: colours are compared by what they look like, lengths
by what they measure."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import get_args

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo
from clew.knowledge.lines import clip
from clew.knowledge.project.colours import Colour, read_colour
from clew.knowledge.project.texts import read_files
from clew.knowledge.project.token_naming import Category, DesignToken, classify
from clew.knowledge.project.token_sources import Raw, reader_of

CATEGORIES: tuple[str, ...] = get_args(Category)
MAX_FILES, MAX_TOKENS = 300, 5_000
MAX_VALUE = 300
_REFERENCE = re.compile(r"var\(\s*(--[\w-]{1,100})\s*(?:,[^()]{0,100})?\)|\{([\w.$ -]{1,200})\}|([$@][\w-]{1,100})")
_CHAIN = 8
"""Tokens that may refer to each other in a row."""
_NEAR = 1_200
"""How far, squared, the colour of a token may be that is shown in the place of one that there is not."""
_BARE_ZERO = re.compile(r"(?<![\d.])0+(?=\.\d)")
_COPIED = re.compile(r"(?:^|/)(?:node_modules|vendor|dist|build)/|\.min\.css$")


class DesignTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens in the order of their files and lines, and the files that they are from."""

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
    """The tokens of one category, or all. Raises InvalidInput for a category that there is not."""
    if category not in (*CATEGORIES, "all", ""):
        hint = f"Categories are {', '.join(CATEGORIES)} and all"
        raise InvalidInput("category", f"{category[:40]!r} is none", hint=hint)
    tokens = await _read(code)
    chosen = [token for token in tokens if category in (token.category, "all", "")]
    return DesignTokens(tokens=chosen, sources=list(dict.fromkeys(_path(token) for token in chosen)))


async def find_design_token(code: CodeGraph, value: str) -> TokenMatches:
    """The tokens that have a value; without one, the colour nearest to it. Raises InvalidInput for an empty value."""
    if not value.strip():
        raise InvalidInput("value", "is empty", hint="Give a value such as '#3B82F6' or '16px'")
    wanted = _comparable(value[:MAX_VALUE])
    tokens = await _read(code)
    matches = [token for token in tokens if _comparable(token.value) == wanted]
    if matches:
        return TokenMatches(found=True, matches=matches)
    return TokenMatches(found=False, suggestion=_suggest(wanted, tokens))


def _path(token: DesignToken) -> str:
    return token.source.rpartition(":")[0]


async def _read(code: CodeGraph) -> list[DesignToken]:
    files = await code.files()
    return await asyncio.to_thread(lambda: list(islice(_tokens(code, files), MAX_TOKENS)))


def _tokens(code: CodeGraph, files: Sequence[FileInfo]) -> Iterator[DesignToken]:
    paths = [file.path for file in files if reader_of(file.path) and not _COPIED.search(file.path)]
    found: list[tuple[str, Raw]] = []
    for file in read_files(code, paths[:MAX_FILES]):
        read = reader_of(file.path)
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
    """What a value comes to when all tokens that it refers to are put in; one that is not known stays."""

    def put_in(found: re.Match[str]) -> str:
        keys = (found[1], f"{{{(found[2] or '').removesuffix('.$value').removesuffix('.value')}}}", found[3])
        return next((known[key] for key in keys if key and key in known), found[0])

    for _ in range(_CHAIN):
        put = _REFERENCE.sub(put_in, value)[:MAX_VALUE]
        if put == value:
            break
        value = put
    return value


def _comparable(value: str) -> Colour | str:
    colour = read_colour(value)
    if colour is not None:
        return colour
    return _BARE_ZERO.sub("", re.sub(r"\s*([,()/])\s*", r"\1", " ".join(value.lower().replace('"', "'").split())))


def _suggest(wanted: Colour | str, tokens: Sequence[DesignToken]) -> str:
    text = "No token has this value. Add one, or use one that there is."
    if not isinstance(wanted, Colour):
        return text
    colours = [(colour.distance(wanted), token) for token in tokens if (colour := read_colour(token.value))]
    near, token = min(colours, key=lambda pair: pair[0], default=(_NEAR + 1, None))
    if token is None or near > _NEAR:
        return text
    return f"{text} The nearest is {token.path} ({token.value}), {token.source}."
