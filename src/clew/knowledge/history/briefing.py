"""Briefings: where a session stands, in three sizes. Each size begins with the one before it, so a larger one always
says more. Every line that tells of an entry cites it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, get_args

import msgspec

from clew.catalog.text import inline
from clew.errors import InvalidInput
from clew.knowledge.history.chronicle import Chronicle
from clew.knowledge.history.decisions import REPOSITORY
from clew.knowledge.history.entries import NO_SESSION, ArchiveQuery, Category, Entry
from clew.knowledge.history.moments import is_unreleased, newest_first
from clew.llm.tokens import count_tokens
from clew.trail.nodes import UNVERIFIED

Tier = Literal["micro", "standard", "full"]

_ENTRIES = 1_000
_SHORT, _LONG = 160, 600
_STANDARD_LINES, _FULL_LINES = 5, 40

_NAMES: dict[str, tuple[str, str]] = {
    Category.TASK_STATE: ("state of a task", "states of tasks"),
    Category.TIMELINE: ("piece of work", "pieces of work"),
    Category.USER_VOICE: ("word of the user", "words of the user"),
    Category.HYPOTHESIS: ("hypothesis", "hypotheses"),
    Category.OPEN_THREAD: ("open thread", "open threads"),
    Category.GENERAL: ("other entry", "other entries"),
}
_STANDARD = (
    ("Open threads", Category.OPEN_THREAD),
    ("Decisions", Category.DECISION),
    ("Failures", Category.FAILURE),
)
_FULL = (
    ("Patterns", Category.PATTERN),
    ("Insights", Category.INSIGHT),
    ("Hypotheses", Category.HYPOTHESIS),
    ("What the user said", Category.USER_VOICE),
)


class Briefing(msgspec.Struct, frozen=True, kw_only=True):
    """A text and what it took. `[n]` in it is the n-th of `sources`, the ids of entries, and of `places`, where each is
    found: in a file, or by its id."""

    tier: Tier
    text: str
    tokens: int
    sources: tuple[str, ...]
    places: tuple[str, ...] = ()


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one session did: how many entries of each category, from when to when, and the weightiest of them."""

    session_id: str
    text: str
    tokens: int
    counts: dict[str, int]
    began: datetime | None
    ended: datetime | None
    sources: tuple[str, ...]


async def brief(chronicle: Chronicle, tier: str = "standard") -> Briefing:
    """Where the session of a chronicle stands: its own entries, and in the full size what other sessions promoted.

    Raises InvalidInput for a size that there is not.
    """
    if tier not in get_args(Tier):
        raise InvalidInput("tier", f"{tier!r} is not a size", hint=f"Sizes are {', '.join(get_args(Tier))}")
    size: Tier = tier  # type: ignore[assignment]  # it was looked up just now
    own = await chronicle.query(ArchiveQuery(current_only=True, limit=_ENTRIES))
    page = _Page()
    _write_micro(page, chronicle.session_id, own)
    if size != "micro":
        _write_sections(page, own, _STANDARD, _STANDARD_LINES, _SHORT)
        await _write_project(page, chronicle, _FULL_LINES if size == "full" else _STANDARD_LINES)
    if size == "full":
        _write_sections(page, own, _FULL, _FULL_LINES, _LONG)
        page.list("Timeline", list(reversed(own)), _FULL_LINES, _LONG)
        others = ArchiveQuery(
            cross_session=True, promoted_only=True, exclude_sessions=(chronicle.session_id,), limit=_FULL_LINES
        )
        page.list("Promoted by other sessions", await chronicle.query(others), _FULL_LINES, _LONG)
    return Briefing(
        tier=size,
        text=page.text,
        tokens=count_tokens(page.text),
        sources=tuple(page.places),
        places=tuple(page.places.values()),
    )


async def summarise_session(chronicle: Chronicle, session_id: str = "") -> SessionSummary:
    """A summary of a session, the chronicle's own where none is named, put together from its entries alone."""
    session = session_id or chronicle.session_id
    entries = await chronicle.query(ArchiveQuery(cross_session=True, session_ids=(session,), limit=_ENTRIES))
    page = _Page()
    _write_micro(page, session, entries)
    _write_sections(page, entries, (*_STANDARD, *_FULL), _STANDARD_LINES, _SHORT)
    return SessionSummary(
        session_id=session,
        text=page.text,
        tokens=count_tokens(page.text),
        counts=dict(Counter(entry.category.value for entry in entries)),
        began=entries[-1].created_at if entries else None,
        ended=entries[0].created_at if entries else None,
        sources=tuple(page.places),
    )


class _Page:
    """A text that is being written, with its citations."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.places: dict[str, str] = {}
        """Where each cited entry is found, by its id, in order."""

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def say(self, line: str) -> None:
        self._lines.append(line)

    def list(self, heading: str, entries: Sequence[Entry], most: int, width: int) -> None:
        """A heading and its entries, or that there are none; what is left out is counted."""
        self.say(f"\n{heading}: {len(entries) or 'none'}")
        for entry in entries[:most]:
            self.say(f"- {entry.created_at:%Y-%m-%d %H:%M} {told(entry, width)} [{self.cite(entry)}]")
        if len(entries) > most:
            self.say(f"- … and {len(entries) - most} more")

    def cite(self, entry: Entry) -> int:
        self.places.setdefault(entry.id, entry.place)
        return list(self.places).index(entry.id) + 1


def told(entry: Entry, width: int) -> str:
    """An entry on one line: its title, and its content where that says more; a mark of what is unverified stays."""
    title, content = _compared(entry.title), _compared(entry.content.removeprefix(UNVERIFIED))
    if content.startswith(title):
        return inline(entry.content, width)
    is_repeated = title.startswith(content) and not entry.content.startswith(UNVERIFIED)
    return (
        inline(entry.title, width) if is_repeated else f"{inline(entry.title, width)}: {inline(entry.content, width)}"
    )


def _compared(text: str) -> str:
    """How a text begins, however it is spaced, and whatever stands for the rest of it."""
    return " ".join(text[: _LONG * 4].split()).rstrip("….").casefold()


def _write_micro(page: _Page, session_id: str, entries: Sequence[Entry]) -> None:
    counts = Counter(entry.category.value for entry in entries)
    numbers = ", ".join(f"{count} {_called(category, count)}" for category, count in sorted(counts.items()))
    who = "This terminal" if session_id == NO_SESSION else f"Session {inline(session_id, _SHORT)}"
    page.say(f"{who}: {numbers or 'nothing recorded yet'}.")
    newest = next((entry for entry in entries if entry.category is Category.TASK_STATE), None)
    if newest is not None:
        page.say(f"Now: {told(newest, _SHORT)} [{page.cite(newest)}]")


def _called(category: str, count: int) -> str:
    """A category as people call it, one of it or several."""
    one, several = _NAMES.get(category, (category, f"{category}s"))
    return one if count == 1 else several


async def _write_project(page: _Page, chronicle: Chronicle, most: int) -> None:
    """The newest decisions that the files of the repository tell of, where there are any."""
    wanted = ArchiveQuery(cross_session=True, sources=(REPOSITORY,), categories=(Category.DECISION,), limit=_ENTRIES)
    found = newest_first(await chronicle.query(wanted))
    if not found:
        return
    page.say(f"\nDecisions of the project: {len(found):,}, newest first")
    for entry in found[:most]:
        when = (
            entry.metadata.get("day")
            or entry.metadata.get("version")
            or ("unreleased" if is_unreleased(entry) else "undated")
        )
        page.say(f"- {inline(str(when), 40)} {told(entry, _SHORT)} [{page.cite(entry)}]")
    if len(found) > most:
        page.say(f"- … and {len(found) - most:,} more")


def _write_sections(
    page: _Page, entries: Sequence[Entry], sections: Sequence[tuple[str, Category]], most: int, width: int
) -> None:
    for heading, category in sections:
        page.list(heading, [entry for entry in entries if entry.category is category], most, width)
