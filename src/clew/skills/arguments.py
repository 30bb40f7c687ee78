"""Checks for the arguments that a program passes to the library. Each raises ValidationError with the expected type."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from clew.errors import ValidationError


def check_text(name: str, given: object) -> None:
    if not isinstance(given, str):
        raise _wrong(name, given, "a text")


def check_count(name: str, given: object) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ValidationError(f"{name} must be an integer of at least 0, not {given!r}"[:200], argument=name)


def check_time(name: str, given: object) -> None:
    """Check a time with a zone, which can be compared with the clock, or None."""
    if given is not None and (not isinstance(given, datetime) or given.tzinfo is None):
        raise _wrong(name, given, "a datetime with a time zone")


def check_choice(name: str, given: object, choices: tuple[str, ...]) -> None:
    if given not in choices:
        message = f"{name} must be {' or '.join(choices)}, not {given!r}"[:200]
        raise ValidationError(message, allowed=choices, argument=name)


def check_path(name: str, given: object) -> None:
    if not isinstance(given, str | os.PathLike):
        raise _wrong(name, given, "a path")


def check_texts(name: str, given: object) -> None:
    """Check a list of strings. A single string is an error, because iteration would give its letters."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise _wrong(name, given, "a list of strings")
    for number, each in enumerate(given):
        check_text(f"{name}[{number}]", each)


def check_type(name: str, given: object, expected: type[Any], wanted: str) -> None:
    if not isinstance(given, expected):
        raise _wrong(name, given, wanted)


def check_has(name: str, given: object, method: str, wanted: str) -> None:
    """Check an interface: `given` is None, or has the method."""
    if given is not None and not callable(getattr(given, method, None)):
        raise _wrong(name, given, wanted)


def _wrong(name: str, given: object, wanted: str) -> ValidationError:
    return ValidationError(f"{name} must be {wanted}, not {type(given).__name__}", argument=name)
