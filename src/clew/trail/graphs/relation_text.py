"""Relations as an indented tree for a model: one line per node. Each node is written out once, and the length of the
text is bounded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.trail.graphs.relations import RelationNode, RelationStore

MAX_LINES = 200
STEP = "step"
_MAX_TEXT = 300
_MAX_INDENT = 20


def format_relations(store: RelationStore, ids: Sequence[str], *, max_lines: int = MAX_LINES) -> str:
    """Return the nodes and their descendants as a tree, one line per node: `- [done] id (type): description {more}`. A
    node with several parents is written out once; later lines give only its id. Long texts are cut. If there are more
    than `max_lines` lines, a last line says that the tree was cut.
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
    """Return a plan as text: a headline with its progress, then its steps in order. Only nodes of the type `step`
    count for the progress; files and agents below them are shown."""
    plan, steps = store.need(id), [each for each in store.descendants(id) if each.edge_type == STEP]
    done = sum(step.status == "done" for step in steps)
    state = f" [{plan.status}]" if plan.status else ""
    headline = f"Plan {plan.id}{state}: {one_line(plan.description)} ({done} of {len(steps)} done)"
    below = format_relations(store, [step.id for step in store.children(id)], max_lines=max_lines)
    return f"{headline}\n{below}" if below else headline


def _describe(node: RelationNode) -> str:
    state = f"[{node.status}] " if node.status else ""
    more = {key: value for key, value in node.context.items() if key not in ("description", "status")}
    extra = f" {one_line(json.dumps(more, ensure_ascii=False, default=str))}" if more else ""
    return f"{state}{node.id} ({node.edge_type}): {one_line(node.description)}{extra}"


def one_line(text: str) -> str:
    """The text on a single line, cut after 300 characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_TEXT else f"{flat[: _MAX_TEXT - 1]}…"
