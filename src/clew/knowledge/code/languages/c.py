"""C and C++. Qualnames have dots: `space.Class.method`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.fact_builder import Lead
from clew.knowledge.code.languages.walker import LanguageTable, Walker, named_at
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

_C = """
(preproc_include path: (_) @include)
(preproc_def) @macro_value
(preproc_function_def) @macro
(struct_specifier name: (_) body: (_)) @class
(union_specifier name: (_) body: (_)) @class
(enum_specifier name: (_) body: (_)) @class
(enumerator) @constant
(type_definition declarator: (_)) @typedef
(function_definition declarator: (_)) @function_definition
[(declaration) (field_declaration)] @declaration
(parameter_declaration declarator: (_) @parameter)
(call_expression) @call
(field_expression) @dotted
(type_identifier) @type
(identifier) @name
(comment) @comment
"""
_CPP = """
(using_declaration) @using
(namespace_alias_definition) @namespace_alias
(namespace_definition name: (_)) @module
(template_declaration parameters: (_) @template)
(class_specifier name: (_) body: (_)) @class
(base_class_clause [(type_identifier) (qualified_identifier) (template_type)] @base)
(alias_declaration) @class
(optional_parameter_declaration declarator: (_) @parameter)
(for_range_loop declarator: (_) @parameter)
(type_parameter_declaration (type_identifier) @type_parameter)
(lambda_expression) @anonymous
(new_expression) @call
(qualified_identifier) @dotted
(destructor_name) @skip
"""
_NAMES = ("destructor_name", "operator_name", "template_function")
_UNNAMED_FIELD = ("reference_declarator", "parenthesized_declarator")
_MAX_DECLARATORS = 12


def _include(walk: Walker, node: Node, start: int) -> None:
    walk.note_import(walk.label(node), "", "", node)


def _using(walk: Walker, node: Node, start: int) -> None:
    module, _, name = walk.text(named_at(node)).rpartition("::")
    if b"namespace" in walk.raw(node)[:20]:
        walk.note_import(walk.text(named_at(node)), "*", "", node)
    elif name:
        walk.note_import(module or name, name if module else "", "", node)
    walk.skip(node)


def _namespace_alias(walk: Walker, node: Node, start: int) -> None:
    walk.note_import(walk.text(named_at(node, 1)), "", walk.text(node.child_by_field_name("name")), node)
    walk.skip(node)


def _template(walk: Walker, node: Node, start: int) -> None:
    """The line of a template belongs to the definition below it."""
    walk.lead = Lead(node.start_point[0], node.end_point[0], [])


def _declared(declarator: Node | None) -> tuple[Node | None, bool]:
    """The name in a declarator, and whether it is a function rather than a pointer to one."""
    at, is_function = declarator, False
    for _ in range(_MAX_DECLARATORS):
        if at is None or at.type.endswith("identifier") or at.type in _NAMES:
            return at, is_function
        is_function = at.type == "function_declarator"
        at = at.child_by_field_name("declarator") or (named_at(at) if at.type in _UNNAMED_FIELD else None)
    return None, False


def _function_definition(walk: Walker, node: Node, start: int) -> None:
    name, is_function = _declared(node.child_by_field_name("declarator"))
    if name is not None and is_function:
        _enter_function(walk, node, name)


def _enter_function(walk: Walker, node: Node, name: Node) -> None:
    """Define a function. `Class::method` outside of its class is in the scope of the class too."""
    walk.claim(name)
    text = "".join(walk.text(name).split())
    written = text if "operator" in text or "~" in text else text.partition("(")[0]
    owner, _, last = written.rpartition("::")
    owner = owner.replace("::", ".").partition("<")[0]
    kind: SymbolKind = "method" if owner or walk.scope.role == "class" else "function"
    if owner:
        walk.enter(walk.qualify(owner), node, "class")
    walk.enter(walk.define(kind, last, node, until=node.child_by_field_name("body")), node, "function")


def _declaration(walk: Walker, node: Node, start: int) -> None:
    """Prototypes, global variables and fields are symbols; names in a function are local."""
    for declarator in node.children_by_field_name("declarator"):
        name, is_function = _declared(declarator)
        if name is None:
            continue
        if walk.scope.role == "function":
            walk.bind(name)
        elif is_function:
            _enter_function(walk, node, name)
        else:
            walk.claim(name)
            is_constant = b"const" in walk.source[start : declarator.start_byte]
            walk.define_value(walk.label(name), node, is_constant=is_constant)


def _typedef(walk: Walker, node: Node, start: int) -> None:
    """Define a type, unless its name is that of the structure in the same declaration."""
    name, _ = _declared(node.child_by_field_name("declarator"))
    kind = node.child_by_field_name("type")
    named = kind.child_by_field_name("name") if kind is not None and kind.child_by_field_name("body") else None
    if name is None or walk.scope.role == "function":
        return
    walk.claim(name)
    if named is None or walk.raw(named) != walk.raw(name):
        walk.enter(walk.define("class", walk.text(name), node), node, "class")


def _macro(walk: Walker, node: Node, start: int) -> None:
    name = walk.text(node.child_by_field_name("name"))
    walk.define("function", name, node, until=node.child_by_field_name("value"))
    walk.skip(node)


def _macro_value(walk: Walker, node: Node, start: int) -> None:
    walk.define_value(walk.text(node.child_by_field_name("name")), node, is_constant=True)
    walk.skip(node)


def _parameter(walk: Walker, node: Node, start: int) -> None:
    name, _ = _declared(node)
    if name is not None:
        walk.bind(name)


TABLES = {
    "c": LanguageTable(
        _C,
        members={"field_expression": ("argument", "field"), "qualified_identifier": ("scope", "name")},
        calls={"call_expression": "function", "new_expression": "type"},
        wrappers={
            "template_function": "name",
            "template_method": "name",
            "template_type": "name",
            "parenthesized_expression": "",
            "type_descriptor": "type",
        },
        own=(b"this.",),
        builtins=frozenset(b"this NULL nullptr size_t".split()),
        handlers={
            "include": _include,
            "using": _using,
            "namespace_alias": _namespace_alias,
            "template": _template,
            "function_definition": _function_definition,
            "declaration": _declaration,
            "typedef": _typedef,
            "macro": _macro,
            "macro_value": _macro_value,
            "parameter": _parameter,
        },
    )
}
TABLES["cpp"] = TABLES["c"]._replace(query=_C + _CPP)
