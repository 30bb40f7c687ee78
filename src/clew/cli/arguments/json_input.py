"""JSON that a person wrote, and what is wrong with it in plain words."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput


def parse_json(raw: bytes, kind: Any, place: str) -> Any:
    """JSON of a given type. Raises InvalidInput that says where it is wrong, and what was expected."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise _misfit(error, kind, place) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidInput(place, f"is not JSON: {_mistake(raw)}", hint=_example(kind)) from None


def _example(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return """For example {"title": "Hello", "context": {}}"""
    return """In a shell it is written '{"key": "value"}', with double quotes inside and single quotes around it"""


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


def _misfit(error: msgspec.ValidationError, kind: Any, place: str) -> InvalidInput:
    """The same sentence as at the other doors, with the place that the JSON came from."""
    found = in_plain_words(error, kind, "")
    where = f"{place}, {found.field}" if found.field else place
    return InvalidInput(where, found.reason, hint=found.hint or ("" if found.field else _example(kind)))
