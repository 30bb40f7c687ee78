"""Briefs: the state of a session in three sizes, and the summary of a session. Each size begins with the one before it.
Every line cites its entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal, get_args

import msgspec

from clew.catalog.operations.text import inline
from clew.errors import InvalidInput
from clew.knowledge.history.entries import NO_SESSION, ArchiveQuery, Category, place_of_entry
from clew.knowledge.history.journal import Chronicle
from clew.knowledge.nodes.node_store import UNVERIFIED, Node
from clew.llm.tokens import count_tokens

Tier = Literal["micro", "standard", "full"]

_ENTRIES = 1_000
_SHORT, _LONG = 160, 600
_STANDARD_LINES, _FULL_LINES = 5, 40
_PLURALS = {Category.HYPOTHESIS: "hypotheses", Category.GENERAL: "general"}
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


class Brief(msgspec.Struct, frozen=True, kw_only=True):
    """A text and its size. `[n]` cites the n-th of `sources`, the ids of entries, and of `places`."""

    text: str
    tokens: int
    sources: tuple[str, ...]
    places: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """The text, then the places by number."""
        return [self.text, *(f"[{number}] {place}" for number, place in enumerate(self.places, 1))]


async def write_brief(chronicle: Chronicle, tier: str = "standard") -> Brief:
    """The state of a chronicle's session: its entries, the decision records of the repository, and in the full size the
    promoted entries of other sessions. Raises InvalidInput for an unknown size."""
    if tier not in get_args(Tier):
        raise InvalidInput("tier", f"{tier!r} is not a size", hint=f"Sizes are {', '.join(get_args(Tier))}")
    own = await chronicle.query(ArchiveQuery(current_only=True, limit=_ENTRIES))
    page = _BriefPage()
    page.write_counts(chronicle.session_id, own)
    if tier != "micro":
        page.write_sections(own, _STANDARD)
        records = await chronicle.decision_records(_ENTRIES)
        page.write_records(records, _FULL_LINES if tier == "full" else _STANDARD_LINES)
    if tier == "full":
        page.write_sections(own, _FULL, _FULL_LINES, _LONG)
        page.write_list("Timeline", list(reversed(own)), _FULL_LINES, _LONG)
        others = ArchiveQuery(
            cross_session=True, promoted_only=True, exclude_sessions=(chronicle.session_id,), limit=_FULL_LINES
        )
        page.write_list("Promoted by other sessions", await chronicle.query(others), _FULL_LINES, _LONG)
    return page.as_brief()


async def summarise_session(
    chronicle: Chronicle, session_id: Annotated[str, msgspec.Meta(description="empty: the own session")] = ""
) -> Brief:
    """Sum up a session from its entries: how many of each category, from when to when, and the latest of each."""
    session = session_id or chronicle.session_id
    entries = await chronicle.query(ArchiveQuery(cross_session=True, session_ids=(session,), limit=_ENTRIES))
    page = _BriefPage()
    page.write_counts(session, entries)
    if entries:
        page.lines.append(f"From {entries[-1].at:%Y-%m-%d %H:%M} to {entries[0].at:%Y-%m-%d %H:%M}.")
    page.write_sections(entries, (*_STANDARD, *_FULL))
    return page.as_brief()


def entry_text(entry: Node, width: int) -> str:
    """An entry on one line: its title, and its content unless that only repeats it. An UNVERIFIED mark stays."""
    title, content = _comparable(entry.name), _comparable(entry.content.removeprefix(UNVERIFIED))
    if content.startswith(title):
        return inline(entry.content, width)
    is_repeated = title.startswith(content) and not entry.content.startswith(UNVERIFIED)
    more = "" if is_repeated else f": {inline(entry.content, width)}"
    return f"{inline(entry.name, width)}{more}"


def _comparable(text: str) -> str:
    return " ".join(text[: _LONG * 4].split()).rstrip("….").casefold()


class _BriefPage:
    """A text with its citations."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._places: dict[str, str] = {}
        """The place of each cited entry by its id, in order."""

    def as_brief(self) -> Brief:
        text = "\n".join(self.lines)
        places = self._places
        return Brief(text=text, tokens=count_tokens(text), sources=tuple(places), places=tuple(places.values()))

    def write_counts(self, session_id: str, entries: Sequence[Node]) -> None:
        """Counts by category, and the latest state of a task."""
        counts = Counter(Category(entry.category or Category.GENERAL) for entry in entries)
        numbers = ", ".join(f"{count} {_name(category, count)}" for category, count in sorted(counts.items()))
        who = "This terminal" if session_id == NO_SESSION else f"Session {inline(session_id, _SHORT)}"
        self.lines.append(f"{who}: {numbers or 'nothing recorded yet'}.")
        newest = next((entry for entry in entries if entry.category == Category.TASK_STATE), None)
        if newest is not None:
            self.lines.append(f"Now: {entry_text(newest, _SHORT)} [{self._cite(newest)}]")

    def write_sections(
        self,
        entries: Sequence[Node],
        sections: Sequence[tuple[str, Category]],
        most: int = _STANDARD_LINES,
        width: int = _SHORT,
    ) -> None:
        for heading, category in sections:
            self.write_list(heading, [entry for entry in entries if entry.category == category], most, width)

    def write_list(self, heading: str, entries: Sequence[Node], most: int, width: int) -> None:
        """A heading and its entries, or that there are none."""
        lines = [f"{entry.at:%Y-%m-%d %H:%M} {entry_text(entry, width)}" for entry in entries[:most]]
        self._write(f"\n{heading}: {len(entries) or 'none'}", lines, entries)

    def write_records(self, records: Sequence[Node], most: int) -> None:
        """The newest decision records, if there are any."""
        days = [inline(str(entry.metadata.get("day") or "undated"), 40) for entry in records[:most]]
        lines = [f"{day} {entry_text(entry, _SHORT)}" for day, entry in zip(days, records, strict=False)]
        if records:
            self._write(f"\nDecisions of the project: {len(records):,}, newest first", lines, records)

    def _write(self, heading: str, lines: Sequence[str], entries: Sequence[Node]) -> None:
        self.lines.append(heading)
        self.lines += [f"- {line} [{self._cite(entry)}]" for line, entry in zip(lines, entries, strict=False)]
        if len(entries) > len(lines):
            self.lines.append(f"- … and {len(entries) - len(lines):,} more")

    def _cite(self, entry: Node) -> int:
        self._places.setdefault(entry.id, place_of_entry(entry))
        return list(self._places).index(entry.id) + 1


def _name(category: Category, count: int) -> str:
    name = category.replace("_", " ")
    return name if count == 1 else _PLURALS.get(category, f"{name}s")
