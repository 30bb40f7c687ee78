"""Slash commands, which need no classification."""

from __future__ import annotations

import re
from itertools import pairwise

from clew.team.route import RouteTarget

COMMANDS: dict[str, RouteTarget] = {
    "session": RouteTarget.SESSION,
    "sessions": RouteTarget.SESSION,
    "switch": RouteTarget.SESSION,
    "suspend": RouteTarget.SESSION,
    "resume": RouteTarget.SESSION,
    "close": RouteTarget.SESSION,
    "task": RouteTarget.TASK,
    "approve": RouteTarget.CONTROL,
    "reject": RouteTarget.CONTROL,
    "continue": RouteTarget.CONTROL,
    "pause": RouteTarget.CONTROL,
    "stop": RouteTarget.CONTROL,
    "cancel": RouteTarget.CONTROL,
    "skip": RouteTarget.CONTROL,
    "find": RouteTarget.LIBRARIAN,
    "where": RouteTarget.LIBRARIAN,
    "code": RouteTarget.LIBRARIAN,
    "history": RouteTarget.ARCHIVALIST,
    "brief": RouteTarget.ARCHIVALIST,
    "research": RouteTarget.ACADEMIC,
    "plan": RouteTarget.ARCHITECT,
    "inspect": RouteTarget.INSPECTOR,
    "review": RouteTarget.INSPECTOR,
    "test": RouteTarget.TESTER,
    "design": RouteTarget.DESIGNER,
}
"""The target of each command `/name …`."""

EXACT, MISSPELLED = 1.0, 0.95
LONG_NAME = 6
"""The minimum length of a name for which one wrong letter is tolerated. Shorter names tolerate only two swapped
letters."""

_COMMAND = re.compile(r"\s*/([a-z][a-z_-]*)(?:\s+(.*))?\Z", re.DOTALL | re.IGNORECASE)


def read_command(message: str) -> tuple[RouteTarget, float, str] | None:
    """Return the target of a slash command, the confidence, and the text after the name; None for other messages."""
    found = _COMMAND.match(message)
    if found is None:
        return None
    name, rest = found[1].lower(), (found[2] or "").strip()
    if name in COMMANDS:
        return COMMANDS[name], EXACT, rest
    meant = {COMMANDS[each] for each in COMMANDS if _is_misspelling(name, each)}
    return (meant.pop(), MISSPELLED, rest) if len(meant) == 1 else None


def _is_misspelling(typed: str, name: str) -> bool:
    """Whether `typed` is `name` with two neighbouring letters swapped, or, for a long name, with one letter wrong,
    missing or added."""
    if _swaps(name, typed):
        return True
    return len(name) >= LONG_NAME and _is_one_edit(typed, name)


def _swaps(name: str, typed: str) -> bool:
    pairs = enumerate(pairwise(name))
    return any(name[:at] + second + first + name[at + 2 :] == typed for at, (first, second) in pairs)


def _is_one_edit(typed: str, name: str) -> bool:
    if abs(len(typed) - len(name)) > 1:
        return False
    at = next((at for at, (a, b) in enumerate(zip(typed, name, strict=False)) if a != b), min(len(typed), len(name)))
    return typed[at + 1 :] == name[at + 1 :] or typed[at:] == name[at + 1 :] or typed[at + 1 :] == name[at:]
