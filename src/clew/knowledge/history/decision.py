"""A decision as it is read from a repository, whatever form it was written in."""

from __future__ import annotations

import re
from datetime import date
from typing import Literal

import msgspec

DecisionKind = Literal["adr", "changelog", "commit"]

_DATE = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?!\d)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED = "|".join(_MONTHS)
_LONG_DATES = (
    re.compile(
        rf"(?P<day>\d{{1,2}})(?:\.|st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_NAMED})[a-z]{{0,6}},?\s+(?P<year>\d{{4}})",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?P<month>{_NAMED})[a-z]{{0,6}}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})", re.IGNORECASE
    ),
)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided, and where that is written: `source` is a path, or the name of a commit; `line` counts from 1, 0
    for a commit; `hash` is the git blob id of the file, or again the commit. `supersedes` names numbers, titles or
    files as they were written."""

    kind: DecisionKind
    title: str
    source: str
    line: int
    hash: str
    number: str = ""
    status: str = ""
    day: date | None = None
    version: str = ""
    context: str = ""
    decision: str = ""
    consequences: str = ""
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""

    @property
    def cited(self) -> str:
        """How it is cited: `path:line` at its blob, or the commit."""
        return f"{self.source}:{self.line}" if self.line else self.source[:12]

    @property
    def key(self) -> str:
        """A name that stays the same while the text is edited."""
        place = self.source if self.kind == "adr" else f"{self.source}#{self.version}#{self.title}"
        return f"decision:{place}"

    @property
    def text(self) -> str:
        """All of it, for searching and showing; a title that only begins what was decided is not said twice."""
        is_repeated = bool(self.title) and self.decision.startswith(self.title.removesuffix("…"))
        parts = ("" if is_repeated else self.title, self.context, self.decision, self.consequences)
        return "\n\n".join(part for part in parts if part)

    def mentions(self, name: str) -> bool:
        """Whether its text names a file, as a whole word."""
        return bool(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w-])", self.text))


def find_date(text: str) -> date | None:
    """The first day in a text that there is: written with numbers from the year on, or with the name of the month."""
    for numbers in _DATE.finditer(text[:2_000]):
        if day := _day(*map(int, numbers.groups())):
            return day
    for form in _LONG_DATES:
        found = form.search(text[:2_000])
        month = _MONTHS.index(found["month"][:3].lower()) + 1 if found else 0
        if found and (day := _day(int(found["year"]), month, int(found["day"]))):
            return day
    return None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
