"""Values on a command line: periods and times, JSON, and content from files or standard input.

A mistyped value raises InvalidInput, which exits with 2. Unusable content raises ClewError, which exits with 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from clew.decode_errors import in_plain_words
from clew.errors import ClewError, InvalidInput
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.breadcrumb import NEVER, Ttl

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PERIOD = lazy_pattern(r"(\d{1,9})([smhdw])")
_READS = lazy_pattern(r"reads:(\d{1,9})")
_TTL_HINT = "For example 5m, 2h, 30d, 2026-12-31T00:00:00Z, reads:3, never, or 1h,reads:3"
_PAST_HINT = "For example 30m, 1h, 2d or 1w for so long ago, or 2026-01-31T12:00:00Z"


def parse_ttl(text: str, now: datetime) -> Ttl:
    """Parse the lifetime of a breadcrumb: a period, a time, a number of reads, `never`, or a time and a number of reads
    separated by a comma."""
    if text == "never":
        return NEVER
    expires_at: datetime | None = None
    max_reads: int | None = None
    for part in text.split(","):
        if found := _READS.fullmatch(part.strip()):
            max_reads = int(found.group(1))
        else:
            expires_at = _parse_end(part.strip(), now)
    if expires_at is None:
        return Ttl(kind="usage", max_reads=max_reads)
    return Ttl(kind="datetime" if max_reads is None else "hybrid", expires_at=expires_at, max_reads=max_reads)


def _parse_end(text: str, now: datetime) -> datetime:
    try:
        period = _parse_period(text)
        return _parse_time(text) if period is None else now + period
    except (ValueError, OverflowError):
        raise InvalidInput("--ttl", f"{text!r} is neither a period nor a time", hint=_TTL_HINT) from None


def parse_past(text: str, now: datetime, option: str) -> datetime:
    """A moment: a period before now, or a time. Raises InvalidInput that names the option."""
    try:
        period = _parse_period(text.strip())
        return _parse_time(text) if period is None else now - period
    except (ValueError, OverflowError):
        raise InvalidInput(option, f"{text!r} is neither a period nor a time", hint=_PAST_HINT) from None


def _parse_period(text: str) -> timedelta | None:
    found = _PERIOD.fullmatch(text)
    return timedelta(**{_UNITS[found.group(2)]: int(found.group(1))}) if found else None


def _parse_time(text: str) -> datetime:
    """A time as RFC 3339; without a zone it is local time. Raises ValueError or OverflowError."""
    return datetime.fromisoformat(text.strip()).astimezone()


def read_context(given: str) -> dict[str, Any]:
    """A JSON object from the argument itself, from `@file`, or from standard input for `-`."""
    if given == "-":
        raw, place = sys.stdin.buffer.read(), "--context from standard input"
    elif given.startswith("@"):
        raw, place = Path(given[1:]).read_bytes(), f"--context from {given[1:]}"
    else:
        raw, place = given.encode(errors="surrogateescape"), "--context"
    with nullcontext() if place == "--context" else reading_content():
        context: dict[str, Any] = parse_json(raw, dict[str, Any], place)
    return context


def set_value(context: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path, creating objects on the way. Raises InvalidInput if the path leads through a
    value that is not an object."""
    *sections, name = path.split(".")
    place: Any = context
    for section in sections:
        place = place.setdefault(section, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict) or not all((*sections, name)):
        raise InvalidInput("--set", f"{path!r} does not lead to a value of an object")
    place[name] = value


@contextmanager
def reading_content() -> Iterator[None]:
    """Convert InvalidInput in the block to a plain ClewError with the same message, because the fault is in the content
    and not in the usage."""
    try:
        yield
    except InvalidInput as error:
        raise ClewError(error.message, hint=error.hint) from error


def parse_json(raw: bytes, kind: Any, place: str) -> Any:
    """JSON of a given type. Raises InvalidInput with the place of the error and the expected form."""
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
    """The line and column of an error in JSON, by the standard library: the fast parser has neither."""
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
    """Return the error with the message of the other interfaces and the origin of the JSON."""
    found = in_plain_words(error, kind, "")
    where = f"{place}, {found.field}" if found.field else place
    return InvalidInput(where, found.reason, hint=found.hint or ("" if found.field else _example(kind)))
