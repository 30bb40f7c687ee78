"""What is known as text for a model: every line with the place that it is from, what others wrote on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clew.catalog.text import inline
from clew.knowledge.evidence.naming import citation_of
from clew.secrecy import mask_keys
from clew.tools import Effects
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import UNVERIFIED, Node, ScoredNode

if TYPE_CHECKING:
    from clew.knowledge.code.views import Link

WIDTH = 160
READS = Effects(reads_only=True, reaches_out=False)
"""What every tool does that only tells."""


def symbol_ref(node: Node) -> str:
    """What a node of code is called where it is asked for: `path#qualname`, or the path of a file."""
    return node.id.removeprefix("code:")


def node_line(node: Node) -> str:
    """One node on a line: what it is, and where it is from."""
    said = node.signature or node.name if node.domain is NodeDomain.CODE else node.content or node.name
    doc = f" — {node.content}" if node.domain is NodeDomain.CODE and node.content not in ("", said) else ""
    shown = inline(mask_keys(f"{said}{doc}"[: WIDTH * 8]), WIDTH)
    mark = f"{UNVERIFIED} " if node.content.startswith(UNVERIFIED) and UNVERIFIED not in shown else ""
    return f"- {mark}{shown} ({citation_of(node)})"


def node_lines(found: Sequence[ScoredNode]) -> str:
    return "\n".join(node_line(each.node) for each in found)


def link_line(link: Link) -> str:
    """One step along an edge: what is reached, over which kind of edge, and at which line."""
    guess = ", by its name alone" if link.is_guess else ""
    step = f", step {link.depth}" if link.depth > 1 else ""
    return f"{node_line(link.node)} {link.edge_type} at line {link.line}{step}{guess}"
