"""The YAML at the head of a markdown file: values, and the place of every key and value. The input is untrusted: no
anchors, bounded depth and length, plain data only."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Any, NamedTuple

from clew.lazy_pattern import lazy_pattern
from clew.skills.checks.problems import Fix, Problem

MAX_LENGTH = 65_536
MAX_DEPTH = 12
FIRST_LINE = 2
"""The line after the opening fence."""
_MAX_TRIED = 200
_MAX_SHOWN = 80
_PLAIN = lazy_pattern(r"([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*)")
_TEXT = lazy_pattern(r"[A-Za-z][\w-]*[ \t]*:[ \t]+[^\s\[{&!|>'\"][^\x00-\x1f]*")
_INDENT = lazy_pattern(r"[ \t]*")
_HINT = "Put quotes around a value that holds `: ` or ` #`, or begins with a special character"


class FieldPlace(NamedTuple):
    """The line and column (1-based) of the first character, and the last line and the column after the last
    character."""

    line: int
    column: int
    last: int
    end: int


class FrontMatter(NamedTuple):
    """The parsed values. `keys` and `values` have places by path: `triggers.words[1]`."""

    meta: dict[str, Any]
    keys: dict[str, FieldPlace]
    values: dict[str, FieldPlace]
    problems: tuple[Problem, ...] = ()


def read_front_matter(text: str, path: str) -> FrontMatter:
    """Parse a front matter. Never raises: invalid YAML is read line by line as far as possible, and reported."""
    import yaml  # the import takes 20 ms, and most commands read no definitions

    if len(text) > MAX_LENGTH:
        message = f"the front matter has {len(text):,} characters, over the limit of {MAX_LENGTH:,}"
        return FrontMatter({}, {}, {}, (Problem(kind="parse", path=path, line=1, message=message),))
    try:
        return _YamlReader(text, path).read()
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        meta, keys = _read_plainly(text)
        return FrontMatter(meta, keys, {}, (_invalid_yaml(text, path, error),))


class _YamlReader:
    """Reads one front matter: first the YAML events, to check depth and anchors, then the values."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._keys: dict[str, FieldPlace] = {}
        self._values: dict[str, FieldPlace] = {}
        self._problems: list[Problem] = []

    def read(self) -> FrontMatter:
        import yaml  # as above

        kind = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        _guard(self._text, kind)
        loader = kind(self._text)
        try:
            node = loader.get_single_node()
            meta = self._read_top(loader, node) if node is not None else {}
        finally:
            loader.dispose()
        return FrontMatter(meta, self._keys, self._values, tuple(self._problems))

    def _read_top(self, loader: Any, node: Any) -> dict[str, Any]:
        import yaml  # as above

        if not isinstance(node, yaml.MappingNode):
            self._report(self._place(node), "the front matter is not `key: value` lines")
            return {}
        self._walk(node, "")
        return {
            key.value: loader.construct_object(value, deep=True)
            for key, value in node.value
            if isinstance(key, yaml.ScalarNode)
        }

    def _walk(self, node: Any, path: str) -> None:
        import yaml  # as above

        if path:
            self._values[path] = self._place(node)
        if isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self._walk(item, f"{path}[{number}]")
        elif isinstance(node, yaml.MappingNode):
            self._walk_pairs(node, path)

    def _walk_pairs(self, node: Any, path: str) -> None:
        import yaml  # as above

        for key, value in node.value:
            place = self._place(key)
            if not isinstance(key, yaml.ScalarNode):
                self._report(place, "a key must be plain text")
                continue
            below = f"{path}.{key.value}" if path else key.value
            if below in self._keys:
                first = self._keys[below].line
                self._report(place, f"`{key.value[:_MAX_SHOWN]}` is given twice, first in line {first}")
            self._keys[below] = place
            self._walk(value, below)

    def _report(self, place: FieldPlace, message: str) -> None:
        width = place.end - place.column if place.last == place.line else 0
        self._problems.append(
            Problem(
                kind="parse",
                path=self._path,
                line=place.line,
                column=place.column,
                width=max(width, 0),
                message=message,
            )
        )

    def _place(self, node: Any) -> FieldPlace:
        """Return the place of a node from its offset, because YAML counts other characters as line ends too."""
        first, last = node.start_mark.index, max(node.end_mark.index, node.start_mark.index)
        last = first + len(self._text[first:last].rstrip())
        start, end = bisect_right(self._starts, first) - 1, bisect_right(self._starts, last) - 1
        return FieldPlace(
            start + FIRST_LINE, first - self._starts[start] + 1, end + FIRST_LINE, last - self._starts[end] + 1
        )


def _guard(text: str, kind: Any) -> None:
    """Raise for anchors, which could expand without limit, and for nesting that is too deep to parse safely."""
    import yaml  # as above

    depth = 0
    for event in yaml.parse(text, Loader=kind):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.MarkedYAMLError(problem="anchors are not allowed", problem_mark=event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"nested more than {MAX_DEPTH} deep", problem_mark=event.start_mark)


def _invalid_yaml(text: str, path: str, error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = (text.count("\n", 0, mark.index) if mark is not None else 0) + FIRST_LINE
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).split("\n", 1)[0]
    if mark is not None and text[mark.index : mark.index + 1] == "\t":
        return _tab(text, path, line)
    message = f"the front matter is not valid YAML: {reason}"
    fix = _quote(text)
    return Problem(kind="parse", path=path, line=fix.first if fix else line, message=message, hint=_HINT, fix=fix)


def _tab(text: str, path: str, line: int) -> Problem:
    """Return the problem of a tab as indentation, with a fix if spaces alone solve it."""
    lines = text.split("\n")
    fixed = [_INDENT.sub(lambda found: found[0].replace("\t", "  "), each, count=1) for each in lines]
    fix = None
    if _is_valid("\n".join(fixed)):
        was, last = tuple(lines), len(lines) + FIRST_LINE - 1
        fix = Fix(first=FIRST_LINE, last=last, text=tuple(fixed), was=was, says="replace tabs by spaces")
    message = "the front matter is not valid YAML: a line begins with a tab"
    return Problem(kind="parse", path=path, line=line, message=message, hint="Indent with spaces", fix=fix)


def _quote(text: str) -> Fix | None:
    """Return a fix that quotes the first invalid value, or None if quotes do not make the YAML valid."""
    lines = text.split("\n")
    bad = [number for number, line in enumerate(lines[:_MAX_TRIED]) if _TEXT.fullmatch(line) and not _is_valid(line)]
    fixed = list(lines)
    for number in bad:
        fixed[number] = _PLAIN.sub(lambda found: f"{found[1]}: {_quoted(found[2])}", lines[number])
    if not bad or not _is_valid("\n".join(fixed)):
        return None
    at = bad[0] + FIRST_LINE
    return Fix(first=at, last=at, text=(fixed[bad[0]],), was=(lines[bad[0]],), says="put quotes around the value")


def _quoted(value: str) -> str:
    return json.dumps(value.strip(), ensure_ascii=False)


def _is_valid(text: str) -> bool:
    import yaml  # as above

    try:
        _guard(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError):
        return False
    return True


def _read_plainly(text: str) -> tuple[dict[str, Any], dict[str, FieldPlace]]:
    """Read top-level `key: value` lines of invalid YAML, with values as written, continued by indented lines."""
    parts: dict[str, list[str]] = {}
    keys: dict[str, FieldPlace] = {}
    last = ""
    for number, line in enumerate(text.split("\n"), FIRST_LINE):
        if (found := _PLAIN.fullmatch(line)) is not None:
            last = found[1]
            parts[last] = [found[2].strip().strip("\"'")]
            keys[last] = FieldPlace(number, 1, number, len(last) + 1)
        elif last and line[:1] in (" ", "\t") and line.strip():
            parts[last].append(line.strip())
    return {key: " ".join(part).strip() for key, part in parts.items()}, keys
