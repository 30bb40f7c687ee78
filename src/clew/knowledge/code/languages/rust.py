"""Rust. Qualnames have dots (`Type.method`, `module.function`); imports keep their paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.knowledge.code.languages import handlers
from clew.knowledge.code.languages.walker import Syntax, Walker, named_at

if TYPE_CHECKING:
    from tree_sitter import Node

SYNTAX = Syntax(
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
_PATTERNS = (
    "tuple_pattern slice_pattern ref_pattern mut_pattern reference_pattern captured_pattern or_pattern match_pattern"
    " tuple_struct_pattern struct_pattern field_pattern remaining_field_pattern"
)


def _inner_patterns(node: Node) -> list[Node]:
    """The parts of a pattern without the type that it matches."""
    kind = node.child_by_field_name("type")
    return [each for each in node.named_children if each != kind]


_names = handlers.names_in(("identifier", "shorthand_field_identifier"), frozenset(_PATTERNS.split()), _inner_patterns)


def _module(walk: Walker, node: Node, start: int) -> bool:
    """A module without a body is another file."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is None:
        return True
    walk.claim(name)
    if body is None:
        walk.add_import(f"self::{walk.text(name)}", "", "", node)
    else:
        walk.enter(walk.define("module", walk.text(name), node, until=body), node.end_byte, "module")
    return True


def _impl(walk: Walker, node: Node, start: int) -> bool:
    kind, trait = node.child_by_field_name("type"), node.child_by_field_name("trait")
    walk.lead = None
    if kind is None:
        return True
    walk.enter(walk.qualify(walk.dotted(kind).lstrip(".")), node.end_byte, "class")
    if trait is not None:
        walk.inherit(walk.target_of(trait), trait)
    walk.claim(kind)
    return True


def _bounds(walk: Walker, node: Node, start: int) -> bool:
    last = walk.symbols[-1] if walk.symbols else None
    is_trait = last is not None and last.kind == "interface" and last.qualname == walk.scope.name
    if is_trait and walk.scope.role == "class":
        for each in node.named_children:
            walk.inherit(walk.target_of(each), each)
    return True


def _attribute(walk: Walker, node: Node, start: int) -> bool:
    attribute = named_at(node)
    if attribute is None:
        return False
    name, arguments = named_at(attribute), attribute.child_by_field_name("arguments")
    targets = [walk.pure_target(name)] if name is not None else []
    if targets == [b"derive"] and arguments is not None:
        targets = [walk.raw(each) for each in arguments.named_children if each.type == "identifier"]
    walk.add_lead(node, [(target, node.start_point[0]) for target in targets if target])
    return False


def _use(walk: Walker, node: Node, start: int) -> bool:
    argument = node.child_by_field_name("argument")
    for module, name, alias, at in _use_tree(walk, argument) if argument is not None else ():
        walk.add_import(module, name, alias, at)
    return False


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
            whole = _join(before, walk.text(path or node)).removesuffix("::self")
            module, _, name = whole.rpartition("::")
            yield module or whole, name if module else "", walk.text(alias), node


def _join(before: str, after: str) -> str:
    after = "".join(after.split())
    return f"{before}::{after}" if before and after else before or after


def _extern(walk: Walker, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None:
        walk.add_import(walk.text(name), "", walk.text(node.child_by_field_name("alias")), node)
    return False


def _macro(walk: Walker, node: Node, start: int) -> bool:
    name = node.child_by_field_name("macro")
    if name is not None:
        walk.claim(name)
        walk.call(walk.pure_target(name), node)
    return True


def _tokens(walk: Walker, node: Node, start: int) -> bool:
    """The grammar does not parse macros: a name before a parenthesis counts as a call."""
    end, name = walk.last_name
    if end == start and walk.source[start : start + 1] == b"(":
        walk.call(name, node)
    return True


def _name(walk: Walker, node: Node, start: int) -> bool:
    if start not in walk.claimed:
        end = node.end_byte
        text = walk.source[start:end]
        walk.last_name = (end, text)
        if walk.source[end : end + 1] != b"(":
            walk.mention(text, node, start)
    return False


def _type_path(walk: Walker, node: Node, start: int) -> bool:
    if start not in walk.claimed:
        walk.relate("reference", walk.target_of(node), node)
    return False


def _closure(walk: Walker, node: Node, start: int) -> bool:
    walk.enter_anonymous(node)
    parameters = node.child_by_field_name("parameters")
    for each in parameters.named_children if parameters is not None else ():
        for name in _names(each):
            walk.bind(name)
    return True


_FUNCTIONS = "function_item function_signature_item macro_definition"
_BINDINGS = "let_declaration let_condition for_expression match_arm parameter"
TABLE = handlers.by_kind(
    {
        handlers.symbol("class", "class", bind=True): "struct_item union_item enum_item type_item",
        handlers.symbol("interface", "class", bind=True): "trait_item",
        handlers.symbol("function", "function", bind=True): _FUNCTIONS,
        _module: "mod_item",
        _impl: "impl_item",
        _bounds: "trait_bounds",
        handlers.value(is_constant=True, bind=True): "const_item static_item enum_variant",
        handlers.value(is_constant=False, bind=True): "field_declaration associated_type",
        _attribute: "attribute_item",
        _use: "use_declaration",
        _extern: "extern_crate_declaration",
        handlers.call: "call_expression",
        _macro: "macro_invocation",
        _tokens: "token_tree",
        _name: "identifier",
        handlers.dotted(): "field_expression scoped_identifier",
        handlers.type_name: "type_identifier",
        _type_path: "scoped_type_identifier",
        handlers.bind(_names, "pattern"): _BINDINGS,
        _closure: "closure_expression",
        handlers.type_parameter: "type_parameter",
        handlers.skip: "string_literal",
        handlers.comment: "line_comment block_comment",
    }
)
