"""Questions on what changed with a version: its lines of the changelogs, in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time

import msgspec

from clew.knowledge.git.tags import version_key
from clew.knowledge.history.changelog import CHANGELOG, ChangeKind, ChangeNote
from clew.trail.kinds import NodeDomain, NodeType, Trust, Verification
from clew.trail.nodes import Node

MAX_LOOKED_AT = 500

_NUMBER = r"v?\d{1,9}(?:\.\d{1,9}){1,7}(?:[-.]?(?:a|b|rc|alpha|beta|dev|post|pre)[-.]?\d*)?"
_VERSION = re.compile(
    rf"\b(?P<link>in|of|for|with|by|version|release|changelog|notes|news)"
    rf"(?: (?:the )?(?:version|release|(?P<of>[\w.-]{{1,40}})))? (?P<version>{_NUMBER})(?![\w.]*\w)"
    r"(?! (?:and|or|to|from)\b)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"^(?:please )?(?:(?:show|list|give|tell)\b.*\b(?:chang|release notes|news|new|fix|remov|add|deprecat)|changelog"
    r"|changes|release notes|(?:what|which)\b.*\b(?:chang|brok|break|remov|delet|dropp|add|new|fix|deprecat|differ"
    r"|happen|introduc|renam|releas|secur|vulnerab)|what's new)",
    re.IGNORECASE,
)
_KINDS: tuple[tuple[re.Pattern[str], ChangeKind], ...] = (
    (re.compile(r"\b(?:brok|break)", re.IGNORECASE), "breaking"),
    (re.compile(r"\b(?:remov|delet|dropp)", re.IGNORECASE), "removed"),
    (re.compile(r"\bdeprecat", re.IGNORECASE), "deprecated"),
    (re.compile(r"\b(?:secur|vulnerab)", re.IGNORECASE), "security"),
    (re.compile(r"\bfix", re.IGNORECASE), "fixed"),
    (re.compile(r"\b(?:add|introduc)", re.IGNORECASE), "added"),
)
_OF_OTHERS = frozenset(("for", "with", "by"))
_COMMIT = re.compile(r"\bcommits?\b|\bsupport\b", re.IGNORECASE)
_TOLD_BY_WORDS = frozenset(("removed", "deprecated", "fixed"))
_NAMED = 200


class VersionAsked(msgspec.Struct, frozen=True, kw_only=True):
    """A version, of what, where the question says so, and the kind of changes that is wanted; all where there is
    none. `is_sure` where it can only be one of this project."""

    version: str
    of: str = ""
    is_sure: bool = False
    kind: ChangeKind | None = None


def read_version(question: str) -> VersionAsked | None:
    """The version whose changes a question wants; None where it asks for something else."""
    line = " ".join(question[:MAX_LOOKED_AT].split()).rstrip(" ?!.")
    found = _VERSION.search(line)
    if found is None or not _ASKS.search(line):
        return None
    version = found["version"].removeprefix("v").removeprefix("V")
    kind = next((kind for pattern, kind in _KINDS if pattern.search(line)), None)
    is_sure = not found["of"] and found["link"].lower() not in _OF_OTHERS and not _COMMIT.search(line)
    return VersionAsked(version=version, of=found["of"] or "", kind=kind, is_sure=is_sure)


def notes_of(notes: Sequence[ChangeNote], asked: VersionAsked) -> list[ChangeNote]:
    """The changes of a version, in the order of their files; where there is none of just that, of all that it begins,
    so that `0.8` means 0.8.1 as well. Of what is named those in the folder of that name, where there are any."""
    wanted = version_key(asked.version)
    same = [note for note in notes if wanted is not None and version_key(note.version) == wanted]
    found = same or [note for note in notes if note.version.startswith(f"{asked.version}.")]
    own = [note for note in found if asked.of and asked.of.casefold() in note.path.casefold().split("/")[:-1]]
    return own or found


def is_of_kind(note: ChangeNote, kind: ChangeKind | None) -> bool:
    """Whether a change is of a kind: by what it is told to be, or by its words where that says more, as of what breaks
    because it was removed."""
    words = next((pattern for pattern, each in _KINDS if each == kind and kind in _TOLD_BY_WORDS), None)
    return kind in (None, note.kind) or (words is not None and words.search(note.text) is not None)


def note_node(note: ChangeNote, now: datetime) -> Node:
    """A line of a changelog as a node of history."""
    at = datetime.combine(note.day, time(), UTC) if note.day else None
    return Node(
        id=note.cited,
        name=note.text.split("\n", 1)[0][:_NAMED],
        domain=NodeDomain.HISTORY,
        node_type=NodeType.HISTORY_ENTRY,
        content=note.text,
        path=note.path,
        line_start=note.line,
        content_hash=note.hash,
        timestamp=at,
        created_at=at or now,
        verified=True,
        verification=Verification.CODE,
        trust=Trust.RECENT,
        metadata={"kind": CHANGELOG, "status": note.kind, "version": note.version},
    )
