"""Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.knowledge.code.languages.walker import LanguageTable, Walker

if TYPE_CHECKING:
    from tree_sitter import Node

_QUERY = """
(package_declaration) @package
(import_declaration) @import
[(class_declaration) (record_declaration) (enum_declaration)] @class
[(interface_declaration) (annotation_type_declaration)] @interface
[
  (method_declaration) (constructor_declaration) (compact_constructor_declaration)
  (annotation_type_element_declaration)
] @method
(superclass [(type_identifier) (scoped_type_identifier)] @base)
(superclass (generic_type . (_) @base))
(super_interfaces (type_list [(type_identifier) (scoped_type_identifier)] @base))
(super_interfaces (type_list (generic_type . (_) @base)))
(extends_interfaces (type_list [(type_identifier) (scoped_type_identifier)] @base))
(extends_interfaces (type_list (generic_type . (_) @base)))
(annotation name: (_) @decorator)
(marker_annotation name: (_) @decorator)
[(field_declaration) (constant_declaration)] @field
(enum_constant) @constant
(local_variable_declaration declarator: (variable_declarator name: (_) @bind))
(formal_parameter name: (_) @bind)
(spread_parameter (variable_declarator name: (_) @bind))
(catch_formal_parameter name: (_) @bind)
(enhanced_for_statement name: (_) @bind)
(resource name: (_) @bind)
(instanceof_expression name: (_) @bind)
(lambda_expression parameters: (identifier) @bind)
(inferred_parameters (identifier) @bind)
(element_value_pair key: (_) @claim)
(type_parameter . (_) @type_parameter)
(lambda_expression) @anonymous
(object_creation_expression (class_body)) @anonymous
[(method_invocation) (object_creation_expression) (explicit_constructor_invocation)] @call
[(field_access) (method_reference)] @dotted
[(type_identifier) (scoped_type_identifier)] @type
(identifier) @name
[(line_comment) (block_comment)] @comment
"""


def _import(walk: Walker, node: Node, start: int) -> None:
    path = next((each for each in node.named_children if each.type in ("scoped_identifier", "identifier")), None)
    whole = "".join(walk.text(path).split())
    module, _, name = whole.rpartition(".")
    if any(each.type == "asterisk" for each in node.named_children):
        walk.note_import(whole, "*", "", node)
    elif whole:
        walk.note_import(module or name, name if module else "", "", node)
    walk.skip(node)


TABLES = {
    "java": LanguageTable(
        _QUERY,
        members={
            "field_access": ("object", "field"),
            "method_invocation": ("object", "name"),
            "scoped_identifier": ("scope", "name"),
        },
        calls={
            "method_invocation": "name",
            "object_creation_expression": "type",
            "explicit_constructor_invocation": "constructor",
        },
        wrappers={"generic_type": "", "parenthesized_expression": "", "annotated_type": ""},
        patterns=("variable_declarator",),
        own=(b"this.",),
        builtins=frozenset((b"this", b"super", b"String", b"Object", b"var")),
        handlers={"import": _import},
    )
}
