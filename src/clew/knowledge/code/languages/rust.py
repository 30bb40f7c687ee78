"""Rust. Paths are written with dots in names (`Type.method`, `module.function`) and as they are in imports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.knowledge.code.languages.grammar import Handler, Shape
from clew.knowledge.code.languages.handlers import (
    skip,
    take_called,
    take_comment,
    take_dotted,
    take_type,
    take_type_parameter,
)
from clew.knowledge.code.languages.nodes import named_at
from clew.knowledge.code.languages.scopes import Lead, Role
from clew.knowledge.code.languages.walker import Walk
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SHAPE = Shape(
    members={
        "field_expression": ("value", "field"),
        "scoped_identifier": ("path", "name"),
        "scoped_type_identifier": ("path", "name"),
    },
    calls={"call_expression": "function"},
    wrappers={
        "generic_type": "type",
        "generic_type_with_turbofish": "type",
        "generic_function": "function",
        "reference_type": "type",
        "parenthesized_expression": "",
        "try_expression": "",
        "await_expression": "",
        "bracketed_type": "",
        "dynamic_type": "trait",
    },
    own=(b"self.", b"Self."),
    builtins=frozenset(b"self Self Some None Ok Err Option Result Vec String Box _ super crate".split()),
)
_PATTERNS = frozenset(
    (
        "tuple_pattern",
        "slice_pattern",
        "ref_pattern",
        "mut_pattern",
        "reference_pattern",
        "captured_pattern",
        "or_pattern",
        "match_pattern",
        "tuple_struct_pattern",
        "struct_pattern",
        "field_pattern",
        "remaining_field_pattern",
    )
)


def _item(kind: SymbolKind, role: Role) -> Handler:
    def handle(walk: Walk, node: Node, start: int) -> bool:
        name = node.child_by_field_name("name")
        if name is None:
            return True
        walk.bind(name)
        written: SymbolKind = "method" if kind == "function" and walk.scope.role == "class" else kind
        qualname = walk.define(written, walk.text(name), node, until=node.child_by_field_name("body"))
        walk.enter(qualname, node.end_byte, role)
        return True

    return handle


def _module(walk: Walk, node: Node, start: int) -> bool:
    """A module without a body is another file."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is None:
        return True
    walk.skips.add(name.start_byte)
    if body is None:
        walk.bring(f"self::{walk.text(name)}", "", "", node)
        return True
    walk.enter(walk.define("module", walk.text(name), node, until=body), node.end_byte, "module")
    return True


def _impl(walk: Walk, node: Node, start: int) -> bool:
    kind, trait = node.child_by_field_name("type"), node.child_by_field_name("trait")
    walk.lead = None
    if kind is None:
        return True
    owner = walk.qualify(walk.target_of(kind).decode("utf-8", "replace").lstrip("."))
    walk.enter(owner, node.end_byte, "class")
    if trait is not None:
        walk.relate("inherit", walk.target_of(trait), trait)
        walk.skips.add(trait.start_byte)
    walk.skips.add(kind.start_byte)
    return True


def _bounds(walk: Walk, node: Node, start: int) -> bool:
    if walk.scope.role != "class" or not walk.symbols or walk.symbols[-1].qualname != walk.scope.name:
        return True
    if walk.symbols[-1].kind == "interface":
        for each in node.named_children:
            walk.relate("inherit", walk.target_of(each), each)
            walk.skips.add(each.start_byte)
    return True


def _value(is_constant: bool) -> Handler:
    def handle(walk: Walk, node: Node, start: int) -> bool:
        name = node.child_by_field_name("name")
        if name is not None:
            walk.bind(name)
            if walk.scope.role != "function":
                walk.define_value(walk.text(name), node, is_constant=is_constant)
        return True

    return handle


def _attribute(walk: Walk, node: Node, start: int) -> bool:
    attribute = named_at(node)
    if attribute is None:
        return False
    row, last = node.start_point[0], node.end_point[0]
    lead = walk.lead if walk.lead is not None and walk.lead.last_row >= row - 1 else None
    name = named_at(attribute)
    arguments = attribute.child_by_field_name("arguments")
    targets = [walk.pure_target(name)] if name is not None else []
    if targets == [b"derive"] and arguments is not None:
        targets = [walk.raw(each) for each in arguments.named_children if each.type == "identifier"]
    found = [*(lead.targets if lead else []), *((target, row) for target in targets if target)]
    walk.lead = Lead(lead.first_row if lead else row, last, found)
    return False


def _use(walk: Walk, node: Node, start: int) -> bool:
    argument = node.child_by_field_name("argument")
    for module, name, alias, at in _use_tree(walk, argument) if argument is not None else ():
        walk.bring(module, name, alias, at)
    return False


def _use_tree(walk: Walk, argument: Node) -> Iterator[tuple[str, str, str, Node]]:
    """Each path of a tree of uses, in the order of the file."""
    waiting = [(argument, "")]
    while waiting:
        node, before = waiting.pop()
        if node.type in ("scoped_use_list", "use_list"):
            path = node.child_by_field_name("path")
            inner = _join(before, walk.text(path) if path is not None else "")
            listed = node.child_by_field_name("list") or node
            waiting.extend((each, inner) for each in reversed(listed.named_children) if "comment" not in each.type)
        elif node.type == "use_wildcard":
            path = named_at(node)
            yield _join(before, walk.text(path) if path is not None else ""), "*", "", node
        else:
            alias = node.child_by_field_name("alias") if node.type == "use_as_clause" else None
            path = node.child_by_field_name("path") if node.type == "use_as_clause" else node
            whole = _join(before, walk.text(path or node)).removesuffix("::self")
            module, _, name = whole.rpartition("::")
            yield module or whole, name if module else "", walk.text(alias) if alias is not None else "", node


def _join(before: str, after: str) -> str:
    after = "".join(after.split())
    return f"{before}::{after}" if before and after else before or after


def _extern(walk: Walk, node: Node, start: int) -> bool:
    name, alias = node.child_by_field_name("name"), node.child_by_field_name("alias")
    if name is not None:
        walk.bring(walk.text(name), "", walk.text(alias) if alias is not None else "", node)
    return False


def _call(walk: Walk, node: Node, start: int) -> bool:
    function = node.child_by_field_name("function")
    if function is None:
        return True
    take_called(walk, node, function)
    return True


def _macro(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("macro")
    if name is not None:
        walk.skips.add(name.start_byte)
        walk.call(walk.pure_target(name), node)
    return True


def _tokens(walk: Walk, node: Node, start: int) -> bool:
    """In a macro nothing is parsed: a name before a parenthesis is a call."""
    end, name = walk.last_name
    if end == start and walk.source[start : start + 1] == b"(":
        walk.call(name, node)
    return True


def _name(walk: Walk, node: Node, start: int) -> bool:
    if start not in walk.skips:
        end = node.end_byte
        text = walk.source[start:end]
        walk.last_name = (end, text)
        if walk.source[end : end + 1] != b"(":
            walk.mention(text, node, start)
    return False


def _type_path(walk: Walk, node: Node, start: int) -> bool:
    if start not in walk.skips:
        walk.relate("reference", walk.target_of(node), node)
    return False


def _binding(walk: Walk, node: Node, start: int) -> bool:
    pattern = node.child_by_field_name("pattern")
    for name in _names(pattern) if pattern is not None else ():
        walk.bind(name)
    return True


def _names(pattern: Node) -> Iterator[Node]:
    """New variables: names that begin with a small letter, other than the type that is matched."""
    waiting = [pattern]
    while waiting:
        at = waiting.pop()
        if at.type in ("identifier", "shorthand_field_identifier"):
            yield at
        elif at.type in _PATTERNS:
            kind = at.child_by_field_name("type")
            waiting.extend(each for each in reversed(at.named_children) if each != kind)


def _closure(walk: Walk, node: Node, start: int) -> bool:
    walk.enter_nameless(node)
    parameters = node.child_by_field_name("parameters")
    for each in parameters.named_children if parameters is not None else ():
        for name in _names(each):
            walk.bind(name)
    return True


TABLE: dict[str, Handler] = {
    "struct_item": _item("class", "class"),
    "union_item": _item("class", "class"),
    "enum_item": _item("class", "class"),
    "trait_item": _item("interface", "class"),
    "type_item": _item("class", "class"),
    "function_item": _item("function", "function"),
    "function_signature_item": _item("function", "function"),
    "macro_definition": _item("function", "function"),
    "mod_item": _module,
    "impl_item": _impl,
    "trait_bounds": _bounds,
    "const_item": _value(True),
    "static_item": _value(True),
    "enum_variant": _value(True),
    "field_declaration": _value(False),
    "associated_type": _value(False),
    "attribute_item": _attribute,
    "use_declaration": _use,
    "extern_crate_declaration": _extern,
    "call_expression": _call,
    "macro_invocation": _macro,
    "token_tree": _tokens,
    "identifier": _name,
    "field_expression": take_dotted,
    "scoped_identifier": take_dotted,
    "type_identifier": take_type,
    "scoped_type_identifier": _type_path,
    "let_declaration": _binding,
    "let_condition": _binding,
    "for_expression": _binding,
    "match_arm": _binding,
    "parameter": _binding,
    "closure_expression": _closure,
    "type_parameter": take_type_parameter,
    "string_literal": skip,
    "line_comment": take_comment,
    "block_comment": take_comment,
}
