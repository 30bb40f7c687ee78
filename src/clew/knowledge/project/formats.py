"""Bounded parsers of TOML, JSON, INI and `setup.py` that keep the lines of every value. No parser raises or runs
anything: a text that is broken has no values and states its problem."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

import msgspec

from clew.knowledge.lines import clip
from clew.secrecy import mask_keys

MAX_PARTS = 100
MAX_DEPTH = 20
"""Keys further in have the lines of what is around them."""
MAX_PYTHON = 100_000
Keys = tuple[str, ...]
Span = tuple[int, int]
_Table = TypeVar("_Table")

_TOML_SEPARATORS = str.maketrans(dict.fromkeys("={,#", "\n"))
_TOML_HEADER = re.compile(r"\s*(\[\[?)([^\[\]\n]{1,300})\]\]?\s*+(?:#.*)?$")
_TOML_PART = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_TOML_KEY = re.compile(rf"\s*+({_TOML_PART}(?:\s*+\.\s*+{_TOML_PART})*+)\s*+=")
_TOML_TOKEN = re.compile(r"\"\"\"|'''|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+'|#.*|[\[\]{}]")
_JSON_TOKEN = re.compile(r"(\"(?:[^\"\\]|\\.)*+\")(\s*+:)?|[{}\[\],]", re.DOTALL)
_INI_HEADER = re.compile(r"\[([^\]\n]{1,200})\]")
_INI_PAIR = re.compile(r"([^\s=:#;\[][^=:\n]{0,100}?)\s*+[=:](.*)")


class TextFile(msgspec.Struct, frozen=True, dict=True):
    """A file of text with its lines, counted from 1."""

    path: str
    text: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def line_at(self, position: int) -> int:
        return bisect_right(self._starts, position)


class Parsed(NamedTuple):
    """The values of a text, not to be changed, and their lines; `problem` says why there are none."""

    data: dict[str, Any]
    spans: Mapping[Keys, Span] = {}
    problem: str = ""

    def span(self, keys: Keys) -> Span:
        """The first and last line of a value, or of the innermost value around it that has lines of its own."""
        while keys and keys not in self.spans:
            keys = keys[:-1]
        return self.spans.get(keys, (1, 1))

    def select(self, path: str) -> Iterator[tuple[Keys, object]]:
        """The values at a path of keys divided by `/`, in which `*` is any key or index."""
        found: list[tuple[Keys, object]] = [((), self.data)]
        for part in path.split("/"):
            found = [((*keys, key), inner) for keys, value in found for key, inner in _inside(value, part)]
        yield from found


def parse(file: TextFile) -> Parsed:
    """Parse a file by the end of its name; nothing for a file of another format."""
    if file.name == "setup.py":
        return _parse_setup(file.text)
    format = file.name.rpartition(".")[2]
    return {"toml": parse_toml, "json": parse_json}.get(format, parse_ini)(file.text)


@lru_cache(maxsize=8)
def parse_toml(text: str) -> Parsed:
    # The time for a dotted key grows with the square of its parts.
    if any(part.count(".") > MAX_PARTS for part in text.translate(_TOML_SEPARATORS).splitlines()):
        return Parsed({}, problem=f"has a key of over {MAX_PARTS} parts")
    try:
        return Parsed(tomllib.loads(text), _toml_spans(text))
    except (ValueError, RecursionError) as error:
        return Parsed({}, problem=_problem("TOML", error))


@lru_cache(maxsize=8)
def parse_json(text: str) -> Parsed:
    """Parse an object of JSON."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Parsed({}, problem=_problem("JSON", error))
    return Parsed(data, _json_spans(text)) if isinstance(data, dict) else Parsed({}, problem="is not an object of JSON")


@lru_cache(maxsize=8)
def parse_ini(text: str) -> Parsed:
    """Parse `[section]` and `key = value` lines; indented lines continue a value."""
    data: dict[str, dict[str, str]] = {}
    spans: dict[Keys, Span] = {}
    section, key = "", ""
    for number, line in enumerate(text.split("\n"), 1):
        if found := _INI_HEADER.match(line):
            section, key = found[1].strip(), ""
            data.setdefault(section, {})
            spans.setdefault((section,), (number, number))
        elif key and line[:1] in (" ", "\t") and line.strip():
            data[section][key] += f"\n{line.strip()}"
            spans[section, key] = (spans[section, key][0], number)
        elif section and (pair := _INI_PAIR.match(line)):
            key = pair[1]
            data[section][key] = pair[2].strip()
            spans[section, key] = (number, number)
        elif line.strip():
            key = ""
    return Parsed(data, spans)


def _parse_setup(text: str) -> Parsed:
    """The literal arguments of `setup()`, where a name stands for a literal that the module assigns."""
    try:
        body = ast.parse(text).body if len(text) <= MAX_PYTHON else []
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Parsed({}, problem=_problem("Python", error))
    known: dict[str, ast.expr] = {}
    data, spans = dict[str, Any](), dict[Keys, Span]()
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = node.value
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("setup"):
            for each in call.keywords:
                value = known.get(each.value.id) if isinstance(each.value, ast.Name) else each.value
                try:
                    data[each.arg or ""] = ast.literal_eval(value) if value else None
                except (ValueError, TypeError, RecursionError, MemoryError):
                    continue
                spans["setup", each.arg or ""] = (each.lineno, each.end_lineno or each.lineno)
    return Parsed({"setup": data}, spans)


def load_table(name: str, type: type[_Table]) -> _Table:
    """Load a table of this package from its folder `data`."""
    return msgspec.json.decode(files("clew.knowledge.project").joinpath("data", name).read_bytes(), type=type)


def table(value: object) -> dict[str, Any]:
    """A value that should be a table, or an empty one."""
    return value if isinstance(value, dict) else {}


def _inside(value: object, part: str) -> list[tuple[str, object]]:
    if isinstance(value, list) and part == "*":
        return [(str(at), each) for at, each in enumerate(value)]
    found = table(value)
    return list(found.items()) if part == "*" else [(part, found[part])] if part in found else []


def _toml_spans(text: str) -> dict[Keys, Span]:
    spans: dict[Keys, Span] = {}
    indexes: Counter[Keys] = Counter()
    section: Keys = ()
    key: Keys = ()
    start = depth = 0
    quote = ""
    for number, line in enumerate(text.split("\n"), 1):
        if not key:
            if header := _TOML_HEADER.match(line):
                section = _toml_keys(header[2])
                if header[1] == "[[":
                    indexes[section] += 1
                    section = (*section, str(indexes[section] - 1))
                for length in range(1, len(section) + 1):
                    spans.setdefault(section[:length], (number, number))
                continue
            pair = _TOML_KEY.match(line)
            if pair is None:
                continue
            key, start, line = (*section, *_toml_keys(pair[1])), number, line[pair.end() :]
        depth, quote = _toml_nesting(line, depth, quote)
        if depth <= 0 and not quote:
            spans[key] = (start, number)
            key, depth = (), 0
    return spans


def _toml_keys(text: str) -> Keys:
    return tuple(part.strip("\"'") for part in re.findall(_TOML_PART, text))


def _toml_nesting(line: str, depth: int, quote: str) -> tuple[int, str]:
    """The depth of brackets after a line of a value, and the quotes of an open multi-line string."""
    for found in _TOML_TOKEN.finditer(line):
        token = found[0]
        if quote or token in ('"""', "'''"):
            quote = "" if token == quote else quote or token
        elif token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
    return depth, quote


def _json_spans(text: str) -> dict[Keys, Span]:
    """The lines of every key; the text is valid."""
    spans: dict[Keys, Span] = {}
    file = TextFile("", text)
    keys: list[str] = []
    opened: list[str] = []
    for found in _JSON_TOKEN.finditer(text):
        token = found[0]
        if found[2]:
            keys[-1] = json.loads(found[1]) if "\\" in token else found[1][1:-1]
            if len(keys) <= MAX_DEPTH:
                line = file.line_at(found.start())
                spans[tuple(keys)] = (line, line)
        elif token in ("{", "["):
            opened.append(token)
            keys.append("0")
        elif token in ("}", "]"):
            opened.pop()
            keys.pop()
            if len(keys) <= MAX_DEPTH and (start := spans.get(tuple(keys))) is not None:
                spans[tuple(keys)] = (start[0], file.line_at(found.start()))
        elif token == "," and opened[-1] == "[":
            keys[-1] = str(int(keys[-1]) + 1)
    return spans


def _problem(format: str, error: Exception) -> str:
    reason = "nested too deeply" if isinstance(error, RecursionError) else mask_keys(clip(str(error), 150))
    return f"is not valid {format}: {reason}"
