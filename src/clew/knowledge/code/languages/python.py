"""Python."""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING

from clew.knowledge.code.languages import handlers
from clew.knowledge.code.languages.descriptions import describe_docstring
from clew.knowledge.code.languages.walker import Syntax, Walker, child_at, named_at
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SYNTAX = Syntax(
    members={"attribute": ("object", "attribute")},
    calls={"call": "function"},
    own=(b"self.", b"cls."),
    builtins=frozenset(name.encode() for name in dir(builtins)) | {b"self", b"cls"},
)
_PATTERNS = "pattern_list tuple_pattern list_pattern list_splat_pattern as_pattern_target tuple list"
_NAMES_IN_TYPE = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:\.[\w\x80-\xff]+)*")
_PATTERN_BYTES = 200
_CONSTANT_NAME = re.compile(r"_*[A-Z][A-Z0-9_]*")
_names = handlers.names_in(("identifier",), frozenset(_PATTERNS.split()))


def _import(walk: Walker, node: Node, start: int) -> bool:
    for each in node.children_by_field_name("name"):
        name, alias = _imported_name(walk, each)
        walk.add_import(name, "", alias, each)
    return False


def _import_from(walk: Walker, node: Node, start: int) -> bool:
    source = node.child_by_field_name("module_name")
    module = "".join(walk.text(source).split()) if source is not None else "__future__"
    for each in node.children_by_field_name("name"):
        name, alias = _imported_name(walk, each)
        walk.add_import(module, name, alias, each)
    if any(each.type == "wildcard_import" for each in node.named_children):
        walk.add_import(module, "*", "", node)
    return False


def _imported_name(walk: Walker, node: Node) -> tuple[str, str]:
    name = "".join(walk.text(node.child_by_field_name("name") or node).split())
    return name, walk.text(node.child_by_field_name("alias"))


def _definition(walk: Walker, node: Node, start: int) -> bool:
    if start not in walk.entered:
        _enter(walk, node, None)
    return True


def _decorated(walk: Walker, node: Node, start: int) -> bool:
    definition = node.child_by_field_name("definition")
    if definition is not None:
        walk.entered.add(definition.start_byte)
        _enter(walk, definition, node)
    return True


def _enter(walk: Walker, node: Node, outer: Node | None) -> None:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None:
        walk.bind(name)
    _bind_type_parameters(walk, node.child_by_field_name("type_parameters"))
    is_class = node.type == "class_definition"
    kind: SymbolKind = "class" if is_class else "method" if walk.scope.role == "class" else "function"
    qualname = walk.define(kind, walk.text(name), node, until=body, doc=_docstring(walk, body), outer=outer)
    walk.enter(qualname, node.end_byte, "class" if is_class else "function")
    bases = node.child_by_field_name("superclasses") if is_class else None
    for base in bases.named_children if bases is not None else ():
        named = base.child_by_field_name("value") if base.type == "subscript" else base
        if named is not None and (target := walk.pure_target(named)) and named.type in ("identifier", "attribute"):
            walk.inherit(target, named)


def _bind_type_parameters(walk: Walker, listed: Node | None) -> None:
    for each in listed.named_children if listed is not None else ():
        name = named_at(each)
        if name is not None:
            walk.type_parameters.add(walk.raw(name)[:_PATTERN_BYTES])
            walk.claim(name)


def _docstring(walk: Walker, body: Node | None) -> str:
    first = child_at(body) if body is not None else None
    string = child_at(first) if first is not None and first.type == "expression_statement" else None
    return describe_docstring(walk.raw(string)) if string is not None and string.type == "string" else ""


def _decorator(walk: Walker, node: Node, start: int) -> bool:
    called = named_at(node)
    name = called.child_by_field_name("function") if called is not None and called.type == "call" else called
    if name is not None and (target := walk.pure_target(name)):
        walk.relate("decorate", target, name)
        walk.claim(name)
    return True


def _call(walk: Walker, node: Node, start: int) -> bool:
    function = child_at(node) if start not in walk.claimed else None
    if function is None:
        return True
    target = walk.pure_target(function)
    if target:
        walk.claimed.add(start)
    elif function.type == "attribute":
        target = walk.target_of(function)
    walk.call(target, node)
    return True


def _assignment(walk: Walker, node: Node, start: int) -> bool:
    left = child_at(node)
    for name in _names(left) if left is not None else ():
        walk.bind(name)
        if walk.scope.role != "function":
            text = walk.text(name)
            walk.define_value(text, node, is_constant=_CONSTANT_NAME.fullmatch(text) is not None)
    return True


def _type_alias(walk: Walker, node: Node, start: int) -> bool:
    name = named_at(node.child_by_field_name("left"))
    if name is not None and name.type == "identifier":
        walk.bind(name)
        if walk.scope.role != "function":
            walk.define_value(walk.text(name), node, is_constant=False)
    return True


def _parameter_names(node: Node) -> list[Node]:
    found = []
    for parameter in node.named_children:
        name = parameter.child_by_field_name("name") or parameter
        for _ in range(2):  # a default value, a type and a star may wrap the name
            name = name if name.type == "identifier" else named_at(name) or name
        if name.type == "identifier":
            found.append(name)
    return found


def _pattern(walk: Walker, node: Node, start: int) -> bool:
    """A single name to match is a new variable; a dotted one is a constant."""
    is_keyword = node.type == "keyword_pattern"
    if is_keyword:
        walk.claimed.add(start)
    inner = named_at(node, int(is_keyword))
    if inner is not None and inner.type == "dotted_name" and b"." not in walk.raw(inner)[:_PATTERN_BYTES]:
        walk.bind(inner)
    return True


def _dotted_name(walk: Walker, node: Node, start: int) -> bool:
    if start not in walk.claimed:
        walk.mention(walk.pure_target(node), node, start)
    return False


def _type(walk: Walker, node: Node, start: int) -> bool:
    walk.typed_until = max(walk.typed_until, node.end_byte)
    return True


def _string(walk: Walker, node: Node, start: int) -> bool:
    """A string can be a type or describe the value above it. Only strings with a prefix can have code in braces."""
    if start < walk.typed_until:
        for found in _NAMES_IN_TYPE.findall(walk.raw(node)[:2_000]):
            walk.relate("reference", found, node)
        return False
    if walk.scope.role != "function" and walk.symbols:
        _describe_value(walk, node, start)
    return walk.source[start] not in b"\"'"


def _describe_value(walk: Walker, node: Node, start: int) -> None:
    last = walk.symbols[-1]
    row, column = node.start_point
    is_below = last.kind in ("constant", "variable") and last.line_end == row
    if is_below and not walk.source[start - column : start].strip():
        doc = describe_docstring(walk.raw(node)) or last.doc
        place = (last.line_start, last.line_end)
        walk.symbols[-1] = type(last)(last.kind, last.name, last.qualname, *place, last.signature, doc)


TABLE = handlers.by_kind(
    {
        _import: "import_statement",
        _import_from: "import_from_statement future_import_statement",
        _definition: "function_definition class_definition",
        _decorated: "decorated_definition",
        _decorator: "decorator",
        _call: "call",
        handlers.dotted("attribute"): "attribute",
        handlers.name: "identifier",
        handlers.key: "keyword_argument",
        _assignment: "assignment",
        _type_alias: "type_alias_statement",
        handlers.bind(_names, "left"): "for_statement for_in_clause",
        handlers.bind(_names): "as_pattern_target",
        handlers.bind(_names, "name"): "named_expression",
        handlers.bind(_parameter_names): "parameters lambda_parameters",
        handlers.anonymous: "lambda",
        handlers.skip: "global_statement nonlocal_statement",
        _pattern: "case_pattern keyword_pattern",
        _dotted_name: "dotted_name",
        _type: "type",
        _string: "string",
        handlers.comment: "comment",
    }
)
