"""Breadcrumbs by letters, and edges between them as arrows."""

from __future__ import annotations

from typing import Any

from clew.access import Principal
from clew.trail.model.edge import Edge
from clew.trail.store import Trail
from tests.conformance.records import make_all

Names = dict[str, str]
"""From the letters of a test to ids, and back."""


async def nodes(trail: Trail, by: Principal, letters: str) -> Names:
    """Breadcrumbs called by letters; their ids sort as the letters do."""
    ids = sorted(await make_all(trail, by, *letters))
    return dict(zip(letters, ids, strict=True))


async def link(
    trail: Trail, by: Principal, ids: Names, *arrows: str, type: str = "calls", **options: Any
) -> list[Edge]:
    """Edges from arrows such as `ab` or `ab:2.5`."""
    edges = [
        Edge(source=ids[arrow[0]], target=ids[arrow[1]], type=type, weight=float(arrow[3:] or 1)) for arrow in arrows
    ]
    return await trail.edges.add(edges, by=by, **options)


async def arrows(trail: Trail, by: Principal, ids: Names, at: str, **options: Any) -> list[str]:
    letters = {id: letter for letter, id in ids.items()}
    return [letters[edge.source] + letters[edge.target] for edge in await trail.edges.of(ids[at], by=by, **options)]


async def walked(trail: Trail, by: Principal, ids: Names, starts: str, **options: Any) -> str:
    letters = {id: letter for letter, id in ids.items()}
    found = await trail.edges.walk([ids[start] for start in starts], by=by, **options)
    return "".join(letters[each.id] for each in found)
