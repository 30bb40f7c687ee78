"""Notes that a question asks for by their kind: what went wrong before, and what the user prefers."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from clew.access import Principal
from clew.knowledge.history.changelog import newest_first
from clew.knowledge.resolving.recent import list_noted
from clew.knowledge.resolving.subjects import subject_words
from clew.knowledge.resolving.support import build_wanted, support_of
from clew.trail.kinds import NodeType
from clew.trail.nodes import Node, ScoredNode
from clew.trail.store import Trail

MAX_LOOKED_AT = 500
PREFERENCE = "preference"

_ASKS = r"^(?:so |and |please )?(?:what|which|list|show|tell|give|any|are there|do (?:we|you|i)|have we|my|our)\b"
_MISTAKES = re.compile(rf"{_ASKS}(?: \w+){{0,4}}? (?:mistakes?|failures?)\b|^(?:mistakes|failures)\b", re.IGNORECASE)
_BROKE = re.compile(
    r"^(?:so |and )?what (?:has |have |had |did )?(?:ever )?(?:broken?|break|fail(?:ed)?|went wrong|gone wrong)\b",
    re.IGNORECASE,
)
_PREFERS = re.compile(
    rf"{_ASKS}(?: \w+){{0,4}}? (?:preferences?\b|(?:do|did|does|should) (?:i|we|the user) prefer\b)|^preferences\b"
    r"|^(?:what|which) (?:\w+ ){0,3}?(?:do|does) (?:i|we|the user) prefer\b|^(?:my|our) preferences?\b",
    re.IGNORECASE,
)
_ASKING_WORDS = (
    "mistake mistakes failure failures broke broken break fail failed went wrong gone go make made note noted prefer"
    " preferred preference preferences user before known past list all past ever with about again so far"
)
_ASKING = frozenset(_ASKING_WORDS.split())


class NotesAsked(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of notes that is meant, and the words of what they are about; none for all of them. `is_only` where
    nothing but notes is asked for."""

    kind: Literal["failure", "preference"]
    topic: tuple[str, ...] = ()
    is_only: bool = True


def read_notes_question(question: str) -> NotesAsked | None:
    """Which notes a question wants; None where it asks for something else."""
    line = " ".join(question[:MAX_LOOKED_AT].split()).rstrip(" ?!.")
    topic = tuple(subject_words(line, _ASKING))
    if _PREFERS.search(line):
        return NotesAsked(kind="preference", topic=topic)
    if _MISTAKES.search(line):
        return NotesAsked(kind="failure", topic=topic)
    return NotesAsked(kind="failure", topic=topic, is_only=False) if _BROKE.search(line) and topic else None


async def find_notes(trail: Trail, asked: NotesAsked, *, by: Principal, limit: int) -> list[ScoredNode]:
    """The notes of that kind that speak of the topic, those first that say most of it, and of these the newest."""
    types = (NodeType.FAILURE,) if asked.kind == "failure" else ()
    noted = [node for node in await list_noted(trail, types, by=by) if types or _is_preference(node)]
    wanted = build_wanted(asked.topic, {})
    held = [(support_of(wanted, node) if asked.topic else 1.0, node) for node in newest_first(noted)]
    meant = sorted((each for each in held if each[0] >= wanted.least), key=lambda each: -each[0])
    return [ScoredNode(node=node, similarity=1.0) for _, node in meant[:limit]]


def _is_preference(node: Node) -> bool:
    return node.metadata.get("summary_type") == PREFERENCE
