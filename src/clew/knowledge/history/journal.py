"""The journal: entries of one session and promoted ones (`Chronicle`), and summaries of all sessions with their links
to code (`Archive`). No model takes part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.places import parse_ref
from clew.knowledge.evidence.firewall import Firewall
from clew.knowledge.history.changelog import CHANGELOG, newest_first
from clew.knowledge.history.entries import (
    EVERY_ENTRY,
    PROMOTED,
    ArchiveQuery,
    Category,
    PromotedBecause,
    build_selector,
    check_category,
    list_all,
    write_entry,
)
from clew.knowledge.history.links import (
    WORK,
    CrossDomain,
    link_code,
    link_inspiration,
    link_pattern,
    references_of,
    search_nodes,
)
from clew.knowledge.node_search import AsFound, Truth
from clew.knowledge.text import likeness, stems
from clew.trail.breadcrumb import Breadcrumb, Change
from clew.trail.kinds import NodeDomain, NodeType, SourceKind
from clew.trail.nodes import Node, NodeFilter, NodeGraph, ScoredNode, to_node, to_selector
from clew.trail.query import SearchRequest
from clew.trail.selector import ContextMatch
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

_CATEGORIES: dict[str, Category] = {
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
_MOST = 1_000
_CANDIDATES = 200
_ALIKE = 0.6
"""The share of words that two descriptions of one pattern have in common."""


class Chronicle:
    """The entries that one principal writes and reads in one session. Calls raise what the trail raises."""

    def __init__(
        self, trail: Trail, by: Principal, session_id: str, clock: Clock, firewall: Firewall | None = None
    ) -> None:
        if not session_id.strip():
            raise InvalidInput("session_id", "is empty", hint="Every entry belongs to a session")
        self._trail, self._by, self._clock, self._firewall = trail, by, clock, firewall
        self.session_id = session_id

    async def store(
        self,
        content: str,
        category: str,
        title: str = "",
        *,
        source: str = "",
        tags: Sequence[str] = (),
        said_by: SourceKind = SourceKind.LLM_INFERENCE,
    ) -> Node:
        """Write an entry of this session, as `write_entry`. Raises InvalidInput for an unknown category."""
        return await write_entry(
            self._trail,
            self._by,
            content,
            check_category(category),
            self.session_id,
            title=title,
            source=source,
            metadata={"tags": list(tags)},
            said_by=said_by,
            firewall=self._firewall,
        )

    async def query(self, query: ArchiveQuery = EVERY_ENTRY) -> list[Node]:
        """Entries that fit: best first with a search text, else newest first."""
        selector = build_selector(query, self.session_id)
        if query.search_text.strip():
            request = SearchRequest(text=query.search_text, selector=selector, limit=query.limit)
            return [to_node(hit.breadcrumb) for hit in (await self._trail.index.search(request, by=self._by)).hits]
        return [to_node(found) for found in await list_all(self._trail, selector, self._by, query.limit)]

    async def cross_session_query(
        self,
        search: str = "",
        *,
        session_ids: Sequence[str] = (),
        exclude_current: bool = False,
        category: str = "all",
        limit: int = 50,
    ) -> list[Node]:
        """Entries of all sessions or of some, with or without the own one."""
        return await self.query(
            ArchiveQuery(
                search_text=search,
                categories=() if category == "all" else (check_category(category),),
                session_ids=session_ids,
                exclude_sessions=(self.session_id,) if exclude_current else (),
                cross_session=True,
                limit=limit,
            )
        )

    async def decision_records(self, limit: int) -> list[Node]:
        """Decisions from the decision records of the repository, newest first."""
        selector = build_selector(ArchiveQuery(cross_session=True, categories=(Category.DECISION,)), self.session_id)
        of_record = ContextMatch(path="metadata.kind", value="adr")
        selector = msgspec.structs.replace(selector, context_match=(*selector.context_match, of_record))
        return newest_first(map(to_node, await list_all(self._trail, selector, self._by, limit)))

    async def promote_pattern(self, id: str) -> Node:
        """Share a pattern with all sessions. Raises InvalidInput for an entry of another category."""
        entry = to_node(await self._get(id))
        if entry.category != Category.PATTERN:
            raise InvalidInput("id", f"{id} is a {entry.category}, not a pattern", hint="Promote it with `promote`")
        return await self.promote(id)

    async def promote(self, id: str, because: PromotedBecause = "user") -> Node:
        """Share an entry with all sessions, and record by whom, when and why. Doing it again changes nothing."""
        found = await self._get(id)
        if PROMOTED in found.tags:
            return to_node(found)
        mark = {"by": self._by.agent_id, "at": self._clock.now().isoformat(), "because": because}
        return await self._mark(found, mark, (*found.tags, PROMOTED))

    async def take_back(self, id: str) -> Node:
        """Undo a promotion: only the entry's own session reads it."""
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


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A stored summary: its node, and the number of edges to code. `warnings` say what the check did not confirm."""

    node_id: str
    edges: int
    stored: bool = True
    is_verified: bool = True
    warnings: tuple[str, ...] = ()


class Recurring(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern that was described more than once: the description that fits best, and all of them."""

    text: str
    occurrences: int
    sessions: tuple[str, ...]
    node_ids: tuple[str, ...]
    similarity: float


class Archive:
    """The summaries that one principal writes and sees. `truth` rechecks those that were read from files. Calls raise
    what the trail raises."""

    def __init__(
        self, trail: Trail, by: Principal, firewall: Firewall | None = None, truth: Truth | None = None
    ) -> None:
        self._trail, self._by, self._firewall = trail, by, firewall
        self._truth = truth or AsFound()

    @property
    def links(self) -> CrossDomain:
        """Questions across code, history and references."""
        return CrossDomain(self._trail, self._by, self._truth)

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
    ) -> Stored:
        """Store a summary, with edges to the code that it names (`path`, `path:line` or `path#qualname`), from that
        code to a pattern, and from the references that inspired it.

        `metadata` may hold agent, task_id and confidence. The `outcome` of a failure is its resolution. A preference
        counts as said by the user. All is checked before anything is written. Raises InvalidInput, and NotFound for a
        missing reference.
        """
        _check_choice("summary_type", summary_type, get_args(SummaryType))
        more = dict(metadata or {})
        _check_confidence(more.get("confidence"))
        places = [parse_ref(ref) for ref in code_references]
        await self._check_references(inspired_by)
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
            said_by=SourceKind.USER if summary_type == "preference" else SourceKind.LLM_INFERENCE,
            source=str(more.get("agent", "")),
            metadata=more,
            files=[place.path for place in places],
            firewall=self._firewall,
        )
        edges = await link_code(self._trail, entry.id, code_references, by=self._by)
        for code in code_references if summary_type == "pattern" else ():
            await link_pattern(self._trail, code, entry.id, by=self._by)
        for reference in inspired_by:
            await link_inspiration(self._trail, reference, entry.id, by=self._by)
        checked = entry.metadata if self._firewall is not None else {}
        warnings = (*checked.get("warnings", ()), *checked.get("contradictions", ()))
        return Stored(node_id=entry.id, edges=len(edges), is_verified=not warnings, warnings=warnings)

    async def search_history(
        self,
        query: str,
        limit: int = 10,
        summary_type: SummaryType | Literal["any"] = "any",
        session_id: str = "",
        since: datetime | None = None,
    ) -> list[ScoredNode]:
        """Entries of all sessions that fit a question, best first."""
        _check_choice("summary_type", summary_type, (*get_args(SummaryType), "any"))
        wanted = NodeFilter(
            domain=NodeDomain.HISTORY,
            session_id=session_id or None,
            created_after=since,
            metadata={} if summary_type == "any" else {"summary_type": summary_type},
        )
        return await self._truth.hold(lambda: search_nodes(self._trail, self._by, query, limit, wanted))

    async def find_patterns(self, query: str, min_occurrences: int = 2, category: str = "") -> list[Recurring]:
        """Patterns that were described at least so many times, most often first. Descriptions that share most words are
        one pattern. `category` is a tag that each must have."""
        if min_occurrences < 1:
            raise InvalidInput("min_occurrences", "must be at least 1")
        wanted = NodeFilter(domain=NodeDomain.HISTORY, node_types=(NodeType.PATTERN,))
        found = await search_nodes(self._trail, self._by, query, _CANDIDATES, wanted)
        tagged = [each for each in found if not category or category in each.node.metadata.get("tags", ())]
        groups = [group for group in _group(tagged) if len(group) >= min_occurrences]
        return sorted((_recurring(group) for group in groups), key=lambda each: (-each.occurrences, -each.similarity))

    async def find_failures(self, query: str = "", limit: int = 10, resolved_only: bool = False) -> list[ScoredNode]:
        """Failures that fit a description, best first, or the newest; `resolution` of the metadata says how each was
        resolved."""
        resolved = {"resolved": True} if resolved_only else {}
        wanted = NodeFilter(domain=NodeDomain.HISTORY, node_types=(NodeType.FAILURE,), metadata=resolved)
        return await self._fitting(query, limit, wanted)

    async def get_decisions(self, query: str = "", limit: int = 10) -> list[ScoredNode]:
        """Decisions that somebody took: entries and decision records about a topic, best first, or the newest. Lines of
        changelogs are left out."""
        wanted = NodeFilter(domain=NodeDomain.HISTORY, node_types=(NodeType.DECISION,))
        found = await self._fitting(query, _CANDIDATES, wanted)
        return [each for each in found if each.node.metadata.get("kind") != CHANGELOG][:limit]

    async def get_session_history(
        self, session_id: str = "", chronological: bool = True, include: Include = "all"
    ) -> list[Node]:
        """The entries of a session, by default the caller's, oldest first, or newest first when not chronological.
        Raises InvalidInput without a session."""
        _check_choice("include", include, get_args(Include))
        session = session_id or self._by.session
        if not session:
            raise InvalidInput("session_id", "is empty, and you are in no session")
        selector = to_selector(NodeFilter(domain=NodeDomain.HISTORY, session_id=session))
        found = await list_all(self._trail, selector, self._by, _MOST, oldest_first=chronological)
        return [node for node in map(to_node, found) if _is_included(node, include)]

    async def get_code_for_history(self, history_id: str) -> list[Node]:
        """The code that an entry changed or refers to, with the lines that it names. Raises NotFound."""
        entry = to_node(await self._trail.records.get(history_id, by=self._by))
        lines = {ref.key: ref.line for ref in references_of(entry) if ref.line}
        found = await CrossDomain(self._trail, self._by).code_for_history(history_id)
        named = ((each, lines.get(str(each.metadata.get("ref")))) for each in found)
        return [msgspec.structs.replace(each, line_start=line) if line else each for each, line in named]

    async def get_history_for_code(self, code: str, limit: int = 10) -> list[Node]:
        """Entries about a file or a symbol (`path`, `path#qualname`), newest first."""

        async def find() -> list[ScoredNode]:
            found = await CrossDomain(self._trail, self._by).history_for_code(code)
            return [ScoredNode(node=node, similarity=1.0) for node in found[:limit]]

        return [each.node for each in await self._truth.hold(find)]

    async def _fitting(self, query: str, limit: int, wanted: NodeFilter) -> list[ScoredNode]:
        """Nodes that fit a text, best first; without one the newest by when they happened."""
        if query.strip():
            return await self._truth.hold(lambda: search_nodes(self._trail, self._by, query, limit, wanted))

        async def find() -> list[ScoredNode]:
            found = await list_all(self._trail, to_selector(wanted), self._by, _MOST)
            return [ScoredNode(node=node, similarity=0.0) for node in newest_first(map(to_node, found))[:limit]]

        return await self._truth.hold(find)

    async def _check_references(self, ids: Sequence[str]) -> None:
        for id in ids:
            if (await NodeGraph(self._trail, self._by).get_node(id)).domain is not NodeDomain.ACADEMIC:
                raise InvalidInput("inspired_by", f"{id} is no reference", hint="Give ids that `research` shows")


def _check_choice(field: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InvalidInput(field, f"{value!r} is not one of them", hint=f"Choose one of: {', '.join(choices)}")


def _check_confidence(value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput("metadata.confidence", "must be a number between 0 and 1")


def _group(found: Sequence[ScoredNode]) -> list[list[ScoredNode]]:
    """Descriptions of the same pattern together, each group led by the one that fits best."""
    groups: list[tuple[frozenset[str], list[ScoredNode]]] = []
    for each in found:
        words = stems(each.node.content)
        group = next((members for leader, members in groups if likeness(leader, words) >= _ALIKE), None)
        if group is None:
            groups.append((words, [each]))
        else:
            group.append(each)
    return [members for _, members in groups]


def _recurring(group: Sequence[ScoredNode]) -> Recurring:
    return Recurring(
        text=group[0].node.content,
        occurrences=len(group),
        sessions=tuple(sorted({each.node.session_id or "" for each in group} - {""})),
        node_ids=tuple(each.node.id for each in group),
        similarity=group[0].similarity,
    )


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
