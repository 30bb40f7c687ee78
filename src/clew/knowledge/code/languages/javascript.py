"""JavaScript, TypeScript and their dialects with markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.knowledge.code.languages import handlers
from clew.knowledge.code.languages.javascript_modules import MODULE_TABLE, import_required, is_import, required_module
from clew.knowledge.code.languages.walker import Handler, Role, Syntax, Walker, named_at
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SYNTAX = Syntax(
    members={"member_expression": ("object", "property"), "nested_type_identifier": ("module", "name")},
    calls={"call_expression": "function", "new_expression": "constructor"},
    wrappers={
        "generic_type": "name",
        "instantiation_expression": "",
        "non_null_expression": "",
        "parenthesized_expression": "",
        "await_expression": "",
    },
    own=(b"this.",),
    builtins=frozenset((b"this", b"super", b"undefined", b"arguments")),
)
_FUNCTIONS = frozenset(("arrow_function", "function_expression", "generator_function", "function"))
_PATTERNS = "object_pattern array_pattern pair_pattern rest_pattern assignment_pattern object_assignment_pattern"
_GLOBAL = re.compile(r"(?:module\.)?exports\.|module\.(?=exports$)|(?:window|globalThis|global|self)\.")
"""Prefixes of names that belong to the module or the program."""
_CONSTANT_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def _inner_patterns(node: Node) -> list[Node]:
    bound = node.child_by_field_name("left") or node.child_by_field_name("value")
    return [bound] if bound is not None else node.named_children


_names = handlers.names_in(
    ("identifier", "shorthand_property_identifier_pattern"), frozenset(_PATTERNS.split()), _inner_patterns
)


def _bind(walk: Walker, node: Node) -> None:
    for name in _names(node):
        walk.bind(name)


def _symbol(kind: SymbolKind, role: Role) -> Handler:
    def handle(walk: Walker, node: Node, start: int) -> bool:
        _enter(walk, node, kind, role)
        return True

    return handle


def _enter(walk: Walker, node: Node, kind: SymbolKind, role: Role) -> None:
    name = node.child_by_field_name("name")
    if name is None:
        walk.enter_anonymous(node)
        return
    walk.bind(name)
    qualname = walk.define(kind, _plain(walk, name), node, until=node.child_by_field_name("body"))
    _add_decorators(walk, node, qualname)
    walk.enter(qualname, node.end_byte, role)


def _enter_value(walk: Walker, name: str, node: Node, function: Node, kind: SymbolKind) -> None:
    """Define a function that is the value of a name."""
    qualname = walk.define(kind, name, node, until=function.child_by_field_name("body"))
    walk.entered.add(function.start_byte)
    walk.enter(qualname, node.end_byte, "function")


def _plain(walk: Walker, name: Node) -> str:
    return walk.text(name).strip("'\"[]")


def _define_value(walk: Walker, name: str, node: Node) -> None:
    walk.define_value(name, node, is_constant=_CONSTANT_NAME.fullmatch(name) is not None)


def _anonymous(walk: Walker, node: Node, start: int) -> bool:
    if start not in walk.entered:
        walk.enter_anonymous(node)
    for own in (node.child_by_field_name("name"), node.child_by_field_name("parameter")):
        if own is not None:
            _bind(walk, own)
    return True


def _method(walk: Walker, node: Node, start: int) -> bool:
    if walk.scope.role == "function":
        walk.enter_anonymous(node)
    else:
        _enter(walk, node, "method" if walk.scope.role == "class" else "function", "function")
    return True


def _member(walk: Walker, node: Node, start: int) -> bool:
    """A field of a class or an interface. A field that holds a function is a method."""
    name = node.child_by_field_name("name") or node.child_by_field_name("property")
    if name is None or walk.scope.role != "class":
        return True
    walk.claim(name)
    text = _plain(walk, name)
    _add_decorators(walk, node, walk.qualify(text))
    value = node.child_by_field_name("value")
    if value is not None and value.type in _FUNCTIONS:
        _enter_value(walk, text, node, value, "method")
    else:
        _define_value(walk, text, node)
    return True


def _enum_members(walk: Walker, node: Node, start: int) -> bool:
    for child in node.named_children:
        name = child.child_by_field_name("name") if child.type == "enum_assignment" else child
        if name is not None and name.type in ("property_identifier", "string"):
            walk.define_value(_plain(walk, name), child, is_constant=True)
    return True


def _declarator(walk: Walker, node: Node, start: int) -> bool:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None:
        return True
    names = [*_names(name)]
    for each in names:
        walk.bind(each)
    if value is not None and (module := required_module(walk, value)):
        import_required(walk, node, name, value, module)
        return True
    is_function = value is not None and value.type in _FUNCTIONS
    if walk.scope.role == "function" and not is_function:
        return True
    if value is not None and is_function and name.type == "identifier":
        _enter_value(walk, walk.text(name), node, value, "function")
        return True
    for each in names:
        _define_value(walk, walk.text(each), node)
    if name.type == "identifier" and value is not None and value.type == "object":
        walk.enter(walk.qualify(walk.text(name)), node.end_byte, "class")
    return True


def _pair(walk: Walker, node: Node, start: int) -> bool:
    """A function in an object that has a name is a method of it."""
    key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
    if walk.scope.role == "class" and key is not None and value is not None and value.type in _FUNCTIONS:
        _enter_value(walk, _plain(walk, key), node, value, "method")
    return True


def _assignment(walk: Walker, node: Node, start: int) -> bool:
    """`exports.f = function`, `Class.prototype.m = function` and `app.m = function` define."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None or walk.scope.role == "function" or left.type != "member_expression":
        return True
    target = walk.pure_target(left).decode("utf-8", "replace")
    name = _GLOBAL.sub("", target).replace(".prototype.", ".")
    if right.type in _FUNCTIONS and name not in ("", "exports") and not name.startswith(("this.", "super.")):
        walk.claim(left)
        owner, _, last = name.rpartition(".")
        if owner:
            walk.enter(walk.qualify(owner), node.end_byte, "class")
        _enter_value(walk, last, node, right, "method" if owner else "function")
    return True


def _heritage(walk: Walker, node: Node, start: int) -> bool:
    for each in node.named_children:
        value = named_at(each) if each.type in ("generic_type", "instantiation_expression") else each
        if value is not None and value.type not in ("type_arguments", "extends_clause", "implements_clause"):
            walk.inherit(walk.pure_target(value), value)
    return True


def _decorator(walk: Walker, node: Node, start: int) -> bool:
    """A decorator beside a definition belongs to the next one; `_add_decorators` takes one within it."""
    name = _decorating(node)
    target = walk.pure_target(name) if name is not None and start not in walk.entered else b""
    if name is not None and target:
        walk.claim(name)
        walk.add_lead(node, [(target, node.start_point[0])])
    return True


def _add_decorators(walk: Walker, node: Node, qualname: str) -> None:
    for each in node.children_by_field_name("decorator"):
        name = _decorating(each)
        if name is not None:
            walk.entered.add(each.start_byte)
            walk.claim(name)
            walk.relate("decorate", walk.pure_target(name), each, qualname)


def _decorating(node: Node) -> Node | None:
    called = named_at(node)
    return called.child_by_field_name("function") if called is not None and called.type == "call_expression" else called


def _call(walk: Walker, node: Node, start: int) -> bool:
    function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
    if function is not None and not is_import(walk, node, function) and start not in walk.claimed:
        handlers.called(walk, node, function)
    return True


def _element(walk: Walker, node: Node, start: int) -> bool:
    """Markup uses components by names that begin with a capital letter."""
    name = node.child_by_field_name("name")
    if name is None:
        return True
    walk.claim(name)
    if walk.source[name.start_byte : name.start_byte + 1].isupper() or name.type == "member_expression":
        walk.call(walk.pure_target(name), node)
    return True


def _parameters(walk: Walker, node: Node, start: int) -> bool:
    for parameter in node.named_children:
        _bind(walk, parameter.child_by_field_name("pattern") or parameter)
    return True


_CLASSES = "class_declaration class abstract_class_declaration enum_declaration"
_FUNCTION_KINDS = "function_declaration generator_function_declaration function_signature"
TABLE = MODULE_TABLE | handlers.by_kind(
    {
        _symbol("class", "class"): _CLASSES,
        _symbol("interface", "class"): "interface_declaration type_alias_declaration",
        _symbol("function", "function"): _FUNCTION_KINDS,
        _symbol("module", "module"): "internal_module module",
        _method: "method_definition method_signature abstract_method_signature",
        _anonymous: "arrow_function function_expression generator_function",
        _member: "public_field_definition field_definition property_signature",
        _enum_members: "enum_body",
        _declarator: "variable_declarator",
        _pair: "pair",
        _assignment: "assignment_expression",
        _heritage: "class_heritage extends_clause implements_clause extends_type_clause",
        _decorator: "decorator",
        _call: "call_expression new_expression",
        handlers.dotted(): "member_expression",
        _element: "jsx_opening_element jsx_self_closing_element",
        _parameters: "formal_parameters",
        handlers.bind(_names, "left", "parameter"): "for_in_statement catch_clause",
        handlers.type_parameter: "type_parameter",
        handlers.name: "identifier shorthand_property_identifier",
        handlers.type_name: "nested_type_identifier type_identifier",
        handlers.skip: "jsx_closing_element string",
        handlers.comment: "comment",
    }
)
