"""Go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.walker import LanguageTable, Walker, named_at

if TYPE_CHECKING:
    from tree_sitter import Node

_QUERY = """
(package_clause) @package
(import_spec) @import
(function_declaration) @function
(method_declaration) @receiver_method
(func_literal) @anonymous
[(type_spec) (type_alias)] @type_spec
(field_declaration name: (_)) @field
(field_declaration !name type: (_) @base)
(type_spec type: (interface_type (method_elem) @method))
(type_spec type: (interface_type (type_elem . [(type_identifier) (qualified_type) (generic_type)] @base .)))
(const_spec) @constant
(var_spec) @variable
(short_var_declaration left: (expression_list (identifier) @bind))
(range_clause left: (expression_list (identifier) @bind))
(type_switch_statement alias: (expression_list (identifier) @bind))
(parameter_declaration name: (_) @bind)
(variadic_parameter_declaration name: (_) @bind)
(type_parameter_declaration name: (_) @bind)
(keyed_element . (literal_element (identifier) @claim))
[(call_expression) (type_conversion_expression)] @call
[(selector_expression) (qualified_type)] @dotted
[(identifier) (type_identifier)] @name
(comment) @comment
"""
_BUILTIN = (
    b"any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune"
    b" string uint uint8 uint16 uint32 uint64 uintptr true false nil iota append cap clear close copy delete len make"
    b" max min new panic print println recover _"
)


def _import(walk: Walker, node: Node, start: int) -> None:
    path, alias = walk.text(node.child_by_field_name("path")), walk.text(node.child_by_field_name("name"))
    is_all = alias == "."
    walk.note_import(path.strip('"`'), "*" if is_all else "", "" if is_all else alias, node)
    walk.skip(node)


def _receiver_method(walk: Walker, node: Node, start: int) -> None:
    """A method is in the scope of its receiver's type."""
    receiver = named_at(node.child_by_field_name("receiver"))
    kind = receiver.child_by_field_name("type") if receiver is not None else None
    owner = walk.target_of(kind).decode("utf-8", "replace").lstrip(".*") if kind is not None else ""
    if owner:
        walk.enter(walk.qualify(owner), node, "class")
    name = walk.text(node.child_by_field_name("name"))
    walk.enter(walk.define("method", name, node, until=node.child_by_field_name("body")), node, "function")


def _type_spec(walk: Walker, node: Node, start: int) -> None:
    name, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
    if name is None or kind is None:
        return
    if walk.scope.role == "function":
        walk.bind(name)
        return
    walk.claim(name)
    has_body = kind.type in ("struct_type", "interface_type")
    written = walk.define(
        "interface" if kind.type == "interface_type" else "class",
        walk.text(name),
        node,
        until=named_at(kind) if has_body else None,
    )
    walk.enter(written, node, "class")


TABLES = {
    "go": LanguageTable(
        _QUERY,
        members={"selector_expression": ("operand", "field"), "qualified_type": ("package", "name")},
        calls={"call_expression": "function", "type_conversion_expression": "type"},
        wrappers={
            "generic_type": "type",
            "parenthesized_expression": "",
            "pointer_type": "",
            "type_instantiation_expression": "",
        },
        names=("identifier", "field_identifier", "type_identifier"),
        builtins=frozenset(_BUILTIN.split()),
        handlers={"import": _import, "receiver_method": _receiver_method, "type_spec": _type_spec},
    )
}
