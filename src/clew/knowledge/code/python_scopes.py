"""Scopes of a Python file while it is read: which names each of them binds, and which variable a name stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Literal

from clew.knowledge.code.python_summary import NOTHING

ScopeKind = Literal["module", "class", "function", "comprehension"]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BODIES = ("body", "orelse", "finalbody")


class Scope:
    """One scope: the variables of its names, and what is called in it is called by `caller`."""

    def __init__(self, kind: ScopeKind, parent: Scope | None, *, caller: int, qualname: str) -> None:
        self.kind = kind
        self.parent = parent
        self.caller = caller
        self.qualname = qualname
        self.names: dict[str, int] = {}
        self.imported: set[str] = set()
        self.constants: dict[str, ast.Constant | None] = {}
        self.outer: set[str] = set()
        self.outermost: set[str] = set()
        self.of_class = NOTHING
        self.receiver = NOTHING
        self.returned = NOTHING
        self.yields: list[int] = []
        self.is_generator = False
        self.lambdas = 0

    def qualify(self, name: str) -> str:
        return f"{self.qualname}.{name}" if self.qualname else name

    def owner(self) -> Scope:
        """The scope that a walrus binds in, and that `return` and `yield` belong to."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope

    def module(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def binder(self, name: str) -> Scope | None:
        """The scope whose variable this name is, by Python's rules; none where no scope binds it."""
        if name in self.outermost:
            return self.module()
        scope: Scope | None = self
        while scope is not None:
            is_seen = scope is self or scope.kind != "class"
            if is_seen and name in scope.names and name not in scope.outer:
                return scope
            scope = scope.parent
        return None

    def method_scope(self) -> Scope | None:
        """The innermost function around that is a method."""
        scope: Scope | None = self
        while scope is not None and scope.receiver == NOTHING:
            scope = scope.parent
        return scope


def bindings(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt | ast.ExceptHandler | ast.pattern]]:
    """The names that these statements bind in their own scope, with the statement; those of nested functions and
    classes are not among them. Names declared `global` or `nonlocal` are given with their declaration."""
    waiting: list[ast.stmt] = list(body)
    while waiting:
        statement = waiting.pop()
        for name in _bound(statement):
            yield name, statement
        if isinstance(statement, ast.Match):
            yield from _matched(statement, waiting)
        elif not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            waiting.extend(inner for field in BODIES for inner in getattr(statement, field, ()))
        for handler in getattr(statement, "handlers", ()):
            waiting.extend(handler.body)
            if handler.name:
                yield handler.name, handler


def target_names(target: ast.expr) -> Iterator[str]:
    """The names that an assignment to this target binds."""
    waiting = [target]
    while waiting:
        item = waiting.pop()
        if isinstance(item, ast.Name):
            yield item.id
        elif isinstance(item, (ast.Tuple, ast.List)):
            waiting.extend(item.elts)
        elif isinstance(item, ast.Starred):
            waiting.append(item.value)


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name
        case ast.Assign():
            for target in statement.targets:
                yield from target_names(target)
        case ast.AugAssign() | ast.AnnAssign() | ast.For() | ast.AsyncFor():
            yield from target_names(statement.target)
        case ast.With() | ast.AsyncWith():
            for item in statement.items:
                if item.optional_vars is not None:
                    yield from target_names(item.optional_vars)
        case ast.Import():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
        case ast.ImportFrom():
            yield from (alias.asname or alias.name for alias in statement.names)
        case ast.Global() | ast.Nonlocal():
            yield from statement.names


def _matched(statement: ast.Match, waiting: list[ast.stmt]) -> Iterator[tuple[str, ast.pattern]]:
    for case in statement.cases:
        waiting.extend(case.body)
        for pattern in ast.walk(case.pattern):
            name = getattr(pattern, "rest" if isinstance(pattern, ast.MatchMapping) else "name", None)
            if isinstance(pattern, ast.pattern) and name:
                yield name, pattern
