"""Knowledge on a trail: nodes of code, history and literature as breadcrumbs of schema node.v1, found by
meaning and followed along edges. A thin layer: storing, vectors, filters and walks are the trail's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import InvalidInput, NotFound
from clew.trail.breadcrumb import Breadcrumb, Draft
from clew.trail.edge import Direction, Edge, EdgeType
from clew.trail.kinds import NodeDomain, NodeType, Verification, check_node_type
from clew.trail.query import SearchRequest
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail

SCHEMA = "node.v1"
DEFAULT_TRUST = 50


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of knowledge. `trust` is from 0 to 100, `confidence` from 0 to 1."""

    id: str
    name: str
    domain: NodeDomain
    node_type: NodeType
    content: str
    path: str | None = None
    session_id: str | None = None
    metadata: dict[str, Any] = {}
    trust: int = DEFAULT_TRUST
    confidence: float = 1.0
    verification: Verification = Verification.NONE
    created_at: datetime


class ScoredNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node and the cosine of its vector with what was asked."""

    node: Node
    similarity: float


class NodeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes to look at; all given parts must hold. `path` is a glob. `metadata` gives values that must
    be equal; a dot in a key leads into a nested object."""

    domain: NodeDomain | None = None
    node_types: Sequence[NodeType] = ()
    session_id: str | None = None
    created_after: datetime | None = None
    path: str | None = None
    metadata: Mapping[str, Any] = {}


EVERY_NODE = NodeFilter()


class NodeGraph:
    """The nodes that one principal sees on a trail. Calls raise what the trail raises."""

    def __init__(self, trail: Trail, by: Principal) -> None:
        self._trail = trail
        self._by = by

    async def add_node(
        self,
        name: str,
        domain: NodeDomain,
        node_type: NodeType,
        content: str,
        *,
        path: str | None = None,
        session_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        trust: int = DEFAULT_TRUST,
        confidence: float = 1.0,
        verification: Verification = Verification.NONE,
        id: str | None = None,
    ) -> Node:
        """Write a node with its vector, made from name and content, in one transaction.

        Raises InvalidInput when the type is not one of the domain, or trust or confidence is out of range.
        """
        domain, node_type = check_node_type(domain, node_type)
        _check_range("trust", trust, 100)
        _check_range("confidence", confidence, 1)
        context = {
            "content": content,
            "domain": int(domain),
            "node_type": int(node_type),
            "trust": trust,
            "confidence": confidence,
            "verification": int(Verification(verification)),
            "metadata": dict(metadata or {}),
            **({"path": path} if path is not None else {}),
        }
        session = (f"session:{session_id}",) if session_id is not None else ()
        draft = Draft(
            id=id,
            title=name,
            context=context,
            tags=(_domain_tag(domain), _type_tag(node_type), *session),
            schema_name=SCHEMA,
            llm_hints=_SHOWN,
        )
        return to_node(await self._trail.records.create(draft, by=self._by))

    async def get_node(self, id: str) -> Node:
        """Raises NotFound when there is no such breadcrumb or it is no node."""
        return to_node(await self._trail.records.get(id, by=self._by))

    async def add_edge(
        self,
        source: str,
        target: str,
        edge_type: EdgeType | str,
        *,
        weight: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> Edge:
        """Raises NotFound for an end, AlreadyExists for an edge that is there, CycleRefused for a cycle."""
        edge = Edge(
            source=source,
            target=target,
            type=_edge_name(edge_type),
            weight=weight,
            metadata=dict(metadata or {}),
        )
        return (await self._trail.edges.add([edge], by=self._by))[0]

    async def similar_nodes(self, query: str, k: int = 10, filter: NodeFilter = EVERY_NODE) -> list[ScoredNode]:
        """The k nodes nearest in meaning to a text, nearest first."""
        return await self._search(SearchRequest(text=query, limit=k, ranking="vector", selector=to_selector(filter)))

    async def similar_to_node(self, id: str, k: int = 10, filter: NodeFilter = EVERY_NODE) -> list[ScoredNode]:
        """The k nodes nearest to a node, without itself. Empty for a node that has no vector."""
        found = await self._trail.records.get(id, by=self._by, vector=True)
        _refuse_others(found)
        if found.embedding is None:
            return []
        return await self._search(
            SearchRequest(
                vector=found.embedding, limit=k, ranking="vector", selector=to_selector(filter), exclude=(id,)
            )
        )

    async def traverse(
        self, id: str, edge_type: EdgeType | str, direction: Direction = "outgoing", depth: int = 1
    ) -> list[Node]:
        """The nodes along edges of one type, breadth first, each once. What is no node is passed over."""
        reached = await self._trail.edges.walk(
            [id], by=self._by, types=[_edge_name(edge_type)], direction=direction, depth=depth
        )
        found = [await self._trail.records.get(one.id, by=self._by) for one in reached]
        return [to_node(one) for one in found if one.schema_name == SCHEMA]

    async def close(self) -> None:
        """Close the trail, vectors and all."""
        await self._trail.close()

    async def _search(self, request: SearchRequest) -> list[ScoredNode]:
        result = await self._trail.index.search(request, by=self._by)
        return [ScoredNode(node=to_node(hit.breadcrumb), similarity=hit.score) for hit in result.hits]


_SHOWN = {"include": ["content"]}
"""What a model reads of a node beside its name, and what its vector is made of."""


def to_node(breadcrumb: Breadcrumb) -> Node:
    """Raises NotFound when the breadcrumb is no node."""
    _refuse_others(breadcrumb)
    context = breadcrumb.context
    return Node(
        id=breadcrumb.id,
        name=breadcrumb.title,
        domain=NodeDomain(context["domain"]),
        node_type=NodeType(context["node_type"]),
        content=context["content"],
        path=context.get("path"),
        session_id=breadcrumb.session,
        metadata=context["metadata"],
        trust=context["trust"],
        confidence=context["confidence"],
        verification=Verification(context["verification"]),
        created_at=breadcrumb.created_at,
    )


def _refuse_others(breadcrumb: Breadcrumb) -> None:
    if breadcrumb.schema_name != SCHEMA:
        raise NotFound("node", breadcrumb.id)


def to_selector(filter: NodeFilter) -> Selector:
    """The filter in the trail's own language."""
    return Selector(
        schema_name=SCHEMA,
        all_tags=(_domain_tag(filter.domain),) if filter.domain is not None else (),
        any_tags=tuple(_type_tag(node_type) for node_type in filter.node_types),
        session=filter.session_id,
        created_after=filter.created_after,
        path=filter.path,
        context_match=tuple(
            ContextMatch(path=f"metadata.{key}", value=value) for key, value in filter.metadata.items()
        ),
    )


def _domain_tag(domain: NodeDomain) -> str:
    return f"domain:{NodeDomain(domain).label}"


def _type_tag(node_type: NodeType) -> str:
    return f"node:{NodeType(node_type).label}"


def _edge_name(edge_type: EdgeType | str) -> str:
    return edge_type.label if isinstance(edge_type, EdgeType) else edge_type


def _check_range(field: str, value: float, most: float) -> None:
    if not 0 <= value <= most:
        raise InvalidInput(field, f"must be between 0 and {most}")
