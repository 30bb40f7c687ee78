"""The edges that those who keep knowledge draw between domains, with their weights. Drawing one again changes
nothing."""

from __future__ import annotations

from collections.abc import Sequence

from clew.access import Principal
from clew.knowledge.history.anchors import ensure_anchors
from clew.trail.edge import Edge, EdgeType
from clew.trail.store import Trail

WEIGHTS = {EdgeType.REFERENCED_IN: 0.9, EdgeType.IMPLEMENTS_PATTERN: 0.85, EdgeType.INSPIRED_BY: 0.8}
"""How strongly each kind of relation holds where it is drawn by rule."""


async def link_code(trail: Trail, history_id: str, refs: Sequence[str], *, by: Principal) -> list[Edge]:
    """From an entry to each piece of code that it names. Raises InvalidInput, NotFound."""
    anchors = await ensure_anchors(trail, refs, by=by)
    return await _link(trail, [(history_id, anchor) for anchor in anchors], EdgeType.REFERENCED_IN, by)


async def link_pattern(trail: Trail, code: str, pattern_id: str, *, by: Principal) -> Edge:
    """From a piece of code to a pattern that it implements. Raises InvalidInput, NotFound."""
    [anchor] = await ensure_anchors(trail, [code], by=by)
    return (await _link(trail, [(anchor, pattern_id)], EdgeType.IMPLEMENTS_PATTERN, by))[0]


async def link_inspiration(trail: Trail, academic_id: str, history_id: str, *, by: Principal) -> Edge:
    """From a reference to an entry that it inspired. Raises NotFound."""
    return (await _link(trail, [(academic_id, history_id)], EdgeType.INSPIRED_BY, by))[0]


async def _link(trail: Trail, ends: Sequence[tuple[str, str]], type: EdgeType, by: Principal) -> list[Edge]:
    edges = [Edge(source=source, target=target, type=type.label, weight=WEIGHTS[type]) for source, target in ends]
    return await trail.edges.add(edges, by=by, replace=True) if edges else []
