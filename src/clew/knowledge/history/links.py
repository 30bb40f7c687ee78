"""Edges between code, history and references, and questions that follow them. It uses no model. Files and symbols of
the code have small nodes on the trail, so that edges survive when the code index is built again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, InvalidInput, NotFound
from clew.knowledge.code.models import PREFIX, CodeRef, parse_ref
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import Node, NodeFilter, ScoredNode
from clew.knowledge.upsert import keyed_id
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.edge import Edge, EdgeType
from clew.trail.store import Trail

Query = Annotated[str, msgspec.Meta(description="a name, or what to look for in your own words")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=50, description="at most so many")]
NodeRef = Annotated[str, msgspec.Meta(description="the id of a node, or a place in the code: path or path#qualname")]
PathFilter = Annotated[str, msgspec.Meta(description="a glob of paths; empty: all")]
MAX_REFS = 500
WEIGHTS = {EdgeType.REFERENCED_IN: 0.9, EdgeType.IMPLEMENTS_PATTERN: 0.85, EdgeType.INSPIRED_BY: 0.8}
"""Weights of the edges that are drawn here."""
_UUID = lazy_pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Related(msgspec.Struct, frozen=True, kw_only=True):
    """A node, how well it fits the question, and its neighbours in the other domains, newest first."""

    node: Node
    similarity: float
    linked: tuple[Node, ...] = ()


def references_of(node: Node) -> list[CodeRef]:
    """The places that an entry was written for."""
    given = node.metadata.get("code_references", ())
    return [parse_ref(ref) for ref in given if isinstance(ref, str)]


def anchor_id(owner_id: str, ref: str) -> str:
    """The id of the node of a place in the code, whether the node exists or not."""
    return keyed_id(owner_id, parse_ref(ref).key)


async def ensure_anchors(trail: Trail, refs: Sequence[str], *, by: Principal) -> list[str]:
    """Create the nodes of these places if missing; return their ids in the order given, each once. All references
    are checked before anything is written. Raises InvalidInput, TooLarge."""
    if len(refs) > MAX_REFS:
        raise InvalidInput("code_references", f"must have at most {MAX_REFS} places")
    places = {keyed_id(by.owner_id, place.key): place for place in map(parse_ref, refs)}
    graph = NodeGraph(trail, by)
    for id, place in places.items():
        try:
            await graph.get_node(id)
        except NotFound:
            await _add_anchor(graph, id, place)
    return list(places)


async def link(trail: Trail, ends: Sequence[tuple[str, str]], type: EdgeType, *, by: Principal) -> list[Edge]:
    """Draw edges of one of the types of WEIGHTS. Drawing them again changes nothing. Raises NotFound."""
    edges = [Edge(source=source, target=target, type=type.label, weight=WEIGHTS[type]) for source, target in ends]
    return await trail.edges.add(edges, by=by, replace=True) if edges else []


class CrossDomain:
    """The three domains as one principal sees them. Code is named by a node's id or by its place (`path`,
    `path#qualname`); code without notes has no neighbours."""

    def __init__(self, trail: Trail, by: Principal) -> None:
        self._trail, self._by = trail, by
        self.nodes = NodeGraph(trail, by)

    async def linked(
        self, id_or_ref: str, domain: NodeDomain | None = None, *, along: EdgeType | None = None
    ) -> list[Node]:
        """Nodes at the other ends of edges, newest first, each once: of one domain, along edges of one type, or all."""
        around = await self._trail.edges.around([self.node_id(id_or_ref)], by=self._by)
        ends = dict.fromkeys(each.far for each in around if along is None or each.type == along.label)
        found = [node for node in await self.nodes.read(ends) if domain in (None, node.domain)]
        return sorted(found, key=lambda node: (node.created_at, node.id), reverse=True)

    async def related(self, found: ScoredNode, *, along: EdgeType | None = None) -> Related:
        """A node with its neighbours in the other domains."""
        linked = await self.linked(found.node.id, along=along)
        others = tuple(each for each in linked if each.domain is not found.node.domain)
        return Related(node=found.node, similarity=found.similarity, linked=others)

    async def get_related(
        self,
        of: NodeRef,
    ) -> Related:
        """Show a node of any domain with the code, entries and references that are linked to it.

        Raises NotFound.
        """
        node = await self.nodes.get_node(self.node_id(of))
        return await self.related(ScoredNode(node=node, similarity=1.0))

    async def which_patterns(self, query: Query, path: PathFilter = "", limit: Limit = 10) -> list[Related]:
        """List the patterns that code implements, for code that fits a question."""
        wanted = NodeFilter(domain=NodeDomain.CODE, path=path or None)
        found = await self.search(query, limit, wanted, along=EdgeType.IMPLEMENTS_PATTERN)
        return [each for each in found if each.linked]

    async def similar_across_domains(self, query: Query, k: Limit = 10, path_filter: PathFilter = "") -> list[Related]:
        """List the nodes of all domains that fit a question best, each with its neighbours in the other domains."""
        return await self.search(query, k, NodeFilter(path=path_filter or None))

    async def search(
        self, query: str, limit: int, filter: NodeFilter, *, along: EdgeType | None = None
    ) -> list[Related]:
        """Nodes that fit a question, best first, each with its neighbours in the other domains."""
        if not query.strip():
            return []
        found = await self.nodes.search(query, filter, limit=limit)
        return [await self.related(each, along=along) for each in found]

    def node_id(self, id_or_ref: str) -> str:
        """The id of a node that is named by its id or by its place in the code."""
        return id_or_ref if _UUID.fullmatch(id_or_ref) else anchor_id(self._by.owner_id, id_or_ref)


async def _add_anchor(graph: NodeGraph, id: str, place: CodeRef) -> None:
    with suppress(AlreadyExists):  # a concurrent writer created it
        await graph.add_node(
            place.qualname or place.path,
            NodeDomain.CODE,
            _type_of(place),
            place.key.removeprefix(PREFIX),
            path=place.path,
            metadata={"anchor": True, "ref": place.key},
            trust=TrustLevel.GROUND,
            id=id,
        )


def _type_of(place: CodeRef) -> NodeType:
    """The likely type of a symbol by its spelling; the code index knows for certain."""
    if not place.qualname:
        return NodeType.FILE
    return NodeType.STRUCT if place.qualname.rpartition(".")[2][:1].isupper() else NodeType.FUNCTION
