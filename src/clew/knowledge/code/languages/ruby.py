"""Ruby. A bare name that is no local variable is a reference, though it may be a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages import handlers
from clew.knowledge.code.languages.walker import Handler, Role, Syntax, Walker, named_at
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SYNTAX = Syntax(
    members={"call": ("receiver", "method"), "scope_resolution": ("scope", "name")},
    calls={"call": "method"},
    wrappers={"parenthesized_statements": ""},
    own=(b"self.",),
    builtins=frozenset(b"self super nil true false private protected public".split()),
)
_MIXINS = frozenset((b"include", b"extend", b"prepend"))
_ACCESSORS = frozenset((b"attr_accessor", b"attr_reader", b"attr_writer"))
_REQUIRES = frozenset((b"require", b"require_relative", b"load", b"autoload"))


def _symbol(kind: SymbolKind, role: Role) -> Handler:
    def handle(walk: Walker, node: Node, start: int) -> bool:
        name = node.child_by_field_name("name")
        if name is None:
            return True
        walk.claim(name)
        is_method = kind == "function" and walk.scope.role != "function" and walk.scope.name
        head = node.child_by_field_name("parameters") or node.child_by_field_name("superclass") or name
        # without a body the signature ends at the word that ends the definition
        until = node.child_by_field_name("body") or head.next_sibling
        text = walk.text(name).replace("::", ".")
        walk.enter(walk.define("method" if is_method else kind, text, node, until=until), node.end_byte, role)
        return True

    return handle


def _superclass(walk: Walker, node: Node, start: int) -> bool:
    base = named_at(node)
    if base is not None and (target := walk.pure_target(base)):
        walk.inherit(target, base)
    return True


def _call(walk: Walker, node: Node, start: int) -> bool:
    method, receiver = node.child_by_field_name("method"), node.child_by_field_name("receiver")
    if method is None:
        return True
    walk.claim(method)
    name = walk.raw(method)
    if receiver is None:
        return _bare_call(walk, node, name)
    before = walk.pure_target(receiver)
    if before and receiver.type != "call":
        walk.claim(receiver)
    walk.call(before + b"." + name if before else walk.target_of(node), node)
    return True


def _bare_call(walk: Walker, node: Node, name: bytes) -> bool:
    arguments = node.child_by_field_name("arguments")
    given = arguments.named_children if arguments is not None else []
    if name in _REQUIRES and given:
        return _require(walk, node, name, given)
    if name in _MIXINS and walk.scope.role != "function":
        for each in given:
            walk.inherit(walk.pure_target(each), each)
    elif name in _ACCESSORS and walk.scope.role != "function":
        for each in given:
            walk.define_value(walk.text(each).lstrip(":"), node, is_constant=False)
    else:
        walk.call(name, node)
    return True


def _require(walk: Walker, node: Node, name: bytes, given: list[Node]) -> bool:
    if given[-1].type != "string":
        return True
    path = walk.text(given[-1]).strip("'\"")
    if name == b"require_relative" and not path.startswith("."):
        path = f"./{path}"
    walk.add_import(path, walk.text(given[0]).lstrip(":") if name == b"autoload" else "", "", node)
    return False


def _assignment(walk: Walker, node: Node, start: int) -> bool:
    left = node.child_by_field_name("left")
    if left is None:
        return True
    for name in left.named_children if left.type == "left_assignment_list" else [left]:
        if name.type == "constant":
            walk.claim(name)
            walk.define_value(walk.text(name), node, is_constant=True)
        elif name.type == "identifier":
            walk.bind(name)
            if walk.scope.role == "module" and not walk.scope.name:
                walk.define_value(walk.text(name), node, is_constant=False)
    return True


def _parameter_names(node: Node) -> list[Node]:
    names = (each.child_by_field_name("name") or each for each in node.named_children)
    return [name for name in names if name.type == "identifier"]


def _exception_name(node: Node) -> list[Node]:
    name = named_at(node)
    return [name] if name is not None and name.type == "identifier" else []


def _scope_resolution(walk: Walker, node: Node, start: int) -> bool:
    target = walk.pure_target(node)
    if target and start not in walk.claimed:
        walk.relate("reference", target.removeprefix(b"."), node)
    return not target


TABLE = handlers.by_kind(
    {
        _symbol("class", "class"): "class",
        _symbol("module", "class"): "module",
        _symbol("function", "function"): "method singleton_method",
        _superclass: "superclass",
        _call: "call",
        _assignment: "assignment",
        handlers.bind(_parameter_names): "method_parameters block_parameters lambda_parameters",
        handlers.bind(_exception_name): "exception_variable",
        handlers.anonymous: "block do_block lambda",
        _scope_resolution: "scope_resolution",
        handlers.name: "identifier",
        handlers.type_name: "constant",
        handlers.comment: "comment",
    }
)
