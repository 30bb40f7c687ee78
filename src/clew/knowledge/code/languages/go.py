"""Go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages import handlers
from clew.knowledge.code.languages.walker import Handler, Syntax, Walker, named_at
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_BUILTIN = (
    b"any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune"
    b" string uint uint8 uint16 uint32 uint64 uintptr true false nil iota append cap clear close copy delete len make"
    b" max min new panic print println recover _"
)
SYNTAX = Syntax(
    members={"selector_expression": ("operand", "field"), "qualified_type": ("package", "name")},
    calls={"call_expression": "function"},
    wrappers={
        "generic_type": "type",
        "parenthesized_expression": "",
        "pointer_type": "",
        "type_instantiation_expression": "",
    },
    builtins=frozenset(_BUILTIN.split()),
)


def _package(walk: Walker, node: Node, start: int) -> bool:
    name = named_at(node)
    if name is not None:
        walk.define("module", walk.text(name), node)
    return False


def _import(walk: Walker, node: Node, start: int) -> bool:
    path, alias = node.child_by_field_name("path"), walk.text(node.child_by_field_name("name"))
    if path is not None:
        is_all = alias == "."
        walk.add_import(walk.text(path).strip('"`'), "*" if is_all else "", "" if is_all else alias, node)
    return False


def _method(walk: Walker, node: Node, start: int) -> bool:
    """A method is in the scope of its receiver's type."""
    name, receiver = node.child_by_field_name("name"), named_at(node.child_by_field_name("receiver"))
    kind = receiver.child_by_field_name("type") if receiver is not None else None
    owner = walk.dotted(kind).lstrip(".*") if kind is not None else ""
    if name is None:
        return True
    if owner:
        walk.enter(walk.qualify(owner), node.end_byte, "class")
    qualname = walk.define("method", walk.text(name), node, until=node.child_by_field_name("body"))
    walk.enter(qualname, node.end_byte, "function")
    return True


def _type(walk: Walker, node: Node, start: int) -> bool:
    name, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
    if name is None or kind is None:
        return True
    if walk.scope.role == "function":
        walk.bind(name)
        return True
    walk.claim(name)
    written: SymbolKind = "interface" if kind.type == "interface_type" else "class"
    has_body = kind.type in ("struct_type", "interface_type")
    qualname = walk.define(written, walk.text(name), node, until=named_at(kind) if has_body else None)
    walk.enter(qualname, node.end_byte, "class")
    return True


def _field(walk: Walker, node: Node, start: int) -> bool:
    """A field without a name embeds its type."""
    names, kind = node.children_by_field_name("name"), node.child_by_field_name("type")
    if walk.scope.role != "class":
        return True
    for name in names:
        walk.define_value(walk.text(name), node, is_constant=False)
    if not names and kind is not None:
        walk.relate("inherit", walk.target_of(kind), kind)
        walk.claim((named_at(kind) or kind) if kind.type == "generic_type" else kind)
    return True


def _method_element(walk: Walker, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None and walk.scope.role == "class":
        walk.enter(walk.define("method", walk.text(name), node), node.end_byte, "function")
    return True


def _type_element(walk: Walker, node: Node, start: int) -> bool:
    kind = named_at(node)
    if kind is not None and node.named_child_count == 1 and walk.scope.role == "class" and kind.type != "negated_type":
        walk.inherit(walk.target_of(kind), kind)
    return True


def _type_arguments(walk: Walker, node: Node, start: int) -> bool:
    """A type does not inherit from its type arguments."""
    for each in node.named_children:
        inner = named_at(each) if each.type == "type_elem" else each
        if inner is not None:
            walk.mention(walk.target_of(inner), inner, inner.start_byte)
    return False


def _values(is_constant: bool) -> Handler:
    def handle(walk: Walker, node: Node, start: int) -> bool:
        for name in node.children_by_field_name("name"):
            if name.type != "identifier":
                continue
            walk.bind(name)
            if walk.scope.role == "module" and walk.raw(name) != b"_":
                walk.define_value(walk.text(name), node, is_constant=is_constant)
        return True

    return handle


def _keyed_element(walk: Walker, node: Node, start: int) -> bool:
    """The field in `Type{field: value}` is no name of the project."""
    name = named_at(node.child_by_field_name("key"))
    if name is not None and name.type == "identifier":
        walk.claim(name)
    return True


def _identifiers(node: Node) -> list[Node]:
    return [each for each in node.named_children if each.type == "identifier"]


def _parameter_names(node: Node) -> list[Node]:
    return node.children_by_field_name("name")


TABLE = handlers.by_kind(
    {
        _package: "package_clause",
        _import: "import_spec",
        handlers.symbol("function", "function"): "function_declaration",
        _method: "method_declaration",
        handlers.anonymous: "func_literal",
        _type: "type_spec type_alias",
        _field: "field_declaration",
        _method_element: "method_elem",
        _type_element: "type_elem",
        _type_arguments: "type_arguments",
        _values(is_constant=True): "const_spec",
        _values(is_constant=False): "var_spec",
        handlers.bind(_identifiers, "left", "alias"): "short_var_declaration range_clause type_switch_statement",
        handlers.bind(
            _parameter_names
        ): "parameter_declaration variadic_parameter_declaration type_parameter_declaration",
        handlers.call: "call_expression type_conversion_expression",
        handlers.dotted(): "selector_expression qualified_type",
        _keyed_element: "keyed_element",
        handlers.name: "identifier type_identifier",
        handlers.skip: "interpreted_string_literal",
        handlers.comment: "comment",
    }
)
