"""C and C++. Names are written with dots (`space.Class.method`) wherever they are found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.grammar import Handler, Shape
from clew.knowledge.code.languages.handlers import (
    skip,
    take_call,
    take_comment,
    take_dotted,
    take_name,
    take_type,
    take_type_parameter,
)
from clew.knowledge.code.languages.nodes import named_at
from clew.knowledge.code.languages.scopes import Lead
from clew.knowledge.code.languages.walker import Walk
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SHAPE = Shape(
    members={"field_expression": ("argument", "field"), "qualified_identifier": ("scope", "name")},
    calls={"call_expression": "function"},
    wrappers={
        "template_function": "name",
        "template_method": "name",
        "template_type": "name",
        "parenthesized_expression": "",
        "type_descriptor": "type",
    },
    own=(b"this.",),
    builtins=frozenset(b"this NULL nullptr size_t".split()),
)
_MAX_DECLARATORS = 12


def _include(walk: Walk, node: Node, start: int) -> bool:
    path = node.child_by_field_name("path")
    if path is not None:
        walk.bring(walk.text(path).strip('"'), "", "", node)
    return False


def _using(walk: Walk, node: Node, start: int) -> bool:
    path = named_at(node)
    if path is None:
        return False
    if b"namespace" in walk.raw(node)[:20]:
        walk.bring(walk.text(path), "*", "", node)
    else:
        module, _, name = walk.text(path).rpartition("::")
        walk.bring(module or name, name if module else "", "", node)
    return False


def _space_alias(walk: Walk, node: Node, start: int) -> bool:
    name, path = node.child_by_field_name("name"), named_at(node, 1)
    if name is not None and path is not None:
        walk.bring(walk.text(path), "", walk.text(name), node)
    return False


def _space(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is None:
        return True
    text = walk.pure_target(name).decode("utf-8", "replace")
    walk.skips.add(name.start_byte)
    walk.enter(walk.define("module", text, node, until=node.child_by_field_name("body")), node.end_byte, "module")
    return True


def _template(walk: Walk, node: Node, start: int) -> bool:
    """The line above a definition that makes it one for many types belongs to it."""
    parameters = node.child_by_field_name("parameters")
    if parameters is not None:
        walk.lead = Lead(node.start_point[0], parameters.end_point[0], [])
    return True


def _class(walk: Walk, node: Node, start: int) -> bool:
    """A type with a body is defined; one without is only named."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if body is None or name is None or walk.scope.role == "function":
        return True
    walk.skips.add(name.start_byte)
    bases = next((each for each in node.named_children if each.type == "base_class_clause"), None)
    text = walk.target_of(name).decode("utf-8", "replace")
    walk.enter(walk.define("class", text, node, until=body), node.end_byte, "class")
    for base in bases.named_children if bases is not None else ():
        if base.type in ("type_identifier", "qualified_identifier", "template_type"):
            walk.relate("inherit", walk.target_of(base), base)
            walk.skips.add(base.start_byte)
    return True


def _function(walk: Walk, node: Node, start: int) -> bool:
    declarator = _function_declarator(node)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    if declarator is None or name is None:
        return True
    walk.skips.add(name.start_byte)
    _open_function(walk, node, name, node.child_by_field_name("body"))
    return True


def _open_function(walk: Walk, node: Node, name: Node, body: Node | None) -> None:
    """`Class::method` outside of its class is in the scope of the class all the same."""
    owner, _, last = _qualified(walk, name).rpartition("::")
    owner = owner.replace("::", ".").partition("<")[0]
    kind: SymbolKind = "method" if owner or walk.scope.role == "class" else "function"
    if owner:
        walk.enter(walk.qualify(owner), node.end_byte, "class")
    walk.enter(walk.define(kind, last, node, until=body), node.end_byte, "function")


def _qualified(walk: Walk, name: Node) -> str:
    text = "".join(walk.text(name).split())
    return text if "operator" in text or "~" in text else text.partition("(")[0]


def _function_declarator(node: Node) -> Node | None:
    """The part with the parameters, below pointers and references."""
    at: Node | None = node.child_by_field_name("declarator")
    for _ in range(_MAX_DECLARATORS):
        if at is None or at.type == "function_declarator":
            return at
        at = at.child_by_field_name("declarator") or (named_at(at) if at.type == "reference_declarator" else None)
    return None


def _declaration(walk: Walk, node: Node, start: int) -> bool:
    """Prototypes, variables at the top and fields are symbols; in a function, names to leave out."""
    for declarator in node.children_by_field_name("declarator"):
        name = _declared_name(declarator)
        if name is None:
            continue
        if walk.scope.role == "function":
            walk.bind(name)
        elif _is_prototype(declarator):
            walk.skips.add(name.start_byte)
            _open_function(walk, node, name, None)
        else:
            walk.skips.add(name.start_byte)
            head = walk.source[start : declarator.start_byte]
            walk.define_value(walk.text(name).replace("::", "."), node, is_constant=b"const" in head)
    return True


def _declared_name(declarator: Node) -> Node | None:
    at: Node | None = declarator
    for _ in range(_MAX_DECLARATORS):
        if at is None or at.type.endswith("identifier") or at.type in ("destructor_name", "operator_name"):
            return at
        below = at.child_by_field_name("declarator")
        at = below or (named_at(at) if at.type in ("reference_declarator", "parenthesized_declarator") else None)
    return None


def _is_prototype(declarator: Node) -> bool:
    at: Node | None = declarator
    for _ in range(_MAX_DECLARATORS):
        if at is None:
            return False
        if at.type == "function_declarator":
            inner = at.child_by_field_name("declarator")
            return inner is not None and inner.type != "parenthesized_declarator"
        if at.type not in ("pointer_declarator", "reference_declarator"):
            return False
        at = at.child_by_field_name("declarator") or named_at(at)
    return False


def _typedef(walk: Walk, node: Node, start: int) -> bool:
    declarator = node.child_by_field_name("declarator")
    name = _declared_name(declarator) if declarator is not None else None
    if name is None or walk.scope.role == "function":
        return True
    walk.skips.add(name.start_byte)
    kind = node.child_by_field_name("type")
    body = kind.child_by_field_name("body") if kind is not None else None
    named = kind.child_by_field_name("name") if kind is not None else None
    if body is None or named is None or walk.raw(named) != walk.raw(name):
        walk.enter(walk.define("class", walk.text(name), node), node.end_byte, "class")
    return True


def _alias(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None and walk.scope.role != "function":
        walk.skips.add(name.start_byte)
        walk.define("class", walk.text(name), node)
    return True


def _macro(kind: SymbolKind) -> Handler:
    def handle(walk: Walk, node: Node, start: int) -> bool:
        name = node.child_by_field_name("name")
        if name is not None and kind == "constant":
            walk.define_value(walk.text(name), node, is_constant=True)
        elif name is not None:
            walk.define(kind, walk.text(name), node, until=node.child_by_field_name("value"))
        return False

    return handle


def _enumerator(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None:
        walk.skips.add(name.start_byte)
        if walk.scope.role != "function":
            walk.define_value(walk.text(name), node, is_constant=True)
    return True


def _parameter(walk: Walk, node: Node, start: int) -> bool:
    declarator = node.child_by_field_name("declarator")
    name = _declared_name(declarator) if declarator is not None else None
    if name is not None:
        walk.bind(name)
    return True


def _lambda(walk: Walk, node: Node, start: int) -> bool:
    walk.enter_nameless(node)
    return True


def _path(walk: Walk, node: Node, start: int) -> bool:
    return take_dotted(walk, node, start, "name")


TABLE: dict[str, Handler] = {
    "preproc_include": _include,
    "using_declaration": _using,
    "namespace_alias_definition": _space_alias,
    "namespace_definition": _space,
    "template_declaration": _template,
    "class_specifier": _class,
    "struct_specifier": _class,
    "union_specifier": _class,
    "enum_specifier": _class,
    "function_definition": _function,
    "declaration": _declaration,
    "field_declaration": _declaration,
    "type_definition": _typedef,
    "alias_declaration": _alias,
    "preproc_def": _macro("constant"),
    "preproc_function_def": _macro("function"),
    "enumerator": _enumerator,
    "parameter_declaration": _parameter,
    "optional_parameter_declaration": _parameter,
    "for_range_loop": _parameter,
    "destructor_name": skip,
    "lambda_expression": _lambda,
    "call_expression": take_call,
    "new_expression": take_call,
    "field_expression": _path,
    "qualified_identifier": _path,
    "type_parameter_declaration": take_type_parameter,
    "identifier": take_name,
    "type_identifier": take_type,
    "string_literal": skip,
    "comment": take_comment,
}
