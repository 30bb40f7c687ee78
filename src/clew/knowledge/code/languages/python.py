"""Python."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

import msgspec

from clew.knowledge.code.languages.descriptions import describe_docstring
from clew.knowledge.code.languages.walker import LanguageTable, Walker
from clew.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from tree_sitter import Node

_QUERY = """
(import_statement) @import
[(import_from_statement) (future_import_statement)] @import_from
(class_definition) @class
(function_definition) @function
(decorator) @lead
(class_definition superclasses: (argument_list [(identifier) (attribute)] @base))
(class_definition superclasses: (argument_list (subscript value: [(identifier) (attribute)] @base)))
(class_definition type_parameters: (type_parameter (type (identifier) @type_parameter)))
(function_definition type_parameters: (type_parameter (type (identifier) @type_parameter)))
[(assignment) (type_alias_statement)] @value
(parameters (_) @bind)
(lambda_parameters (_) @bind)
(for_statement left: (_) @bind)
(for_in_clause left: (_) @bind)
(as_pattern_target (_) @bind)
(named_expression name: (_) @bind)
(case_pattern (dotted_name . (identifier) @bind .))
(keyword_pattern (dotted_name . (identifier) @bind .))
(keyword_pattern . (identifier) @claim)
(keyword_argument name: (_) @claim)
[(global_statement) (nonlocal_statement)] @skip
(lambda) @anonymous
(call) @call
[(attribute) (dotted_name)] @dotted
(identifier) @name
(type (string) @type_string)
(type (binary_operator (string) @type_string))
(block . (expression_statement . (string) @doc))
(module (expression_statement (assignment)) . (expression_statement . (string) @value_doc))
(block (expression_statement (assignment)) . (expression_statement . (string) @value_doc))
(comment) @comment
"""
_PATTERNS = (
    "pattern_list tuple_pattern list_pattern list_splat_pattern dictionary_splat_pattern as_pattern_target"
    " tuple list type default_parameter typed_parameter typed_default_parameter"
)
OWN = (b"self.", b"cls.")
BUILTINS = frozenset(name.encode() for name in dir(builtins)) | {b"self", b"cls"}
NAMES_IN_TYPE = lazy_pattern(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:\.[\w\x80-\xff]+)*")


def _import(walk: Walker, node: Node, start: int) -> None:
    for each in node.children_by_field_name("name"):
        name, alias = _imported_name(walk, each)
        walk.note_import(name, "", alias, each)
    walk.skip(node)


def _import_from(walk: Walker, node: Node, start: int) -> None:
    source = node.child_by_field_name("module_name")
    module = "".join(walk.text(source).split()) if source is not None else "__future__"
    for each in node.children_by_field_name("name"):
        walk.note_import(module, *_imported_name(walk, each), each)
    if any(each.type == "wildcard_import" for each in node.named_children):
        walk.note_import(module, "*", "", node)
    walk.skip(node)


def _imported_name(walk: Walker, node: Node) -> tuple[str, str]:
    name = "".join(walk.text(node.child_by_field_name("name") or node).split())
    return name, walk.text(node.child_by_field_name("alias"))


def _type_string(walk: Walker, node: Node, start: int) -> None:
    """The names in an annotation that is written as a string."""
    for found in NAMES_IN_TYPE.findall(walk.raw(node)[:2_000]):
        walk.relate("reference", found, node)


def _doc(walk: Walker, node: Node, start: int) -> None:
    """The string that opens a definition."""
    if walk.symbols and walk.symbols[-1].qualname == walk.scope.name:
        _describe(walk, node)


def _value_doc(walk: Walker, node: Node, start: int) -> None:
    """The string below a value."""
    last = walk.symbols[-1] if walk.symbols else None
    if last is not None and last.kind in ("constant", "variable") and last.line_end == node.start_point[0]:
        _describe(walk, node)


def _describe(walk: Walker, string: Node) -> None:
    if doc := describe_docstring(walk.raw(string)):
        walk.symbols[-1] = msgspec.structs.replace(walk.symbols[-1], doc=doc)


TABLES = {
    "python": LanguageTable(
        _QUERY,
        members={"attribute": ("object", "attribute")},
        calls={"call": "function"},
        patterns=frozenset(_PATTERNS.split()),
        own=OWN,
        builtins=BUILTINS,
        handlers={
            "import": _import,
            "import_from": _import_from,
            "type_string": _type_string,
            "doc": _doc,
            "value_doc": _value_doc,
        },
    )
}
