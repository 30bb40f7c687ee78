"""Entries of the journal: decisions, findings, attempts and open ends. An entry is a node of the history with a
category. It belongs to a session, and other sessions read it once it is promoted."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.errors import InvalidInput, NotFound
from clew.knowledge.evidence.firewall import Firewall
from clew.knowledge.evidence.naming import on_one_line
from clew.knowledge.session_order import link_in_order
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Breadcrumb
from clew.trail.kinds import NodeDomain, NodeType, SourceKind
from clew.trail.nodes import DEFAULT_TRUST, SCHEMA, NodeFields, NodeGraph, to_node
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail

PROMOTED = "chronicle:promoted"
NO_SESSION = "outside"
"""The session of entries whose writer is in none."""
MAX_LIMIT = 1_000
MAX_NAME = 120
_PAGE = 200
_LOOKED_BACK = 100
"""Pages of concurrent entries that are searched for the previous one."""
_MOMENT = timedelta(microseconds=1)

PromotedBecause = Literal["user", "session_success", "inspector", "uses"]


class Category(StrEnum):
    """The subject of an entry."""

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
"""Categories with a node type of their own; the others are plain entries."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. `source` is its writer; `promoted_by` and `promoted_because` are empty until it is promoted. An entry
    that was read from a file has its place there, and a time if the file gives one."""

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
        """The place in a file, or else the id."""
        return f"{on_one_line(self.path)}:{self.line_start or 1}" if self.path else self.id


class ArchiveQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which entries; all given parts must hold. The default scope is the own session and promoted entries of any;
    `current_only` is the own session, `cross_session` all of them. Both bounds of time are inclusive."""

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


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry to be written. The firewall checks `said_by`, who claims it, and `files`, the paths that it names."""

    content: str
    category: Category
    session_id: str
    title: str = ""
    source: str = ""
    metadata: Mapping[str, Any] = {}
    trust: int = DEFAULT_TRUST
    said_by: SourceKind = SourceKind.LLM_INFERENCE
    files: Sequence[str] = ()


def check_category(category: str) -> Category:
    """Raises InvalidInput for an unknown category."""
    try:
        return Category(category)
    except ValueError:
        raise InvalidInput(
            "category", f"{category!r} is not a category", hint=f"Categories are {', '.join(Category)}"
        ) from None


def build_selector(query: ArchiveQuery, session_id: str) -> Selector:
    """The selector of a query by a caller in a session. Raises InvalidInput."""
    if query.current_only and query.cross_session:
        raise InvalidInput("current_only", "does not go with cross_session", hint="Choose one of them")
    if not 1 <= query.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT:,}")
    own = f"session:{session_id}"
    return Selector(
        schema_name=SCHEMA,
        all_tags=(f"domain:{NodeDomain.HISTORY.label}", *((PROMOTED,) if query.promoted_only else ())),
        any_tags=() if query.cross_session else (own,) if query.current_only else (own, PROMOTED),
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


async def write_entry(trail: Trail, by: Principal, entry: NewEntry, firewall: Firewall | None = None) -> Entry:
    """Write an entry with its vector, through the firewall if there is one, and link it to the one before it in its
    session. Keys are masked. Without a title, the content begins it. Raises InvalidInput for an empty content or
    session."""
    if not entry.content.strip():
        raise InvalidInput("content", "is empty")
    if not entry.session_id.strip():
        raise InvalidInput("session_id", "is empty", hint="Every entry belongs to a session")
    content = mask_keys(entry.content)
    name = inline(mask_keys(entry.title) or content, MAX_NAME) or entry.category.value
    node_type = NODE_TYPES.get(entry.category, NodeType.HISTORY_ENTRY)
    fields: NodeFields = {
        "session_id": entry.session_id,
        "category": entry.category.value,
        "source": entry.source or by.agent_id,
        "metadata": {**entry.metadata, "session": entry.session_id},
        "trust": entry.trust,
    }
    if firewall is None:
        node = await NodeGraph(trail, by).add_node(name, NodeDomain.HISTORY, node_type, content, **fields)
    else:
        node, _ = await firewall.store(
            name, content, files=entry.files, said_by=entry.said_by, node_type=node_type, **fields
        )
    before = await _entry_before(trail, node.id, entry.session_id, by) if entry.session_id != NO_SESSION else None
    if before is not None:
        with contextlib.suppress(NotFound):  # it was removed meanwhile
            await link_in_order(trail, [before, node.id], by=by)
    return to_entry(await trail.records.get(node.id, by=by))


async def list_all(
    trail: Trail, selector: Selector, by: Principal, limit: int, *, oldest_first: bool = False
) -> list[Breadcrumb]:
    """Up to `limit` breadcrumbs, page by page, in order of creation."""
    found: list[Breadcrumb] = []
    cursor: str | None = None
    while len(found) < limit:
        size = min(_PAGE, limit - len(found))
        page = await trail.records.list(selector, by=by, limit=size, cursor=cursor, oldest_first=oldest_first)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            break
    return found


async def _entry_before(trail: Trail, id: str, session_id: str, by: Principal) -> str | None:
    """The entry right before this one, also when others write at the same time."""
    selector = build_selector(ArchiveQuery(current_only=True), session_id)
    cursor, is_passed = None, False
    for _ in range(_LOOKED_BACK):
        page = await trail.records.list(selector, by=by, limit=2, cursor=cursor)
        for each in page.items:
            if is_passed:
                return each.id
            is_passed = each.id == id
        cursor = page.cursor
        if cursor is None:
            break
    return None


def _conditions(query: ArchiveQuery) -> list[ContextMatch]:
    wanted = [check_category(category).value for category in query.categories] or [each.value for each in Category]
    found = [ContextMatch(path="category", op="in", value=wanted)]
    if query.sources:
        found.append(ContextMatch(path="source", op="in", value=list(query.sources)))
    if query.session_ids:
        found.append(ContextMatch(path="metadata.session", op="in", value=list(query.session_ids)))
    found += [ContextMatch(path="metadata.session", op="ne", value=session) for session in query.exclude_sessions]
    return found
