"""Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages import handlers
from clew.knowledge.code.languages.walker import Syntax, Walker, named_at

if TYPE_CHECKING:
    from tree_sitter import Node

SYNTAX = Syntax(
    members={
        "field_access": ("object", "field"),
        "method_invocation": ("object", "name"),
        "scoped_identifier": ("scope", "name"),
    },
    calls={"method_invocation": "name", "object_creation_expression": "type"},
    wrappers={"generic_type": "", "parenthesized_expression": "", "annotated_type": ""},
    own=(b"this.",),
    builtins=frozenset((b"this", b"super", b"String", b"Object", b"var")),
)


def _path(node: Node) -> Node | None:
    return next((each for each in node.named_children if each.type in ("scoped_identifier", "identifier")), None)


def _package(walk: Walker, node: Node, start: int) -> bool:
    name = _path(node)
    if name is not None:
        walk.define("module", walk.text(name), node)
    return False


def _import(walk: Walker, node: Node, start: int) -> bool:
    path = _path(node)
    if path is None:
        return False
    whole = "".join(walk.text(path).split())
    module, _, name = whole.rpartition(".")
    if any(each.type == "asterisk" for each in node.named_children):
        walk.add_import(whole, "*", "", node)
    else:
        walk.add_import(module or name, name if module else "", "", node)
    return False


def _bases(walk: Walker, node: Node, start: int) -> bool:
    for each in node.named_children:
        for kind in each.named_children if each.type == "type_list" else [each]:
            named = named_at(kind) if kind.type in ("generic_type", "annotated_type") else kind
            if named is not None:
                walk.inherit(walk.pure_target(named), named)
    return True


def _annotation(walk: Walker, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None:
        walk.relate("decorate", walk.pure_target(name), name)
        walk.claim(name)
    return True


def _fields(walk: Walker, node: Node, start: int) -> bool:
    modifiers = named_at(node)
    words = walk.raw(modifiers).split() if modifiers is not None and modifiers.type == "modifiers" else []
    is_constant = node.type == "constant_declaration" or (b"static" in words and b"final" in words)
    for declarator in node.children_by_field_name("declarator"):
        name = declarator.child_by_field_name("name")
        if name is not None:
            walk.claim(name)
            walk.define_value(walk.text(name), node, is_constant=is_constant)
    return True


def _variable(walk: Walker, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None and name.start_byte not in walk.claimed:
        walk.bind(name)
    return True


def _lambda(walk: Walker, node: Node, start: int) -> bool:
    walk.enter_anonymous(node)
    parameters = node.child_by_field_name("parameters")
    if parameters is None:
        return True
    for each in parameters.named_children if parameters.type == "inferred_parameters" else [parameters]:
        if each.type == "identifier":
            walk.bind(each)
    return True


def _invocation(walk: Walker, node: Node, start: int) -> bool:
    name, owner = node.child_by_field_name("name"), node.child_by_field_name("object")
    if name is None:
        return True
    walk.claim(name)
    before = walk.pure_target(owner) if owner is not None else b""
    if owner is None:
        walk.call(walk.raw(name), node)
    elif before:
        walk.claim(owner)
        walk.call(before + b"." + walk.raw(name), node)
    else:
        walk.call(walk.target_of(node), node)
    return True


def _creation(walk: Walker, node: Node, start: int) -> bool:
    kind = node.child_by_field_name("type")
    if kind is not None:
        walk.call(walk.target_of(kind), node)
        walk.claim(kind)
    if node.named_child_count and node.named_children[-1].type == "class_body":
        walk.enter_anonymous(node)
    return True


def _constructor_call(walk: Walker, node: Node, start: int) -> bool:
    name = node.child_by_field_name("constructor")
    if name is not None:
        walk.call(walk.raw(name), node)
    return True


_VARIABLES = (
    "variable_declarator formal_parameter catch_formal_parameter enhanced_for_statement resource instanceof_expression"
)
_METHODS = (
    "method_declaration constructor_declaration compact_constructor_declaration annotation_type_element_declaration"
)
TABLE = handlers.by_kind(
    {
        _package: "package_declaration",
        _import: "import_declaration",
        handlers.symbol("class", "class"): "class_declaration record_declaration enum_declaration",
        handlers.symbol("interface", "class"): "interface_declaration annotation_type_declaration",
        handlers.symbol("method", "function"): _METHODS,
        _bases: "superclass super_interfaces extends_interfaces",
        _annotation: "annotation marker_annotation",
        handlers.key: "element_value_pair",
        _fields: "field_declaration constant_declaration",
        handlers.value(is_constant=True): "enum_constant",
        _variable: _VARIABLES,
        _lambda: "lambda_expression",
        _invocation: "method_invocation",
        _creation: "object_creation_expression",
        _constructor_call: "explicit_constructor_invocation",
        handlers.dotted("field"): "field_access method_reference",
        handlers.type_parameter: "type_parameter",
        handlers.name: "identifier",
        handlers.type_name: "type_identifier scoped_type_identifier",
        handlers.skip: "string_literal",
        handlers.comment: "line_comment block_comment",
    }
)
