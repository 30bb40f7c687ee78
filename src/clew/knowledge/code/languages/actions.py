"""The handlers of the captures that the queries of all languages share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.fact_builder import MAX_NAME, Role
from clew.knowledge.code.languages.walker import CommentBlock, Handler, Walker, last_row, named_at
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node


def comment(walk: Walker, node: Node, start: int) -> None:
    """Keep a comment for the next definition, which it may describe."""
    row, column = node.start_point
    last = walk.comment
    is_next = last is not None and last.last_row == row - 1 and last.column == column
    if last is not None and is_next and walk.source[start : start + 2] != b"/*":
        walk.comment = CommentBlock(last_row(node), last.start, node.end_byte, column)
    elif not walk.source[start - column : start].strip():
        walk.comment = CommentBlock(last_row(node), start, node.end_byte, column)
    if walk.lead is not None and walk.lead.last_row == row - 1:  # between a decorator and its definition
        walk.lead = walk.lead._replace(last_row=last_row(node))


def claim(walk: Walker, node: Node, start: int) -> None:
    """A name that does not refer to anything, such as the key of an argument."""
    walk.claimed.add(start)


def skip(walk: Walker, node: Node, start: int) -> None:
    walk.skip(node)


def bind(walk: Walker, node: Node, start: int) -> None:
    """A pattern of local variables."""
    for name in walk.names(node):
        walk.bind(name)


def type_parameter(walk: Walker, node: Node, start: int) -> None:
    """The `T` of `List<T>` is no type of the project."""
    walk.claim(node)
    walk.type_parameters.add(walk.raw(node)[:MAX_NAME])


def definition(kind: SymbolKind, role: Role) -> Handler:
    """Define the field `name` and enter its scope. A function in a class is a method."""

    def handle(walk: Walker, node: Node, start: int) -> None:
        name = node.child_by_field_name("name")
        if name is not None:
            walk.bind(name)
            written: SymbolKind = "method" if kind == "function" and walk.scope.role == "class" else kind
            qualname = walk.define(written, walk.label(name), node, until=node.child_by_field_name("body"))
            walk.enter(qualname, node, role)

    return handle


def package(walk: Walker, node: Node, start: int) -> None:
    """The line that names the package of a file."""
    walk.define("module", walk.text(named_at(node, node.named_child_count - 1)), node)
    walk.skip(node)


def anonymous(walk: Walker, node: Node, start: int) -> None:
    """A function without a name. Its uses belong to the symbol around it."""
    walk.enter(walk.scope.name, node, "function")


def value(is_constant: bool | None = None, *, is_field: bool = False) -> Handler:
    """Define the names that a declaration binds, unless they are local to a function. Without `is_constant`, capitals
    show a constant. Types may have the name of a field, so that one is not bound."""

    def handle(walk: Walker, node: Node, start: int) -> None:
        fields = map(node.children_by_field_name, ("left", "name", "declarator"))
        targets = next((found for found in fields if found), [node])
        for name in [name for target in targets for name in walk.names(target)]:
            (walk.claim if is_field else walk.bind)(name)
            text = walk.label(name)
            if walk.scope.role != "function" and text != "_":
                walk.define_value(text, node, is_constant=is_constant)

    return handle


def base(walk: Walker, node: Node, start: int) -> None:
    """A base of the class whose scope is open."""
    if walk.scope.role == "class":
        walk.relate("inherit", walk.target_of(node), node)
        walk.claim(node)


def decorator(walk: Walker, node: Node, start: int) -> None:
    """A decorator inside of the definition that it belongs to."""
    name = _decorating(walk, node)
    walk.relate("decorate", walk.pure_target(name), node, walk.symbols[-1].qualname if walk.symbols else "")
    walk.claim(name)


def lead(walk: Walker, node: Node, start: int) -> None:
    """A decorator before the definition that it belongs to."""
    expression = named_at(node)
    if expression is not None:
        name = _decorating(walk, expression)
        walk.add_lead(node, [walk.pure_target(name)])
        walk.claim(name)


def _decorating(walk: Walker, expression: Node) -> Node:
    field = walk.table.calls.get(expression.type, "")
    return (expression.child_by_field_name(field) if field else None) or expression


def call(walk: Walker, node: Node, start: int) -> None:
    """A call of a function, or of a type as one. A name that is called is not a reference as well."""
    if start in walk.claimed:
        return
    kind = node.type
    function = node.child_by_field_name(walk.table.calls[kind])
    if function is None:
        return
    if kind in walk.table.members:
        walk.claim(function)
        owner = node.child_by_field_name(walk.table.members[kind][0])
        if owner is not None and owner.type not in walk.table.calls and walk.pure_target(owner):
            walk.claim(owner)
        walk.call(walk.target_of(node), node)
        return
    target = walk.target_of(function)
    if target and b"(" not in target and not target.startswith(b"."):
        walk.claim(function)
    if not target.endswith(b")"):  # the result of a call has no name
        walk.call(target, node)


def dotted(walk: Walker, node: Node, start: int) -> None:
    """Mention a dotted name as one. If it starts with another expression, visit that."""
    if target := walk.pure_target(node):
        if start not in walk.claimed:
            walk.add_use(target, node.start_point[0])
        walk.skip(node)
    elif node.type in walk.table.members:
        walk.claim(node.child_by_field_name(walk.table.members[node.type][1]))


def type_name(walk: Walker, node: Node, start: int) -> None:
    """The name of a type, which is never a local variable."""
    target = walk.target_of(node)
    if walk.source.startswith(b"::", start):
        target = target.removeprefix(b".")
    if target and start not in walk.claimed:
        walk.relate("reference", target, node)
    if target:
        walk.skip(node)


def name(walk: Walker, node: Node, start: int) -> None:
    if start not in walk.claimed:
        walk.add_use(walk.source[start : node.end_byte], node.start_point[0])


ACTIONS: dict[str, Handler] = {
    "comment": comment,
    "skip": skip,
    "claim": claim,
    "bind": bind,
    "type_parameter": type_parameter,
    "package": package,
    "class": definition("class", "class"),
    "interface": definition("interface", "class"),
    "function": definition("function", "function"),
    "method": definition("method", "function"),
    "module": definition("module", "module"),
    "constant": value(is_constant=True),
    "variable": value(is_constant=False),
    "value": value(),
    "field": value(is_field=True),
    "anonymous": anonymous,
    "base": base,
    "decorator": decorator,
    "lead": lead,
    "call": call,
    "dotted": dotted,
    "type": type_name,
    "name": name,
}
"""By capture, in the order in which captures of one place are handled."""
