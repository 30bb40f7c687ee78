"""Entries of the chronicle: what was decided, found out, tried and left open. An entry is a node of the history with a
category; it belongs to a session until it is promoted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.evidence.citations import on_one_line
from clew.trail.breadcrumb import Breadcrumb
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import SCHEMA, to_node
from clew.trail.selector import ContextMatch, Selector

PROMOTED = "chronicle:promoted"
NO_SESSION = "outside"
"""The session of what is stored where the writer is in none."""
MAX_LIMIT = 1_000

PromotedBecause = Literal["user", "session_success", "inspector", "uses"]


class Category(StrEnum):
    """What an entry is about."""

    DECISION = "decision"
    INSIGHT = "insight"
    PATTERN = "pattern"
    FAILURE = "failure"
    TASK_STATE = "task_state"
    TIMELINE = "timeline"
    USER_VOICE = "user_voice"
    HYPOTHESIS = "hypothesis"
    OPEN_THREAD = "open_thread"
    GENERAL = "general"


NODE_TYPES = {
    Category.DECISION: NodeType.DECISION,
    Category.PATTERN: NodeType.PATTERN,
    Category.FAILURE: NodeType.FAILURE,
}
"""Categories that have a node type of their own; the others are plain entries."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. `source` is who wrote it; `promoted_by` and `promoted_because` are empty until it is promoted. What a
    file tells of has its place there, and a time where the file says when it was."""

    id: str
    title: str
    content: str
    category: Category
    session_id: str
    source: str = ""
    tags: tuple[str, ...] = ()
    promoted: bool = False
    promoted_by: str = ""
    promoted_because: str = ""
    metadata: dict[str, Any] = {}
    trust: int
    created_at: datetime
    timestamp: datetime | None = None
    path: str | None = None
    line_start: int | None = None

    @property
    def place(self) -> str:
        """Where it is found again: the place in a file, or else its id."""
        return f"{on_one_line(self.path)}:{self.line_start or 1}" if self.path else self.id


class ArchiveQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entries; all given parts must hold. Of itself it means the entries of the own session and what was promoted
    from anywhere; `current_only` means the own session, `cross_session` all of them. Both bounds of time count."""

    categories: Sequence[Category] = ()
    sources: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    search_text: str = ""
    limit: int = 50
    session_ids: Sequence[str] = ()
    exclude_sessions: Sequence[str] = ()
    current_only: bool = False
    cross_session: bool = False
    promoted_only: bool = False


EVERY_ENTRY = ArchiveQuery()


def check_category(category: str) -> Category:
    """Raises InvalidInput for a word that is no category."""
    try:
        return Category(category)
    except ValueError:
        raise InvalidInput(
            "category", f"{category!r} is not a category", hint=f"Categories are {', '.join(Category)}"
        ) from None


def build_selector(query: ArchiveQuery, session_id: str) -> Selector:
    """The query of somebody in a session, in the trail's own language. Raises InvalidInput."""
    if query.current_only and query.cross_session:
        raise InvalidInput("current_only", "does not go with cross_session", hint="Choose one of them")
    if not 1 <= query.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT:,}")
    return Selector(
        schema_name=SCHEMA,
        all_tags=(f"domain:{NodeDomain.HISTORY.label}", *((PROMOTED,) if query.promoted_only else ())),
        any_tags=_scope(query, session_id),
        created_after=query.since - _MOMENT if query.since is not None else None,
        created_before=query.until + _MOMENT if query.until is not None else None,
        context_match=tuple(_conditions(query)),
    )


def to_entry(breadcrumb: Breadcrumb) -> Entry:
    """Raises NotFound when the breadcrumb is no node."""
    node = to_node(breadcrumb)
    promoted = node.metadata.get("promoted") or {}
    return Entry(
        id=node.id,
        title=node.name,
        content=node.content,
        category=Category(node.category or Category.GENERAL),
        session_id=node.session_id or "",
        source=node.source or "",
        tags=tuple(node.metadata.get("tags", ())),
        promoted=PROMOTED in breadcrumb.tags,
        promoted_by=promoted.get("by", ""),
        promoted_because=promoted.get("because", ""),
        metadata=node.metadata,
        trust=node.trust,
        created_at=node.at,
        timestamp=node.timestamp,
        path=node.path,
        line_start=node.line_start,
    )


_MOMENT = timedelta(microseconds=1)


def _scope(query: ArchiveQuery, session_id: str) -> tuple[str, ...]:
    if query.cross_session:
        return ()
    return (f"session:{session_id}",) if query.current_only else (f"session:{session_id}", PROMOTED)


def _conditions(query: ArchiveQuery) -> list[ContextMatch]:
    wanted = [check_category(category).value for category in query.categories] or [each.value for each in Category]
    found = [ContextMatch(path="category", op="in", value=wanted)]
    if query.sources:
        found.append(ContextMatch(path="source", op="in", value=list(query.sources)))
    if query.session_ids:
        found.append(ContextMatch(path="metadata.session", op="in", value=list(query.session_ids)))
    found += [ContextMatch(path="metadata.session", op="ne", value=session) for session in query.exclude_sessions]
    return found
