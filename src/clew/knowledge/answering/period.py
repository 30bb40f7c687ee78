"""The time that a question bounds, such as `last week`, `in August 2026` or `since 2026-07-01`, as two moments. Days
are those of UTC, weeks begin on Monday."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta

import msgspec

from clew.lazy_pattern import lazy_pattern

MAX_LOOKED_AT = 1_000
EVER, END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

_MONTH_NAMES = "january february march april may june july august september october november december"
_DAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
_NUMBER_NAMES = "zero one two three four five six seven eight nine ten eleven twelve"
_MONTHS, _DAYS, _NUMBERS = _MONTH_NAMES.split(), _DAY_NAMES.split(), _NUMBER_NAMES.split()
_UNIT_NAMES = "hour hours week weeks month months quarter quarters year years"
_TIME_WORDS = frozenset((*_MONTHS, *(name[:3] for name in _MONTHS), *_UNIT_NAMES.split(), "sept", "morning"))
"""Every expression for a time has one of these words, a year, a quarter, or a word with `day`: `today`, `yesterday`,
`monday`."""
_COUNTS = {word: number for number, word in enumerate(_NUMBERS)} | {"a": 1, "an": 1, "couple": 2, "few": 3}

_MONTH = rf"(?:{'|'.join(f'{name[:3]}(?:{name[3:]})?' if name != 'may' else name for name in _MONTHS)}|sept)\.?"
_CENTURY = r"(?:19|20)\d\d"
_YEAR = rf"{_CENTURY}(?!\.?\w)"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?!\w)"
_UNIT = r"(?:hour|day|week|month|quarter|year)s?"
_COUNT = rf"(?:\d{{1,4}}|(?:a )?couple(?: of)?|(?:a )?few|{'|'.join(word for word in _COUNTS if len(word) > 2)}|an?)"
_WEEKDAY = rf"(?:{'|'.join(_DAYS)})"
_EXACT = (
    rf"(?:{_CENTURY}[-/]\d{{1,2}}[-/]\d{{1,2}}(?!\w)|{_CENTURY}-\d\d(?![\w-])|{_MONTH},? {_YEAR}"
    rf"|{_DAY}\.? (?:of )?{_MONTH}(?:,? {_YEAR})?|{_MONTH} (?:the )?{_DAY}(?:,? {_YEAR})?|q[1-4](?: (?:of )?{_YEAR})"
    rf"|(?:this|last|previous) (?:week|month|year|quarter|{_WEEKDAY})|the day before yesterday|yesterday|today"
    rf"|this morning|{_COUNT} {_UNIT} ago)"
)
"""Expressions that always mean a time."""
_LOOSE = rf"(?:{_EXACT}|{_MONTH}(?!\w)|{_WEEKDAY}|q[1-4]|{_YEAR})"
"""Expressions that mean a time after a word such as `in` or `since`."""


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """The time from `since` to `until`, which is exclusive. `said` are the words of the question that name it, `rest`
    the question without them."""

    since: datetime = EVER
    until: datetime = END
    said: str = ""
    rest: str = ""

    @property
    def label(self) -> str:
        """The days of the period, as words for a sentence."""
        first, last = f"{self.since:%Y-%m-%d}", f"{self.until - timedelta(microseconds=1):%Y-%m-%d}"
        if self.since == EVER:
            return f"before {self.until:%Y-%m-%d}"
        return f"on {first}" if first == last else f"from {first} to {last}"


_Span = tuple[datetime, datetime]


def read_period(question: str, now: datetime) -> Period | None:
    """The period that a question names, relative to a moment; None if it names none."""
    line = " ".join(question[:MAX_LOOKED_AT].split())
    if not _may_name_time(line):
        return None
    for pattern, read in _PATTERNS:
        found = pattern.search(line)
        span = _bounded(read, found, now) if found is not None else None
        if found is not None and span is not None:
            rest = " ".join(f"{line[: found.start()]} {line[found.end() :]}".split())
            return Period(since=span[0], until=span[1], said=found[0], rest=rest)
    return None


def _may_name_time(line: str) -> bool:
    """Whether a line may name a time. This quick check comes first, because the patterns take longer to compile than a
    question takes to answer."""
    words = re.findall(r"\w+", line.casefold())
    has_word = not _TIME_WORDS.isdisjoint(words) or any("day" in word for word in words)
    return has_word or re.search(rf"{_CENTURY}|\bq[1-4]\b", line, re.IGNORECASE) is not None


def _bounded(read: Callable[[re.Match[str], datetime], _Span], found: re.Match[str], now: datetime) -> _Span | None:
    """Read a span of time. Returns None for dates that do not exist, such as the 31st of June."""
    try:
        since, until = read(found, now)
    except (ValueError, OverflowError):
        return None
    return (since, until) if since < until else None


def _between(found: re.Match[str], now: datetime) -> _Span:
    year, has_year = re.search(_CENTURY, found["second"]), re.search(_CENTURY, found["first"])
    is_month = re.match(_MONTH, found["first"], re.IGNORECASE)
    said = f"{found['first']} {year[0]}" if year and is_month and not has_year else found["first"]
    first, second = _span(said, now), _span(found["second"], now)
    return min(first[0], second[0]), max(first[1], second[1])


def _since(found: re.Match[str], now: datetime) -> _Span:
    start, end = _span(found["first"], now)
    return end if found["word"].lower() == "after" else start, _end_of_today(now)


def _before(found: re.Match[str], now: datetime) -> _Span:
    start, end = _span(found["first"], now)
    return EVER, start if found["word"].lower() in ("before", "prior to") else end


def _rolling(found: re.Match[str], now: datetime) -> _Span:
    """The last N units, up to now."""
    count, unit = _count(found["count"] or "one"), found["unit"].lower().rstrip("s")
    if unit == "hour":
        return now - timedelta(hours=count), _end_of_today(now)
    days = count * {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}[unit]
    return _midnight((now - timedelta(days=days)).date()), _end_of_today(now)


def _alone(found: re.Match[str], now: datetime) -> _Span:
    return _span(found["first"], now)


def _span(said: str, now: datetime) -> _Span:
    """The first moment of a time, and the one after its last. Raises ValueError for a date that does not exist."""
    text = said.lower().replace(",", "").replace(".", "")
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    month = next((at for at, name in enumerate(_MONTHS, 1) if re.search(rf"\b{name[:3]}", text)), 0)
    if found := re.fullmatch(rf"({_COUNT}) ({_UNIT}) ago", text):
        return _ago(_count(found[1]), found[2].rstrip("s"), now)
    if re.fullmatch(r"\d{4}[-/]\d+[-/]\d+", text):
        return _one_day(date(*numbers))
    if re.fullmatch(r"\d{4}-\d+", text):
        return _one_month(numbers[0], numbers[1])
    if text[0] == "q":
        return _one_quarter(numbers[1] if len(numbers) > 1 else now.year, numbers[0])
    if month:
        return _named(month, numbers, now)
    return _one_year(numbers[0]) if numbers else _relative(text, now)


def _named(month: int, numbers: list[int], now: datetime) -> _Span:
    """A month, or a day of it; without a year the latest that has begun."""
    years = [number for number in numbers if number > 31]
    days = [number for number in numbers if number <= 31]
    year = years[0] if years else now.year if (month, *days) <= (now.month, now.day)[: 1 + len(days)] else now.year - 1
    return _one_day(date(year, month, days[0])) if days else _one_month(year, month)


def _relative(text: str, now: datetime) -> _Span:
    today = now.date()
    if text in ("today", "this morning"):
        return _one_day(today)
    if text.endswith("yesterday"):
        return _one_day(today - timedelta(days=1 if text == "yesterday" else 2))
    which, _, unit = text.rpartition(" ")
    if unit in _DAYS:
        back = (today.weekday() - _DAYS.index(unit)) % 7
        return _one_day(today - timedelta(days=back or (7 if which in ("last", "previous") else 0)))
    return _ago(0 if which == "this" else 1, unit, now)


def _ago(count: int, unit: str, now: datetime) -> _Span:
    """The hour, day, week, month, quarter or year that is N before the present one."""
    today = now.date()
    if unit == "hour":
        return _one_day((now - timedelta(hours=count)).date())
    if unit == "day":
        return _one_day(today - timedelta(days=count))
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * count)
        return _midnight(monday), _midnight(monday + timedelta(days=7))
    if unit == "year":
        return _one_year(today.year - count)
    month = today.year * 12 + today.month - 1 - count * (3 if unit == "quarter" else 1)
    if unit == "quarter":
        return _one_quarter(month // 12, month % 12 // 3 + 1)
    return _one_month(month // 12, month % 12 + 1)


def _one_day(day: date) -> _Span:
    return _midnight(day), _midnight(day + timedelta(days=1))


def _one_month(year: int, month: int) -> _Span:
    return _midnight(date(year, month, 1)), _midnight(date(year + month // 12, month % 12 + 1, 1))


def _one_quarter(year: int, quarter: int) -> _Span:
    return _one_month(year, 3 * quarter - 2)[0], _one_month(year, 3 * quarter)[1]


def _one_year(year: int) -> _Span:
    return _midnight(date(year, 1, 1)), _midnight(date(year + 1, 1, 1))


def _end_of_today(now: datetime) -> datetime:
    return _midnight(now.date() + timedelta(days=1))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _count(said: str) -> int:
    word = said.lower().removeprefix("a ").removesuffix(" of")
    return int(word) if word.isdigit() else _COUNTS[word]


_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], _Span]], ...] = tuple(
    (lazy_pattern(pattern, re.IGNORECASE), read)
    for pattern, read in (
        (rf"\bbetween (?P<first>{_LOOSE}) and (?P<second>{_LOOSE})", _between),
        (rf"\bfrom (?P<first>{_LOOSE}) (?:to|until|till|through) (?P<second>{_LOOSE})", _between),
        (rf"\b(?P<word>since|after|as of|starting) (?:the )?(?P<first>{_LOOSE})(?: on(?:wards?)?)?", _since),
        (rf"\b(?P<word>from) (?P<first>{_LOOSE}) on(?:wards?)?\b", _since),
        (rf"(?<!day )\b(?P<word>before|until|till|up to|prior to) (?P<first>{_LOOSE})", _before),
        (
            rf"(?:\b(?:in|within|over|during|for|from|of) )?\b(?:(?:the|these) (?:last|past|previous)|past|last"
            rf"(?= {_COUNT} ))(?: (?P<count>{_COUNT}))? (?P<unit>{_UNIT})\b(?! ago)",
            _rolling,
        ),
        (rf"(?:\b(?:in|on|during|of|from|at|for) )?(?<![\w.-])(?P<first>{_EXACT})(?!\w)", _alone),
        (rf"\b(?:in|on|during) (?:the year )?(?P<first>{_LOOSE})(?!\w)", _alone),
    )
)
