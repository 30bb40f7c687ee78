"""Bounded parsers of TOML, JSON, XML, YAML and INI that keep the lines of every value. No parser raises or runs
anything: a broken text has no values and a problem."""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from xml.parsers import expat

import msgspec

from clew.knowledge.lines import clip
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_keys

MAX_PARTS = 100
MAX_DEPTH = 20
"""Deeper XML and YAML are refused; deeper JSON has values without lines."""
Keys = tuple[str, ...]
Span = tuple[int, int]
_Table = TypeVar("_Table")

_TOML_SEPARATORS = str.maketrans(dict.fromkeys("={,#", "\n"))
_TOML_PART = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_TOML_LONG_STRING = lazy_pattern(r"\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)
_TOML_ENTRY = lazy_pattern(
    rf"^(?:(?P<list>\[?)\[(?P<section>[^\[\]\n]{{1,300}})\]\]?[ \t]*+(?:#.*)?$"
    rf"|[ \t]*+(?P<key>{_TOML_PART}(?>(?:[ \t]*+\.[ \t]*+{_TOML_PART})*))[ \t]*+=)",
    re.MULTILINE,
)
_INI_ENTRY = lazy_pattern(
    r"^(?:\[(?P<section>[^\]\n]{1,200})\]|(?P<key>[^\s=:#;\[][^=:\n]{0,100}?)[ \t]*+[=:](?P<value>.*))", re.MULTILINE
)


class ManifestFile(msgspec.Struct, frozen=True, dict=True):
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


class ParsedText(NamedTuple):
    """The values of a text, not to be changed, and their lines; `problem` says why there are none."""

    data: dict[str, Any]
    spans: Mapping[Keys, Span] = {}
    problem: str = ""

    def span(self, keys: Keys) -> Span:
        """The first and last line of a value, or of the innermost value around it that has lines of its own."""
        while keys and keys not in self.spans:
            keys = keys[:-1]
        return self.spans.get(keys, (1, 1))

    def at(self, keys: Keys) -> object:
        """The value at these keys, or None."""
        value: Any = self.data
        for key in keys:
            value = next((inner for _, inner in _inside(value, key)), None)
        return value

    def select(self, path: str) -> list[tuple[Keys, object]]:
        """The values at a path of keys divided by `/`, in which `*` is any key or index."""
        found: list[tuple[Keys, object]] = [((), self.data)]
        for part in path.split("/"):
            found = [((*keys, key), inner) for keys, value in found for key, inner in _inside(value, part)]
        return found


def parse(file: ManifestFile) -> ParsedText:
    """Parse a file by its name; a file without a known ending is read as INI."""
    parsers = {"toml": parse_toml, "json": parse_json, "xml": parse_xml, "yml": parse_yaml, "yaml": parse_yaml}
    return parsers.get(file.name.rpartition(".")[2], parse_ini)(file.text)


@lru_cache(maxsize=8)
def parse_toml(text: str) -> ParsedText:
    # The time for a dotted key grows with the square of its parts.
    if any(part.count(".") > MAX_PARTS for part in text.translate(_TOML_SEPARATORS).splitlines()):
        return ParsedText({}, problem=f"has a key of over {MAX_PARTS} parts")
    try:
        return ParsedText(tomllib.loads(text), _toml_spans(text))
    except (ValueError, RecursionError) as error:
        return ParsedText({}, problem=_problem("TOML", error))


@lru_cache(maxsize=8)
def parse_json(text: str) -> ParsedText:
    """Parse an object of JSON. Its lines are those of the same text as YAML, which does not allow tabs."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return ParsedText({}, problem=_problem("JSON", error))
    if not isinstance(data, dict):
        return ParsedText({}, problem="is not an object of JSON")
    return ParsedText(data, parse_yaml(text.replace("\t", " ")).spans)


@lru_cache(maxsize=8)
def parse_ini(text: str) -> ParsedText:
    """Parse `[section]` and `key = value` lines; indented lines continue a value."""
    data: dict[str, dict[str, str]] = {}
    spans: dict[Keys, Span] = {}
    section, file = "", ManifestFile("", text)
    for found, start, end in _entries(file, _INI_ENTRY):
        if found["section"]:
            section = found["section"].strip()
            data.setdefault(section, {})
            spans.setdefault((section,), (start, start))
        elif section:
            more = [line.strip() for line in file.lines[start:end] if line[:1] in (" ", "\t")]
            data[section][found["key"]] = "\n".join((found["value"].strip(), *more))
            spans[section, found["key"]] = (start, end)
    return ParsedText(data, spans)


@lru_cache(maxsize=8)
def parse_xml(text: str) -> ParsedText:
    """Parse elements without their attributes; a repeated element has a number after its name. A document type is
    refused, so no entity is expanded."""
    built, texts = _Builder(), list[str]()
    parser = expat.ParserCreate()

    def start(name: str, _: Mapping[str, str]) -> None:
        inside = built.opened[-1]
        built.open(name if name not in inside else f"{name} {len(inside)}", {}, parser.CurrentLineNumber)
        texts.clear()

    def end(_: str) -> None:
        built.close(parser.CurrentLineNumber, "".join(texts).strip())
        texts.clear()

    def refuse(*_: object) -> None:
        raise ValueError("has a document type")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = texts.append, refuse
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError, RecursionError) as error:
        return ParsedText({}, problem=_problem("XML", error))
    return ParsedText(built.data, built.spans)


@lru_cache(maxsize=64)  # a repository has many workflows, and they are slow to parse
def parse_yaml(text: str) -> ParsedText:
    """Parse the mapping of the first document; every scalar is text, an alias is empty."""
    import yaml  # takes 20 ms to import

    built, lines, depth = _Builder(), text.split("\n"), 0
    key: tuple[str, int] | None = None  # the key that waits for its value, and its line
    try:
        # Events are read one by one: the other parsers of this library overflow the stack on deep texts.
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise RecursionError
            inside, line = built.opened[-1], event.start_mark.line + 1
            is_block = event.start_mark.index == event.end_mark.index or getattr(event, "style", None) in ("|", ">")
            end = event.end_mark.line + (not is_block)
            while end > line and not lines[end - 1].strip():
                end -= 1
            if isinstance(event, yaml.CollectionEndEvent) and len(built.opened) > 1:
                built.close(end)
            elif isinstance(event, yaml.NodeEvent) and (key or isinstance(inside, list)):
                name, start = key or (str(len(inside)), line)
                built.open(name, [] if isinstance(event, yaml.SequenceStartEvent) else {}, start)
                if not isinstance(event, yaml.CollectionStartEvent):
                    built.close(end, getattr(event, "value", ""))
                key = None
            elif isinstance(event, yaml.ScalarEvent):
                key = event.value, line
            elif isinstance(event, yaml.SequenceStartEvent | yaml.DocumentEndEvent):
                break  # a list at the top has no keys
    except (yaml.YAMLError, RecursionError) as error:
        return ParsedText({}, problem=_problem("YAML", error))
    return ParsedText(built.data, built.spans)


class _Builder:
    """Nested values with their lines, from the events of a parser."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.spans: dict[Keys, Span] = {}
        self.opened: list[Any] = [self.data]
        self._keys: list[str] = []

    def open(self, key: str, value: Any, line: int) -> None:
        """Open a value inside the innermost one. Raises RecursionError beyond a depth."""
        if len(self._keys) > MAX_DEPTH:
            raise RecursionError
        self._keys.append(key)
        self._set(value)
        self.opened.append(value)
        self.spans[tuple(self._keys)] = (line, line)

    def close(self, line: int, text: str = "") -> None:
        """Close the innermost value; one without members is a text."""
        if not self.opened.pop():
            self._set(text)
        start = self.spans[tuple(self._keys)][0]
        self.spans[tuple(self._keys)] = (start, max(start, line))
        self._keys.pop()

    def _set(self, value: Any) -> None:
        inside, key = self.opened[-1], self._keys[-1]
        if isinstance(inside, list):
            inside[int(key) :] = [value]
        else:
            inside[key] = value


def load_table(name: str, type: type[_Table]) -> _Table:
    """Load a table of this package from its folder `data`."""
    return msgspec.json.decode((Path(__file__).parent / "data" / name).read_bytes(), type=type)


def table(value: object) -> dict[str, Any]:
    """A value that should be a table, or an empty one."""
    return value if isinstance(value, dict) else {}


def _inside(value: object, part: str) -> list[tuple[str, object]]:
    found = {str(at): each for at, each in enumerate(value)} if isinstance(value, list) else table(value)
    return list(found.items()) if part == "*" else [(part, found[part])] if part in found else []


def _entries(file: ManifestFile, shape: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int, int]]:
    """The matches of headers and keys, each with its first line and the last line of its value."""
    found = list(shape.finditer(file.text))
    starts = [file.line_at(each.start()) for each in found]
    for each, start, after in zip(found, starts, [*starts, len(file.lines) + 1][1:], strict=True):
        end = after - 1
        while end > start and (not file.lines[end - 1].strip() or file.lines[end - 1].lstrip().startswith("#")):
            end -= 1
        yield each, start, end


def _toml_spans(text: str) -> dict[Keys, Span]:
    """The lines of every section and key; the text is valid."""
    spans: dict[Keys, Span] = {}
    indexes: Counter[Keys] = Counter()
    section: Keys = ()
    blank = _TOML_LONG_STRING.sub(lambda found: '"' + '.\n"' * found[0].count("\n"), text)
    for found, start, end in _entries(ManifestFile("", blank), _TOML_ENTRY):
        keys = tuple(part.strip("\"'") for part in re.findall(_TOML_PART, found["section"] or found["key"]))
        if found["key"]:
            spans[(*section, *keys)] = (start, end)
            continue
        section = keys
        if found["list"]:
            indexes[keys] += 1
            section = (*keys, str(indexes[keys] - 1))
        for length in range(1, len(section) + 1):
            spans.setdefault(section[:length], (start, start))
    return spans


def _problem(format: str, error: Exception) -> str:
    reason = "nested too deeply" if isinstance(error, RecursionError) else mask_keys(clip(str(error), 150))
    return f"is not valid {format}: {reason}"
