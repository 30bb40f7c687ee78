"""The imports of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.grammar import Handler
from clew.knowledge.code.languages.walker import Walk

if TYPE_CHECKING:
    from tree_sitter import Node


def _import(walk: Walk, node: Node, start: int) -> bool:
    for each in node.children_by_field_name("name"):
        name, alias = _renamed(walk, each)
        walk.bring(name, "", alias, each)
    return False


def _import_from(walk: Walk, node: Node, start: int) -> bool:
    source = node.child_by_field_name("module_name")
    module = "".join(walk.text(source).split()) if source is not None else "__future__"
    for each in node.children_by_field_name("name"):
        name, alias = _renamed(walk, each)
        walk.bring(module, name, alias, each)
    if any(each.type == "wildcard_import" for each in node.named_children):
        walk.bring(module, "*", "", node)
    return False


def _renamed(walk: Walk, node: Node) -> tuple[str, str]:
    name = node.child_by_field_name("name")
    alias = node.child_by_field_name("alias")
    written = "".join(walk.text(name or node).split())
    return written, walk.text(alias) if alias is not None else ""


IMPORT_TABLE: dict[str, Handler] = {
    "import_statement": _import,
    "import_from_statement": _import_from,
    "future_import_statement": _import_from,
}
