"""JavaScript, TypeScript and their dialects with markup. An export under another name is an import from the file
itself, with an empty module."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.knowledge.code.languages import walker
from clew.knowledge.code.languages.walker import LanguageTable, Walker, named_at

if TYPE_CHECKING:
    from tree_sitter import Node

_BASE = """
(import_statement) @import
(export_statement) @export
[(class_declaration) (class name: (_))] @class
[(function_declaration) (generator_function_declaration)] @function
(method_definition) @class_method
[(arrow_function) (function_expression) (generator_function) (class !name)] @anonymous
(variable_declarator name: (identifier) value: [(arrow_function) (function_expression) (generator_function)]) @closure
(pair value: [(arrow_function) (function_expression) (generator_function)]) @closure
(variable_declarator) @declarator
(assignment_expression left: (member_expression)) @assignment
(export_statement decorator: (decorator) @lead)
(formal_parameters (_) @bind)
(arrow_function parameter: (_) @bind)
(function_expression name: (_) @bind)
(for_in_statement left: (_) @bind)
(catch_clause parameter: (_) @bind)
[(call_expression) (new_expression)] @call
(member_expression) @dotted
[(identifier) (shorthand_property_identifier)] @name
(comment) @comment
"""
_SCRIPT = """
(class_heritage [(identifier) (member_expression)] @base)
(class_declaration decorator: (decorator (_) @decorator))
(method_definition decorator: (decorator (_) @decorator))
(field_definition decorator: (decorator (_) @decorator))
(field_definition property: (_) value: [(arrow_function) (function_expression)]) @closure
(field_definition) @property
"""
_TYPES = """
[(abstract_class_declaration) (enum_declaration)] @class
[(interface_declaration) (type_alias_declaration)] @interface
(function_signature) @function
[(internal_module) (module)] @module
[(method_signature) (abstract_method_signature)] @class_method
(public_field_definition name: (_) value: [(arrow_function) (function_expression)]) @closure
[(public_field_definition) (property_signature)] @property
(enum_assignment) @constant
(enum_body (property_identifier) @constant)
(extends_clause value: [(identifier) (member_expression)] @base)
(implements_clause [(type_identifier) (nested_type_identifier)] @base)
(implements_clause (generic_type name: (_) @base))
(extends_type_clause type: [(type_identifier) (nested_type_identifier)] @base)
(extends_type_clause type: (generic_type name: (_) @base))
(class_body (decorator) @lead)
(class_declaration decorator: (decorator (_) @decorator))
(public_field_definition decorator: (decorator (_) @decorator))
(type_parameter name: (_) @type_parameter)
[(nested_type_identifier) (type_identifier)] @type
"""
_MARKUP = """
(jsx_opening_element name: (_) @element)
(jsx_self_closing_element name: (_) @element)
(jsx_closing_element) @skip
"""
_FUNCTIONS = frozenset(("arrow_function", "function_expression", "generator_function"))
_PATTERNS = (
    "object_pattern array_pattern pair_pattern rest_pattern assignment_pattern object_assignment_pattern"
    " required_parameter optional_parameter"
)
_GLOBAL = re.compile(r"(?:module\.)?exports\.|module\.(?=exports$)|(?:window|globalThis|global|self)\.")
"""Prefixes of names that belong to the module or the program."""


def _closure(walk: Walker, node: Node, start: int) -> None:
    """A function that is the value of a name. In an object without a name, the function has no name either."""
    fields = map(node.child_by_field_name, ("name", "key", "property"))
    name, value = next((found for found in fields if found is not None), None), node.child_by_field_name("value")
    is_variable = node.type == "variable_declarator"
    if name is None or value is None or not (is_variable or walk.scope.role == "class"):
        return
    if is_variable:
        walk.bind(name)
    walk.claim(name)
    until = value.child_by_field_name("body")
    qualname = walk.define("function" if is_variable else "method", walk.label(name), node, until=until)
    walk.enter(qualname, node, "function")


def _class_method(walk: Walker, node: Node, start: int) -> None:
    """A method of a class or of an object. A method of an object within a function has no name."""
    (walker.anonymous if walk.scope.role == "function" else walker.ACTIONS["function"])(walk, node, start)


def _property(walk: Walker, node: Node, start: int) -> None:
    """A field of a class or an interface."""
    name, value = (
        node.child_by_field_name("name") or node.child_by_field_name("property"),
        node.child_by_field_name("value"),
    )
    if name is not None and walk.scope.role == "class" and (value is None or value.type not in _FUNCTIONS):
        walk.claim(name)
        walk.define_value(walk.label(name), node, is_constant=walk.text(name).isupper())


def _declarator(walk: Walker, node: Node, start: int) -> None:
    """A variable. An object that it names is a scope for its methods."""
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or (value is not None and value.type in _FUNCTIONS and name.type == "identifier"):
        return
    if value is not None and (module := _required_module(walk, value)):
        walker.bind(walk, name, start)
        _import_required(walk, node, name, value, module)
        return
    walker.ACTIONS["value"](walk, node, start)
    is_object = name.type == "identifier" and value is not None and value.type == "object"
    if is_object and walk.scope.role != "function":
        walk.enter(walk.qualify(walk.text(name)), node, "class")


def _assignment(walk: Walker, node: Node, start: int) -> None:
    """`exports.f = function`, `Class.prototype.m = function` and `app.m = wrap(function)` define."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None or walk.scope.role == "function":
        return
    target = walk.pure_target(left).decode("utf-8", "replace")
    name = _GLOBAL.sub("", target).replace(".prototype.", ".")
    is_function = right.type in _FUNCTIONS
    is_call = right.type == "call_expression" and not _required_module(walk, right)
    is_other = name in ("", "exports") or name.startswith(("this.", "super.")) or name.endswith(".prototype")
    if is_other or not (is_function or is_call):
        return
    walk.claim(left)
    owner, _, last = name.rpartition(".")
    if owner:
        walk.enter(walk.qualify(owner), node, "class")
    if is_call:
        walk.define_value(last, node, is_constant=False)
        return
    qualname = walk.define("method" if owner else "function", last, node, until=right.child_by_field_name("body"))
    walk.enter(qualname, node, "function")


def _call(walk: Walker, node: Node, start: int) -> None:
    """A call. A call of `require` or `import()` is an import, unless a declaration has recorded it already."""
    if start not in walk.claimed and (module := _required_module(walk, node)):
        walk.note_import(module, "", "", node)
        walk.claimed.add(start)
    walker.call(walk, node, start)


def _element(walk: Walker, node: Node, start: int) -> None:
    """Markup uses components by names that begin with a capital letter."""
    walk.claim(node)
    if walk.source[start : start + 1].isupper() or node.type == "member_expression":
        walk.call(walk.pure_target(node), node)


def _import(walk: Walker, node: Node, start: int) -> None:
    walk.skip(node)
    source, clause = node.child_by_field_name("source"), named_at(node)
    if clause is not None and clause.type == "import_require_clause":
        walk.note_import(walk.label(clause.child_by_field_name("source")), "", walk.text(named_at(clause)), node)
    elif source is not None and (clause is None or clause.type != "import_clause"):
        walk.note_import(walk.text(source).strip("'\""), "", "", node)
    elif source is not None and clause is not None:
        for each in clause.named_children:
            _import_clause(walk, walk.label(source), each)


def _import_clause(walk: Walker, module: str, clause: Node) -> None:
    if clause.type == "identifier":
        walk.note_import(module, "default", walk.text(clause), clause)
    elif clause.type == "namespace_import":
        walk.note_import(module, "", walk.text(named_at(clause)), clause)
    else:
        _import_listed(walk, module, clause)


def _import_listed(walk: Walker, module: str, listed: Node) -> None:
    for each in listed.named_children:
        name, alias = each.child_by_field_name("name"), each.child_by_field_name("alias")
        if name is not None and (module or alias is not None):
            walk.note_import(module, walk.label(name), walk.label(alias), each)


def _export(walk: Walker, node: Node, start: int) -> None:
    source = node.child_by_field_name("source")
    module = walk.label(source)
    listed = [each for each in node.named_children if each.type in ("export_clause", "namespace_export")]
    for each in listed:
        if each.type == "export_clause":
            _import_listed(walk, module, each)
        else:
            walk.note_import(module, "", walk.label(named_at(each)), node)
    if source is not None and not listed:
        walk.note_import(module, "*", "", node)
    if source is not None or listed:
        walk.skip(node)
    elif any(each.type == "default" for each in node.children[:3]):
        _export_default(walk, node)


def _export_default(walk: Walker, node: Node) -> None:
    value = node.child_by_field_name("value") or node.child_by_field_name("declaration")
    name = value.child_by_field_name("name") if value is not None and value.type != "identifier" else value
    if name is not None and (target := walk.pure_target(name)):
        walk.note_import("", target.decode("utf-8", "replace"), "default", node)


def _required_module(walk: Walker, value: Node) -> str:
    """The module in `require("m")`, `await import("m")` or `require("m").name`. Empty for other expressions."""
    if value.type == "member_expression":
        value = value.child_by_field_name("object") or value
    if value.type == "await_expression":
        value = named_at(value) or value
    function = value.child_by_field_name("function") if value.type == "call_expression" else None
    if function is None or walk.raw(function)[:8] not in (b"require", b"import"):
        return ""
    string = named_at(value.child_by_field_name("arguments"))
    return walk.label(string) if string is not None and string.type == "string" else ""


def _import_required(walk: Walker, node: Node, name: Node, value: Node, module: str) -> None:
    """Record the names that a declaration takes from a required module."""
    is_wrapped = value.type in ("member_expression", "await_expression")
    walk.claim(named_at(value) if is_wrapped else value)
    if name.type == "identifier":
        taken = value.child_by_field_name("property") if value.type == "member_expression" else None
        walk.note_import(module, walk.text(taken), walk.text(name), node)
        return
    for each in name.named_children:
        key, bound = each.child_by_field_name("key"), each.child_by_field_name("value")
        if key is not None and bound is not None:
            walk.note_import(module, walk.text(key), walk.text(bound), node)
        elif each.type == "shorthand_property_identifier_pattern":
            walk.note_import(module, walk.text(each), "", node)


_JAVASCRIPT = LanguageTable(
    _BASE + _SCRIPT + _MARKUP,
    members={"member_expression": ("object", "property"), "nested_type_identifier": ("module", "name")},
    calls={"call_expression": "function", "new_expression": "constructor"},
    wrappers={
        "generic_type": "name",
        "instantiation_expression": "",
        "non_null_expression": "",
        "parenthesized_expression": "",
        "await_expression": "",
    },
    names=("identifier", "shorthand_property_identifier_pattern", "property_identifier", "type_identifier"),
    patterns=frozenset(_PATTERNS.split()),
    own=(b"this.",),
    builtins=frozenset((b"this", b"super", b"undefined", b"arguments")),
    handlers={
        "import": _import,
        "export": _export,
        "closure": _closure,
        "class_method": _class_method,
        "property": _property,
        "declarator": _declarator,
        "assignment": _assignment,
        "element": _element,
        "call": _call,
    },
)
TABLES = {
    "javascript": _JAVASCRIPT,
    "typescript": _JAVASCRIPT._replace(query=_BASE + _TYPES),
    "tsx": _JAVASCRIPT._replace(query=_BASE + _TYPES + _MARKUP),
}
