"""Python."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.knowledge.code.languages.descriptions import describe_docstring
from clew.knowledge.code.languages.grammar import Handler, Shape
from clew.knowledge.code.languages.handlers import take_comment, take_key, take_name
from clew.knowledge.code.languages.nodes import child_at, named_at
from clew.knowledge.code.languages.python_imports import IMPORT_TABLE
from clew.knowledge.code.languages.walker import Walk
from clew.knowledge.code.models import SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

SHAPE = Shape(
    members={"attribute": ("object", "attribute")},
    calls={"call": "function"},
    own=(b"self.", b"cls."),
    builtins=frozenset(name.encode() for name in dir(builtins)) | {b"self", b"cls"},
)
_PATTERNS = frozenset(
    ("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "as_pattern_target", "tuple", "list")
)
_NAMES_IN_TYPE = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:\.[\w\x80-\xff]+)*")
_PATTERN_BYTES = 200
_STATIC_NAME = re.compile(r"_*[A-Z][A-Z0-9_]*")


def _function(walk: Walk, node: Node, start: int) -> bool:
    if start not in walk.opened:
        _open_function(walk, node, None)
    return True


def _class(walk: Walk, node: Node, start: int) -> bool:
    if start not in walk.opened:
        _open_class(walk, node, None)
    return True


def _decorated(walk: Walk, node: Node, start: int) -> bool:
    definition = node.child_by_field_name("definition")
    if definition is not None:
        walk.opened.add(definition.start_byte)
        opens = _open_class if definition.type == "class_definition" else _open_function
        opens(walk, definition, node)
    return True


def _open_function(walk: Walk, node: Node, outer: Node | None) -> None:
    kind: SymbolKind = "method" if walk.scope.role == "class" else "function"
    qualname = _open(walk, node, kind, outer)
    walk.enter(qualname, node.end_byte, "function")


def _open_class(walk: Walk, node: Node, outer: Node | None) -> None:
    qualname = _open(walk, node, "class", outer)
    walk.enter(qualname, node.end_byte, "class")
    bases = node.child_by_field_name("superclasses")
    for base in bases.named_children if bases is not None else ():
        named = base.child_by_field_name("value") if base.type == "subscript" else base
        if named is not None and (target := walk.pure_target(named)) and named.type in ("identifier", "attribute"):
            walk.relate("inherit", target, named)
            walk.skips.add(named.start_byte)


def _open(walk: Walk, node: Node, kind: SymbolKind, outer: Node | None) -> str:
    name = node.child_by_field_name("name")
    body = node.child_by_field_name("body")
    if name is not None:
        walk.bind(name)
    _take_type_parameters(walk, node.child_by_field_name("type_parameters"))
    doc = _docstring(walk, body) if body is not None else ""
    return walk.define(kind, walk.text(name) if name is not None else "", node, until=body, doc=doc, outer=outer)


def _take_type_parameters(walk: Walk, listed: Node | None) -> None:
    for each in listed.named_children if listed is not None else ():
        name = named_at(each)
        if name is not None:
            walk.type_parameters.add(walk.raw(name)[:_PATTERN_BYTES])
            walk.skips.add(name.start_byte)


def _docstring(walk: Walk, body: Node) -> str:
    first = child_at(body)
    if first is None or first.type != "expression_statement":
        return ""
    string = child_at(first)
    if string is None or string.type != "string":
        return ""
    return describe_docstring(walk.source[string.start_byte : string.end_byte])


def _decorator(walk: Walk, node: Node, start: int) -> bool:
    called = named_at(node)
    if called is None:
        return True
    name = called.child_by_field_name("function") if called.type == "call" else called
    if name is not None and (target := walk.pure_target(name)):
        walk.relate("decorate", target, name)
        walk.skips.add(name.start_byte)
    return True


def _call(walk: Walk, node: Node, start: int) -> bool:
    if start in walk.skips:
        return True
    function = child_at(node)
    if function is None:
        return True
    target = walk.pure_target(function)
    if target:
        walk.skips.add(start)
    elif function.type == "attribute":
        target = walk.target_of(function)
    walk.call(target, node)
    return True


def _attribute(walk: Walk, node: Node, start: int) -> bool:
    target = walk.pure_target(node)
    if target:
        if start not in walk.skips:
            walk.mention(target, node, start)
        return False
    name = node.child_by_field_name("attribute")
    if name is not None:
        walk.skips.add(name.start_byte)
    return True


def _assignment(walk: Walk, node: Node, start: int) -> bool:
    left = child_at(node)
    if left is None:
        return True
    for name in _names(left):
        walk.bind(name)
        if walk.scope.role != "function":
            text = walk.text(name)
            walk.define_value(text, node, is_constant=_STATIC_NAME.fullmatch(text) is not None)
    return True


def _type_alias(walk: Walk, node: Node, start: int) -> bool:
    left = node.child_by_field_name("left")
    name = named_at(left) if left is not None else None
    if name is not None and name.type == "identifier":
        walk.bind(name)
        if walk.scope.role != "function":
            walk.define_value(walk.text(name), node, is_constant=False)
    return True


def _loop(walk: Walk, node: Node, start: int) -> bool:
    left = node.child_by_field_name("left")
    for name in _names(left) if left is not None else ():
        walk.bind(name)
    return True


def _alias(walk: Walk, node: Node, start: int) -> bool:
    for name in _names(node):
        walk.bind(name)
    return True


def _walrus(walk: Walk, node: Node, start: int) -> bool:
    name = node.child_by_field_name("name")
    if name is not None:
        walk.bind(name)
    return True


def _parameters(walk: Walk, node: Node, start: int) -> bool:
    for parameter in node.named_children:
        named = parameter.child_by_field_name("name") or parameter
        named = named if named.type == "identifier" else named_at(named) or named
        named = named if named.type == "identifier" else named_at(named) or named
        if named.type == "identifier":
            walk.bind(named)
    return True


def _lambda(walk: Walk, node: Node, start: int) -> bool:
    walk.enter_nameless(node)
    return True


def _names(node: Node) -> Iterator[Node]:
    """The plain names among the targets of an assignment."""
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if at.type == "identifier":
            yield at
        elif at.type in _PATTERNS:
            waiting.extend(reversed(at.named_children))


def _global(walk: Walk, node: Node, start: int) -> bool:
    return False


def _pattern(walk: Walk, node: Node, start: int) -> bool:
    """A single name to match is a new variable; a dotted one is a constant."""
    inner = named_at(node)
    if inner is not None and inner.type == "dotted_name" and b"." not in walk.raw(inner)[:_PATTERN_BYTES]:
        walk.bind(inner)
    return True


def _keyword_pattern(walk: Walk, node: Node, start: int) -> bool:
    walk.skips.add(start)
    inner = named_at(node, 1)
    if inner is not None and inner.type == "dotted_name" and b"." not in walk.raw(inner)[:_PATTERN_BYTES]:
        walk.bind(inner)
    return True


def _dotted_name(walk: Walk, node: Node, start: int) -> bool:
    if start not in walk.skips and (target := walk.pure_target(node)):
        walk.mention(target, node, start)
    return False


def _type(walk: Walk, node: Node, start: int) -> bool:
    walk.typed_until = max(walk.typed_until, node.end_byte)
    return True


def _string(walk: Walk, node: Node, start: int) -> bool:
    """Types may be written as strings; a string below a value at the top describes it; in others, only what is put in
    braces is code."""
    if start < walk.typed_until:
        for found in _NAMES_IN_TYPE.findall(walk.raw(node)[:2_000]):
            walk.relate("reference", found, node)
        return False
    if walk.scope.role != "function" and walk.symbols:
        _describe_value(walk, node, start)
    return walk.source[start] not in b"\"'"


def _describe_value(walk: Walk, node: Node, start: int) -> None:
    last = walk.symbols[-1]
    if last.kind not in ("constant", "variable"):
        return
    row, column = node.start_point
    if last.line_end != row:
        return
    if not walk.source[start - column : start].strip():
        doc = describe_docstring(walk.source[start : node.end_byte])
        walk.symbols[-1] = type(last)(
            last.kind, last.name, last.qualname, last.line_start, last.line_end, last.signature, doc or last.doc
        )


TABLE: dict[str, Handler] = {
    **IMPORT_TABLE,
    "function_definition": _function,
    "class_definition": _class,
    "decorated_definition": _decorated,
    "decorator": _decorator,
    "call": _call,
    "attribute": _attribute,
    "identifier": take_name,
    "keyword_argument": take_key,
    "assignment": _assignment,
    "type_alias_statement": _type_alias,
    "for_statement": _loop,
    "for_in_clause": _loop,
    "as_pattern_target": _alias,
    "named_expression": _walrus,
    "parameters": _parameters,
    "lambda_parameters": _parameters,
    "lambda": _lambda,
    "global_statement": _global,
    "nonlocal_statement": _global,
    "case_pattern": _pattern,
    "keyword_pattern": _keyword_pattern,
    "dotted_name": _dotted_name,
    "type": _type,
    "string": _string,
    "comment": take_comment,
}
