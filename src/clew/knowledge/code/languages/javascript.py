"""JavaScript, TypeScript and their dialects with markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.knowledge.code.languages.grammar import Handler, Shape
from clew.knowledge.code.languages.handlers import (
    skip,
    take_called,
    take_comment,
    take_dotted,
    take_name,
    take_type,
    take_type_parameter,
)
from clew.knowledge.code.languages.javascript_decorators import take_decorator, take_decorators
from clew.knowledge.code.languages.javascript_modules import (
    MODULE_TABLE,
    bring_required,
    required_module,
    take_call_import,
)
from clew.knowledge.code.languages.nodes import named_at
from clew.knowledge.code.languages.scopes import Role
from clew.knowledge.code.languages.walker import Walk
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SHAPE = Shape(
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
_PATTERNS = frozenset(
    (
        "object_pattern",
        "array_pattern",
        "pair_pattern",
        "rest_pattern",
        "assignment_pattern",
        "object_assignment_pattern",
    )
)
_NAMES = frozenset(("identifier", "shorthand_property_identifier_pattern"))
_GLOBAL = re.compile(r"(?:module\.)?exports\.|module\.(?=exports$)|(?:window|globalThis|global|self)\.")
"""What stands before a name that is one of the whole module or program."""
_STATIC_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def _symbol(kind: SymbolKind, role: Role) -> Handler:
    def handle(walk: Walk, node: Node, start: int) -> bool:
        _open(walk, node, kind, role)
        return True

    return handle


def _open(walk: Walk, node: Node, kind: SymbolKind, role: Role) -> None:
    name = node.child_by_field_name("name")
    if name is None:
        walk.enter_nameless(node)
        return
    walk.bind(name)
    qualname = walk.define(kind, _plain(walk, name), node, until=node.child_by_field_name("body"))
    take_decorators(walk, node, qualname)
    walk.enter(qualname, node.end_byte, role)


def _plain(walk: Walk, name: Node) -> str:
    return walk.text(name).strip("'\"[]")


def _nameless(walk: Walk, node: Node, start: int) -> bool:
    if start not in walk.opened:
        walk.enter_nameless(node)
    for own in (node.child_by_field_name("name"), node.child_by_field_name("parameter")):
        if own is not None:
            _bind(walk, own)
    return True


def _method(walk: Walk, node: Node, start: int) -> bool:
    if walk.scope.role == "function":
        walk.enter_nameless(node)
    else:
        _open(walk, node, "method" if walk.scope.role == "class" else "function", "function")
    return True


def _member(walk: Walk, node: Node, start: int) -> bool:
    """A field of a class or an interface; one that holds a function is a method."""
    name = node.child_by_field_name("name") or node.child_by_field_name("property")
    if name is None or walk.scope.role != "class":
        return True
    walk.skips.add(name.start_byte)
    take_decorators(walk, node, walk.qualify(_plain(walk, name)))
    value = node.child_by_field_name("value")
    if value is not None and value.type in _FUNCTIONS:
        _open_value(walk, _plain(walk, name), node, value, "method")
    else:
        text = _plain(walk, name)
        walk.define_value(text, node, is_constant=_STATIC_NAME.fullmatch(text) is not None)
    return True


def _open_value(walk: Walk, name: str, node: Node, value: Node, kind: SymbolKind) -> None:
    qualname = walk.define(kind, name, node, until=value.child_by_field_name("body"))
    walk.opened.add(value.start_byte)
    walk.enter(qualname, node.end_byte, "function")


def _enum_member(walk: Walk, node: Node, start: int) -> bool:
    for child in node.named_children:
        name = child.child_by_field_name("name") if child.type == "enum_assignment" else child
        if name is not None and name.type in ("property_identifier", "string"):
            walk.define_value(_plain(walk, name), child, is_constant=True)
    return True


def _declarator(walk: Walk, node: Node, start: int) -> bool:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None:
        return True
    names = [*_names(name)]
    for each in names:
        walk.bind(each)
    if value is not None and (module := required_module(walk, value)):
        bring_required(walk, node, name, value, module)
        return True
    if walk.scope.role == "function" and (value is None or value.type not in _FUNCTIONS):
        return True
    if name.type == "identifier" and value is not None and value.type in _FUNCTIONS:
        _open_value(walk, walk.text(name), node, value, "function")
        return True
    for each in names:
        text = walk.text(each)
        walk.define_value(text, node, is_constant=_STATIC_NAME.fullmatch(text) is not None)
    if name.type == "identifier" and value is not None and value.type == "object":
        walk.enter(walk.qualify(walk.text(name)), node.end_byte, "class")
    return True


def _pair(walk: Walk, node: Node, start: int) -> bool:
    """A function in an object that has a name is a method of it."""
    key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
    if walk.scope.role == "class" and key is not None and value is not None and value.type in _FUNCTIONS:
        _open_value(walk, _plain(walk, key), node, value, "method")
    return True


def _assignment(walk: Walk, node: Node, start: int) -> bool:
    """`exports.f = function`, `Class.prototype.m = function` and `app.m = function` define."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None or walk.scope.role == "function" or left.type != "member_expression":
        return True
    target = walk.pure_target(left).decode("utf-8", "replace")
    name = _GLOBAL.sub("", target).replace(".prototype.", ".")
    if right.type in _FUNCTIONS and name not in ("", "exports") and not name.startswith(("this.", "super.")):
        walk.skips.add(left.start_byte)
        owner, _, last = name.rpartition(".")
        if owner:
            walk.enter(walk.qualify(owner), node.end_byte, "class")
        _open_value(walk, last, node, right, "method" if owner else "function")
    return True


def _heritage(walk: Walk, node: Node, start: int) -> bool:
    for each in node.named_children:
        value = named_at(each) if each.type in ("generic_type", "instantiation_expression") else each
        if value is not None and value.type not in ("type_arguments", "extends_clause", "implements_clause"):
            walk.relate("inherit", walk.pure_target(value), value)
            walk.skips.add(value.start_byte)
    return True


def _call(walk: Walk, node: Node, start: int) -> bool:
    function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
    if function is None or take_call_import(walk, node, function) or start in walk.skips:
        return True
    take_called(walk, node, function)
    return True


def _element(walk: Walk, node: Node, start: int) -> bool:
    """Markup uses components by names that begin with a capital letter."""
    name = node.child_by_field_name("name")
    if name is None:
        return True
    walk.skips.add(name.start_byte)
    if walk.source[name.start_byte : name.start_byte + 1].isupper() or name.type == "member_expression":
        walk.call(walk.pure_target(name), node)
    return True


def _parameters(walk: Walk, node: Node, start: int) -> bool:
    for parameter in node.named_children:
        _bind(walk, parameter.child_by_field_name("pattern") or parameter)
    return True


def _loop(walk: Walk, node: Node, start: int) -> bool:
    bound = node.child_by_field_name("left") or node.child_by_field_name("parameter")
    if bound is not None:
        _bind(walk, bound)
    return True


def _bind(walk: Walk, node: Node) -> None:
    for name in _names(node):
        walk.bind(name)


def _names(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if at.type in _NAMES:
            yield at
        elif at.type in _PATTERNS:
            left = at.child_by_field_name("left") or at.child_by_field_name("value")
            waiting.extend([left] if left is not None else reversed(at.named_children))


TABLE: dict[str, Handler] = {
    **MODULE_TABLE,
    "class_declaration": _symbol("class", "class"),
    "class": _symbol("class", "class"),
    "abstract_class_declaration": _symbol("class", "class"),
    "interface_declaration": _symbol("interface", "class"),
    "enum_declaration": _symbol("class", "class"),
    "type_alias_declaration": _symbol("interface", "class"),
    "function_declaration": _symbol("function", "function"),
    "generator_function_declaration": _symbol("function", "function"),
    "function_signature": _symbol("function", "function"),
    "internal_module": _symbol("module", "module"),
    "module": _symbol("module", "module"),
    "method_definition": _method,
    "method_signature": _method,
    "abstract_method_signature": _method,
    "arrow_function": _nameless,
    "function_expression": _nameless,
    "generator_function": _nameless,
    "public_field_definition": _member,
    "field_definition": _member,
    "property_signature": _member,
    "enum_body": _enum_member,
    "variable_declarator": _declarator,
    "pair": _pair,
    "assignment_expression": _assignment,
    "class_heritage": _heritage,
    "extends_clause": _heritage,
    "implements_clause": _heritage,
    "extends_type_clause": _heritage,
    "decorator": take_decorator,
    "call_expression": _call,
    "new_expression": _call,
    "member_expression": take_dotted,
    "jsx_opening_element": _element,
    "jsx_self_closing_element": _element,
    "jsx_closing_element": skip,
    "formal_parameters": _parameters,
    "for_in_statement": _loop,
    "catch_clause": _loop,
    "type_parameter": take_type_parameter,
    "nested_type_identifier": take_type,
    "identifier": take_name,
    "shorthand_property_identifier": take_name,
    "type_identifier": take_type,
    "string": skip,
    "comment": take_comment,
}
