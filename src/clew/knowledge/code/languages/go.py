"""Go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.knowledge.code.languages.grammar import Handler, Shape
from clew.knowledge.code.languages.handlers import skip, take_call, take_comment, take_dotted, take_name
from clew.knowledge.code.languages.nodes import named_at
from clew.knowledge.code.languages.walker import Walk
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_BUILTIN = (
    "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune"
    " string uint uint8 uint16 uint32 uint64 uintptr true false nil iota append cap clear close copy delete len make"
    " max min new panic print println recover _"
)
SHAPE = Shape(
    members={"selector_expression": ("operand", "field"), "qualified_type": ("package", "name")},
    calls={"call_expression": "function"},
    wrappers={
        "generic_type": "type",
        "parenthesized_expression": "",
        "pointer_type": "",
        "type_instantiation_expression": "",
    },
    builtins=frozenset(_BUILTIN.encode().split()),
)


def _package(walk: Walk, node: Node, start: int) -> bool:
    name = named_at(node)
    if name is not None:
        walk.define("module", walk.text(name), node)
    return False


def _import(walk: Walk, node: Node, start: int) -> bool:
    path, name = node.child_by_field_name("path"), node.child_by_field_name("name")
    if path is not None:
        alias = walk.text(name) if name is not None else ""
        module = walk.text(path).strip('"`')
        walk.bring(module, "*" if alias == "." else "", "" if alias == "." else alias, node)
    return False


def _function(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None:
        walk.skips.add(name.start_byte)
        qualname = walk.define("function", walk.text(name), node, until=node.child_by_field_name("body"))
        walk.enter(qualname, node.end_byte, "function")
    return True


def _method(walk: Walk, node: Node, start: int) -> bool:
    """A method is defined in the scope of the type before its name."""
    name, receiver = node.child_by_field_name("name"), node.child_by_field_name("receiver")
    owner = _receiver_type(walk, receiver) if receiver is not None else ""
    if name is None:
        return True
    if owner:
        walk.enter(walk.qualify(owner), node.end_byte, "class")
    qualname = walk.define("method", walk.text(name), node, until=node.child_by_field_name("body"))
    walk.enter(qualname, node.end_byte, "function")
    return True


def _receiver_type(walk: Walk, receiver: Node) -> str:
    parameter = named_at(receiver)
    kind = parameter.child_by_field_name("type") if parameter is not None else None
    return walk.target_of(kind).decode("utf-8", "replace").lstrip(".*") if kind is not None else ""


def _literal(walk: Walk, node: Node, start: int) -> bool:
    walk.enter_nameless(node)
    return True


def _type(walk: Walk, node: Node, start: int) -> bool:
    name, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
    if name is None or kind is None:
        return True
    walk.skips.add(name.start_byte)
    if walk.scope.role == "function":
        walk.scope.bound.add(walk.raw(name))
        return True
    written: SymbolKind = "interface" if kind.type == "interface_type" else "class"
    has_body = kind.type in ("struct_type", "interface_type")
    qualname = walk.define(written, walk.text(name), node, until=named_at(kind) if has_body else None)
    walk.enter(qualname, node.end_byte, "class")
    return True


def _field(walk: Walk, node: Node, start: int) -> bool:
    """A field without a name takes in all that its type has."""
    names, kind = node.children_by_field_name("name"), node.child_by_field_name("type")
    if walk.scope.role != "class":
        return True
    for name in names:
        walk.define_value(walk.text(name), node, is_constant=False)
    if not names and kind is not None:
        walk.relate("inherit", walk.target_of(kind), kind)
        walk.skips.add((named_at(kind) or kind).start_byte if kind.type == "generic_type" else kind.start_byte)
    return True


def _method_element(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None and walk.scope.role == "class":
        walk.enter(walk.define("method", walk.text(name), node), node.end_byte, "function")
    return True


def _type_element(walk: Walk, node: Node, start: int) -> bool:
    kind = named_at(node)
    if kind is not None and node.named_child_count == 1 and walk.scope.role == "class" and kind.type != "negated_type":
        walk.relate("inherit", walk.target_of(kind), kind)
        walk.skips.add(kind.start_byte)
    return True


def _arguments(walk: Walk, node: Node, start: int) -> bool:
    """Types between brackets are not taken in by what they are given to."""
    for each in node.named_children:
        inner = named_at(each) if each.type == "type_elem" else each
        if inner is not None:
            walk.mention(walk.target_of(inner), inner, inner.start_byte)
    return False


def _value(is_constant: bool) -> Handler:
    def handle(walk: Walk, node: Node, start: int) -> bool:
        for name in node.children_by_field_name("name"):
            if name.type != "identifier":
                continue
            walk.bind(name)
            if walk.scope.role == "module" and walk.raw(name) != b"_":
                walk.define_value(walk.text(name), node, is_constant=is_constant)
        return True

    return handle


def _short(walk: Walk, node: Node, start: int) -> bool:
    left = node.child_by_field_name("left") or node.child_by_field_name("alias")
    for name in _names(left) if left is not None else ():
        walk.bind(name)
    return True


def _parameter(walk: Walk, node: Node, start: int) -> bool:
    for name in node.children_by_field_name("name"):
        walk.bind(name)
    return True


def _names(left: Node) -> Iterator[Node]:
    yield from (each for each in left.named_children if each.type == "identifier")


def _key(walk: Walk, node: Node, start: int) -> bool:
    """`Type{field: value}`: the name of a field is no name of the project."""
    key = node.child_by_field_name("key")
    name = named_at(key) if key is not None else None
    if name is not None and name.type == "identifier":
        walk.skips.add(name.start_byte)
    return True


TABLE: dict[str, Handler] = {
    "package_clause": _package,
    "import_spec": _import,
    "function_declaration": _function,
    "method_declaration": _method,
    "func_literal": _literal,
    "type_spec": _type,
    "type_alias": _type,
    "field_declaration": _field,
    "method_elem": _method_element,
    "type_elem": _type_element,
    "type_arguments": _arguments,
    "const_spec": _value(True),
    "var_spec": _value(False),
    "short_var_declaration": _short,
    "range_clause": _short,
    "type_switch_statement": _short,
    "parameter_declaration": _parameter,
    "variadic_parameter_declaration": _parameter,
    "type_parameter_declaration": _parameter,
    "call_expression": take_call,
    "type_conversion_expression": take_call,
    "selector_expression": take_dotted,
    "qualified_type": take_dotted,
    "keyed_element": _key,
    "identifier": take_name,
    "type_identifier": take_name,
    "interpreted_string_literal": skip,
    "comment": take_comment,
}
