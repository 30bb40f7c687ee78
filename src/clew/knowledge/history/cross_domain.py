"""From code to its history, from decisions to what they were based on: questions across the three domains, answered by
following edges. No model is asked. Code may be named by a node's id or by its place (`path`, `path#qualname`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.history.anchors import node_id_of
from clew.trail.edge import Direction, EdgeType
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import Node, NodeFilter, NodeGraph, ScoredNode, to_node, to_selector
from clew.trail.query import SearchRequest
from clew.trail.store import Trail

_CHANGED = (EdgeType.MODIFIED, EdgeType.CREATED, EdgeType.DELETED)
_HISTORY_OF_CODE = (*_CHANGED, EdgeType.REFERENCED_IN, EdgeType.REFERENCES)
_DOCUMENTED = (EdgeType.DOCUMENTS,)
_USED = (EdgeType.IMPLEMENTS_PATTERN, EdgeType.USES_LIBRARY)
_GROUNDS = (EdgeType.BASED_ON, EdgeType.REFERENCES, EdgeType.VALIDATED_BY)
_Ways = Sequence[tuple[Direction, Sequence[EdgeType]]]
_ISSUES = ("bug_fix", "failure", "issue")


class Related(msgspec.Struct, frozen=True, kw_only=True):
    """A node with what belongs to it in the other domains, newest first."""

    node: Node
    similarity: float
    code: tuple[Node, ...] = ()
    history: tuple[Node, ...] = ()
    academic: tuple[Node, ...] = ()


class CrossDomain:
    """What one principal sees of the three domains together."""

    def __init__(self, trail: Trail, by: Principal) -> None:
        self._trail, self._by = trail, by

    async def history_for_code(self, code: str) -> list[Node]:
        """Entries that changed or refer to a piece of code, newest first. Empty for code that nobody wrote about."""
        return await self._along(code, NodeDomain.HISTORY, (("incoming", _HISTORY_OF_CODE),))

    async def code_for_history(self, id: str) -> list[Node]:
        """The code that an entry changed or refers to."""
        return await self._along(id, NodeDomain.CODE, (("outgoing", _HISTORY_OF_CODE),))

    async def academic_for_code(self, code: str) -> list[Node]:
        """References that document a piece of code, the patterns it implements and the libraries it uses."""
        return await self._along(code, NodeDomain.ACADEMIC, (("incoming", _DOCUMENTED), ("both", _USED)))

    async def academic_for_decision(self, id: str) -> list[Node]:
        """References that an entry is based on, refers to, was validated by, or inspired."""
        ways: _Ways = (("outgoing", _GROUNDS), ("incoming", (EdgeType.INSPIRED_BY,)))
        return await self._along(id, NodeDomain.ACADEMIC, ways)

    async def code_for_academic(self, id: str) -> list[Node]:
        """The code that a reference documents, or that implements or uses it."""
        return await self._along(id, NodeDomain.CODE, (("outgoing", _DOCUMENTED), ("both", _USED)))

    async def history_for_academic(self, id: str) -> list[Node]:
        """Entries that are based on a reference, refer to it, or were inspired by it."""
        ways: _Ways = (("incoming", _GROUNDS), ("outgoing", (EdgeType.INSPIRED_BY,)))
        return await self._along(id, NodeDomain.HISTORY, ways)

    async def similar_across_domains_with_context(
        self, query: str, k: int = 10, path_filter: str | None = None
    ) -> list[Related]:
        """The k nodes that fit a question best, of any domain, each with what belongs to it in the others.
        `path_filter` is a glob."""
        return [await self.related(found) for found in await self._search(query, k, NodeFilter(path=path_filter))]

    async def related(self, found: ScoredNode) -> Related:
        """A node with what belongs to it in the other domains."""
        node, similarity = found.node, found.similarity
        code, history, academic = await self._neighbours(node)
        return Related(node=node, similarity=similarity, code=code, history=history, academic=academic)

    async def patterns_of(self, query: str, *, limit: int = 10, path: str | None = None) -> list[Related]:
        """Which patterns does this code implement? Code that fits the question, with its patterns in `academic` and
        `history`; code that implements none is left out."""
        found = await self._search(query, limit, NodeFilter(domain=NodeDomain.CODE, path=path))
        answers = []
        for each in found:
            patterns = await self._follow(each.node.id, "both", (EdgeType.IMPLEMENTS_PATTERN,))
            known = tuple(node for node in patterns if node.domain is NodeDomain.ACADEMIC)
            own = tuple(node for node in patterns if node.domain is NodeDomain.HISTORY)
            if patterns:
                answers.append(Related(node=each.node, similarity=each.similarity, academic=known, history=own))
        return answers

    async def why_chosen(self, query: str, *, limit: int = 5) -> list[Related]:
        """Why was this chosen? Decisions that fit the question, with what they were based on and the code."""
        wanted = NodeFilter(domain=NodeDomain.HISTORY, node_types=(NodeType.DECISION,))
        return [await self.related(found) for found in await self._search(query, limit, wanted)]

    async def changes_since(self, query: str, since: datetime, *, limit: int = 20) -> list[Related]:
        """What changed here since then? Entries after a moment that changed code and fit the question, newest first,
        with that code."""
        wanted = NodeFilter(domain=NodeDomain.HISTORY, created_after=since)
        answers = []
        for found in await self._search(query, limit, wanted):
            code = tuple(await self._along(found.node.id, NodeDomain.CODE, (("outgoing", _CHANGED),)))
            if code:
                answers.append(Related(node=found.node, similarity=found.similarity, code=code))
        return sorted(answers, key=lambda answer: answer.node.created_at, reverse=True)

    async def past_issues(self, code: str) -> list[Node]:
        """Were there issues with this before? Failures and mended bugs of a piece of code, newest first."""
        return [node for node in await self.history_for_code(code) if _is_issue(node)]

    async def _neighbours(self, node: Node) -> tuple[tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]]:
        """Code, history and references that belong to a node; none of its own domain."""
        match node.domain:
            case NodeDomain.CODE:
                return (), tuple(await self.history_for_code(node.id)), tuple(await self.academic_for_code(node.id))
            case NodeDomain.HISTORY:
                return tuple(await self.code_for_history(node.id)), (), tuple(await self.academic_for_decision(node.id))
            case _:
                return tuple(await self.code_for_academic(node.id)), tuple(await self.history_for_academic(node.id)), ()

    async def _search(self, query: str, k: int, filter: NodeFilter) -> list[ScoredNode]:
        if not query.strip():
            return []
        return await search_nodes(self._trail, self._by, query, k, filter)

    async def _along(self, id_or_ref: str, domain: NodeDomain, ways: _Ways) -> list[Node]:
        """Nodes of one domain at the other ends of edges, newest first, each once."""
        id = node_id_of(self._by.owner_id, id_or_ref)
        found = [node for direction, types in ways for node in await self._follow(id, direction, types)]
        once = {node.id: node for node in found if node.domain is domain}
        return sorted(once.values(), key=lambda node: (node.created_at, node.id), reverse=True)

    async def _follow(self, id: str, direction: Direction, types: Sequence[EdgeType]) -> list[Node]:
        graph = NodeGraph(self._trail, self._by)
        found = []
        for type in types:
            try:
                found += await graph.traverse(id, type, direction)
            except NotFound:
                continue  # nobody has written about this code yet
        return found


async def search_nodes(trail: Trail, by: Principal, query: str, limit: int, filter: NodeFilter) -> list[ScoredNode]:
    """Nodes that fit a text by words and meaning, best first; `similarity` can be compared between questions."""
    request = SearchRequest(text=query, limit=limit, selector=to_selector(filter))
    result = await trail.index.search(request, by=by)
    return [ScoredNode(node=to_node(hit.breadcrumb), similarity=hit.relevance) for hit in result.hits]


def _is_issue(node: Node) -> bool:
    return node.node_type is NodeType.FAILURE or node.metadata.get("summary_type") in _ISSUES
