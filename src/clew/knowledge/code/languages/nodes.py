"""Small questions to the nodes of a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


def child_at(node: Node, index: int = 0) -> Node | None:
    return node.child(index) if index < node.child_count else None


def named_at(node: Node, index: int = 0) -> Node | None:
    return node.named_child(index) if index < node.named_child_count else None


def last_row(node: Node) -> int:
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row
