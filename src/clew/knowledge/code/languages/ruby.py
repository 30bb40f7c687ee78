"""Ruby. A bare name that is no local variable is a reference, though it may be a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.grammar import Handler, Shape
from clew.knowledge.code.languages.handlers import take_comment, take_name, take_type
from clew.knowledge.code.languages.nodes import named_at
from clew.knowledge.code.languages.scopes import Role
from clew.knowledge.code.languages.walker import Walk
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SHAPE = Shape(
    members={"call": ("receiver", "method"), "scope_resolution": ("scope", "name")},
    calls={"call": "method"},
    wrappers={"parenthesized_statements": ""},
    own=(b"self.",),
    builtins=frozenset((b"self", b"super", b"nil", b"true", b"false", b"private", b"protected", b"public")),
)
_MIXINS = frozenset((b"include", b"extend", b"prepend"))
_ACCESSORS = frozenset((b"attr_accessor", b"attr_reader", b"attr_writer"))
_REQUIRES = frozenset((b"require", b"require_relative", b"load", b"autoload"))


def _symbol(kind: SymbolKind, role: Role) -> Handler:
    def handle(walk: Walk, node: Node, start: int) -> bool:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None:
            return True
        walk.skips.add(name.start_byte)
        text = walk.text(name).replace("::", ".")
        written: SymbolKind = (
            "method" if kind == "function" and walk.scope.role != "function" and walk.scope.name else kind
        )
        ends = node.child_by_field_name("parameters") or node.child_by_field_name("superclass") or name
        qualname = walk.define(written, text, node, until=_after(ends, body))
        walk.enter(qualname, node.end_byte, role)
        return True

    return handle


def _after(head: Node, body: Node | None) -> Node | None:
    """The node with which the body begins; without one, the word that ends the definition."""
    return body or head.next_sibling


def _superclass(walk: Walk, node: Node, start: int) -> bool:
    base = named_at(node)
    if base is not None and (target := walk.pure_target(base)):
        walk.relate("inherit", target, base)
        walk.skips.add(base.start_byte)
    return True


def _call(walk: Walk, node: Node, start: int) -> bool:
    method, receiver = node.child_by_field_name("method"), node.child_by_field_name("receiver")
    if method is None:
        return True
    walk.skips.add(method.start_byte)
    name = walk.raw(method)
    if receiver is None:
        return _bare_call(walk, node, name)
    before = walk.pure_target(receiver)
    if before and receiver.type != "call":
        walk.skips.add(receiver.start_byte)
    walk.call(before + b"." + name if before else walk.target_of(node), node)
    return True


def _bare_call(walk: Walk, node: Node, name: bytes) -> bool:
    arguments = node.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    if name in _REQUIRES and given:
        return _require(walk, node, name, given)
    if name in _MIXINS and walk.scope.role != "function":
        for each in given:
            walk.relate("inherit", walk.pure_target(each), each)
            walk.skips.add(each.start_byte)
    elif name in _ACCESSORS and walk.scope.role != "function":
        for each in given:
            walk.define_value(walk.text(each).lstrip(":"), node, is_constant=False)
    else:
        walk.call(name, node)
    return True


def _require(walk: Walk, node: Node, name: bytes, given: list[Node]) -> bool:
    if given[-1].type != "string":
        return True
    path = walk.text(given[-1]).strip("'\"")
    if name == b"require_relative":
        path = path if path.startswith(".") else f"./{path}"
    walk.bring(path, walk.text(given[0]).lstrip(":") if name == b"autoload" else "", "", node)
    return False


def _assignment(walk: Walk, node: Node, start: int) -> bool:
    left = node.child_by_field_name("left")
    if left is None:
        return True
    for name in left.named_children if left.type == "left_assignment_list" else [left]:
        if name.type == "constant":
            walk.skips.add(name.start_byte)
            walk.define_value(walk.text(name), node, is_constant=True)
        elif name.type == "identifier":
            walk.bind(name)
            if walk.scope.role == "module" and not walk.scope.name:
                walk.define_value(walk.text(name), node, is_constant=False)
    return True


def _parameters(walk: Walk, node: Node, start: int) -> bool:
    for each in node.named_children:
        name = each.child_by_field_name("name") or each
        if name.type == "identifier":
            walk.bind(name)
    return True


def _block(walk: Walk, node: Node, start: int) -> bool:
    walk.enter_nameless(node)
    return True


def _scope_resolution(walk: Walk, node: Node, start: int) -> bool:
    target = walk.pure_target(node)
    if not target:
        return True
    if start not in walk.skips:
        walk.relate("reference", target.removeprefix(b"."), node)
    return False


def _rescue(walk: Walk, node: Node, start: int) -> bool:
    name = named_at(node)
    if name is not None and name.type == "identifier":
        walk.bind(name)
    return True


TABLE: dict[str, Handler] = {
    "class": _symbol("class", "class"),
    "module": _symbol("module", "class"),
    "method": _symbol("function", "function"),
    "singleton_method": _symbol("function", "function"),
    "superclass": _superclass,
    "call": _call,
    "assignment": _assignment,
    "method_parameters": _parameters,
    "block_parameters": _parameters,
    "lambda_parameters": _parameters,
    "exception_variable": _rescue,
    "block": _block,
    "do_block": _block,
    "lambda": _block,
    "scope_resolution": _scope_resolution,
    "identifier": take_name,
    "constant": take_type,
    "comment": take_comment,
}
