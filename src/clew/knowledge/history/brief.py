"""Briefs: the state of a session in three sizes, and the summary of a session. Each size begins with the one before it.
Every line ends with the place of its entry."""

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
    """A text, its size in tokens, and the number of entries that it describes."""

    text: str
    tokens: int
    entries: int


async def write_brief(chronicle: Chronicle, tier: str = "standard", records: Sequence[Node] = ()) -> Brief:
    """The state of a chronicle's session: its entries, the decision `records` of the repository, and in the full size
    the promoted entries of other sessions. Raises InvalidInput for an unknown size."""
    if tier not in get_args(Tier):
        raise InvalidInput("tier", f"{tier!r} is not a size", hint=f"Sizes are {', '.join(get_args(Tier))}")
    own = await chronicle.query(ArchiveQuery(current_only=True, limit=_ENTRIES))
    others: Sequence[Node] = ()
    lines = _count_lines(chronicle.session_id, own)
    if tier != "micro":
        lines += _section_lines(own, _STANDARD, _STANDARD_LINES, _SHORT)
        heading = f"Decisions of the project: {len(records):,}, newest first"
        most = _FULL_LINES if tier == "full" else _STANDARD_LINES
        lines += _list_lines(heading, records, most, _SHORT) if records else []
    if tier == "full":
        lines += _section_lines(own, _FULL, _FULL_LINES, _LONG)
        lines += _list_lines(f"Timeline: {len(own) or 'none'}", own[::-1], _FULL_LINES, _LONG)
        session = chronicle.session_id
        query = ArchiveQuery(cross_session=True, promoted_only=True, exclude_sessions=(session,), limit=_FULL_LINES)
        others = await chronicle.query(query)
        lines += _list_lines(f"Promoted by other sessions: {len(others) or 'none'}", others, _FULL_LINES, _LONG)
    shown = len(records) if tier != "micro" else 0
    return _to_brief(lines, len(own) + shown + len(others))


async def summarise_session(
    chronicle: Chronicle, session_id: Annotated[str, msgspec.Meta(description="empty: the own session")] = ""
) -> Brief:
    """Sum up a session from its entries: how many of each category, from when to when, and the latest of each."""
    session = session_id or chronicle.session_id
    entries = await chronicle.query(ArchiveQuery(cross_session=True, session_ids=(session,), limit=_ENTRIES))
    lines = _count_lines(session, entries)
    if entries:
        lines.append(f"From {entries[-1].at:%Y-%m-%d %H:%M} to {entries[0].at:%Y-%m-%d %H:%M}.")
    return _to_brief([*lines, *_section_lines(entries, (*_STANDARD, *_FULL), _STANDARD_LINES, _SHORT)], len(entries))


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


def _to_brief(lines: Sequence[str], entries: int) -> Brief:
    text = "\n".join(lines)
    return Brief(text=text, tokens=count_tokens(text), entries=entries)


def _count_lines(session_id: str, entries: Sequence[Node]) -> list[str]:
    """Counts by category, and the latest state of a task."""
    counts = Counter(Category(entry.category or Category.GENERAL) for entry in entries)
    numbers = ", ".join(f"{count} {_name(category, count)}" for category, count in sorted(counts.items()))
    session = "This terminal" if session_id == NO_SESSION else f"Session {inline(session_id, _SHORT)}"
    states = [entry for entry in entries if entry.category == Category.TASK_STATE][:1]
    now = [f"Now: {entry_text(entry, _SHORT)} ({place_of_entry(entry)})" for entry in states]
    return [f"{session}: {numbers or 'nothing recorded yet'}.", *now]


def _section_lines(
    entries: Sequence[Node], sections: Sequence[tuple[str, Category]], most: int, width: int
) -> list[str]:
    groups = [(heading, [entry for entry in entries if entry.category == category]) for heading, category in sections]
    return [
        line for heading, own in groups for line in _list_lines(f"{heading}: {len(own) or 'none'}", own, most, width)
    ]


def _list_lines(heading: str, entries: Sequence[Node], most: int, width: int) -> list[str]:
    """A heading and its first entries, each with its time and place."""
    lines = [f"- {_when(entry)} {entry_text(entry, width)} ({place_of_entry(entry)})" for entry in entries[:most]]
    more = [f"- … and {len(entries) - most:,} more"] if len(entries) > most else []
    return ["", heading, *lines, *more]


def _when(entry: Node) -> str:
    """The time of an entry; of a decision record, the day that it states."""
    if entry.metadata.get("kind") == "adr":
        return inline(str(entry.metadata.get("day") or "undated"), 40)
    return f"{entry.at:%Y-%m-%d %H:%M}"


def _name(category: Category, count: int) -> str:
    name = category.replace("_", " ")
    return name if count == 1 else _PLURALS.get(category, f"{name}s")
