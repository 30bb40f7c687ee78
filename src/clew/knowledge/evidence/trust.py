"""How far a source is believed, from 0 to 100, and what a reader should know of each level (SYL-83). Code is the ground
truth; what was never verified is no better than a guess; what was, is worth less with age and by where it is from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from clew.trail.kinds import NodeDomain, NodeType, Trust
from clew.trail.nodes import Node

RECENT, OLD = timedelta(days=7), timedelta(days=30)
BETWEEN = 60
"""Verified history that is neither recent nor old."""

LEVELS: tuple[tuple[Trust, str, str], ...] = (
    (Trust.GROUND, "Ground truth (code)", ""),
    (Trust.RECENT, "Recent, verified", "From recent history; it may have to be checked"),
    (Trust.STANDARD, "Authoritative", "From documents; check that it still applies here"),
    (Trust.ACADEMIC, "Academic", "From literature; it may not apply directly"),
    (Trust.OLD_HISTORY, "Old history", "⚠️ Old: check that it still holds"),
    (Trust.BLOG, "Informal", "⚠️ Informal source: check it elsewhere"),
    (Trust.LLM, "Unverified inference", "⚠️ Unverified: a model inferred it, and it may be wrong"),
)
"""From which trust on a level holds, what it is called, and what a reader should know; highest first."""

_LITERATURE = {
    NodeType.RFC: Trust.STANDARD,
    NodeType.DOCUMENTATION: Trust.STANDARD,
    NodeType.STACK_OVERFLOW: Trust.BLOG,
    NodeType.BLOG_POST: Trust.BLOG,
}


class TrustedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node with how far it is believed and what a reader should know."""

    node: Node
    trust: int
    level: str
    warning: str


def trust_of(node: Node, at: datetime) -> int:
    """How far a node is believed at a moment."""
    if node.domain is NodeDomain.CODE:
        return Trust.GROUND
    if not node.verified:
        return Trust.LLM
    if node.domain is NodeDomain.ACADEMIC:
        return _LITERATURE.get(node.node_type, Trust.ACADEMIC)
    age = at - node.at
    return Trust.RECENT if age < RECENT else BETWEEN if age < OLD else Trust.OLD_HISTORY


def level_of(trust: float) -> tuple[str, str]:
    """Name and warning of the level that a trust reaches; the lowest holds for all below it."""
    return next(((name, warning) for least, name, warning in LEVELS if trust >= least), LEVELS[-1][1:])


def rank_by_trust(nodes: Sequence[Node], at: datetime) -> list[TrustedNode]:
    """The nodes, most trusted first; equally trusted ones in the order given."""
    ranked = sorted(((trust_of(node, at), node) for node in nodes), key=lambda each: -each[0])
    return [TrustedNode(node=node, trust=trust, **_told(trust)) for trust, node in ranked]


def _told(trust: int) -> dict[str, str]:
    level, warning = level_of(trust)
    return {"level": level, "warning": warning}
