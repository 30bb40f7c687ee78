"""Nodes on a trail: stored as breadcrumbs of schema node.v1, searched by meaning and followed along edges. The trail
itself does the storage, vectors, filters and walks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node import (
    DEFAULT_TRUST,
    SCHEMA,
    UNVERIFIED,
    Node,
    NodeFields,
    as_text,
    build_node,
    domain_tag,
    to_node,
    type_tag,
)
from clew.knowledge.upsert import change_record
from clew.trail.bulk import drop_selected
from clew.trail.model.breadcrumb import Breadcrumb, Change
from clew.trail.model.edge import Direction, Edge, EdgeType
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

__all__ = [
    "DEFAULT_TRUST",
    "EVERY_NODE",
    "KEPT_EXPIRED",
    "SCHEMA",
    "UNVERIFIED",
    "Node",
    "NodeFields",
    "NodeFilter",
    "NodeGraph",
    "ScoredNode",
    "build_node",
    "to_node",
    "to_selector",
]

KEPT_EXPIRED = timedelta(days=30)
"""The time between the expiry of history and its removal."""
MOST_REMOVED = 10_000
"""Nodes that one call removes."""


class ScoredNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node with its similarity to a query: a cosine, or another measure of the search."""

    node: Node
    similarity: float


class NodeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter over nodes; all given parts must match. `path` is a glob. Values of `metadata` must be equal; a dot in a
    key leads into a nested object."""

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
        self, name: str, domain: NodeDomain, node_type: NodeType, content: str, **fields: Unpack[NodeFields]
    ) -> Node:
        """Write a node with its vector, made from name and content, in one transaction.

        Raises InvalidInput when the type is not one of the domain, or a field is out of range.
        """
        draft = build_node(name, domain, node_type, content, fields)
        return to_node(await self._trail.records.create(draft, by=self._by))

    async def get_node(self, id: str) -> Node:
        """Raises NotFound when there is no such breadcrumb or it is no node."""
        [node] = await self.as_nodes([await self._trail.records.get(id, by=self._by)])
        return node

    async def current(self, id: str) -> Node:
        """The current version of a node: itself, or the last one that superseded it."""
        node = await self.get_node(id)
        while node.superseded_by is not None:
            node = await self.get_node(node.superseded_by)
        return node

    async def supersede(self, old: str, new: str) -> Node:
        """Mark a node as superseded by another, and return the old one as it is now. A second call changes nothing.

        Raises NotFound for either, CycleRefused when the old one stands, however indirectly, in the place of the new.
        """
        await self.get_node(new)
        await self.get_node(old)
        edge = Edge(source=new, target=old, type=EdgeType.SUPERSEDES.label)
        await self._trail.edges.add([edge], by=self._by, replace=True)

        def change(was: Breadcrumb) -> Change:
            return Change(context={**was.context, "superseded_by": new})

        return to_node(await change_record(self._trail, old, change, by=self._by))

    async def remove_expired(self, now: datetime, most: int = MOST_REMOVED) -> int:
        """Delete the nodes of history that expired more than KEPT_EXPIRED ago, the oldest first, `most` at a time, and
        return how many. Nodes of code and of literature stay."""
        expired = ContextMatch(path="expires_at", op="lt", value=as_text(now - KEPT_EXPIRED, "now"))
        selector = Selector(schema_name=SCHEMA, all_tags=(domain_tag(NodeDomain.HISTORY),), context_match=(expired,))
        return await drop_selected(self._trail, selector, most, by=self._by)

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
        to_node(found)
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
        """The nodes along edges of one type, breadth first, each once; other records are skipped."""
        reached = await self._trail.edges.walk(
            [id], by=self._by, types=[_edge_name(edge_type)], direction=direction, depth=depth
        )
        found = [await self._trail.records.get(one.id, by=self._by) for one in reached]
        return await self.as_nodes([one for one in found if one.schema_name == SCHEMA])

    async def as_nodes(self, found: Sequence[Breadcrumb]) -> list[Node]:
        """Convert breadcrumbs to nodes, in order. A node is not superseded by one that is deleted or not visible."""
        nodes = [to_node(each) for each in found]
        later = {node.superseded_by for node in nodes if node.superseded_by is not None}
        lost = {id for id in later if not await self._is_there(id)}
        return [
            msgspec.structs.replace(node, superseded_by=None) if node.superseded_by in lost else node for node in nodes
        ]

    async def close(self) -> None:
        """Close the trail."""
        await self._trail.close()

    async def _search(self, request: SearchRequest) -> list[ScoredNode]:
        hits = (await self._trail.index.search(request, by=self._by)).hits
        nodes = await self.as_nodes([hit.breadcrumb for hit in hits])
        return [ScoredNode(node=node, similarity=hit.score) for node, hit in zip(nodes, hits, strict=True)]

    async def _is_there(self, id: str) -> bool:
        try:
            await self._trail.records.get(id, by=self._by)
        except NotFound:
            return False
        return True


def to_selector(filter: NodeFilter) -> Selector:
    """Convert the filter to a selector of the trail."""
    return Selector(
        schema_name=SCHEMA,
        all_tags=(domain_tag(filter.domain),) if filter.domain is not None else (),
        any_tags=tuple(type_tag(node_type) for node_type in filter.node_types),
        session=filter.session_id,
        created_after=filter.created_after,
        path=filter.path,
        context_match=tuple(
            ContextMatch(path=f"metadata.{key}", value=value) for key, value in filter.metadata.items()
        ),
    )


def _edge_name(edge_type: EdgeType | str) -> str:
    return edge_type.label if isinstance(edge_type, EdgeType) else edge_type
