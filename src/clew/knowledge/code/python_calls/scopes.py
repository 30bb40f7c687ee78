"""Scopes of a Python file while it is read, and the summary under construction.

Names are bound when they are assigned. Bodies of functions are read after the scope around them is complete, so that
they see all of its names.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from clew.knowledge.code.python_calls.builtins import MODELS
from clew.knowledge.code.python_calls.summary import (
    NOTHING,
    Class,
    Container,
    FlowSummary,
    Function,
    Key,
    ModuleImport,
    Operation,
    Site,
    ValueUse,
)

MODELLED = frozenset(name for name in MODELS if "." not in name)
"""Built-in functions with a model."""
UNMODELLED = frozenset(dir(builtins)) - MODELLED
MAX_VARIABLES = 1 << 20
"""The limit for variables of one file; a file with more is treated as unreadable."""

Fields = Iterable[tuple[Key, int]]


@dataclass(slots=True, eq=False)
class PythonScope:
    """A module, class, function or comprehension. `caller` is its number among the callers of the summary."""

    kind: Literal["module", "class", "function", "comprehension"]
    parent: PythonScope | None
    caller: int = 0
    qualname: str = ""
    names: dict[str, int] = field(default_factory=dict)
    declared: dict[str, PythonScope] = field(default_factory=dict)
    """Names that `global` and `nonlocal` move to another scope."""
    narrowed: dict[str, int] = field(default_factory=dict)
    """The original variables of names that a type test has narrowed. An assignment restores them."""
    imported: set[str] = field(default_factory=set)
    of_class: int = NOTHING
    receiver: int = NOTHING
    returned: int = NOTHING
    yields: list[tuple[Key, int]] = field(default_factory=list)
    lambdas: int = 0

    def qualify(self, name: str) -> str:
        return f"{self.qualname}.{name}" if self.qualname else name

    def owner(self) -> PythonScope:
        """The scope that a walrus binds in, and that `return` and `yield` belong to."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope

    def binder(self, name: str) -> PythonScope | None:
        """The scope that binds a name as seen from here, or None."""
        scope: PythonScope | None = self
        while scope is not None:
            if name in scope.declared:
                return scope.declared[name]
            if name in scope.names and (scope is self or scope.kind != "class"):
                return scope
            scope = scope.parent
        return None

    def method_scope(self) -> PythonScope | None:
        """The innermost enclosing method."""
        scope: PythonScope | None = self
        while scope is not None and scope.receiver == NOTHING:
            scope = scope.parent
        return scope


class SummaryBuilder:
    """Collects the summary of one file. Any variable may be `NOTHING`, which records nothing."""

    def __init__(self) -> None:
        self.module = PythonScope("module", None)
        self.pending: deque[tuple[ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, PythonScope]] = deque()
        """Functions whose bodies are still to be read."""
        self.scopes: list[str] = [""]
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self.containers: list[Container] = []
        self.imports: list[ModuleImport] = []
        self.free: dict[str, int] = {}
        self.copies: defaultdict[int, list[int]] = defaultdict(list)
        self.uses: defaultdict[int, list[ValueUse]] = defaultdict(list)
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

    def inner_scope(self, kind: Literal["class", "function"], parent: PythonScope, name: str) -> PythonScope:
        """A new scope that can call."""
        self.scopes.append(parent.qualify(name))
        return PythonScope(kind, parent, len(self.scopes) - 1, self.scopes[-1])

    def bind(self, scope: PythonScope, name: str) -> int:
        """The variable that an assignment to a name in a scope sets."""
        scope = scope.declared.get(name, scope)
        if name in scope.narrowed:
            scope.names[name] = scope.narrowed.pop(name)
        if name not in scope.names:
            scope.names[name] = self.node()
        return scope.names[name]

    def variable(self, scope: PythonScope, name: str) -> int:
        """The variable of a name that is read; NOTHING for a built-in without a model."""
        binder = scope.binder(name)
        if binder is not None and name in binder.names:
            return binder.names[name]
        if name in UNMODELLED and not self.has_star:
            return NOTHING
        if name not in self.free:
            self.free[name] = self.node()
        return self.free[name]

    def copy(self, source: int, into: int) -> None:
        if source != NOTHING and into != NOTHING and source != into:
            self.copies[source].append(into)

    def join(self, nodes: Iterable[int]) -> int:
        """A variable with the values of all these."""
        known = [node for node in nodes if node != NOTHING]
        if len(known) <= 1:
            return known[0] if known else NOTHING
        into = self.node()
        for node in known:
            self.copy(node, into)
        return into

    def use(
        self, watched: int, op: Operation, node: int, scope: PythonScope | None = None, line: int = 0, key: Key = None
    ) -> None:
        if watched != NOTHING:
            self.uses[watched].append(ValueUse(op, node, key, 0 if scope is None else scope.caller, line))

    def derive(
        self, watched: int, op: Operation, scope: PythonScope | None = None, line: int = 0, key: Key = None
    ) -> int:
        """A new variable with the result of an operation on a watched one; NOTHING without one."""
        if watched == NOTHING:
            return NOTHING
        node = self.node()
        self.use(watched, op, node, scope, line, key)
        return node

    def call(self, watched: int, site: Site) -> int:
        """Record a call and return the variable of its result."""
        if watched == NOTHING:
            return NOTHING
        self.use(watched, "call", len(self.sites))
        self.sites.append(site)
        return site.result

    def container(self, node: int, fields: Fields = (), *, is_mapping: bool = False) -> int:
        """The number of a new container that a variable holds."""
        self.containers.append(Container(node, is_mapping, tuple(known for known in fields if known[1] != NOTHING)))
        return len(self.containers) - 1

    def made(self, fields: Fields = (), *, is_mapping: bool = False) -> int:
        """The variable of a new container."""
        node = self.node()
        self.container(node, fields, is_mapping=is_mapping)
        return node

    def build(self) -> FlowSummary:
        names, free = self.module.names, dict[str, int]()
        for name, node in self.free.items():
            if name in names:  # read before the module bound it
                self.copy(names[name], node)
            elif self.has_star or name in MODELLED:
                free[name] = node
        return FlowSummary(
            scopes=tuple(self.scopes),
            functions=tuple(self.functions),
            classes=tuple(self.classes),
            containers=tuple(self.containers),
            imports=tuple(self.imports),
            names=names,
            free=free,
            copies={node: tuple(copies) for node, copies in self.copies.items()},
            uses={node: tuple(uses) for node, uses in self.uses.items()},
            sites=tuple(self.sites),
            stored=tuple(sorted(self.stored.union(*(known.attrs for known in self.classes)))),
            nodes=self.nodes,
        )
