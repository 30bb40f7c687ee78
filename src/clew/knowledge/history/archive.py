"""The seven skills of whoever keeps the history: storing summaries with edges to the code they speak of, and finding
what was done, decided, repeated and broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from clew.access import Principal
from clew.errors import InvalidInput
from clew.knowledge.evidence.firewall import Firewall
from clew.knowledge.history.anchors import parse_ref, references_of
from clew.knowledge.history.chronicle import NewEntry, list_all, write_entry
from clew.knowledge.history.cross_domain import CrossDomain, search_nodes
from clew.knowledge.history.entries import Category
from clew.knowledge.history.links import link_code, link_inspiration, link_pattern
from clew.knowledge.history.moments import newest_first
from clew.knowledge.history.wording import likeness, stems
from clew.knowledge.shelves import AsFound, Truth
from clew.trail.breadcrumb import Change
from clew.trail.kinds import NodeDomain, NodeType, SourceKind
from clew.trail.nodes import Node, NodeFilter, NodeGraph, ScoredNode, to_node, to_selector
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
_TASKS = frozenset(("task_completion", "refactoring", "bug_fix", "feature"))
_SESSION_MOST = 1_000
_CANDIDATES = 200
_ALIKE = 0.6
"""The share of words that two tellings of one pattern have in common."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a summary: its node, and how many edges to code it has. `warnings` are what is wrong with one that
    the check did not bear out."""

    node_id: str
    edges: int
    stored: bool = True
    is_verified: bool = True
    warnings: tuple[str, ...] = ()


class Recurring(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern that was told more than once: the telling that fits best, and all of them."""

    text: str
    occurrences: int
    sessions: tuple[str, ...]
    node_ids: tuple[str, ...]
    similarity: float


class Archive:
    """The history that one principal keeps and sees; of what it tells of files, what `truth` lets stand. Calls raise
    what the trail raises."""

    def __init__(
        self, trail: Trail, by: Principal, firewall: Firewall | None = None, truth: Truth | None = None
    ) -> None:
        self._trail, self._by, self._firewall = trail, by, firewall
        self._truth = truth or AsFound()

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
        """Store what an agent did, with an edge to each piece of code that it names (`path`, `path:line` or
        `path#qualname`), from that code to a pattern, and from the references that inspired it. `metadata` may say
        agent, task_id, confidence, and of a failure its resolution, which its `outcome` is as well. A preference counts
        as said by the user.

        Everything is checked before anything is written. Raises InvalidInput, and NotFound for no reference.
        """
        _check_choice("summary_type", summary_type, get_args(SummaryType))
        more = dict(metadata or {})
        _check_confidence(more.get("confidence"))
        places = [parse_ref(ref) for ref in code_references]
        await self._check_references(inspired_by)
        if _CATEGORIES[summary_type] is Category.FAILURE:
            more |= {"resolution": outcome} if outcome.strip() else {}
            more["resolved"] = bool(more.get("resolved") or more.get("resolution"))
        summary = NewEntry(
            content=f"{content}\n\nOutcome: {outcome}" if content.strip() and outcome.strip() else content,
            title=title,
            category=_CATEGORIES[summary_type],
            session_id=session_id,
            said_by=SourceKind.USER if summary_type == "preference" else SourceKind.LLM_INFERENCE,
            source=str(more.get("agent", "")),
            metadata={
                **more,
                "summary_type": summary_type,
                "tags": list(tags),
                "code_references": list(code_references),
            },
            files=[place.path for place in places],
        )
        entry = await write_entry(self._trail, self._by, summary, self._firewall)
        edges = await link_code(self._trail, entry.id, code_references, by=self._by)
        for code in code_references if summary_type == "pattern" else ():
            await link_pattern(self._trail, code, entry.id, by=self._by)
        for reference in inspired_by:
            await link_inspiration(self._trail, reference, entry.id, by=self._by)
        kept = entry.metadata if self._firewall is not None else {}
        warnings = (*kept.get("warnings", ()), *kept.get("contradictions", ()))
        return Stored(node_id=entry.id, edges=len(edges), is_verified=not warnings, warnings=warnings)

    async def _check_references(self, ids: Sequence[str]) -> None:
        for id in ids:
            if (await NodeGraph(self._trail, self._by).get_node(id)).domain is not NodeDomain.ACADEMIC:
                raise InvalidInput("inspired_by", f"{id} is no reference", hint="Give ids that `research` shows")

    async def search_history(
        self,
        query: str,
        limit: int = 10,
        summary_type: SummaryType | Literal["any"] = "any",
        session_id: str = "",
        since: datetime | None = None,
    ) -> list[ScoredNode]:
        """Summaries and entries of all sessions that fit a question, best first."""
        _check_choice("summary_type", summary_type, (*get_args(SummaryType), "any"))
        wanted = NodeFilter(
            domain=NodeDomain.HISTORY,
            session_id=session_id or None,
            created_after=since,
            metadata={} if summary_type == "any" else {"summary_type": summary_type},
        )
        return await self._truth.hold(lambda: search_nodes(self._trail, self._by, query, limit, wanted))

    async def find_patterns(self, query: str, min_occurrences: int = 2, category: str = "") -> list[Recurring]:
        """Patterns that were told at least so many times, most often first. Tellings that share most of their words
        are one pattern. `category` is a tag that each telling must have."""
        if min_occurrences < 1:
            raise InvalidInput("min_occurrences", "must be at least 1")
        wanted = NodeFilter(domain=NodeDomain.HISTORY, node_types=(NodeType.PATTERN,))
        found = await search_nodes(self._trail, self._by, query, _CANDIDATES, wanted)
        tagged = [each for each in found if not category or category in each.node.metadata.get("tags", ())]
        groups = [group for group in _group(tagged) if len(group) >= min_occurrences]
        return sorted((_recurring(group) for group in groups), key=lambda each: (-each.occurrences, -each.similarity))

    async def find_failures(self, query: str = "", limit: int = 10, resolved_only: bool = False) -> list[ScoredNode]:
        """Failures that fit a description, best first, or the newest without one; how they were resolved is
        `resolution` of their metadata."""
        wanted = NodeFilter(
            domain=NodeDomain.HISTORY,
            node_types=(NodeType.FAILURE,),
            metadata={"resolved": True} if resolved_only else {},
        )
        return await self._fitting(query, limit, wanted)

    async def get_session_history(
        self, session_id: str = "", chronological: bool = True, include: Include = "all"
    ) -> list[Node]:
        """What a session wrote, oldest first, or newest first where it need not be chronological. Without an id it is
        the caller's own session. Raises InvalidInput when there is none."""
        _check_choice("include", include, get_args(Include))
        session = session_id or self._by.session
        if not session:
            raise InvalidInput("session_id", "is empty, and you are in no session")
        selector = to_selector(NodeFilter(domain=NodeDomain.HISTORY, session_id=session))
        found = await list_all(self._trail, selector, self._by, _SESSION_MOST, oldest_first=chronological)
        return [node for node in map(to_node, found) if _is_included(node, include)]

    async def get_code_for_history(self, history_id: str) -> list[Node]:
        """The code that an entry changed or refers to, with the lines that it was noted for. Raises NotFound when there
        is no such entry."""
        entry = to_node(await self._trail.records.get(history_id, by=self._by))
        lines = {ref.key: ref.line for ref in references_of(entry) if ref.line}
        found = await CrossDomain(self._trail, self._by).code_for_history(history_id)
        noted = ((each, lines.get(str(each.metadata.get("ref")))) for each in found)
        return [msgspec.structs.replace(each, line_start=line) if line else each for each, line in noted]

    async def get_history_for_code(self, code: str, limit: int = 10) -> list[Node]:
        """What was noted about a file or a symbol (`path`, `path#qualname`), newest first."""

        async def find() -> list[ScoredNode]:
            found = await CrossDomain(self._trail, self._by).history_for_code(code)
            return [ScoredNode(node=node, similarity=1.0) for node in found[:limit]]

        return [each.node for each in await self._truth.hold(find)]

    async def get_decisions(self, query: str = "", limit: int = 10) -> list[ScoredNode]:
        """Decisions about a topic, best first, or the newest without one."""
        wanted = NodeFilter(domain=NodeDomain.HISTORY, node_types=(NodeType.DECISION,))
        return await self._fitting(query, limit, wanted)

    async def _fitting(self, query: str, limit: int, wanted: NodeFilter) -> list[ScoredNode]:
        """What fits a text, best first; without one the newest by when it happened."""
        if query.strip():
            return await self._truth.hold(lambda: search_nodes(self._trail, self._by, query, limit, wanted))

        async def find() -> list[ScoredNode]:
            found = await list_all(self._trail, to_selector(wanted), self._by, _SESSION_MOST)
            return [ScoredNode(node=node, similarity=0.0) for node in newest_first(map(to_node, found))[:limit]]

        return await self._truth.hold(find)

    async def resolve_failure(self, failure_id: str, resolution: str) -> Node:
        """Note how a failure was resolved. Raises NotFound, InvalidInput for what is no failure."""
        found = await self._trail.records.get(failure_id, by=self._by)
        if to_node(found).node_type is not NodeType.FAILURE:
            raise InvalidInput("failure_id", f"{failure_id} is no failure")
        metadata = {**found.context["metadata"], "resolved": True, "resolution": resolution}
        change = Change(context={**found.context, "metadata": metadata})
        return to_node(await self._trail.records.update(found.id, change, expect=found.version, by=self._by))


def _check_choice(field: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InvalidInput(field, f"{value!r} is not one of them", hint=f"Choose one of: {', '.join(choices)}")


def _check_confidence(value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput("metadata.confidence", "must be a number between 0 and 1")


def _group(found: Sequence[ScoredNode]) -> list[list[ScoredNode]]:
    """Tellings of the same pattern together, each group led by the one that fits best."""
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
            is_state = node.category == Category.TASK_STATE
            return is_state or node.metadata.get("summary_type") in _TASKS
        case _:
            return True
