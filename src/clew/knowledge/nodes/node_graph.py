"""The nodes of a trail as one caller sees them: written, searched by words and meaning, and followed along edges.
Entries of a session are linked in their order by edges `followed_by`: an entry says more together with its neighbours,
so neighbours of good hits rank higher."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Unpack

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_store import (
    EVERY_NODE,
    SCHEMA,
    Node,
    NodeFields,
    NodeFilter,
    ScoredNode,
    as_text,
    build_node,
    domain_tag,
    to_node,
    to_selector,
)
from clew.knowledge.upsert import change_record
from clew.trail.bulk import drop_selected
from clew.trail.model.breadcrumb import Breadcrumb, Change
from clew.trail.model.edge import Direction, Edge, EdgeType
from clew.trail.model.query import MAX_LIMIT, Hit, SearchRequest
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.search.closeness import closeness
from clew.trail.store import Trail

KEPT_EXPIRED = timedelta(days=30)
"""The time between the expiry of history and its removal."""
MOST_REMOVED = 10_000
"""Nodes that one call removes."""
CANDIDATES = 60
"""Hits among which the best are chosen."""
NEXT, SECOND = 0.15, 0.10
"""The share of a neighbour's score that is added to a score, and that of the next but one neighbour. Chosen on
memory_dev; half or twice as much does nearly as well."""
_WEIGHTS = {"title": 1.5, "content": 1.0}
"""Weights of the words in the name and the content of a node: the content matters more than in other records."""
_FOLLOWED_BY = EdgeType.FOLLOWED_BY.label


class NodeGraph:
    """The nodes that one principal sees on a trail. Calls raise the errors of the trail."""

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
        """Raises NotFound if there is no such breadcrumb or it is not a node."""
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

        Raises NotFound for either, CycleRefused if the old one supersedes the new one, directly or indirectly.
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

    async def add_edge(self, source: str, target: str, edge_type: EdgeType) -> Edge:
        """Raises NotFound for an end, AlreadyExists for an edge that is there, CycleRefused for a cycle."""
        edge = Edge(source=source, target=target, type=edge_type.label)
        return (await self._trail.edges.add([edge], by=self._by))[0]

    async def similar_nodes(self, query: str, k: int = 10, filter: NodeFilter = EVERY_NODE) -> list[ScoredNode]:
        """The k nodes nearest in meaning to a text, nearest first."""
        return await self._nearest(k, filter, text=query)

    async def similar_to_node(self, id: str, k: int = 10, filter: NodeFilter = EVERY_NODE) -> list[ScoredNode]:
        """The k nodes nearest to a node, without itself. Empty for a node that has no vector."""
        found = await self._trail.records.get(id, by=self._by, vector=True)
        to_node(found)
        if found.embedding is None:
            return []
        return await self._nearest(k, filter, vector=found.embedding, exclude=(id,))

    async def traverse(
        self, id: str, edge_type: EdgeType | str, direction: Direction = "outgoing", depth: int = 1
    ) -> list[Node]:
        """The nodes along edges of one type, breadth first, each once; other records are skipped."""
        name = edge_type.label if isinstance(edge_type, EdgeType) else edge_type
        reached = await self._trail.edges.walk([id], by=self._by, types=[name], direction=direction, depth=depth)
        return await self.read([one.id for one in reached])

    async def read(self, ids: Iterable[str]) -> list[Node]:
        """The nodes of these ids, in order; other records, and those that are gone, are skipped."""
        found = []
        for id in ids:
            with suppress(NotFound):
                found.append(await self._trail.records.get(id, by=self._by))
        return await self.as_nodes([each for each in found if each.schema_name == SCHEMA])

    async def as_nodes(self, found: Sequence[Breadcrumb]) -> list[Node]:
        """Convert breadcrumbs to nodes, in order. A node is not superseded by one that is deleted or not visible."""
        nodes = [to_node(each) for each in found]
        later = {node.superseded_by for node in nodes if node.superseded_by is not None}
        lost = {id for id in later if not await self._is_there(id)}
        return [
            msgspec.structs.replace(node, superseded_by=None) if node.superseded_by in lost else node for node in nodes
        ]

    async def search(
        self, query: str, filter: NodeFilter = EVERY_NODE, *, limit: int = 10, exclude: Collection[str] = ()
    ) -> list[ScoredNode]:
        """The best nodes by words and meaning, best first. The similarity of the best is its closeness to the query,
        from 0 to 1; that of the others follows from their scores. Neighbours of good entries of history rank higher."""
        request = SearchRequest(
            text=query,
            limit=max(limit, CANDIDATES),
            selector=to_selector(filter),
            weights=_WEIGHTS,
            exclude=tuple(exclude)[:MAX_LIMIT],
        )
        hits = (await self._trail.index.search(request, by=self._by)).hits
        scores = {hit.breadcrumb.id: hit.score for hit in hits if hit.score > 0}
        if filter.domain in (NodeDomain.HISTORY, None):
            scores = await boost_by_neighbours(self._trail, scores, by=self._by)
        best = _best(hits, scores, limit)
        nodes = await self.as_nodes([hit.breadcrumb for hit, _ in best])
        return [ScoredNode(node=node, similarity=each) for node, (_, each) in zip(nodes, best, strict=True)]

    async def knows(self, text: str, domain: NodeDomain) -> bool:
        """Whether any node of a domain has a word of a text. Compares no vectors."""
        request = SearchRequest(text=text, limit=1, ranking="text", selector=to_selector(NodeFilter(domain=domain)))
        return bool((await self._trail.index.search(request, by=self._by)).hits)

    async def _nearest(self, k: int, filter: NodeFilter, **given: Any) -> list[ScoredNode]:
        request = SearchRequest(limit=k, ranking="vector", selector=to_selector(filter), **given)
        hits = (await self._trail.index.search(request, by=self._by)).hits
        nodes = await self.as_nodes([hit.breadcrumb for hit in hits])
        return [ScoredNode(node=node, similarity=hit.score) for node, hit in zip(nodes, hits, strict=True)]

    async def _is_there(self, id: str) -> bool:
        try:
            await self._trail.records.get(id, by=self._by)
        except NotFound:
            return False
        return True


def _best(hits: Sequence[Hit], scores: Mapping[str, float], limit: int) -> list[tuple[Hit, float]]:
    """The best hits with their similarity."""
    close = max(map(closeness, hits), default=0.0)
    if close <= 0:
        return []
    most = max(scores.values(), default=1.0) * (1 + close) / close
    scored = [(hit, scores[hit.breadcrumb.id] / most) for hit in hits if hit.breadcrumb.id in scores]
    return [(hit, min(1.0, score)) for hit, score in sorted(scored, key=lambda each: -each[1])[:limit]]


# -- the order of entries in a session -------------------------------------------------------------------------


async def link_in_order(trail: Trail, ids: Sequence[str], *, by: Principal) -> None:
    """Record that these entries follow each other; twice is harmless. Raises NotFound, CycleRefused."""
    edges = [Edge(source=first, target=second, type=_FOLLOWED_BY) for first, second in pairwise(ids)]
    if edges:
        await trail.edges.add(edges, by=by, replace=True)


async def boost_by_neighbours(trail: Trail, scores: Mapping[str, float], *, by: Principal) -> dict[str, float]:
    """The scores of records, each with a share of the scores of its neighbours."""
    near = await _neighbours(trail, scores, by)
    near |= await _neighbours(trail, {far for found in near.values() for far in found} - near.keys(), by)
    boosted = {}
    for id, score in scores.items():
        first = near.get(id, set())
        second = {far for each in first for far in near.get(each, ())} - first - {id}
        boosted[id] = score + sum(NEXT * scores.get(each, 0.0) for each in first)
        boosted[id] += sum(SECOND * scores.get(each, 0.0) for each in second)
    return boosted


async def _neighbours(trail: Trail, ids: Iterable[str], by: Principal) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    wanted = list(ids)
    for link in await trail.edges.around(wanted, by=by) if wanted else ():
        if link.type == _FOLLOWED_BY:
            found.setdefault(link.near, set()).add(link.far)
    return found
