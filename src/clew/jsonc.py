"""JSON with comments and trailing commas, as in settings of editors: reading it, and changing one entry of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.errors import ConfigError
from clew.lazy_pattern import lazy_pattern

BY_HAND = "add the entry by hand"

_STRING = r'"(?:\\.|[^"\\\n])*"'
_COMMENT = lazy_pattern(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = lazy_pattern(rf"({_STRING})|,(?=\s*[}}\]])")

_INDENT = lazy_pattern(r"[ \t]*")
_SPACE = lazy_pattern(r"\s*")
_DECODER = json.JSONDecoder()


def plain_json(text: str) -> str:
    """Return the text as plain JSON. Comments and trailing commas become spaces, so that all positions stay the
    same."""
    given = f" {text[1:]}" if text.startswith("\ufeff") else text
    blank = _COMMENT.sub(lambda found: found.group(1) or " " * len(found.group()), given)
    return _LAST_COMMA.sub(lambda found: found.group(1) or " ", blank)


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its name, its start, and the start and the end of its value."""

    name: str
    at: int
    start: int
    end: int


def read_object(text: str) -> dict[str, Any]:
    """Parse a text as an object; an empty text is an empty object. Raises ConfigError for text that is not an
    object."""
    plain = plain_json(text)
    if not plain.strip():
        return {}
    try:
        found = json.loads(plain, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ConfigError(f"not JSON at line {text.count(chr(10), 0, error.pos) + 1}: {BY_HAND}") from None
    except (RecursionError, ValueError):
        raise ConfigError(f"nested too deeply, or has a value that JSON does not have: {BY_HAND}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"not a JSON object: {BY_HAND}")
    return found


def set_entry(text: str, key: str, name: str, value: Mapping[str, Any]) -> str:
    """The text with `value` as member `name` of the object `key`, both created if missing. Raises ConfigError if that
    is not possible without changing anything else."""
    if not plain_json(text).strip():
        return (text if text.strip() else "") + json.dumps({key: {name: value}}, indent=2, ensure_ascii=False) + "\n"
    known = read_object(text)
    outer = _only(text, _start(text), key)
    if outer is None:
        after = _insert(text, _start(text), key, {name: value})
    elif not isinstance(known[key], dict):
        raise ConfigError(f"{key!r} is not an object there")
    elif (inner := _only(text, outer.start, name)) is None:
        after = _insert(text, outer.start, name, value)
    else:
        after = text[: inner.start] + _render(text, value, _indent_at(text, inner.at)) + text[inner.end :]
    if read_object(after) != {**known, key: {**known.get(key, {}), name: value}}:
        raise ConfigError(f"its entries are written in an unusual way: {BY_HAND}")
    return after


def remove_entry(text: str, key: str, name: str) -> str:
    """The text without member `name` of the object `key`. Raises ConfigError if it does not exist, or cannot be removed
    without changing anything else."""
    known, plain = read_object(text), plain_json(text)
    outer = _only(text, _start(text), key)
    inner = _only(text, outer.start, name) if outer is not None and isinstance(known[key], dict) else None
    if outer is None or inner is None:
        raise ConfigError(f"{name!r} is not there")
    members = list(_members(plain, outer.start))
    at = members.index(inner)
    if at + 1 < len(members):
        after = text[: inner.at] + text[members[at + 1].at :]
    else:
        begin = members[at - 1].end if at else outer.start + 1
        end = inner.end if at else _after_space(plain, inner.end)
        after = text[:begin] + text[end:]
    if read_object(after) != {**known, key: {other: value for other, value in known[key].items() if other != name}}:
        raise ConfigError(f"its entries are written in an unusual way: {BY_HAND}")
    return after


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _start(text: str) -> int:
    return plain_json(text).index("{")


def _members(plain: str, at: int) -> Iterator[Member]:
    """The members of the object that begins at a place of plain JSON."""
    at = _after_space(plain, at + 1)
    while plain[at] != "}":
        name, end = _DECODER.raw_decode(plain, at)
        start = _after_space(plain, _after_space(plain, end) + 1)
        _, end = _DECODER.raw_decode(plain, start)
        yield Member(name, at, start, end)
        at = _after_space(plain, end)
        if plain[at] == ",":
            at = _after_space(plain, at + 1)


def _after_space(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found is not None else at


def _only(text: str, at: int, name: str) -> Member | None:
    """The member of a name, None if there is none. Raises ConfigError for a name that is there twice."""
    found = [member for member in _members(plain_json(text), at) if member.name == name]
    if len(found) > 1:
        raise ConfigError(f"{name!r} is there twice: {BY_HAND}")
    return found[0] if found else None


def _insert(text: str, at: int, name: str, value: Mapping[str, Any]) -> str:
    """The text with a new last member of the object that begins at a place."""
    plain = plain_json(text)
    members = list(_members(plain, at))
    if not members:
        return _fill(text, plain, at, name, value)
    last = members[-1]
    close = _after_space(plain, last.end)
    line_end = plain.find("\n", last.end, close)
    if line_end < 0:
        return f"{text[: last.end]}, {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}{text[last.end :]}"
    indent = _indent_at(text, last.at)
    entry = f"\n{indent}{json.dumps(name)}: {_render(text, value, indent)}"
    # if the last member has a comma already, the new one gets one as well; a comment behind it stays on its line
    comma = _COMMENT.sub(lambda found: " " * len(found.group()), text[last.end : line_end]).find(",")
    if comma >= 0:
        return f"{text[:line_end]}{entry},{text[line_end:]}"
    return f"{text[: last.end]},{text[last.end : line_end]}{entry}{text[line_end:]}"


def _fill(text: str, plain: str, at: int, name: str, value: Mapping[str, Any]) -> str:
    """The text with the first member of an object that has none; comments in it stay."""
    close = _after_space(plain, at + 1)
    outer = _indent_at(text, at)
    indent = outer + _unit(text)
    entry = f"\n{indent}{json.dumps(name)}: {_render(text, value, indent)}"
    inside = text[at + 1 : close].rstrip()
    return f"{text[: at + 1]}{inside}{entry}\n{outer}{text[close:]}"


def _render(text: str, value: Mapping[str, Any], indent: str) -> str:
    return json.dumps(value, indent=_unit(text), ensure_ascii=False).replace("\n", f"\n{indent}")


def _indent_at(text: str, at: int) -> str:
    """The indentation of the line at a place."""
    line = text.rfind("\n", 0, at) + 1
    found = _INDENT.match(text, line)
    return found.group() if found is not None else ""


def _unit(text: str) -> str:
    """One step of indentation, as the text has it."""
    found = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return "  " if found is None else "\t" if "\t" in found.group(1) else found.group(1)
