"""A graph of relations on a trail: breadcrumbs of schema relation.node.v1, and edges `parent` between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from uuid import NAMESPACE_OID, uuid5

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.trail.bulk import each_record
from clew.trail.graphs.relation_text import one_line
from clew.trail.graphs.relations import OnPersist, RelationNode
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.edge import Edge
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

SCHEMA = "relation.node.v1"
_PAGE = 1_000

Item = TypeVar("Item")


async def load_relations(trail: Trail, by: Principal, *, name: str = "default") -> list[RelationNode]:
    """The nodes of the named graph on a trail, in the order they were added. Pass them to a `RelationStore` as
    `initial_nodes`. Parents whose breadcrumbs no longer exist are left out.
    """
    nodes = [msgspec.convert(stored.context, RelationNode) for stored in (await _stored(trail, by, name)).values()]
    known = {node.id for node in nodes}
    return [
        msgspec.structs.replace(node, parents=tuple(parent for parent in node.parents if parent in known))
        for node in nodes
    ]


def persist_to(trail: Trail, by: Principal, *, name: str = "default") -> OnPersist:
    """A callback for `on_persist` that makes the named graph on a trail equal to the nodes it receives.

    Each node is a breadcrumb of schema relation.node.v1, each parent an edge `parent` from it. Only changes are
    written. If a call is interrupted, the next one writes the missing parts.
    """
    return _Mirror(trail, by, name).show


class _Mirror:
    """A graph on a trail. `_linked` says whether this object has written all its edges."""

    def __init__(self, trail: Trail, by: Principal, name: str) -> None:
        self._trail, self._by, self._name = trail, by, name
        self._linked = False

    async def show(self, nodes: list[RelationNode]) -> None:
        stored = await _stored(self._trail, self._by, self._name)
        wanted = {self._id(node.id): node for node in nodes}
        changed = [id for id, node in wanted.items() if id in stored and _context(node) != stored[id].context]
        new = [id for id in wanted if id not in stored]
        linked, self._linked = self._linked, False
        await self._drop_stale(wanted, stored, changed)
        for batch in _batches([self._draft(id, wanted[id]) for id in new]):
            await self._trail.records.create_many(batch, by=self._by)
        await self._link({id: wanted[id] for id in (*new, *changed)} if linked else wanted)
        for id in changed:
            draft = self._draft(id, wanted[id])
            change = Change(title=draft.title, context=draft.context, tags=draft.tags)
            await self._trail.records.update(id, change, expect=stored[id].version, by=self._by)
        self._linked = True

    async def _drop_stale(
        self, wanted: Mapping[str, RelationNode], stored: Mapping[str, Breadcrumb], changed: list[str]
    ) -> None:
        """Delete nodes that are gone, and edges to parents that a node no longer has."""
        for id in stored.keys() - wanted.keys():
            await self._trail.records.delete(id, by=self._by)
        for id in changed:
            for parent in set(stored[id].context["parents"]).difference(wanted[id].parents):
                with suppress(NotFound):
                    await self._trail.edges.remove(id, self._id(parent), "parent", by=self._by)

    async def _link(self, nodes: Mapping[str, RelationNode]) -> None:
        edges = [
            Edge(source=id, target=self._id(parent), type="parent")
            for id, node in nodes.items()
            for parent in node.parents
        ]
        for batch in _batches(edges):
            await self._trail.edges.add(batch, by=self._by, replace=True)

    def _draft(self, id: str, node: RelationNode) -> Draft:
        state = (f"status:{node.status}",) if node.status else ()
        tags = (f"relations:{self._name}", f"relation:{node.edge_type}", *state)
        title = one_line(node.description)
        return Draft(id=id, title=title, context=_context(node), tags=tags, schema_name=SCHEMA)

    def _id(self, node_id: str) -> str:
        """The id of a node's breadcrumb. It depends only on the graph and the node, so that no node is written
        twice."""
        return str(uuid5(NAMESPACE_OID, repr((self._by.owner_id, self._name, node_id))))


def _context(node: RelationNode) -> dict[str, Any]:
    """The node as JSON."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(node))
    return plain


def _batches(items: list[Item]) -> Iterator[list[Item]]:
    return (items[at : at + _PAGE] for at in range(0, len(items), _PAGE))


async def _stored(trail: Trail, by: Principal, name: str) -> dict[str, Breadcrumb]:
    """The breadcrumbs of a graph by id, oldest first."""
    selector = Selector(schema_name=SCHEMA, all_tags=(f"relations:{name}",))
    return {item.id: item async for item in each_record(trail, selector, by=by)}
