"""A graph of plans, steps, files or agents in memory, without a file: any number of parents, and no cycles.

Nodes come in as `initial_nodes` and go out through `on_persist`; with a trail by `load_relations` and
`persist_to`. `format_relations` and `format_plan` show a graph to a model as an indented tree.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal, TypeVar, get_args
from uuid import NAMESPACE_OID, uuid5

import msgspec

from clew.access import Principal
from clew.clock import Clock, SystemClock
from clew.errors import AlreadyExists, CycleRefused, InvalidInput, NotFound
from clew.trail.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.edge import Edge, check_type
from clew.trail.graph import Links, closes_cycle, layers, reach, run
from clew.trail.selector import Selector
from clew.trail.store import Trail

Item = TypeVar("Item")
Status = Literal["pending", "in_progress", "done", "failed"]


class RelationNode(msgspec.Struct, frozen=True, kw_only=True):
    """`edge_type` says what the node is to its parents: plan, step, file, agent, ... `context` holds a
    `description`, perhaps a `status`, and whatever else the model should know."""

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
    """Nodes in the order they were added. Looking is synchronous; changing is not, since with `auto_persist`
    each change hands all nodes to `on_persist` before it returns. A change stays when that fails.

    A method that is given an id raises NotFound when there is no such node, unless it says otherwise.
    """

    def __init__(
        self,
        initial_nodes: Iterable[RelationNode] = (),
        *,
        on_persist: OnPersist | None = None,
        auto_persist: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Take in nodes in any order. Raises AlreadyExists for an id, NotFound for a parent, and InvalidInput
        for a cycle."""
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
        """Add a node below parents that are there already.

        Raises CycleRefused, AlreadyExists, NotFound for a parent, InvalidInput for what a node cannot be.
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
        """Change some keys of the context, and the parents where given. Raises as `add`."""
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
        """Hand all nodes to `on_persist`, and wait for it where it is asynchronous."""
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
        """Whether these parents would make the node its own ancestor. None of them needs to exist."""
        return run(closes_cycle(id, parents), self._parents_of)

    def to_context(self, ids: Sequence[str]) -> str:
        """The nodes and what is below them, as a tree for a model."""
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
    """The node, unless its type, description, status or parents are not what they should be."""
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


MAX_LINES = 200
_MAX_TEXT = 300
_MAX_INDENT = 20


def format_relations(store: RelationStore, ids: Sequence[str], *, max_lines: int = MAX_LINES) -> str:
    """The nodes and what is below them as a tree, one line a node: `- [done] id (type): description {more}`.

    A node with several parents is written out once, and named after that. Texts are cut and kept on one line;
    after `max_lines` a last line says so.
    """
    lines: list[str] = []
    shown: set[str] = set()
    stack = [(store.need(id), 0) for id in reversed(ids)]
    while stack and len(lines) < max_lines:
        node, depth = stack.pop()
        indent = "  " * min(depth, _MAX_INDENT)
        if node.id in shown:
            lines.append(f"{indent}- {node.id} (shown above)")
            continue
        shown.add(node.id)
        lines.append(f"{indent}- {_describe(node)}")
        stack.extend((child, depth + 1) for child in reversed(store.children(node.id)))
    return "\n".join([*lines, f"… cut after {max_lines} lines"] if stack else lines)


def format_plan(store: RelationStore, id: str, *, max_lines: int = MAX_LINES) -> str:
    """A plan as a headline that says how far it is, and its steps below in order."""
    plan, steps = store.need(id), store.descendants(id)
    done = sum(step.status == "done" for step in steps)
    state = f" [{plan.status}]" if plan.status else ""
    headline = f"Plan {plan.id}{state}: {_one_line(plan.description)} ({done} of {len(steps)} done)"
    below = format_relations(store, [step.id for step in store.children(id)], max_lines=max_lines)
    return f"{headline}\n{below}" if below else headline


def _describe(node: RelationNode) -> str:
    state = f"[{node.status}] " if node.status else ""
    more = {key: value for key, value in node.context.items() if key not in ("description", "status")}
    extra = f" {_one_line(json.dumps(more, ensure_ascii=False, default=str))}" if more else ""
    return f"{state}{node.id} ({node.edge_type}): {_one_line(node.description)}{extra}"


def _one_line(text: str) -> str:
    """Text that cannot pass for a second line or flood the first."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_TEXT else f"{flat[: _MAX_TEXT - 1]}…"


SCHEMA = "relation.node.v1"
_PAGE = 1_000


async def load_relations(trail: Trail, by: Principal, *, name: str = "default") -> list[RelationNode]:
    """The nodes of the graph of that name on a trail, in the order they were added, for `initial_nodes`.

    A parent that was deleted from the trail by other means is left out.
    """
    nodes = [msgspec.convert(stored.context, RelationNode) for stored in (await _stored(trail, by, name)).values()]
    known = {node.id for node in nodes}
    return [
        msgspec.structs.replace(node, parents=tuple(parent for parent in node.parents if parent in known))
        for node in nodes
    ]


def persist_to(trail: Trail, by: Principal, *, name: str = "default") -> OnPersist:
    """A callback for `on_persist` that makes the graph of that name on a trail equal to the nodes it gets.

    Each node is a breadcrumb of schema relation.node.v1, each parent an edge `parent` from it. Only what has
    changed is written; what an interrupted call left out is made good by the next.
    """
    return _Mirror(trail, by, name).show


class _Mirror:
    """A graph on a trail. `_linked` is whether all its edges are known to be there."""

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
        title = _one_line(node.description)
        return Draft(id=id, title=title, context=_context(node), tags=tags, schema_name=SCHEMA)

    def _id(self, node_id: str) -> str:
        """The breadcrumb of a node: always the same one, so that nothing is written twice."""
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
    found: dict[str, Breadcrumb] = {}
    cursor: str | None = None
    while True:
        page = await trail.records.list(selector, by=by, limit=_PAGE, cursor=cursor, oldest_first=True)
        found.update((item.id, item) for item in page.items)
        cursor = page.cursor
        if cursor is None:
            return found
