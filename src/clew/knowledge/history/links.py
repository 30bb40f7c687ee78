"""Edges between code, history and references, and questions that follow them. No model takes part. Files and symbols of
the code have small nodes on the trail, so that edges survive when the code index is built anew."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, InvalidInput, NotFound
from clew.knowledge.code.places import PREFIX, CodeRef, parse_ref
from clew.knowledge.history.changelog import CHANGELOG
from clew.knowledge.node_search import AsFound, Truth
from clew.knowledge.upsert import keyed_id
from clew.trail.edge import Direction, Edge, EdgeType
from clew.trail.kinds import NodeDomain, NodeType, Trust
from clew.trail.nodes import Node, NodeFilter, NodeGraph, ScoredNode, to_node, to_selector
from clew.trail.query import SearchRequest
from clew.trail.store import Trail

MAX_REFS = 500
WEIGHTS = {EdgeType.REFERENCED_IN: 0.9, EdgeType.IMPLEMENTS_PATTERN: 0.85, EdgeType.INSPIRED_BY: 0.8}
"""Weights of the edges that are drawn here."""
WORK = frozenset(("task_completion", "refactoring", "bug_fix", "feature"))
"""Summary types of finished work."""

_OVERFETCH = 10
"""How many times as many decisions are searched, since lines of changelogs are among them."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CHANGED = (EdgeType.MODIFIED, EdgeType.CREATED, EdgeType.DELETED)
_HISTORY_OF_CODE = (*_CHANGED, EdgeType.REFERENCED_IN, EdgeType.REFERENCES)
_USED = (EdgeType.IMPLEMENTS_PATTERN, EdgeType.USES_LIBRARY)
_GROUNDS = (EdgeType.BASED_ON, EdgeType.REFERENCES, EdgeType.VALIDATED_BY)
_Ways = Sequence[tuple[Direction, Sequence[EdgeType]]]


class Related(msgspec.Struct, frozen=True, kw_only=True):
    """A node with its neighbours in the other domains, newest first."""

    node: Node
    similarity: float
    code: tuple[Node, ...] = ()
    history: tuple[Node, ...] = ()
    academic: tuple[Node, ...] = ()


def references_of(node: Node) -> list[CodeRef]:
    """The places that an entry was written for."""
    given = node.metadata.get("code_references", ())
    return [parse_ref(ref) for ref in given if isinstance(ref, str)]


def anchor_id(owner_id: str, ref: str) -> str:
    """The id of the node of a place in the code, whether the node exists or not."""
    return keyed_id(owner_id, parse_ref(ref).key)


async def ensure_anchors(trail: Trail, refs: Sequence[str], *, by: Principal) -> list[str]:
    """Create the nodes of these places where missing; return their ids in the order given, each once. All references
    are checked before anything is written. Raises InvalidInput, TooLarge."""
    if len(refs) > MAX_REFS:
        raise InvalidInput("code_references", f"may hold {MAX_REFS} places")
    places = {keyed_id(by.owner_id, place.key): place for place in map(parse_ref, refs)}
    graph = NodeGraph(trail, by)
    for id, place in places.items():
        await _ensure_anchor(graph, id, place)
    return list(places)


async def link_code(trail: Trail, history_id: str, refs: Sequence[str], *, by: Principal) -> list[Edge]:
    """Link an entry to each place in the code that it names. Raises InvalidInput, NotFound."""
    anchors = await ensure_anchors(trail, refs, by=by)
    return await _link(trail, [(history_id, anchor) for anchor in anchors], EdgeType.REFERENCED_IN, by)


async def link_pattern(trail: Trail, code: str, pattern_id: str, *, by: Principal) -> Edge:
    """Link a place in the code to a pattern that it implements. Raises InvalidInput, NotFound."""
    [anchor] = await ensure_anchors(trail, [code], by=by)
    return (await _link(trail, [(anchor, pattern_id)], EdgeType.IMPLEMENTS_PATTERN, by))[0]


async def link_inspiration(trail: Trail, academic_id: str, history_id: str, *, by: Principal) -> Edge:
    """Link a reference to an entry that it inspired. Raises NotFound."""
    return (await _link(trail, [(academic_id, history_id)], EdgeType.INSPIRED_BY, by))[0]


class CrossDomain:
    """The three domains as one principal sees them. Code is named by a node's id or by its place (`path`,
    `path#qualname`); code that nobody wrote about has no neighbours."""

    def __init__(self, trail: Trail, by: Principal, truth: Truth | None = None) -> None:
        self._trail, self._by, self._truth = trail, by, truth or AsFound()

    async def history_for_code(self, code: str) -> list[Node]:
        """Entries that changed or refer to a place in the code, newest first."""
        return await self._along(code, NodeDomain.HISTORY, (("incoming", _HISTORY_OF_CODE),))

    async def code_for_history(self, id: str) -> list[Node]:
        """The code that an entry changed or refers to."""
        return await self._along(id, NodeDomain.CODE, (("outgoing", _HISTORY_OF_CODE),))

    async def academic_for_code(self, code: str) -> list[Node]:
        """References that document a place in the code, the patterns it implements and the libraries it uses."""
        ways: _Ways = (("incoming", (EdgeType.DOCUMENTS,)), ("both", _USED))
        return await self._along(code, NodeDomain.ACADEMIC, ways)

    async def academic_for_decision(self, id: str) -> list[Node]:
        """References that an entry is based on, refers to, was validated by, or was inspired by."""
        ways: _Ways = (("outgoing", _GROUNDS), ("incoming", (EdgeType.INSPIRED_BY,)))
        return await self._along(id, NodeDomain.ACADEMIC, ways)

    async def code_for_academic(self, id: str) -> list[Node]:
        """The code that a reference documents, or that implements or uses it."""
        return await self._along(id, NodeDomain.CODE, (("outgoing", (EdgeType.DOCUMENTS,)), ("both", _USED)))

    async def history_for_academic(self, id: str) -> list[Node]:
        """Entries that are based on a reference, refer to it, or were inspired by it."""
        ways: _Ways = (("incoming", _GROUNDS), ("outgoing", (EdgeType.INSPIRED_BY,)))
        return await self._along(id, NodeDomain.HISTORY, ways)

    async def neighbours_of(self, id_or_ref: str) -> Related:
        """A node of any domain with its neighbours in the others. Raises NotFound."""
        id = self._node_id(id_or_ref)
        return await self._related(ScoredNode(node=await NodeGraph(self._trail, self._by).get_node(id), similarity=1.0))

    async def similar_across_domains_with_context(
        self, query: str, k: int = 10, path_filter: str | None = None
    ) -> list[Related]:
        """The k nodes of any domain that fit a question best, each with its neighbours. `path_filter` is a glob."""
        return [await self._related(found) for found in await self._search(query, k, NodeFilter(path=path_filter))]

    async def patterns_of(self, query: str, *, limit: int = 10, path: str | None = None) -> list[Related]:
        """Which patterns does this code implement? Code that fits the question and implements any, with its patterns
        in `academic` and `history`."""
        answers = []
        for each in await self._search(query, limit, NodeFilter(domain=NodeDomain.CODE, path=path)):
            patterns = await self._follow(each.node.id, "both", (EdgeType.IMPLEMENTS_PATTERN,))
            known = tuple(node for node in patterns if node.domain is NodeDomain.ACADEMIC)
            own = tuple(node for node in patterns if node.domain is NodeDomain.HISTORY)
            if patterns:
                answers.append(Related(node=each.node, similarity=each.similarity, academic=known, history=own))
        return answers

    async def why_chosen(self, query: str, *, limit: int = 5) -> list[Related]:
        """Why was this chosen? Decisions that somebody took and that fit the question, with their grounds and the code.
        Lines of changelogs are left out."""
        wanted = NodeFilter(domain=NodeDomain.HISTORY, node_types=(NodeType.DECISION,))
        found = await self._search(query, limit * _OVERFETCH, wanted)
        taken = [each for each in found if each.node.metadata.get("kind") != CHANGELOG]
        return [await self._related(each) for each in taken[:limit]]

    async def changes_since(self, query: str, since: datetime, *, limit: int = 20) -> list[Related]:
        """What changed here since then? Entries of work after a moment that fit the question and name code, newest
        first, with that code."""
        answers = []
        for found in await self._search(query, limit, NodeFilter(domain=NodeDomain.HISTORY, created_after=since)):
            is_work = found.node.metadata.get("summary_type") in WORK
            types = _HISTORY_OF_CODE if is_work else _CHANGED
            code = tuple(await self._along(found.node.id, NodeDomain.CODE, (("outgoing", types),)))
            if code:
                answers.append(Related(node=found.node, similarity=found.similarity, code=code))
        return sorted(answers, key=lambda answer: answer.node.created_at, reverse=True)

    async def past_issues(self, code: str) -> list[Node]:
        """Were there issues with this before? Failures and fixed bugs of a place in the code, newest first."""
        return [node for node in await self.history_for_code(code) if _is_issue(node)]

    async def _related(self, found: ScoredNode) -> Related:
        id, code, history, academic = found.node.id, list[Node](), list[Node](), list[Node]()
        match found.node.domain:
            case NodeDomain.CODE:
                history, academic = await self.history_for_code(id), await self.academic_for_code(id)
            case NodeDomain.HISTORY:
                code, academic = await self.code_for_history(id), await self.academic_for_decision(id)
            case _:
                code, history = await self.code_for_academic(id), await self.history_for_academic(id)
        return Related(
            node=found.node,
            similarity=found.similarity,
            code=tuple(code),
            history=tuple(history),
            academic=tuple(academic),
        )

    async def _search(self, query: str, k: int, filter: NodeFilter) -> list[ScoredNode]:
        if not query.strip():
            return []
        return await self._truth.hold(lambda: search_nodes(self._trail, self._by, query, k, filter))

    async def _along(self, id_or_ref: str, domain: NodeDomain, ways: _Ways) -> list[Node]:
        """Nodes of one domain at the other ends of edges, newest first, each once."""
        id = self._node_id(id_or_ref)

        async def find() -> list[ScoredNode]:
            found = [node for direction, types in ways for node in await self._follow(id, direction, types)]
            once = {node.id: node for node in found if node.domain is domain}
            ordered = sorted(once.values(), key=lambda node: (node.created_at, node.id), reverse=True)
            return [ScoredNode(node=node, similarity=1.0) for node in ordered]

        return [each.node for each in await self._truth.hold(find)]

    async def _follow(self, id: str, direction: Direction, types: Sequence[EdgeType]) -> list[Node]:
        graph = NodeGraph(self._trail, self._by)
        try:
            return [node for type in types for node in await graph.traverse(id, type, direction)]
        except NotFound:
            return []  # nobody has written about this code yet

    def _node_id(self, id_or_ref: str) -> str:
        return id_or_ref if _UUID.fullmatch(id_or_ref) else anchor_id(self._by.owner_id, id_or_ref)


async def search_nodes(trail: Trail, by: Principal, query: str, limit: int, filter: NodeFilter) -> list[ScoredNode]:
    """Nodes that fit a text by words and meaning, best first; `similarity` is comparable between questions."""
    request = SearchRequest(text=query, limit=limit, selector=to_selector(filter))
    result = await trail.index.search(request, by=by)
    return [ScoredNode(node=to_node(hit.breadcrumb), similarity=hit.relevance) for hit in result.hits]


async def _link(trail: Trail, ends: Sequence[tuple[str, str]], type: EdgeType, by: Principal) -> list[Edge]:
    edges = [Edge(source=source, target=target, type=type.label, weight=WEIGHTS[type]) for source, target in ends]
    return await trail.edges.add(edges, by=by, replace=True) if edges else []


async def _ensure_anchor(graph: NodeGraph, id: str, place: CodeRef) -> None:
    try:
        await graph.get_node(id)
        return
    except NotFound:
        pass
    with suppress(AlreadyExists):  # a concurrent writer created it
        await graph.add_node(
            place.qualname or place.path,
            NodeDomain.CODE,
            _type_of(place),
            place.key.removeprefix(PREFIX),
            path=place.path,
            metadata={"anchor": True, "ref": place.key},
            trust=Trust.GROUND,
            id=id,
        )


def _type_of(place: CodeRef) -> NodeType:
    """The likely type of a symbol by its spelling; the code index knows for certain."""
    if not place.qualname:
        return NodeType.FILE
    if place.qualname.rpartition(".")[2][:1].isupper():
        return NodeType.STRUCT
    return NodeType.METHOD if "." in place.qualname else NodeType.FUNCTION


def _is_issue(node: Node) -> bool:
    return node.node_type is NodeType.FAILURE or node.metadata.get("summary_type") in ("bug_fix", "failure", "issue")
