"""Rust. Qualnames have dots (`Type.method`, `module.function`); imports keep their paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.knowledge.code.languages.walker import LanguageTable, Walker, named_at

if TYPE_CHECKING:
    from tree_sitter import Node

_QUERY = """
[(struct_item) (union_item) (enum_item) (type_item)] @class
(trait_item) @interface
[(function_item) (function_signature_item) (macro_definition)] @function
(mod_item body: (_)) @module
(mod_item !body name: (_) @module_file)
(impl_item type: (_)) @impl
(trait_item bounds: (trait_bounds (_) @base))
[(const_item) (static_item) (enum_variant)] @constant
[(field_declaration) (associated_type)] @variable
(attribute_item) @attribute
(inner_attribute_item) @skip
(use_declaration argument: (_) @use)
(extern_crate_declaration) @extern
(let_declaration pattern: (_) @bind)
(let_condition pattern: (_) @bind)
(for_expression pattern: (_) @bind)
(match_arm pattern: (_) @bind)
(parameter pattern: (_) @bind)
(closure_parameters (_) @bind)
(type_parameter name: (_) @type_parameter)
(closure_expression) @anonymous
[(call_expression) (macro_invocation)] @call
(token_tree (identifier) @token_call . (token_tree . "("))
[(field_expression) (scoped_identifier)] @dotted
[(type_identifier) (scoped_type_identifier)] @type
(identifier) @name
[(line_comment) (block_comment)] @comment
"""
_PATTERNS = (
    "tuple_pattern slice_pattern ref_pattern mut_pattern reference_pattern captured_pattern or_pattern match_pattern"
    " tuple_struct_pattern struct_pattern field_pattern remaining_field_pattern parameter"
)


def _module_file(walk: Walker, node: Node, start: int) -> None:
    """A module without a body is another file."""
    walk.claim(node)
    walk.note_import(f"self::{walk.text(node)}", "", "", node)


def _impl(walk: Walker, node: Node, start: int) -> None:
    kind, trait = node.child_by_field_name("type"), node.child_by_field_name("trait")
    walk.lead = None
    if kind is not None:
        walk.enter(walk.qualify(walk.target_of(kind).decode("utf-8", "replace").lstrip(".")), node, "class")
        walk.claim(kind)
    if trait is not None:
        walk.relate("inherit", walk.target_of(trait), trait)
        walk.claim(trait)


def _attribute(walk: Walker, node: Node, start: int) -> None:
    attribute = named_at(node)
    name = named_at(attribute)
    target = walk.pure_target(name) if name is not None else b""
    arguments = attribute.child_by_field_name("arguments") if attribute is not None and target == b"derive" else None
    derived = arguments.named_children if arguments is not None else ()
    walk.add_lead(node, [walk.raw(each) for each in derived if each.type == "identifier"] or [target])
    walk.skip(node)


def _use(walk: Walker, node: Node, start: int) -> None:
    for module, name, alias, at in _use_tree(walk, node):
        walk.note_import(module, name, alias, at)
    walk.skip(node)


def _use_tree(walk: Walker, argument: Node) -> Iterator[tuple[str, str, str, Node]]:
    """The paths of a tree of uses, in the order of the file."""
    pending = [(argument, "")]
    while pending:
        node, before = pending.pop()
        if node.type in ("scoped_use_list", "use_list"):
            inner = _join(before, walk.text(node.child_by_field_name("path")))
            listed = node.child_by_field_name("list") or node
            pending.extend((each, inner) for each in reversed(listed.named_children) if "comment" not in each.type)
        elif node.type == "use_wildcard":
            yield _join(before, walk.text(named_at(node))), "*", "", node
        else:
            is_renamed = node.type == "use_as_clause"
            alias = node.child_by_field_name("alias") if is_renamed else None
            path = node.child_by_field_name("path") if is_renamed else node
            whole = _join(before, walk.text(path)).removesuffix("::self")
            module, _, name = whole.rpartition("::")
            yield module or whole, name if module else "", walk.text(alias), node


def _join(before: str, after: str) -> str:
    after = "".join(after.split())
    return f"{before}::{after}" if before and after else before or after


def _extern(walk: Walker, node: Node, start: int) -> None:
    name, alias = node.child_by_field_name("name"), node.child_by_field_name("alias")
    walk.note_import(walk.text(name), "", walk.text(alias), node)
    walk.skip(node)


def _token_call(walk: Walker, node: Node, start: int) -> None:
    """The grammar does not parse the arguments of macros, so a name before a parenthesis is treated as a call."""
    if walk.source[node.end_byte : node.end_byte + 1] in (b"(", b"!"):
        walk.claim(node)
        walk.call(walk.raw(node), node)


TABLES = {
    "rust": LanguageTable(
        _QUERY,
        members={
            "field_expression": ("value", "field"),
            "scoped_identifier": ("path", "name"),
            "scoped_type_identifier": ("path", "name"),
        },
        calls={"call_expression": "function", "macro_invocation": "macro"},
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
        names=("identifier", "shorthand_field_identifier", "field_identifier", "type_identifier"),
        patterns=frozenset(_PATTERNS.split()),
        own=(b"self.", b"Self."),
        builtins=frozenset(b"self Self Some None Ok Err Option Result Vec String Box _ super crate".split()),
        handlers={
            "module_file": _module_file,
            "impl": _impl,
            "attribute": _attribute,
            "use": _use,
            "extern": _extern,
            "token_call": _token_call,
        },
    )
}
