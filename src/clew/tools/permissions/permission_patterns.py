"""Patterns of lasting permissions.

A pattern is one line for each thing that a call would do. The question shows it, and later calls are compared with it
as text, so another call never passes for the one that the user allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from clew.errors import ClewError
from clew.fences import is_unseen
from clew.tools.permissions.rules import Facet, normal_path

PATHS = ("file_path", "path", "paths", "cwd", "folder", "file", "files")
COMMANDS = ("command",)
URLS = ("url", "urls")
"""Names of arguments with paths, commands and addresses, to which rules apply."""
CWD = "cwd"
ROUTES = {"get": "routes"}
"""The tools that call others by route, and the argument that holds the routes."""

MAX_REMEMBERED = 8_000
"""Longer patterns are not remembered: the user answers each time."""

Place = Callable[[str], str]
"""Resolves a path to its real path, relative to the working folder. Raises ClewError for an invalid path."""

_ANY = {
    "write-file": "any content",
    "edit-file": "any content",
    "fetch": "any page",
    "get": "any params",
    "exec": "",
}
"""Tool → the part of a call that a remembered pattern leaves open. Calls of these tools without a target are not
remembered."""


def remembered(asked: Sequence[Facet], arguments: Mapping[str, Any], place: Place | None) -> str:
    """Return the patterns that the user may allow for a session or always, one a line; empty if there are none.

    The pattern of a command is the exact line, with its quotes, and the real folder that it runs in.
    """
    lines = list(texts(arguments, COMMANDS))
    entries = _commands(asked[0].tool, lines, arguments, place) if lines else map(_entry, asked)
    found = list(dict.fromkeys(entries))
    text = "\n".join(found)
    return text if all(found) and len(text) <= MAX_REMEMBERED else ""


def texts(arguments: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    """Yield the texts in arguments of these names, single or in lists."""
    for name in names:
        value = arguments.get(name)
        yield from (each for each in (value if isinstance(value, list | tuple) else [value]) if isinstance(each, str))


def routes_of(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the routes of a call, or an empty list if they cannot be read."""
    given = arguments.get(ROUTES[tool]) if tool in ROUTES else None
    steps = given if isinstance(given, list | tuple) else ()
    found = [each.get("route") if isinstance(each, dict) else getattr(each, "route", None) for each in steps]
    routes = [each for each in found if isinstance(each, str)]
    return routes if len(routes) == len(found) else []


def quoted(text: str) -> str:
    """Return a text in quotes on one line. Invisible characters are spelled out, so no two texts look the same."""
    shown = msgspec.json.encode(text.encode(errors="backslashreplace").decode()).decode()
    return "".join(_spelled(each) if is_unseen(each) or each in "\n\t" else each for each in shown)


def _commands(tool: str, lines: Sequence[str], arguments: Mapping[str, Any], place: Place | None) -> list[str]:
    others = [*texts(arguments, [name for name in PATHS if name != CWD]), *texts(arguments, URLS)]
    where = _folder(arguments.get(CWD), place)
    if others or where is None:
        return [""]
    return [f"{tool} {quoted(line)} in {quoted(where)}" for line in lines]


def _folder(cwd: Any, place: Place | None) -> str | None:
    if cwd is not None and not isinstance(cwd, str):
        return None
    try:
        return normal_path(place(cwd or "") if place is not None else cwd or "")
    except ClewError:
        return None


def _entry(facet: Facet) -> str:
    targets = [each for each in (facet.route, facet.domain, facet.path) if each is not None]
    if len(targets) > 1 or (not targets and facet.tool in _ANY):
        return ""
    target = f"({targets[0]})" if targets else ""
    text = f"{facet.tool}{target}, {_ANY.get(facet.tool) or 'any input'}"
    return text if text.isprintable() else ""


def _spelled(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) <= 0xFFFF else f"\\U{ord(letter):08x}"
