"""The decorators of JavaScript and TypeScript."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.nodes import named_at
from clew.knowledge.code.languages.scopes import Lead
from clew.knowledge.code.languages.walker import Walk

if TYPE_CHECKING:
    from tree_sitter import Node


def take_decorator(walk: Walk, node: Node, start: int) -> bool:
    """A decorator beside a definition belongs to the next one; one within it was taken with it."""
    name = _decorating(node)
    target = walk.pure_target(name) if name is not None else b""
    if name is None or not target or start in walk.opened:
        return True
    walk.skips.add(name.start_byte)
    row = node.start_point[0]
    lead = walk.lead if walk.lead is not None and walk.lead.last_row >= row - 1 else None
    targets = lead.targets if lead else []
    targets.append((target, row))
    walk.lead = Lead(lead.first_row if lead else row, node.end_point[0], targets)
    return True


def take_decorators(walk: Walk, node: Node, qualname: str) -> None:
    for each in node.children_by_field_name("decorator"):
        name = _decorating(each)
        if name is not None:
            walk.opened.add(each.start_byte)
            walk.skips.add(name.start_byte)
            walk.relate("decorate", walk.pure_target(name), each, qualname)


def _decorating(node: Node) -> Node | None:
    called = named_at(node)
    return called.child_by_field_name("function") if called is not None and called.type == "call_expression" else called
