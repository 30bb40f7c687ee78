"""Handlers and makers of handlers that languages share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from clew.knowledge.code.languages.walker import MAX_NAME, Comment, Handler, Role, Walker, last_row, named_at
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

FindNames = Callable[["Node"], Iterable["Node"]]


def by_kind(handlers: Mapping[Handler, str]) -> dict[str, Handler]:
    """A table of handlers by kind of node, from the kinds of each handler, separated by spaces."""
    return {kind: handler for handler, kinds in handlers.items() for kind in kinds.split()}


def comment(walk: Walker, node: Node, start: int) -> bool:
    """Keep a comment for the next definition, which it may describe."""
    row, column = node.start_point
    last = walk.comment
    is_next = last is not None and last.last_row == row - 1 and last.column == column
    if last is not None and is_next and walk.source[start : start + 2] != b"/*":
        walk.comment = Comment(last.first_row, last_row(node), last.start, node.end_byte, column)
    elif not walk.source[start - column : start].strip():
        walk.comment = Comment(row, last_row(node), start, node.end_byte, column)
    return False


def name(walk: Walker, node: Node, start: int) -> bool:
    """A plain name."""
    if start not in walk.claimed:
        walk.mention(walk.source[start : node.end_byte], node, start)
    return False


def type_name(walk: Walker, node: Node, start: int) -> bool:
    """The name of a type, which is never a local variable."""
    if start not in walk.claimed:
        walk.relate("reference", walk.pure_target(node), node)
    return False


def type_parameter(walk: Walker, node: Node, start: int) -> bool:
    """The `T` of `List<T>` is no type of the project."""
    found = node.child_by_field_name("name") or named_at(node)
    if found is not None:
        walk.claim(found)
        walk.type_parameters.add(walk.raw(found)[:MAX_NAME])
    return True


def key(walk: Walker, node: Node, start: int) -> bool:
    """The node starts with a key, which is no name of the file."""
    walk.claimed.add(start)
    return True


def skip(walk: Walker, node: Node, start: int) -> bool:
    return False


def anonymous(walk: Walker, node: Node, start: int) -> bool:
    """A function without a name."""
    walk.enter_anonymous(node)
    return True


def called(walk: Walker, node: Node, function: Node) -> None:
    """Record a call by the expression before its parentheses. A plain name is not a reference as well."""
    target = walk.target_of(function)
    if target and b"(" not in target and not target.startswith(b"."):
        walk.claim(function)
    walk.call(target, node)


def call(walk: Walker, node: Node, start: int) -> bool:
    """A call of a function, or of a type as one."""
    function = node.child_by_field_name("function") or node.child_by_field_name("type")
    if function is not None:
        called(walk, node, function)
    return True


def dotted(last: str = "") -> Handler:
    """Mention a dotted name as one. If it starts with another expression, visit that, without the field `last`."""

    def handle(walk: Walker, node: Node, start: int) -> bool:
        target = walk.pure_target(node)
        if target:
            if start not in walk.claimed:
                walk.mention(target, node, start)
            return False
        member = node.child_by_field_name(last) if last else None
        if member is not None:
            walk.claim(member)
        return True

    return handle


def symbol(kind: SymbolKind, role: Role, *, bind: bool = False) -> Handler:
    """Define the field `name` and enter its scope. `bind` makes the name local and functions in classes methods."""

    def handle(walk: Walker, node: Node, start: int) -> bool:
        found = node.child_by_field_name("name")
        if found is None:
            return True
        (walk.bind if bind else walk.claim)(found)
        written: SymbolKind = "method" if bind and kind == "function" and walk.scope.role == "class" else kind
        qualname = walk.define(written, walk.text(found), node, until=node.child_by_field_name("body"))
        walk.enter(qualname, node.end_byte, role)
        return True

    return handle


def value(*, is_constant: bool, bind: bool = False) -> Handler:
    """Define the field `name` as a value, unless it is local to a function."""

    def handle(walk: Walker, node: Node, start: int) -> bool:
        found = node.child_by_field_name("name")
        if found is not None:
            (walk.bind if bind else walk.claim)(found)
            if walk.scope.role != "function":
                walk.define_value(walk.text(found), node, is_constant=is_constant)
        return True

    return handle


def bind(find: FindNames, *fields: str) -> Handler:
    """Bind the names that `find` yields from the first field that is present; without fields, from the node."""

    def handle(walk: Walker, node: Node, start: int) -> bool:
        present = (found for field in fields if (found := node.child_by_field_name(field)) is not None)
        target = next(present, None) if fields else node
        for each in find(target) if target is not None else ():
            walk.bind(each)
        return True

    return handle


def names_in(
    names: Collection[str], patterns: Collection[str], inner: FindNames = lambda node: node.named_children
) -> Callable[[Node], Iterator[Node]]:
    """A function that yields the names of these kinds in a node, through nested patterns."""

    def find(node: Node) -> Iterator[Node]:
        pending = [node]
        while pending:
            at = pending.pop()
            if at.type in names:
                yield at
            elif at.type in patterns:
                pending.extend(reversed([*inner(at)]))

    return find
