"""The journal: entries of one session and promoted ones (`Chronicle`), and summaries of all sessions with their links
to code (`Archive`). It uses no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.models import parse_ref, short_ref
from clew.knowledge.evidence.firewall import Firewall
from clew.knowledge.history.decisions import DECISION_PREFIX, Decisions
from clew.knowledge.history.entries import (
    EVERY_ENTRY,
    PROMOTED,
    ArchiveQuery,
    Category,
    build_selector,
    list_all,
    newest_first,
    write_entry,
)
from clew.knowledge.history.links import CrossDomain, Limit, Query, Related, ensure_anchors, link, references_of
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_store import Node, NodeFilter, ScoredNode, to_node, to_selector
from clew.knowledge.text import likeness, stems
from clew.secrecy import mask_keys
from clew.trail.model.breadcrumb import Breadcrumb, Change
from clew.trail.model.edge import EdgeType
from clew.trail.model.query import SearchRequest
from clew.trail.store import Trail

SummaryType = Literal[
    "decision",
    "failure",
    "mistake",
    "preference",
    "pattern",
    "task_completion",
    "refactoring",
    "bug_fix",
    "feature",
]
Include = Literal["all", "decisions", "tasks", "failures"]
EntryId = Annotated[str, msgspec.Meta(description="the id of an entry")]
Topic = Annotated[str, msgspec.Meta(description="on what, in your own words; empty: the newest")]

_CATEGORIES: dict[SummaryType, Category] = {
    "task_completion": Category.TASK_STATE,
    "decision": Category.DECISION,
    "failure": Category.FAILURE,
    "mistake": Category.FAILURE,
    "preference": Category.USER_VOICE,
    "pattern": Category.PATTERN,
    "refactoring": Category.TIMELINE,
    "bug_fix": Category.TIMELINE,
    "feature": Category.TIMELINE,
}
ALL, DECISIONS, FAILURES, PATTERNS = (
    NodeFilter(domain=NodeDomain.HISTORY, node_types=types)
    for types in ((), (NodeType.DECISION,), (NodeType.FAILURE,), (NodeType.PATTERN,))
)
WORK = frozenset(("task_completion", "refactoring", "bug_fix", "feature"))
"""Summary types of finished work."""
_MOST = 1_000
_CANDIDATES = 200
_ALIKE = 0.6
"""The share of words that two descriptions of one pattern have in common."""


class Chronicle:
    """The entries that one principal writes and reads in one session. Calls raise the errors of the trail."""

    def __init__(
        self, trail: Trail, by: Principal, session_id: str, clock: Clock, firewall: Firewall | None = None
    ) -> None:
        self._trail, self._by, self._clock, self._firewall = trail, by, clock, firewall
        self.session_id = session_id

    async def store(
        self,
        content: Annotated[str, msgspec.Meta(description="the text of the entry")],
        category: Category,
        title: Annotated[str, msgspec.Meta(description="a short name; empty: how the text begins")] = "",
        *,
        tags: Sequence[str] = (),
    ) -> Node:
        """Write an entry of this session into the journal. It is checked against the code, and marked if unconfirmed;
        `user_voice` counts as said by the user."""
        more = {"tags": list(tags)}
        return await write_entry(
            self._trail,
            self._by,
            content,
            category,
            self.session_id,
            title=title,
            metadata=more,
            firewall=self._firewall,
        )

    async def query(self, query: ArchiveQuery = EVERY_ENTRY) -> list[Node]:
        """Entries that fit: best first with a search text, else newest first."""
        selector = build_selector(query, self.session_id)
        if query.search_text.strip():
            request = SearchRequest(text=query.search_text, selector=selector, limit=query.limit)
            return [to_node(hit.breadcrumb) for hit in (await self._trail.index.search(request, by=self._by)).hits]
        return [to_node(found) for found in await list_all(self._trail, selector, self._by, query.limit)]

    async def promote_pattern(self, id: EntryId) -> Node:
        """Share a pattern with all sessions.

        Raises InvalidInput for an entry of another category.
        """
        category = (await self._get(id)).context["category"]
        if category != Category.PATTERN:
            raise InvalidInput("id", f"{id} is a {category}, not a pattern", hint="Promote it with `promote`")
        return await self.promote(id)

    async def promote(self, id: EntryId) -> Node:
        """Share an entry of any category with all sessions.

        The entry says by whom and when. Doing it again changes nothing.
        """
        found = await self._get(id)
        if PROMOTED in found.tags:
            return to_node(found)
        mark = {"by": self._by.agent_id, "at": self._clock.now().isoformat(), "because": "user"}
        return await self._mark(found, mark, (*found.tags, PROMOTED))

    async def take_back(self, id: EntryId) -> Node:
        """Undo a promotion: only the session of the entry reads it."""
        found = await self._get(id)
        return await self._mark(found, None, tuple(tag for tag in found.tags if tag != PROMOTED))

    async def _mark(self, found: Breadcrumb, mark: dict[str, Any] | None, tags: Sequence[str]) -> Node:
        metadata = {**found.context["metadata"], "promoted": mark}
        change = Change(context={**found.context, "metadata": metadata}, tags=tags)
        return to_node(await self._trail.records.update(found.id, change, expect=found.version, by=self._by))

    async def _get(self, id: str) -> Breadcrumb:
        found = await self._trail.records.get(id, by=self._by)
        if "category" not in found.context:
            raise NotFound("entry", id)
        return found


class StoredSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A stored summary: its node, and the number of edges to code. `warnings` say what the check did not confirm."""

    node_id: str
    edges: int
    warnings: tuple[str, ...] = ()


class Archive:
    """The summaries that one principal writes and sees, and the decision records of the repository. Calls raise the
    errors of the trail."""

    def __init__(
        self, trail: Trail, by: Principal, firewall: Firewall | None = None, decisions: Decisions | None = None
    ) -> None:
        self._trail, self._by, self._firewall, self._decisions = trail, by, firewall, decisions
        self.links = CrossDomain(trail, by)

    async def store_summary(
        self,
        content: str,
        summary_type: SummaryType,
        session_id: str,
        code_references: Sequence[str] = (),
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        inspired_by: Sequence[str] = (),
        title: str = "",
        outcome: str = "",
    ) -> StoredSummary:
        """Store a summary, with edges to the code that it names (`path`, `path:line` or `path#qualname`), from that
        code to a pattern, and from the references that inspired it.

        `metadata` may hold agent, task_id and confidence. The `outcome` of a failure is its resolution. All is
        checked before anything is written. Raises InvalidInput, and NotFound for a missing reference.
        """
        outcome, tags, code_references = mask_keys(outcome), [*map(mask_keys, tags)], [*map(mask_keys, code_references)]
        more = dict(metadata or {})
        if not 0 <= more.get("confidence", 1) <= 1:
            raise InvalidInput("metadata.confidence", "must be a number between 0 and 1")
        files = [short_ref(ref.path, ref.qualname) for ref in map(parse_ref, code_references)]
        for id in inspired_by:
            if (await self.links.nodes.get_node(id)).domain is not NodeDomain.ACADEMIC:
                raise InvalidInput("inspired_by", f"{id} is not a reference", hint="Give ids that `research` shows")
        if _CATEGORIES[summary_type] is Category.FAILURE:
            more |= {"resolution": outcome} if outcome.strip() else {}
            more["resolved"] = bool(more.get("resolved") or more.get("resolution"))
        more |= {"summary_type": summary_type, "tags": list(tags), "code_references": list(code_references)}
        entry = await write_entry(
            self._trail,
            self._by,
            f"{content}\n\nOutcome: {outcome}" if content.strip() and outcome.strip() else content,
            _CATEGORIES[summary_type],
            session_id,
            title=title,
            metadata=more,
            files=files,
            firewall=self._firewall,
        )
        edges = await self._link(entry.id, code_references, inspired_by, is_pattern=summary_type == "pattern")
        checked = entry.metadata if self._firewall is not None else {}
        warnings = (*checked.get("warnings", ()), *checked.get("contradictions", ()))
        return StoredSummary(node_id=entry.id, edges=edges, warnings=warnings)

    async def find(self, query: str = "", limit: int = 10, wanted: NodeFilter = ALL) -> list[ScoredNode]:
        """Entries of all sessions that fit a text, best first; without one, the newest by when they happened."""
        records = await self.find_records(query, limit, wanted)
        if query.strip():
            found = await self.links.nodes.search(query, wanted, limit=limit)
            return sorted([*found, *records], key=lambda each: -each.similarity)[:limit]
        listed = map(to_node, await list_all(self._trail, to_selector(wanted), self._by, _MOST))
        nodes = newest_first([*listed, *(each.node for each in records)])
        return [ScoredNode(node=node, similarity=0.0) for node in nodes[:limit]]

    async def find_records(self, query: str, limit: int, wanted: NodeFilter) -> list[ScoredNode]:
        """The decision records of the repository among them."""
        is_wanted = NodeType.DECISION in (wanted.node_types or NodeType) and not wanted.metadata
        if self._decisions is None or not is_wanted or wanted.session_id:
            return []
        if query.strip():
            found = await self._decisions.search(query, limit)
        else:
            found = [ScoredNode(node=node, similarity=0.0) for node in await self._decisions.nodes()]
        since = wanted.created_after
        return [each for each in found if since is None or each.node.at > since]

    async def get_decisions(self, query: Topic = "", limit: Limit = 10) -> list[ScoredNode]:
        """List the decisions on a topic, or the newest, each with its place: entries and decision records."""
        return await self.find(query, limit, DECISIONS)

    async def find_failures(
        self, query: Topic = "", limit: Limit = 10, resolved_only: bool = False
    ) -> list[ScoredNode]:
        """List failures and mistakes that fit a description, or the newest, with their resolutions."""
        wanted = msgspec.structs.replace(FAILURES, metadata={"resolved": True} if resolved_only else {})
        return await self.find(query, limit, wanted)

    async def why_chosen(self, query: Query, limit: Limit = 5) -> list[Related]:
        """List the decisions that fit a question, with the references they rest on and the code they name."""
        return [await self._related(each) for each in await self.find(query, limit, DECISIONS)]

    async def _related(self, found: ScoredNode) -> Related:
        if self._decisions is None or not found.node.id.startswith(DECISION_PREFIX):
            return await self.links.related(found)
        named = await self._decisions.files_named_in(found.node)
        return Related(node=found.node, similarity=found.similarity, linked=tuple(named))

    async def find_patterns(
        self,
        query: Query,
        min_occurrences: Annotated[int, msgspec.Meta(ge=1)] = 2,
        category: Annotated[str, msgspec.Meta(description="a tag that each must have; empty: any")] = "",
    ) -> list[list[ScoredNode]]:
        """List patterns that came up more than once.

        The most frequent come first, each with its descriptions: those that share most words are one pattern.
        """
        found = await self.find(query, _CANDIDATES, PATTERNS)
        tagged = [each for each in found if not category or category in each.node.metadata.get("tags", ())]
        return sorted((group for group in _group(tagged) if len(group) >= min_occurrences), key=len, reverse=True)

    async def get_session_history(
        self, session_id: str = "", chronological: bool = True, include: Include = "all"
    ) -> list[Node]:
        """List the entries of a session, by default the own one.

        Raises InvalidInput without a session.
        """
        session = session_id or self._by.session
        if not session:
            raise InvalidInput("session_id", "is needed: you are in no session", hint="Name one")
        selector = to_selector(NodeFilter(domain=NodeDomain.HISTORY, session_id=session))
        found = await list_all(self._trail, selector, self._by, _MOST, oldest_first=chronological)
        return [node for node in map(to_node, found) if _is_included(node, include)]

    async def get_code_for_history(self, history_id: str) -> list[Node]:
        """List the code that an entry is about."""
        entry = to_node(await self._trail.records.get(history_id, by=self._by))
        lines = {ref.key: ref.line for ref in references_of(entry) if ref.line}
        found = await self.links.linked(history_id, NodeDomain.CODE)
        named = ((each, lines.get(str(each.metadata.get("ref")))) for each in found)
        return [msgspec.structs.replace(each, line_start=line) if line else each for each, line in named]

    async def get_history_for_code(self, code: str, limit: int = 10) -> list[Node]:
        """Entries about a file or a symbol (`path`, `path#qualname`), newest first, and then decision records."""
        records = await self._decisions.about(code.partition("#")[0]) if self._decisions is not None else []
        return [*await self.links.linked(code, NodeDomain.HISTORY), *records][:limit]

    async def _link(self, id: str, refs: Sequence[str], inspired_by: Sequence[str], *, is_pattern: bool) -> int:
        """Draw the edges of an entry; return how many lead to code."""
        anchors = await ensure_anchors(self._trail, refs, by=self._by)
        await link(self._trail, [(id, anchor) for anchor in anchors], EdgeType.REFERENCED_IN, by=self._by)
        if is_pattern:
            await link(self._trail, [(anchor, id) for anchor in anchors], EdgeType.IMPLEMENTS_PATTERN, by=self._by)
        await link(self._trail, [(source, id) for source in inspired_by], EdgeType.INSPIRED_BY, by=self._by)
        return len(anchors)


def _group(found: Sequence[ScoredNode]) -> list[list[ScoredNode]]:
    """Groups of descriptions of the same pattern; the best match comes first in each group."""
    groups: list[tuple[frozenset[str], list[ScoredNode]]] = []
    for each in found:
        words = stems(each.node.content)
        group = next((members for leader, members in groups if likeness(leader, words) >= _ALIKE), None)
        if group is None:
            groups.append((words, [each]))
        else:
            group.append(each)
    return [members for _, members in groups]


def _is_included(node: Node, include: Include) -> bool:
    match include:
        case "decisions":
            return node.node_type is NodeType.DECISION
        case "failures":
            return node.node_type is NodeType.FAILURE
        case "tasks":
            return node.category == Category.TASK_STATE or node.metadata.get("summary_type") in WORK
        case _:
            return True
