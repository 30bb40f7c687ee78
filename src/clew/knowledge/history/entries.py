"""Entries of the journal: decisions, findings, attempts and open ends. An entry is a node of the history with a
category. It belongs to a session, and other sessions read it once it is promoted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import inline
from clew.errors import InvalidInput, NotFound
from clew.knowledge.evidence.firewall import Firewall
from clew.knowledge.evidence.trust import on_one_line
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, SourceKind
from clew.knowledge.nodes.node_graph import NodeGraph, link_in_order
from clew.knowledge.nodes.node_store import SCHEMA, Node, NodeFields
from clew.secrecy import mask_keys
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

PROMOTED = "chronicle:promoted"
NO_SESSION = "outside"
"""The session of entries whose writer has no session."""
MAX_LIMIT = 1_000
MAX_NAME = 120
_CONCURRENT = 50
"""Entries that others may write to a session at the same time."""
_MOMENT = timedelta(microseconds=1)
_NEVER = datetime.min.replace(tzinfo=UTC)
Moment = Annotated[datetime, msgspec.Meta(tz=True, description="for example 2026-01-01T00:00:00Z")] | None


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


class CheckpointCategory(StrEnum):
    """The subject of an entry that the runtime writes: a checkpoint of an agent, or a hand-off. Only a query that names
    one finds it."""

    LIBRARIAN_CHECKPOINT = "librarian_checkpoint"
    GUIDE_CHECKPOINT = "guide_checkpoint"
    ACADEMIC_RESEARCH_PAPER = "academic_research_paper"
    ARCHITECT_WORKFLOW = "architect_workflow"
    INSPECTOR_FINDINGS = "inspector_findings"
    TESTER_SUMMARY = "tester_summary"
    PIPELINE_HANDOFF = "pipeline_handoff"
    HANDOFF_FALLBACK = "handoff_fallback"


_NODE_TYPES = {
    Category.DECISION: NodeType.DECISION,
    Category.PATTERN: NodeType.PATTERN,
    Category.FAILURE: NodeType.FAILURE,
}
"""Categories with a node type of their own; the others are plain entries."""


class ArchiveQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A filter of entries: all given parts must hold. By default it matches entries of the own session and promoted
    entries of all sessions. `current_only` matches only the own session, `cross_session` matches all sessions. Both
    bounds of time are inclusive."""

    categories: Sequence[Category] = ()
    checkpoints: Sequence[CheckpointCategory] = ()
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


def place_of_entry(entry: Node) -> str:
    """The place in a file that an entry was read from, or else its id."""
    return f"{on_one_line(entry.path)}:{entry.line_start or 1}" if entry.path else entry.id


def newest_first(nodes: Iterable[Node]) -> list[Node]:
    """The nodes by the time of their event, newest first. Decision records without a day come last, the highest number
    first."""

    def rank(node: Node) -> tuple[datetime, int]:
        is_dated = node.timestamp is not None or "kind" not in node.metadata
        number = str(node.metadata.get("number", ""))
        return node.at if is_dated else _NEVER, int(number) if number.isdecimal() else 0

    return sorted(nodes, key=rank, reverse=True)


async def write_entry(
    trail: Trail,
    by: Principal,
    content: str,
    category: Category,
    session_id: str,
    *,
    title: str = "",
    metadata: Mapping[str, Any],
    files: Sequence[str] = (),
    firewall: Firewall | None = None,
) -> Node:
    """Write an entry with its vector, and link it to the one before it in its session. Keys are masked. Without a
    title, the beginning of the content is one. The firewall checks it and the `files` that it names, and decides its
    trust; words of the user need no evidence. Raises InvalidInput for an empty content or session."""
    if not content.strip():
        raise InvalidInput("content", "is empty")
    if not session_id.strip():
        raise InvalidInput("session_id", "is empty", hint="Every entry belongs to a session")
    masked = mask_keys(content)
    name = inline(mask_keys(title) or masked, MAX_NAME) or category.value
    node_type = _NODE_TYPES.get(category, NodeType.HISTORY_ENTRY)
    fields: NodeFields = {
        "session_id": session_id,
        "category": category.value,
        "source": str(metadata.get("agent") or by.agent_id),
        "metadata": {**metadata, "session": session_id},
    }
    if firewall is None:
        node = await NodeGraph(trail, by).add_node(name, NodeDomain.HISTORY, node_type, masked, **fields)
    else:
        said_by = SourceKind.USER if category is Category.USER_VOICE else SourceKind.LLM_INFERENCE
        node, _ = await firewall.store(name, masked, files=files, said_by=said_by, node_type=node_type, **fields)
    before = await _entry_before(trail, node.id, session_id, by) if session_id != NO_SESSION else None
    if before is not None:
        with contextlib.suppress(NotFound):  # it has been removed in the meantime
            await link_in_order(trail, [before, node.id], by=by)
    return node


async def list_all(
    trail: Trail, selector: Selector, by: Principal, limit: int, *, oldest_first: bool = False
) -> list[Breadcrumb]:
    """Up to `limit` breadcrumbs in order of creation."""
    records = each_record(trail, selector, by=by, oldest_first=oldest_first, most=limit)
    return [each async for each in records]


async def _entry_before(trail: Trail, id: str, session_id: str, by: Principal) -> str | None:
    """The entry right before this one in its session, even if others write at the same time."""
    selector = build_selector(ArchiveQuery(current_only=True), session_id)
    page = await trail.records.list(selector, by=by, limit=_CONCURRENT)
    ids = [each.id for each in page.items]
    after = ids[ids.index(id) + 1 :] if id in ids else []
    return after[0] if after else None


def _conditions(query: ArchiveQuery) -> list[ContextMatch]:
    wanted = [*query.categories, *query.checkpoints] or list(Category)
    found = [ContextMatch(path="category", op="in", value=[each.value for each in wanted])]
    if query.sources:
        found.append(ContextMatch(path="source", op="in", value=list(query.sources)))
    if query.session_ids:
        found.append(ContextMatch(path="metadata.session", op="in", value=list(query.session_ids)))
    found += [ContextMatch(path="metadata.session", op="ne", value=session) for session in query.exclude_sessions]
    return found
