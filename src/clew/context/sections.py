"""The sections of a context. The source of a breadcrumb may name its section, else the definition of its schema does
(`section` beside its hints). Other breadcrumbs are history if they belong to the session, and knowledge otherwise. The
trigger comes last, under `message`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

ORDER = ("tools", "browser", "knowledge", "history", "message")
"""Stable sections come first, so that the provider's prompt cache stays valid. Sections of other names come before the
history, sorted by name."""
MESSAGE, HISTORY, KNOWLEDGE = "message", "history", "knowledge"
_HEADINGS = {
    "tools": "Available tools",
    "browser": "Browser",
    "knowledge": "Relevant knowledge",
    "history": "Conversation history",
    "message": "Message to answer",
}
HEADING_TOKENS = 20
"""The reserve for the heading of a section and its blank lines."""
NUMBER_TOKENS = 5
"""The reserve for the number before an item and the blank line after it."""
_MAX_NAME = 30


def section_for(origin: str, given: str, defined: str) -> str:
    """Return the section of an item, from its source, else from its schema."""
    if origin == "trigger":
        return MESSAGE
    fallback = HISTORY if origin == "session" else KNOWLEDGE
    named = given or defined or fallback
    return fallback if named == MESSAGE else named


def ordered(names: Iterable[str]) -> list[str]:
    """Sort section names in display order."""
    present = frozenset(names)
    first = ORDER[: ORDER.index(HISTORY)]
    last = ORDER[len(first) :]
    others = sorted(present - set(ORDER))
    return [name for name in (*first, *others, *last) if name in present]


def heading(name: str) -> str:
    """Return the heading of a section."""
    shown = " ".join("".join(each for each in name if each.isprintable()).split())[:_MAX_NAME]
    return f"# {_HEADINGS.get(name, shown.capitalize())}"


def compose(sections: Mapping[str, Sequence[str]]) -> str:
    """Join all sections with items, each with its heading and numbered items. The message has no number."""
    parts: list[str] = []
    number = 0
    for name in ordered(name for name, items in sections.items() if items):
        parts.append(heading(name))
        for item in sections[name]:
            number += 1
            parts.append(item if name == MESSAGE else f"[{number}] {item}")
    return "\n\n".join(parts)
