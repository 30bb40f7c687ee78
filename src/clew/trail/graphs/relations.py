"""A graph of plans, steps, files or agents in memory, without a file: any number of parents, and no cycles.

Nodes are loaded from `initial_nodes` and saved through `on_persist`. To store them on a trail, use `load_relations` and
`persist_to` of `relation_mirror`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from clew.clock import Clock, SystemClock
from clew.errors import AlreadyExists, CycleRefused, InvalidInput, NotFound
from clew.trail.graphs.relation_text import format_relations
from clew.trail.graphs.walks import Links, closes_cycle, layers, reach, run
from clew.trail.model.edge import check_type

Status = Literal["pending", "in_progress", "done", "failed"]


class RelationNode(msgspec.Struct, frozen=True, kw_only=True):
    """`edge_type` is the role of the node below its parents: plan, step, file, agent, ... `context` holds a
    `description`, an optional `status`, and any other data for the model."""

    id: str
    parents: tuple[str, ...] = ()
    edge_type: str
    context: dict[str, Any]
    created_at: datetime

    @property
    def description(self) -> str:
        return str(self.context["description"])

    @property
    def status(self) -> Status | None:
        return self.context.get("status")


OnPersist = Callable[[list[RelationNode]], Awaitable[None] | None]


class RelationStore:
    """Nodes in the order they were added. Reads are synchronous. Changes are asynchronous, because with `auto_persist`
    each change passes all nodes to `on_persist` before it returns. If `on_persist` fails, the change stays. Methods
    that take an id raise NotFound for an unknown node, unless documented otherwise.
    """

    def __init__(
        self,
        initial_nodes: Iterable[RelationNode] = (),
        *,
        on_persist: OnPersist | None = None,
        auto_persist: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Load nodes in any order. Raises AlreadyExists for a repeated id, NotFound for an unknown parent, and
        InvalidInput for a cycle or an invalid node."""
        self._on_persist, self._auto_persist, self._clock = on_persist, auto_persist, clock or SystemClock()
        self._nodes: dict[str, RelationNode] = {}
        for node in initial_nodes:
            if node.id in self._nodes:
                raise AlreadyExists("relation", node.id)
            self._nodes[node.id] = _checked(node)
        self._children: dict[str, dict[str, None]] = {id: {} for id in self._nodes}
        for node in self._nodes.values():
            self._link(node)
        layers({node.id: node.parents for node in self._nodes.values()})

    async def add(
        self, id: str, *, edge_type: str, context: Mapping[str, Any], parents: Sequence[str] = ()
    ) -> RelationNode:
        """Add a node below existing parents. Raises CycleRefused, AlreadyExists, NotFound for an unknown parent, and
        InvalidInput for an invalid node.
        """
        self._refuse_cycle(id, parents)
        if id in self._nodes:
            raise AlreadyExists("relation", id)
        now = self._clock.now()
        node = RelationNode(id=id, parents=tuple(parents), edge_type=edge_type, context=dict(context), created_at=now)
        self._put(_checked(node))
        await self._changed()
        return node

    async def update(
        self, id: str, changes: Mapping[str, Any] | None = None, *, parents: Sequence[str] | None = None
    ) -> RelationNode:
        """Change some keys of the context, and the parents if given. Raises as `add`."""
        node = self.need(id)
        above = node.parents if parents is None else tuple(parents)
        self._refuse_cycle(id, above)
        node = msgspec.structs.replace(node, parents=above, context={**node.context, **(changes or {})})
        self._put(_checked(node))
        await self._changed()
        return node

    async def remove(self, id: str) -> None:
        """Remove a node; its children lose this parent and stay."""
        node = self.need(id)
        for child in self.children(id):
            above = tuple(parent for parent in child.parents if parent != id)
            self._nodes[child.id] = msgspec.structs.replace(child, parents=above)
        for parent in node.parents:
            del self._children[parent][id]
        del self._nodes[id], self._children[id]
        await self._changed()

    async def clear(self) -> None:
        """Remove all nodes."""
        self._nodes.clear()
        self._children.clear()
        await self._changed()

    async def persist(self) -> None:
        """Pass all nodes to `on_persist`, and await the result if it is awaitable."""
        if self._on_persist is not None and inspect.isawaitable(saving := self._on_persist(self.all())):
            await saving

    def get(self, id: str) -> RelationNode | None:
        """The node, or None."""
        return self._nodes.get(id)

    def need(self, id: str) -> RelationNode:
        """The node. Raises NotFound."""
        if id not in self._nodes:
            raise NotFound("relation", id)
        return self._nodes[id]

    def has(self, id: str) -> bool:
        return id in self._nodes

    def all(self) -> list[RelationNode]:
        return list(self._nodes.values())

    @property
    def size(self) -> int:
        return len(self._nodes)

    def parents(self, id: str) -> list[RelationNode]:
        return [self._nodes[parent] for parent in self.need(id).parents]

    def children(self, id: str) -> list[RelationNode]:
        return [self._nodes[child] for child in self._children[self.need(id).id]]

    def ancestors(self, id: str) -> list[RelationNode]:
        """Every node above, each once, nearest first."""
        return [self._nodes[one] for one in run(reach([self.need(id).id]), self._parents_of)]

    def descendants(self, id: str) -> list[RelationNode]:
        """Every node below, each once, nearest first."""
        return [self._nodes[one] for one in run(reach([self.need(id).id]), self._children_of)]

    def roots(self) -> list[RelationNode]:
        return [node for node in self._nodes.values() if not node.parents]

    def leaves(self) -> list[RelationNode]:
        return [node for node in self._nodes.values() if not self._children[node.id]]

    def by_edge_type(self, edge_type: str) -> list[RelationNode]:
        return [node for node in self._nodes.values() if node.edge_type == edge_type]

    def by_status(self, status: Status | None) -> list[RelationNode]:
        return [node for node in self._nodes.values() if node.status == status]

    def would_create_cycle(self, id: str, parents: Sequence[str]) -> bool:
        """Whether these parents would make the node its own ancestor. Neither the node nor the parents need to
        exist."""
        return run(closes_cycle(id, parents), self._parents_of)

    def to_context(self, ids: Sequence[str]) -> str:
        """The nodes and their descendants, as a text tree for a model."""
        return format_relations(self, ids)

    def _parents_of(self, ids: list[str]) -> Links:
        return {id: self._nodes[id].parents for id in ids if id in self._nodes}

    def _children_of(self, ids: list[str]) -> Links:
        return {id: self._children[id] for id in ids}

    def _refuse_cycle(self, id: str, parents: Sequence[str]) -> None:
        if self.would_create_cycle(id, parents):
            raise CycleRefused("parent", id, ", ".join(parents))

    def _put(self, node: RelationNode) -> None:
        for parent in node.parents:
            self.need(parent)
        before = self._nodes.get(node.id)
        for parent in set(before.parents).difference(node.parents) if before else ():
            del self._children[parent][node.id]
        self._nodes[node.id] = node
        self._children.setdefault(node.id, {})
        self._link(node)

    def _link(self, node: RelationNode) -> None:
        for parent in node.parents:
            self._children[self.need(parent).id][node.id] = None

    async def _changed(self) -> None:
        if self._auto_persist:
            await self.persist()


def _checked(node: RelationNode) -> RelationNode:
    """Return the node. Raises InvalidInput if one of its fields is invalid."""
    check_type(node.edge_type)
    if not node.id or len(node.id) > 300 or not node.id.isprintable():
        raise InvalidInput("id", "must be 1 to 300 printable characters")
    description = node.context.get("description")
    if not isinstance(description, str) or not description.strip():
        raise InvalidInput("context.description", "must be a text", hint="Say in a line what the node is")
    status = node.context.get("status")
    if status is not None and status not in get_args(Status):
        raise InvalidInput("context.status", f"{status!r} is not one of {', '.join(get_args(Status))}")
    if len(set(node.parents)) != len(node.parents):
        raise InvalidInput("parents", "must not name a node twice")
    return node
