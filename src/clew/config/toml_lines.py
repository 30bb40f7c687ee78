"""Line numbers of the settings in a TOML document. `tomllib` checks the document and gives values without places."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache

Path = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r'[ \t]*("(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+)[ \t]*(\.?)')
_VALUE = re.compile(
    r'"""(?:\\.|[^"\\]|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]|\n|[^"\'#\[\]{}\n]+',
    re.DOTALL,
)


def find_line(text: str, path: Sequence[str | int]) -> int:
    """Return the line of the statement that sets a path, else of the nearest table around it; 0 if there is none.

    The text must be valid TOML.
    """
    lines = find_lines(text)
    found = (lines[tuple(path[:length])] for length in range(len(path), 0, -1) if tuple(path[:length]) in lines)
    return next(found, 0)


@lru_cache(maxsize=1)
def find_lines(text: str) -> dict[Path, int]:
    """Return the line of each path: that of the first statement that sets it or a part of it. Numbers in a path count
    the tables of an array, from 0."""
    lines: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    at, counted, line = 0, 0, 1
    while (at := _skip(_SPACE, text, at)) < len(text):
        line, counted = line + text.count("\n", counted, at), at
        brackets = 2 if text.startswith("[[", at) else 1 if text[at] == "[" else 0
        keys, at = _read_keys(text, at + brackets)
        if brackets:
            table = _resolve(keys, counts, is_array=brackets == 2)
            _note(lines, table, line)
            at += brackets
        else:
            _note(lines, (*table, *keys), line)
            at = _skip_value(text, at + 1)
    return lines


def _note(lines: dict[Path, int], path: Path, line: int) -> None:
    """Give a path its line, and those above it that have none."""
    for length in range(1, len(path) + 1):
        lines.setdefault(path[:length], line)


def _read_keys(text: str, at: int) -> tuple[Path, int]:
    """A dotted key and its end."""
    keys: list[str] = []
    while found := _KEY.match(text, at):
        at = found.end()
        keys.append(_unquoted(found[1]))
        if not found[2]:
            break
    return tuple(keys), at


def _unquoted(key: str) -> str:
    return str(tomllib.loads(f"key = {key}")["key"]) if key[0] in "\"'" else key


def _resolve(keys: Path, counts: dict[Path, int], *, is_array: bool) -> Path:
    """The path of a table header, with the number of the newest table of each array on the way."""
    path: Path = ()
    for number, key in enumerate(keys):
        path = (*path, key)
        if is_array and number == len(keys) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _skip_value(text: str, at: int) -> int:
    """The end of the line on which the value ends."""
    depth = 0
    while at < len(text) and (found := _VALUE.match(text, at)):
        at = found.end()
        depth += (found[0] in "[{") - (found[0] in "]}")
        if found[0] == "\n" and depth <= 0:
            return at
    return len(text)
