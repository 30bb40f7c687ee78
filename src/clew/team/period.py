"""The time that a message speaks of: a name such as `last_month`, and the dates that it stands for."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import NamedTuple

RECENT_DAYS = 7
"""`recently` means the last seven days."""
DAYS = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}
"""How far one unit goes back, where a message counts units."""
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_UNITS = "|".join(DAYS)
_TIME = re.compile(
    rf"\b(?:recently|lately|recent|today|yesterday|this morning"
    rf"|(?:last|past|previous|this) (?:\d{{1,3}} )?(?:{_UNITS})s?"
    rf"|\d{{1,3}} (?:{_UNITS})s? ago|(?:since|on|last) (?:{'|'.join(WEEKDAYS)}))\b",
    re.IGNORECASE,
)
_SAME = {"recent": "recently", "lately": "recently", "this morning": "today"}
_COUNTED = re.compile(rf"(?:last_|past_|previous_)?(\d{{1,3}})_({_UNITS})s?(?:_ago)?")


class Time(NamedTuple):
    """The words of a message that name a time, and the scope that they mean; both empty where there are none."""

    text: str = ""
    scope: str = ""


def find_time(message: str) -> Time:
    """The first time that a message names. `before` and the like bound nothing, so they have no scope."""
    found = _TIME.search(message)
    if found is None:
        return Time()
    said = found[0].lower()
    return Time(found[0], _SAME.get(said, said).replace(" ", "_"))


def period_of(scope: str, now: datetime) -> tuple[str, str] | None:
    """The first and the last day of a scope as ISO dates; None for a scope without bounds."""
    today = now.date()
    found = _named(scope, today) or _counted(scope, today) or _calendar(scope, today) or _weekday(scope, today)
    return (found[0].isoformat(), found[1].isoformat()) if found else None


def _named(scope: str, today: date) -> tuple[date, date] | None:
    if scope == "recently":
        return today - timedelta(days=RECENT_DAYS), today
    if scope == "today":
        return today, today
    if scope == "yesterday":
        return today - timedelta(days=1), today - timedelta(days=1)
    return None


def _counted(scope: str, today: date) -> tuple[date, date] | None:
    """`last_3_weeks` goes up to today; `3_weeks_ago` is the unit that ended then."""
    found = _COUNTED.fullmatch(scope)
    if found is None:
        return None
    unit = DAYS[found[2]]
    since = today - timedelta(days=int(found[1]) * unit)
    return (since, min(today, since + timedelta(days=unit - 1))) if scope.endswith("_ago") else (since, today)


def _calendar(scope: str, today: date) -> tuple[date, date] | None:
    """This or the last day, week, month, quarter or year of the calendar."""
    which, _, unit = scope.partition("_")
    if which not in ("this", "last", "past", "previous") or unit not in DAYS:
        return None
    since = _first_day(unit, today)
    if which == "this":
        return since, today
    until = since - timedelta(days=1)
    return _first_day(unit, until), until


def _first_day(unit: str, day: date) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1)
    return day.replace(month=1, day=1) if unit == "year" else day


def _weekday(scope: str, today: date) -> tuple[date, date] | None:
    """The latest such day before today; `since` goes on to today."""
    which, _, name = scope.partition("_")
    if name not in WEEKDAYS:
        return None
    back = (today.weekday() - WEEKDAYS.index(name)) % 7 or 7
    day = today - timedelta(days=back)
    return day, today if which == "since" else day
