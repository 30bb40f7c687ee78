"""Converts an error response to the exception that the server raised."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from clew.errors import ClewError

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


class _Problem(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    message: str
    hint: str = ""
    field: str | None = None
    data: dict[str, Any] = {}


class _Body(msgspec.Struct, frozen=True):
    error: _Problem


_decode = msgspec.json.Decoder(_Body).decode


def error_of(status: int, body: bytes) -> ClewError:
    """Return the exception of a response: the class of its code, with the data from the server.

    A response that is not from Clew, such as one of a proxy, becomes a plain ClewError with the status.
    """
    try:
        problem = _decode(body).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ClewError(f"the server answered {status}", hint="Is that the address of a Clew server?")
    kind = _classes().get(problem.code, ClewError)
    error = kind.__new__(kind)
    ClewError.__init__(error, problem.message, hint=problem.hint)
    vars(error).update(problem.data)
    if problem.field is not None:
        vars(error)["field"] = problem.field
    return error


@cache
def _classes() -> dict[str, type[ClewError]]:
    """Return all error classes by code, which is the snake_case name of the class."""
    found: dict[str, type[ClewError]] = {}
    waiting = [ClewError]
    while waiting:
        kind = waiting.pop()
        found[_CAPITAL.sub("_", kind.__name__).lower()] = kind
        waiting.extend(kind.__subclasses__())
    return found
