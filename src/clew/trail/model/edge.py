"""Edges: typed, weighted, directed relations between breadcrumbs, and the names that Clew itself uses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import msgspec

from clew.errors import InvalidInput, TooLarge
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.breadcrumb import MAX_BATCH, encode_canonical

_TYPE = lazy_pattern(r"[a-z][a-z0-9_.-]{0,99}")

MAX_DEPTH = 32
MAX_REACHED = 10_000
MAX_METADATA = 64_000

Direction = Literal["outgoing", "incoming", "both"]


class EdgeType(IntEnum):
    """The edge types that have a fixed number. Any other lower-case name is allowed as well."""

    CALLS = 0
    CALLED_BY = 1
    IMPORTS = 2
    IMPORTED_BY = 3
    IMPLEMENTS = 4
    IMPLEMENTED_BY = 5
    EMBEDS = 6
    HAS_FIELD = 7
    HAS_METHOD = 8
    DEFINES = 9
    DEFINED_IN = 10
    RETURNS = 11
    RECEIVES = 12
    PRODUCED_BY = 50
    RESULTED_IN = 51
    SIMILAR_TO = 52
    FOLLOWED_BY = 53
    SUPERSEDES = 54
    MODIFIED = 100
    CREATED = 101
    DELETED = 102
    BASED_ON = 103
    REFERENCES = 104
    VALIDATED_BY = 105
    DOCUMENTS = 106
    USES_LIBRARY = 107
    IMPLEMENTS_PATTERN = 108
    REFERENCED_IN = 109
    INSPIRED_BY = 110
    CITES = 150
    RELATED_TO = 151

    @property
    def label(self) -> str:
        return self.name.lower()


REVERSES = {
    "called_by": "calls",
    "imported_by": "imports",
    "implemented_by": "implements",
    "defined_in": "defines",
    "referenced_in": "references",
}
"""Names for the reverse direction of another type. An edge with such a name is stored as the other type, so the two
directions cannot disagree."""

ACYCLIC = frozenset({"supersedes", "depends_on", "parent", "followed_by"})
"""Types in which a cycle is refused."""


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """`source` and `target` are breadcrumb ids. The triple with `type` is unique. `weight` is the cost of the edge."""

    source: str
    target: str
    type: str
    weight: float = 1.0
    metadata: dict[str, Any] = {}
    created_at: datetime | None = None


class Link(NamedTuple):
    """An edge seen from one end: the near end, the far end, its type and its cost."""

    near: str
    far: str
    type: str
    weight: float


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """A breadcrumb found by a walk: how far (hops and cost), and the ids on the way from a start to it."""

    id: str
    depth: int
    cost: float
    path: tuple[str, ...]


def check_edge(edge: Edge) -> Edge:
    """The edge in stored form: known direction, finite weight that is not negative, no self-loop."""
    name = check_type(edge.type)
    source, target = edge.source, edge.target
    if source == target:
        raise InvalidInput("edge", "source and target are the same breadcrumb")
    if not 0.0 <= edge.weight < float("inf"):
        raise InvalidInput("weight", "must be a number of 0 or more")
    if name in REVERSES:
        name, source, target = REVERSES[name], target, source
    return msgspec.structs.replace(edge, type=name, source=source, target=target)


def check_type(name: str) -> str:
    if not _TYPE.fullmatch(name):
        raise InvalidInput("type", f"{name!r} is not an edge type", hint="Use lower-case names such as depends_on")
    return name


def stored_types(names: Sequence[str], direction: Direction) -> tuple[tuple[str, Direction], ...]:
    """The stored types for the given names, each with the direction in which to read it. A reverse name flips
    `direction`."""
    flipped: dict[Direction, Direction] = {"outgoing": "incoming", "incoming": "outgoing", "both": "both"}
    return tuple(
        (REVERSES[name], flipped[direction]) if name in REVERSES else (check_type(name), direction) for name in names
    )


def pack_edges(edges: Sequence[Edge]) -> list[tuple[Edge, str]]:
    """Edges in stored form, each with its metadata as JSON. Raises InvalidInput for an edge that cannot be stored, and
    TooLarge for too many edges or too much metadata."""
    if len(edges) > MAX_BATCH:
        raise TooLarge("edges", len(edges), MAX_BATCH, "edges")
    return [(edge, _pack_metadata(edge)) for edge in map(check_edge, edges)]


def _pack_metadata(edge: Edge) -> str:
    packed = encode_canonical(edge.metadata, "metadata")
    if len(packed) > MAX_METADATA:
        raise TooLarge("metadata", len(packed), MAX_METADATA)
    return packed.decode()


def check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_REACHED:
        raise InvalidInput("limit", f"must be between 1 and {MAX_REACHED:,}")


def check_walk(starts: Sequence[str], *, limit: int, depth: int = 1, max_cost: float = 0.0) -> None:
    """Refuse a walk whose bounds are out of range."""
    check_limit(limit)
    if not 1 <= depth <= MAX_DEPTH:
        raise InvalidInput("depth", f"must be between 1 and {MAX_DEPTH}")
    if not 0.0 <= max_cost < float("inf"):
        raise InvalidInput("max_cost", "must be a number of 0 or more")
    if not 1 <= len(starts) <= MAX_REACHED:
        raise InvalidInput("starts", f"must name 1 to {MAX_REACHED:,} breadcrumbs")


def read_ways(wanted: Sequence[tuple[str, Direction]], direction: Direction) -> list[tuple[Direction, list[str]]]:
    """The directions in which to read edges, each with its edge types. An empty list of types means all types."""
    found: list[tuple[Direction, list[str]]] = []
    towards: Direction
    for towards in ("outgoing", "incoming"):
        types = [type for type, way in wanted if way in (towards, "both")]
        if types or (not wanted and direction in (towards, "both")):
            found.append((towards, types))
    return found
