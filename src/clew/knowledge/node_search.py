"""Search over the nodes of the trail by words and meaning. Entries of a session are linked in their order by edges
`followed_by`: an entry says more together with its neighbours, so neighbours of good hits rank higher."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.nodes.kinds import NodeDomain
from clew.knowledge.nodes.node_store import Node, NodeFilter, NodeGraph, ScoredNode, to_selector
from clew.trail.model.edge import Edge, EdgeType
from clew.trail.model.query import MAX_LIMIT, Hit, SearchRequest
from clew.trail.search.closeness import closeness
from clew.trail.store import Trail

CANDIDATES = 60
"""Hits among which the best are chosen."""
NEXT, SECOND = 0.15, 0.10
"""The share of the score of a neighbour that is added, and of the one beyond it. Chosen on memory_dev, where half or
twice as much does nearly as well."""
_WEIGHTS = {"title": 1.5, "content": 1.0}
"""Weights of the words in the name and the content of a node: the content matters more than in other records."""
_FOLLOWED_BY = EdgeType.FOLLOWED_BY.label


class NodeSearch:
    """The nodes that a caller may see."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail

    async def search(
        self, query: str, filter: NodeFilter, *, by: Principal, limit: int = 10, exclude: Collection[str] = ()
    ) -> list[ScoredNode]:
        """The best nodes, best first. The similarity of the best is its closeness to the query, from 0 to 1; that of
        the others follows from their scores."""
        request = SearchRequest(
            text=query,
            limit=max(limit, CANDIDATES),
            selector=to_selector(filter),
            weights=_WEIGHTS,
            exclude=tuple(exclude)[:MAX_LIMIT],
        )
        hits = (await self._trail.index.search(request, by=by)).hits
        scores = {hit.breadcrumb.id: hit.score for hit in hits if hit.score > 0}
        if filter.domain in (NodeDomain.HISTORY, None):
            scores = await boost_by_neighbours(self._trail, scores, by=by)
        best = _best(hits, scores, limit)
        nodes = await self.graph(by).as_nodes([hit.breadcrumb for hit, _ in best])
        return [ScoredNode(node=node, similarity=each) for node, (_, each) in zip(nodes, best, strict=True)]

    async def knows(self, text: str, domain: NodeDomain, *, by: Principal) -> bool:
        """Whether any node of a domain has a word of a text. Compares no vectors."""
        request = SearchRequest(text=text, limit=1, ranking="text", selector=to_selector(NodeFilter(domain=domain)))
        return bool((await self._trail.index.search(request, by=by)).hits)

    async def get(self, id: str, domain: NodeDomain, *, by: Principal) -> Node:
        """Raises NotFound."""
        found = await self.graph(by).get_node(id)
        if found.domain is not domain:
            raise NotFound(f"{domain.label} node", id)
        return found

    def graph(self, by: Principal) -> NodeGraph:
        """The nodes of the trail that a caller may see."""
        return NodeGraph(self._trail, by)


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
