"""Reads the heads of functions in a Python file: parameters, defaults, and what a function gives back."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.knowledge.code.python_scopes import Scope
from clew.knowledge.code.python_summary import NOTHING, Function, FunctionKind

if TYPE_CHECKING:
    from clew.knowledge.code.python_expressions import Expressions


def begin_function(
    reader: Expressions, scope: Scope, line: int, arguments: ast.arguments, kind: FunctionKind, of_class: int
) -> tuple[int, Callable[[], None]]:
    """The number of a function whose scope is given, and what to call when its body has been read."""
    number = len(reader.builder.functions)
    reader.builder.functions.append(None)
    positional, by_name, rest, named_rest = _parameters(reader, arguments, scope)
    scope.returned = reader.builder.node()

    def finish() -> None:
        fields = [(None, node) for node in scope.yields]
        generator = reader.builder.container("generator", fields) if scope.is_generator else NOTHING
        reader.builder.functions[number] = Function(
            scope.qualname, line, scope.caller, kind, of_class, tuple(positional), tuple(by_name), rest, named_rest,
            scope.returned, generator,
        )  # fmt: skip

    return number, finish


def copy_defaults(reader: Expressions, arguments: ast.arguments, inner: Scope, outer: Scope) -> None:
    """Defaults are values of the scope around; call this once the parameters are numbered."""
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    by_name = arguments.kwonlyargs
    pairs = [*zip(with_default, arguments.defaults, strict=True)]
    pairs += [(item, default) for item, default in zip(by_name, arguments.kw_defaults, strict=True) if default]
    for item, default in pairs:
        reader.builder.copy(reader.value(default, outer), inner.names[item.arg])


def _parameters(
    reader: Expressions, arguments: ast.arguments, scope: Scope
) -> tuple[list[tuple[str, int]], list[tuple[str, int]], int, int]:
    """Number the parameters in the scope of their function: positional ones, those by name only, and the containers
    of what is left."""
    positional = [(item.arg, _parameter(reader, item, scope)) for item in (*arguments.posonlyargs, *arguments.args)]
    by_name = [(item.arg, _parameter(reader, item, scope)) for item in arguments.kwonlyargs]
    rest = named_rest = NOTHING
    if arguments.vararg is not None:
        rest = reader.builder.container("sequence")
        reader.seed(_parameter(reader, arguments.vararg, scope), "container", rest)
    if arguments.kwarg is not None:
        named_rest = reader.builder.container("mapping")
        reader.seed(_parameter(reader, arguments.kwarg, scope), "container", named_rest)
    return positional, by_name, rest, named_rest


def _parameter(reader: Expressions, item: ast.arg, scope: Scope) -> int:
    scope.names[item.arg] = reader.builder.node()
    return scope.names[item.arg]
