"""What is known as text for a model: every line with the place that it is from, what others wrote on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clew.catalog.text import inline
from clew.knowledge.answering.sources import describe
from clew.knowledge.evidence.citations import citation_of
from clew.tools import Effects
from clew.trail.nodes import Node, ScoredNode

if TYPE_CHECKING:
    from clew.knowledge.code.models import Callers, Link, NamedCall

WIDTH = 160
READS = Effects(reads_only=True, reaches_out=False)
"""What every tool does that only tells."""


def symbol_ref(node: Node) -> str:
    """What a node of code is called where it is asked for: `path#qualname`, or the path of a file."""
    return node.id.removeprefix("code:")


def node_line(node: Node) -> str:
    """One node on a line: what it is, and where it is from."""
    return f"- {describe(node)} ({citation_of(node)})"


def node_lines(found: Sequence[ScoredNode]) -> str:
    return "\n".join(node_line(each.node) for each in found)


def link_line(link: Link) -> str:
    """One step along an edge: what is reached, over which kind of edge, and at which line."""
    guess = ", by its name alone" if link.is_guess else ""
    step = f", step {link.depth}" if link.depth > 1 else ""
    at = f"lines {', '.join(map(str, link.lines))}" if len(link.lines) > 1 else f"line {link.line}"
    return f"{node_line(link.node)} {link.edge_type} at {at}{step}{guess}"


def _owner(call: NamedCall) -> str:
    if call.is_likely:
        return "likely"
    return f"likely of {inline(call.owner, WIDTH)}" if call.owner else "by its name alone"


def caller_lines(found: Callers) -> str:
    """The callers of each symbol that a name may mean, and the calls with an unknown target by likely owner."""
    lines: list[str] = []
    for each in found.symbols:
        head = f"{symbol_ref(each.node)}, {len(each.callers):,} {'caller' if len(each.callers) == 1 else 'callers'}:"
        lines += [inline(head, WIDTH)] if len(found.symbols) > 1 else []
        lines += map(link_line, each.callers)
    if found.untold:
        sure = "" if found.certain else "No call of it is certain. "
        lines.append(f"{sure}{found.untold:,} calls of this name have an unknown target, among them:")
        lines += [
            f"- {inline(f'{call.path}:{call.line} {call.caller}', WIDTH)}, {_owner(call)}" for call in found.places
        ]
    return "\n".join(lines)
