"""What the languages have in common: comments, plain names, types and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.nodes import last_row, named_at
from clew.knowledge.code.languages.scopes import Comment
from clew.knowledge.code.languages.walker import MAX_NAME, Walk

if TYPE_CHECKING:
    from tree_sitter import Node


def take_comment(walk: Walk, node: Node, start: int) -> bool:
    """Comments are kept until the next definition, which may be what they are about."""
    row, column = node.start_point
    last = walk.comment
    if (
        last is not None
        and last.last_row == row - 1
        and last.column == column
        and walk.source[start : start + 2] != b"/*"
    ):
        walk.comment = Comment(last.first_row, last_row(node), last.start, node.end_byte, column)
    elif not walk.source[start - column : start].strip():
        walk.comment = Comment(row, last_row(node), start, node.end_byte, column)
    return False


def take_name(walk: Walk, node: Node, start: int) -> bool:
    """A plain name that nothing above it has claimed."""
    if start not in walk.skips:
        walk.mention(walk.source[start : node.end_byte], node, start)
    return False


def take_type(walk: Walk, node: Node, start: int) -> bool:
    """The name of a type, which is never a local variable."""
    if start not in walk.skips:
        walk.relate("reference", walk.pure_target(node), node)
    return False


def take_type_parameter(walk: Walk, node: Node, start: int) -> bool:
    """The `T` of `List<T>` stands for any type and is none itself."""
    name = node.child_by_field_name("name") or named_at(node)
    if name is not None:
        walk.skips.add(name.start_byte)
        walk.type_parameters.add(walk.raw(name)[:MAX_NAME])
    return True


def take_called(walk: Walk, node: Node, function: Node) -> None:
    """A call by what stands before its parentheses. A mere name is not a reference as well."""
    target = walk.target_of(function)
    if target and b"(" not in target and not target.startswith(b"."):
        walk.skips.add(function.start_byte)
    walk.call(target, node)


def take_key(walk: Walk, node: Node, start: int) -> bool:
    """Begins with a name that is none of this file: the key of what follows."""
    walk.skips.add(start)
    return True


def skip(walk: Walk, node: Node, start: int) -> bool:
    return False


def take_call(walk: Walk, node: Node, start: int) -> bool:
    """A call of a function, or of a type as one."""
    function = node.child_by_field_name("function") or node.child_by_field_name("type")
    if function is not None:
        take_called(walk, node, function)
    return True


def take_dotted(walk: Walk, node: Node, start: int, last: str = "") -> bool:
    """A dotted name as one mention. Where it begins with something else than a name, what is below it is looked at,
    without the child `last`, which is no name of its own."""
    target = walk.pure_target(node)
    if not target:
        name = node.child_by_field_name(last) if last else None
        if name is not None:
            walk.skips.add(name.start_byte)
        return True
    if start not in walk.skips:
        walk.mention(target, node, start)
    return False
