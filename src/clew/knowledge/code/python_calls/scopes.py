"""Scopes of a Python file while it is read, and the summary under construction.

A scope maps names to variables by Python's rules. The builder numbers variables and records how they are used.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from clew.knowledge.code.python_calls.summary import (
    NOTHING,
    Class,
    Container,
    ContainerKind,
    Function,
    Key,
    ModuleImport,
    Operation,
    Seed,
    Site,
    Summary,
    Use,
)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BODIES = ("body", "orelse", "finalbody")
MODELLED = frozenset(
    {
        "map", "filter", "sorted", "min", "max", "next", "iter", "getattr", "setattr", "enumerate", "zip", "reversed",
        "list", "tuple", "set", "frozenset", "dict", "type",
    }
)  # fmt: skip
"""Built-in functions with a model in `builtins`; other built-ins need no variable."""
MAX_VARIABLES = 1 << 20
"""Variables of one file; a file with more counts as unreadable."""


class Scope:
    """A module, class, function or comprehension. `caller` is its number among the callers of the summary."""

    def __init__(
        self,
        kind: Literal["module", "class", "function", "comprehension"],
        parent: Scope | None,
        *,
        caller: int,
        qualname: str,
    ) -> None:
        self.kind = kind
        self.parent = parent
        self.caller = caller
        self.qualname = qualname
        self.names: dict[str, int] = {}
        self.imported: set[str] = set()
        self.constants: dict[str, ast.Constant | None] = {}
        self.nonlocals: set[str] = set()
        self.globals: set[str] = set()
        self.of_class = NOTHING
        self.receiver = NOTHING
        self.returned = NOTHING
        self.yields: list[int] = []
        self.is_generator = False
        self.lambdas = 0
        self.type_tests = 0

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
        """The scope that binds a name as seen from here, or None."""
        if name in self.globals:
            return self.module()
        scope: Scope | None = self
        while scope is not None:
            is_visible = scope is self or scope.kind != "class"
            if is_visible and name in scope.names and name not in scope.nonlocals:
                return scope
            scope = scope.parent
        return None

    def method_scope(self) -> Scope | None:
        """The innermost enclosing method."""
        scope: Scope | None = self
        while scope is not None and scope.receiver == NOTHING:
            scope = scope.parent
        return scope


class SummaryBuilder:
    """Collects the summary of one file. Any variable may be `NOTHING`, which records nothing."""

    def __init__(self) -> None:
        self.scopes: list[str] = [""]
        self.functions: list[Function | None] = []
        self.classes: list[Class | None] = []
        self.containers: list[Container] = []
        self.imports: list[ModuleImport] = []
        self.free: dict[str, int] = {}
        self.seeds: list[Seed] = []
        self.copies: defaultdict[int, list[int]] = defaultdict(list)
        self.uses: defaultdict[int, list[Use]] = defaultdict(list)
        self.sites: list[Site] = []
        self.stored: set[str] = set()
        self.has_star = False
        self.nodes = 0

    def node(self) -> int:
        """A new variable. Raises MemoryError beyond `MAX_VARIABLES`."""
        if self.nodes >= MAX_VARIABLES:
            raise MemoryError("too many variables in one file")
        self.nodes += 1
        return self.nodes - 1

    def scope(self, qualname: str) -> int:
        self.scopes.append(qualname)
        return len(self.scopes) - 1

    def copy(self, source: int, into: int) -> None:
        if source != NOTHING and into != NOTHING and source != into:
            self.copies[source].append(into)

    def use(
        self, watched: int, op: Operation, node: int, scope: Scope | None = None, line: int = 0, *, key: Key = None,
        other: int | None = None,
    ) -> None:  # fmt: skip
        if watched != NOTHING:
            self.uses[watched].append(Use(op, node, key, 0 if scope is None else scope.caller, line, other))

    def derive(
        self, watched: int, op: Operation, scope: Scope | None = None, line: int = 0, *, key: Key = None,
        other: int | None = None,
    ) -> int:  # fmt: skip
        """A new variable with the result of an operation on a watched one; NOTHING without one."""
        if watched == NOTHING:
            return NOTHING
        node = self.node()
        self.use(watched, op, node, scope, line, key=key, other=other)
        return node

    def call(self, watched: int, site: Site) -> int:
        """Record a call and return the variable of its result."""
        self.use(watched, "call", len(self.sites))
        self.sites.append(site)
        return site.result

    def seed(self, kind: str, number: int, into: int = NOTHING) -> int:
        """Give a variable, by default a new one, its initial value."""
        into = self.node() if into == NOTHING else into
        self.seeds.append(Seed(into, kind, number))  # type: ignore[arg-type]  # one of the kinds of Seed
        return into

    def container(self, kind: ContainerKind, fields: Iterable[tuple[Key, int]] = ()) -> int:
        self.containers.append(Container(kind, tuple(field for field in fields if field[1] != NOTHING)))
        return len(self.containers) - 1

    def made(self, kind: ContainerKind, fields: Iterable[tuple[Key, int]] = ()) -> int:
        """The variable of a new container."""
        return self.seed("container", self.container(kind, fields))

    def bind(self, scope: Scope, body: Sequence[ast.stmt]) -> None:
        """Number the variables that statements bind in a scope."""
        for name, statement in _bindings(body):
            if isinstance(statement, ast.Global):
                scope.globals.add(name)
                scope.module().names.setdefault(name, NOTHING)
                scope.module().constants[name] = None
            elif isinstance(statement, ast.Nonlocal):
                scope.nonlocals.add(name)
            elif name == "*":
                self.has_star = True
            elif scope.names.get(name, NOTHING) == NOTHING:
                scope.names[name] = self.node()
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                scope.imported.add(name)
            is_first = name not in scope.constants
            scope.constants[name] = _assigned_constant(name, statement) if is_first else None

    def variable(self, scope: Scope, name: str) -> int:
        """The variable of a name; NOTHING for a built-in without a model."""
        binder = scope.binder(name)
        table = self.free if binder is None else binder.names
        if table.get(name, NOTHING) == NOTHING:
            if binder is None and not self.has_star and name not in MODELLED:
                return NOTHING
            table[name] = self.node()
        return table[name]

    def build(self, module: Scope) -> Summary:
        classes = tuple(known for known in self.classes if known is not None)
        return Summary(
            scopes=tuple(self.scopes),
            functions=tuple(function for function in self.functions if function is not None),
            classes=classes,
            containers=tuple(self.containers),
            imports=tuple(self.imports),
            names={name: node for name, node in module.names.items() if node != NOTHING},
            free=self.free,
            seeds=tuple(self.seeds),
            copies={node: tuple(copies) for node, copies in self.copies.items()},
            uses={node: tuple(uses) for node, uses in self.uses.items()},
            sites=tuple(self.sites),
            stored=tuple(sorted(self.stored.union(*(known.attrs for known in classes)))),
            nodes=self.nodes,
        )


def constant_key(node: ast.expr | None, scope: Scope) -> Key:
    """The container key that an expression stands for: a constant, or a name that is only ever assigned one.

    None for everything else, and for negative positions.
    """
    if isinstance(node, ast.Name):
        binder = scope.binder(node.id)
        node = binder.constants.get(node.id) if binder is not None else None
    if not isinstance(node, ast.Constant):
        return None
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value if 0 <= node.value < 1 << 31 else None
    text = node.value if isinstance(node.value, str) else repr(node.value)[:80]
    return text.encode(errors="replace").decode()  # a lone surrogate cannot be stored


def selecting_constant(call: ast.Call, scope: Scope) -> Key:
    """The name in `getattr(thing, name)`, the key in `thing.get(key)`."""
    position = 0 if isinstance(call.func, ast.Attribute) else 1
    return constant_key(call.args[position], scope) if len(call.args) > position else None


def guessable_name(called: ast.expr, scope: Scope) -> str:
    """The method name to guess a target by: none for imported modules, `self.name` for methods of the same object."""
    if not isinstance(called, ast.Attribute):
        return ""
    root = called.value
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return called.attr
    binder = scope.binder(root.id)
    if binder is not None and root.id in binder.imported:
        return ""
    method = scope.method_scope()
    is_own = root is called.value and method is not None and method.names.get(root.id) == method.receiver
    return f"self.{called.attr}" if is_own else called.attr


def _assigned_constant(name: str, statement: ast.AST) -> ast.Constant | None:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return None
    is_only_name = all(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    return statement.value if is_only_name else None


def names_bound_by(body: Iterable[ast.stmt]) -> set[str]:
    return {name for name, _ in _bindings(body)}


def _bindings(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Names that statements bind in their own scope, with the binding node; `global` and `nonlocal` included."""
    waiting: list[ast.stmt] = list(body)
    while waiting:
        statement = waiting.pop()
        yield from ((name, statement) for name in _bound_names(statement))
        if isinstance(statement, ast.Match):
            for case in statement.cases:
                waiting.extend(case.body)
                yield from _captures(case.pattern)
        elif not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            waiting.extend(inner for field in BODIES for inner in getattr(statement, field, ()))
        for handler in getattr(statement, "handlers", ()):
            waiting.extend(handler.body)
            if handler.name:
                yield handler.name, handler


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name
        case ast.Assign():
            yield from _target_names(statement.targets)
        case ast.AugAssign() | ast.AnnAssign() | ast.For() | ast.AsyncFor():
            yield from _target_names([statement.target])
        case ast.With() | ast.AsyncWith():
            yield from _target_names([item.optional_vars for item in statement.items if item.optional_vars])
        case ast.Import():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
        case ast.ImportFrom():
            yield from (alias.asname or alias.name for alias in statement.names)
        case ast.Global() | ast.Nonlocal():
            yield from statement.names


def _target_names(targets: Iterable[ast.expr]) -> Iterator[str]:
    waiting = list(targets)
    while waiting:
        item = waiting.pop()
        if isinstance(item, ast.Name):
            yield item.id
        elif isinstance(item, (ast.Tuple, ast.List)):
            waiting.extend(item.elts)
        elif isinstance(item, ast.Starred):
            waiting.append(item.value)


def _captures(matched: ast.pattern) -> Iterator[tuple[str, ast.AST]]:
    for pattern in ast.walk(matched):
        name = getattr(pattern, "rest" if isinstance(pattern, ast.MatchMapping) else "name", None)
        if isinstance(pattern, ast.pattern) and name:
            yield name, pattern
