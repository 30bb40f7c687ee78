"""C and C++. Qualnames have dots: `space.Class.method`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages import handlers
from clew.knowledge.code.languages.walker import Lead, Syntax, Walker, named_at
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SYNTAX = Syntax(
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


def _include(walk: Walker, node: Node, start: int) -> bool:
    path = node.child_by_field_name("path")
    if path is not None:
        walk.add_import(walk.text(path).strip('"'), "", "", node)
    return False


def _using(walk: Walker, node: Node, start: int) -> bool:
    path = named_at(node)
    if path is not None and b"namespace" in walk.raw(node)[:20]:
        walk.add_import(walk.text(path), "*", "", node)
    elif path is not None:
        module, _, name = walk.text(path).rpartition("::")
        walk.add_import(module or name, name if module else "", "", node)
    return False


def _namespace_alias(walk: Walker, node: Node, start: int) -> bool:
    name, path = node.child_by_field_name("name"), named_at(node, 1)
    if name is not None and path is not None:
        walk.add_import(walk.text(path), "", walk.text(name), node)
    return False


def _namespace(walk: Walker, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None:
        walk.claim(name)
        text = walk.pure_target(name).decode("utf-8", "replace")
        walk.enter(walk.define("module", text, node, until=node.child_by_field_name("body")), node.end_byte, "module")
    return True


def _template(walk: Walker, node: Node, start: int) -> bool:
    """The line of a template belongs to the definition below it."""
    parameters = node.child_by_field_name("parameters")
    if parameters is not None:
        walk.lead = Lead(node.start_point[0], parameters.end_point[0], [])
    return True


def _class(walk: Walker, node: Node, start: int) -> bool:
    """A type with a body is a definition; a type without one is a use."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if body is None or name is None or walk.scope.role == "function":
        return True
    walk.claim(name)
    walk.enter(walk.define("class", walk.dotted(name), node, until=body), node.end_byte, "class")
    bases = next((each for each in node.named_children if each.type == "base_class_clause"), None)
    for base in bases.named_children if bases is not None else ():
        if base.type in ("type_identifier", "qualified_identifier", "template_type"):
            walk.inherit(walk.target_of(base), base)
    return True


def _function(walk: Walker, node: Node, start: int) -> bool:
    declarator: Node | None = node.child_by_field_name("declarator")
    for _ in range(_MAX_DECLARATORS):
        if declarator is None or declarator.type == "function_declarator":
            break
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or (named_at(declarator) if declarator.type == "reference_declarator" else None)
    else:
        declarator = None
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    if name is not None:
        walk.claim(name)
        _enter_function(walk, node, name, node.child_by_field_name("body"))
    return True


def _enter_function(walk: Walker, node: Node, name: Node, body: Node | None) -> None:
    """Define a function. `Class::method` outside of its class is in the scope of the class too."""
    text = "".join(walk.text(name).split())
    written = text if "operator" in text or "~" in text else text.partition("(")[0]
    owner, _, last = written.rpartition("::")
    owner = owner.replace("::", ".").partition("<")[0]
    kind: SymbolKind = "method" if owner or walk.scope.role == "class" else "function"
    if owner:
        walk.enter(walk.qualify(owner), node.end_byte, "class")
    walk.enter(walk.define(kind, last, node, until=body), node.end_byte, "function")


def _declaration(walk: Walker, node: Node, start: int) -> bool:
    """Prototypes, global variables and fields are symbols; names in a function are local."""
    for declarator in node.children_by_field_name("declarator"):
        name = _declared_name(declarator)
        if name is None:
            continue
        if walk.scope.role == "function":
            walk.bind(name)
            continue
        walk.claim(name)
        if _is_prototype(declarator):
            _enter_function(walk, node, name, None)
        else:
            is_constant = b"const" in walk.source[start : declarator.start_byte]
            walk.define_value(walk.text(name).replace("::", "."), node, is_constant=is_constant)
    return True


def _declared_name(declarator: Node | None) -> Node | None:
    at = declarator
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


def _typedef(walk: Walker, node: Node, start: int) -> bool:
    name = _declared_name(node.child_by_field_name("declarator"))
    if name is None or walk.scope.role == "function":
        return True
    walk.claim(name)
    kind = node.child_by_field_name("type")
    body = kind.child_by_field_name("body") if kind is not None else None
    named = kind.child_by_field_name("name") if kind is not None else None
    if body is None or named is None or walk.raw(named) != walk.raw(name):
        walk.enter(walk.define("class", walk.text(name), node), node.end_byte, "class")
    return True


def _alias(walk: Walker, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None and walk.scope.role != "function":
        walk.claim(name)
        walk.define("class", walk.text(name), node)
    return True


def _macro(walk: Walker, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None and node.type == "preproc_def":
        walk.define_value(walk.text(name), node, is_constant=True)
    elif name is not None:
        walk.define("function", walk.text(name), node, until=node.child_by_field_name("value"))
    return False


def _parameter(walk: Walker, node: Node, start: int) -> bool:
    name = _declared_name(node.child_by_field_name("declarator"))
    if name is not None:
        walk.bind(name)
    return True


TABLE = handlers.by_kind(
    {
        _include: "preproc_include",
        _using: "using_declaration",
        _namespace_alias: "namespace_alias_definition",
        _namespace: "namespace_definition",
        _template: "template_declaration",
        _class: "class_specifier struct_specifier union_specifier enum_specifier",
        _function: "function_definition",
        _declaration: "declaration field_declaration",
        _typedef: "type_definition",
        _alias: "alias_declaration",
        _macro: "preproc_def preproc_function_def",
        _parameter: "parameter_declaration optional_parameter_declaration for_range_loop",
        handlers.value(is_constant=True): "enumerator",
        handlers.anonymous: "lambda_expression",
        handlers.call: "call_expression new_expression",
        handlers.dotted("name"): "field_expression qualified_identifier",
        handlers.type_parameter: "type_parameter_declaration",
        handlers.name: "identifier",
        handlers.type_name: "type_identifier",
        handlers.skip: "destructor_name string_literal",
        handlers.comment: "comment",
    }
)
