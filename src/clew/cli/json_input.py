"""JSON that a person wrote, and what is wrong with it in plain words."""

from __future__ import annotations

import difflib
import json
import re
from typing import Any

import msgspec

from clew.errors import InvalidInput

_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]+)`")
_UNKNOWN = re.compile(r"contains unknown field `(?P<name>[^`]+)`")
_PLACE = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")
_WORDS = {
    "object": "an object",
    "array": "a list",
    "str": "text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "datetime": "a time",
}


def parse_json(raw: bytes, kind: Any, field: str) -> Any:
    """JSON of a given type. Raises InvalidInput that says where it is wrong, and what was expected."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise _misfit(str(error), kind, field) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidInput(field, f"is not JSON: {_mistake(raw)}", hint=_example(kind)) from None


def _example(kind: Any) -> str:
    if _is_struct(kind):
        return """For example {"title": "Hello", "context": {}}"""
    return """In a shell it is written '{"key": "value"}', with double quotes inside and single quotes around it"""


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _mistake(raw: bytes) -> str:
    """Where the text stops being JSON. The standard library tells line and column, which the fast parser does not."""
    try:
        json.loads(raw.decode())
    except json.JSONDecodeError as error:
        return f"{error.msg[:1].lower()}{error.msg[1:]} at line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError as error:
        return f"byte {error.start} is not UTF-8"
    except RecursionError:
        return "it is nested too deeply"
    return "it holds a number or text that JSON does not allow"


def _misfit(told: str, kind: Any, field: str) -> InvalidInput:
    """The parser's own sentence in plain words."""
    place = _PLACE.search(told)
    where = f"{field}, {place['path']}" if place and place["path"] else field
    if found := _MISSING.search(told):
        return InvalidInput(where, f"{found['name']} is missing", hint=_example(kind))
    if found := _UNKNOWN.search(told):
        names = [each.name for each in msgspec.structs.fields(kind)] if _is_struct(kind) else []
        close = difflib.get_close_matches(found["name"], names, 1)
        hint = f"Did you mean {close[0]}?" if close else f"There are {', '.join(names)}"
        return InvalidInput(where, f"there is no field {found['name']}", hint=hint)
    if found := _EXPECTED.search(told):
        reason = f"must be {_in_words(found['wanted'])}, not {_in_words(found['got'])}"
        return InvalidInput(where, reason, hint="" if place else _example(kind))
    return InvalidInput(where, f"cannot be used: {told}")


def _in_words(kinds: str) -> str:
    return " or ".join(dict.fromkeys(_WORDS.get(kind, kind) for kind in kinds.split(" | ")))
