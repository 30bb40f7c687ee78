"""Assignments: what a target does with the value that it is given."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clew.knowledge.code.python_building import constant_key
from clew.knowledge.code.python_scopes import Scope
from clew.knowledge.code.python_summary import NOTHING, SetItem, Store

if TYPE_CHECKING:
    from clew.knowledge.code.python_expressions import Expressions


def assign_expression(reader: Expressions, targets: Sequence[ast.expr], value: ast.expr, scope: Scope) -> None:
    """Assign an expression to each target; tuples on both sides are taken apart one by one."""
    plain = [target for target in targets if not _pairs(target, value)]
    if plain:
        found = reader.kept(value, scope)
        for target in plain:
            assign(reader, target, found, scope)
    for target in targets:
        if _pairs(target, value):
            _assign_pairs(reader, target, value, scope)


def assign(reader: Expressions, target: ast.expr, value: int, scope: Scope, *, is_binding: bool = False) -> None:
    """Assign a value to a target. With `is_binding` its names belong to the scope, whatever is around it."""
    match target:
        case ast.Name():
            if is_binding and target.id not in scope.names:
                scope.names[target.id] = reader.builder.node()
            reader.builder.copy(value, reader.builder.variable(scope, target.id))
        case ast.Attribute():
            reader.builder.stored.add(target.attr)
            store = Store(value, target.attr, scope.caller, target.lineno)
            reader.builder.use(reader.value(target.value, scope), store)
        case ast.Subscript():
            _assign_item(reader, target, value, scope)
        case ast.Tuple() | ast.List():
            _take_apart(reader, target, value, scope, is_binding)
        case ast.Starred():
            assign(reader, target.value, value, scope, is_binding=is_binding)


def _assign_item(reader: Expressions, target: ast.Subscript, value: int, scope: Scope) -> None:
    reader.value(target.slice, scope, is_wanted=False)
    source = reader.value(target.value, scope)
    reader.builder.use(source, SetItem(value, constant_key(target.slice, scope), scope.caller, target.lineno))


def _take_apart(reader: Expressions, target: ast.Tuple | ast.List, value: int, scope: Scope, is_binding: bool) -> None:
    is_after_star = False
    for position, element in enumerate(target.elts):
        if isinstance(element, ast.Starred):
            is_after_star = True
            item = reader.item(value, None, scope, target.lineno)
            rest = reader.builder.made("sequence", [(None, item)]) if item != NOTHING else NOTHING
            assign(reader, element.value, rest, scope, is_binding=is_binding)
        else:
            key = None if is_after_star else position
            item = reader.item(value, key, scope, target.lineno)
            assign(reader, element, item, scope, is_binding=is_binding)


def _pairs(target: ast.expr, value: ast.expr) -> bool:
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
        return False
    stars = sum(isinstance(element, ast.Starred) for element in target.elts)
    if any(isinstance(element, ast.Starred) for element in value.elts):
        return False
    return len(target.elts) == len(value.elts) if not stars else stars == 1 and len(value.elts) >= len(target.elts) - 1


def _assign_pairs(reader: Expressions, target: ast.expr, value: ast.expr, scope: Scope) -> None:
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
        return
    stars = [position for position, element in enumerate(target.elts) if isinstance(element, ast.Starred)]
    first = stars[0] if stars else len(target.elts)
    after = len(target.elts) - first - 1
    for element, item in zip(target.elts[:first], value.elts, strict=False):
        assign_expression(reader, [element], item, scope)
    if stars:
        last = len(value.elts) - after
        middle = ast.copy_location(ast.List(elts=value.elts[first:last], ctx=ast.Load()), value)
        assign(reader, target.elts[first], reader.value(middle, scope), scope)
        for element, item in zip(target.elts[first + 1 :], value.elts[last:], strict=True):
            assign_expression(reader, [element], item, scope)
