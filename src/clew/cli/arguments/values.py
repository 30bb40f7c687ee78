"""Values as people type them on a command line."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from clew.cli.arguments.content import reading_content
from clew.cli.arguments.json_input import parse_json
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import NEVER, Ttl

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PERIOD = re.compile(r"(\d{1,9})([smhdw])")
_READS = re.compile(r"reads:(\d{1,9})")
_TTL_HINT = "For example 5m, 2h, 30d, 2026-12-31T00:00:00Z, reads:3, never, or 1h,reads:3"
_PAST_HINT = "For example 30m, 1h, 2d or 1w for so long ago, or 2026-01-31T12:00:00Z"


def parse_ttl(text: str, now: datetime) -> Ttl:
    """When a breadcrumb ends: a period, a time, a number of reads, `never`, or a time and reads with a comma."""
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
    """Put a value at a dotted path, making objects on the way. Raises InvalidInput where something else stands."""
    *sections, name = path.split(".")
    place: Any = context
    for section in sections:
        place = place.setdefault(section, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict) or not all((*sections, name)):
        raise InvalidInput("--set", f"{path!r} does not lead to a value of an object")
    place[name] = value
