"""Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.grammar import Handler, Shape
from clew.knowledge.code.languages.handlers import (
    skip,
    take_comment,
    take_dotted,
    take_key,
    take_name,
    take_type,
    take_type_parameter,
)
from clew.knowledge.code.languages.nodes import named_at
from clew.knowledge.code.languages.scopes import Role
from clew.knowledge.code.languages.walker import Walk
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SHAPE = Shape(
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


def _symbol(kind: SymbolKind, role: Role) -> Handler:
    def handle(walk: Walk, node: Node, start: int) -> bool:
        name = node.child_by_field_name("name")
        if name is None:
            return True
        walk.skips.add(name.start_byte)
        qualname = walk.define(kind, walk.text(name), node, until=node.child_by_field_name("body"))
        walk.enter(qualname, node.end_byte, role)
        return True

    return handle


def _package(walk: Walk, node: Node, start: int) -> bool:
    name = next((each for each in node.named_children if each.type in ("scoped_identifier", "identifier")), None)
    if name is not None:
        walk.define("module", walk.text(name), node)
    return False


def _import(walk: Walk, node: Node, start: int) -> bool:
    path = next((each for each in node.named_children if each.type in ("scoped_identifier", "identifier")), None)
    if path is None:
        return False
    module, _, name = "".join(walk.text(path).split()).rpartition(".")
    if any(each.type == "asterisk" for each in node.named_children):
        walk.bring(f"{module}.{name}" if module else name, "*", "", node)
    else:
        walk.bring(module or name, name if module else "", "", node)
    return False


def _inherit(walk: Walk, node: Node, start: int) -> bool:
    for each in node.named_children:
        for kind in each.named_children if each.type == "type_list" else [each]:
            named = named_at(kind) if kind.type in ("generic_type", "annotated_type") else kind
            if named is not None:
                walk.relate("inherit", walk.pure_target(named), named)
                walk.skips.add(named.start_byte)
    return True


def _annotation(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None:
        walk.relate("decorate", walk.pure_target(name), name)
        walk.skips.add(name.start_byte)
    return True


def _fields(walk: Walk, node: Node, start: int) -> bool:
    modifiers = named_at(node)
    words = walk.raw(modifiers).split() if modifiers is not None and modifiers.type == "modifiers" else []
    is_constant = node.type == "constant_declaration" or (b"static" in words and b"final" in words)
    for declarator in node.children_by_field_name("declarator"):
        name = declarator.child_by_field_name("name")
        if name is not None:
            walk.skips.add(name.start_byte)
            walk.define_value(walk.text(name), node, is_constant=is_constant)
    return True


def _enum_constant(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None:
        walk.skips.add(name.start_byte)
        walk.define_value(walk.text(name), node, is_constant=True)
    return True


def _bind_name(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None and name.start_byte not in walk.skips:
        walk.bind(name)
    return True


def _lambda(walk: Walk, node: Node, start: int) -> bool:
    walk.enter_nameless(node)
    parameters = node.child_by_field_name("parameters")
    if parameters is None:
        return True
    for each in parameters.named_children if parameters.type == "inferred_parameters" else [parameters]:
        if each.type == "identifier":
            walk.bind(each)
    return True


def _invocation(walk: Walk, node: Node, start: int) -> bool:
    name, target_object = node.child_by_field_name("name"), node.child_by_field_name("object")
    if name is None:
        return True
    walk.skips.add(name.start_byte)
    if target_object is None:
        walk.call(walk.raw(name), node)
        return True
    before = walk.pure_target(target_object)
    if before:
        walk.skips.add(target_object.start_byte)
    walk.call(before + b"." + walk.raw(name) if before else walk.target_of(node), node)
    return True


def _creation(walk: Walk, node: Node, start: int) -> bool:
    kind = node.child_by_field_name("type")
    if kind is not None:
        walk.call(walk.target_of(kind), node)
        walk.skips.add(kind.start_byte)
    if node.named_child_count and node.named_children[-1].type == "class_body":
        walk.enter_nameless(node)
    return True


def _explicit_constructor(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("constructor")
    if name is not None:
        walk.call(walk.raw(name), node)
    return True


def _access(walk: Walk, node: Node, start: int) -> bool:
    return take_dotted(walk, node, start, "field")


def _type_path(walk: Walk, node: Node, start: int) -> bool:
    if start not in walk.skips:
        walk.relate("reference", walk.pure_target(node), node)
    return False


def _method_reference(walk: Walk, node: Node, start: int) -> bool:
    return _access(walk, node, start)


TABLE: dict[str, Handler] = {
    "package_declaration": _package,
    "import_declaration": _import,
    "class_declaration": _symbol("class", "class"),
    "record_declaration": _symbol("class", "class"),
    "enum_declaration": _symbol("class", "class"),
    "interface_declaration": _symbol("interface", "class"),
    "annotation_type_declaration": _symbol("interface", "class"),
    "method_declaration": _symbol("method", "function"),
    "constructor_declaration": _symbol("method", "function"),
    "compact_constructor_declaration": _symbol("method", "function"),
    "annotation_type_element_declaration": _symbol("method", "function"),
    "superclass": _inherit,
    "super_interfaces": _inherit,
    "extends_interfaces": _inherit,
    "annotation": _annotation,
    "marker_annotation": _annotation,
    "element_value_pair": take_key,
    "field_declaration": _fields,
    "constant_declaration": _fields,
    "enum_constant": _enum_constant,
    "variable_declarator": _bind_name,
    "formal_parameter": _bind_name,
    "catch_formal_parameter": _bind_name,
    "enhanced_for_statement": _bind_name,
    "resource": _bind_name,
    "instanceof_expression": _bind_name,
    "lambda_expression": _lambda,
    "method_invocation": _invocation,
    "object_creation_expression": _creation,
    "explicit_constructor_invocation": _explicit_constructor,
    "field_access": _access,
    "method_reference": _method_reference,
    "scoped_type_identifier": _type_path,
    "type_parameter": take_type_parameter,
    "identifier": take_name,
    "type_identifier": take_type,
    "string_literal": skip,
    "line_comment": take_comment,
    "block_comment": take_comment,
}
