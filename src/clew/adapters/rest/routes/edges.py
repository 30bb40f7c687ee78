"""Routes of edges: write, remove, list, walk, find paths."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from clew.adapters.rest.operation import EmptyReply, RestAnswer, RestCall, RestOperation, reply
from clew.errors import AlreadyExists, CycleRefused, NotFound
from clew.trail.model.edge import Direction, Edge, Reached

Some = Annotated[int, Meta(ge=1, le=10_000, description="At most this many")]


class NewEdges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Edges that are written together: all or none. `replace` overwrites those that exist."""

    edges: Annotated[list[Edge], Meta(max_length=10_000)]
    replace: bool = False


class EdgeList(msgspec.Struct, frozen=True, kw_only=True):
    """Edges by type, then source, then target."""

    items: list[Edge]


class ReachedList(msgspec.Struct, frozen=True, kw_only=True):
    """Breadcrumbs that were reached, nearest first."""

    items: list[Reached]


class EdgeQuery(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    target: str
    type: str


class EdgesQuery(msgspec.Struct, frozen=True, kw_only=True):
    type: Annotated[tuple[str, ...], Meta(description="Edge types; may be repeated; none means all")] = ()
    direction: Direction = "both"
    limit: Some = 1_000


class WalkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A breadth-first walk from some breadcrumbs."""

    starts: Annotated[list[str], Meta(max_length=1_000)]
    types: Annotated[list[str], Meta(max_length=100)] = []
    direction: Direction = "outgoing"
    depth: Annotated[int, Meta(ge=1, le=32)] = 3
    limit: Some = 1_000


class PathRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search for the cheapest ways from some breadcrumbs to all others within a cost."""

    starts: Annotated[list[str], Meta(max_length=1_000)]
    types: Annotated[list[str], Meta(max_length=100)] = []
    direction: Direction = "both"
    max_cost: Annotated[float, Meta(ge=0, le=1_000_000)] = 3.0
    limit: Some = 1_000


async def add(call: RestCall) -> RestAnswer:
    asked: NewEdges = call.body
    written = await call.trail.edges.add(asked.edges, by=call.by, replace=asked.replace)
    return reply(EdgeList(items=written), status=201)


async def remove(call: RestCall) -> RestAnswer:
    asked: EdgeQuery = call.query
    await call.trail.edges.remove(asked.source, asked.target, asked.type, by=call.by)
    return EmptyReply()


async def list_edges(call: RestCall) -> RestAnswer:
    asked: EdgesQuery = call.query
    found = await call.trail.edges.of(
        call.path["id"], by=call.by, types=asked.type, direction=asked.direction, limit=asked.limit
    )
    return reply(EdgeList(items=found))


async def walk(call: RestCall) -> RestAnswer:
    asked: WalkRequest = call.body
    reached = await call.trail.edges.walk(
        asked.starts,
        by=call.by,
        types=asked.types,
        direction=asked.direction,
        depth=asked.depth,
        limit=asked.limit,
    )
    return reply(ReachedList(items=reached))


async def find_paths(call: RestCall) -> RestAnswer:
    asked: PathRequest = call.body
    reached = await call.trail.edges.paths(
        asked.starts,
        by=call.by,
        types=asked.types,
        direction=asked.direction,
        max_cost=asked.max_cost,
        limit=asked.limit,
    )
    return reply(ReachedList(items=reached))


OPERATIONS = (
    RestOperation(
        method="POST",
        path="/edges",
        handler=add,
        summary="Write edges between breadcrumbs",
        group="edges",
        verb="create",
        writes=True,
        body=NewEdges,
        answer=EdgeList,
        status=201,
        raises=(NotFound, AlreadyExists, CycleRefused),
    ),
    RestOperation(
        method="DELETE",
        path="/edges",
        handler=remove,
        summary="Remove an edge",
        group="edges",
        verb="update",
        writes=True,
        query=EdgeQuery,
        status=204,
        raises=(NotFound,),
    ),
    RestOperation(
        method="GET",
        path="/breadcrumbs/{id}/edges",
        handler=list_edges,
        summary="List the edges at a breadcrumb",
        group="edges",
        verb="read",
        query=EdgesQuery,
        answer=EdgeList,
    ),
    RestOperation(
        method="POST",
        path="/edges/walk",
        handler=walk,
        summary="Walk breadth first along edges",
        group="edges",
        verb="read",
        body=WalkRequest,
        answer=ReachedList,
        raises=(NotFound,),
    ),
    RestOperation(
        method="POST",
        path="/edges/paths",
        handler=find_paths,
        summary="Find the cheapest paths along edges",
        group="edges",
        verb="read",
        body=PathRequest,
        answer=ReachedList,
        raises=(NotFound,),
    ),
)
