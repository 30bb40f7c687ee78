"""A summary while it is made: variables are numbered, and what happens to them is noted under the variable that it
waits for."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence

from clew.knowledge.code.python_scopes import Scope, bindings
from clew.knowledge.code.python_summary import (
    NOTHING,
    Call,
    Class,
    Container,
    ContainerKind,
    Function,
    Key,
    ModuleImport,
    Seed,
    Site,
    Summary,
    Use,
)

MODELLED = frozenset(
    {
        "map", "filter", "sorted", "min", "max", "next", "iter", "getattr", "setattr", "enumerate", "zip", "reversed",
        "list", "tuple", "set", "frozenset", "dict", "type",
    }
)  # fmt: skip
"""Built-in functions of which the analysis knows what they do with functions, or with what holds them."""
LARGEST = 1 << 20
"""Variables of one file; a file with more is taken as not readable."""


class SummaryBuilder:
    """Collects what is found of one file. Variables are numbers; `NOTHING` may be given for any and is left out."""

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
        if self.nodes >= LARGEST:
            raise MemoryError("too many variables in one file")
        self.nodes += 1
        return self.nodes - 1

    def scope(self, qualname: str) -> int:
        self.scopes.append(qualname)
        return len(self.scopes) - 1

    def copy(self, source: int, into: int) -> None:
        if source != NOTHING and into != NOTHING and source != into:
            self.copies[source].append(into)

    def use(self, watched: int, use: Use) -> None:
        if watched != NOTHING:
            self.uses[watched].append(use)

    def call(self, watched: int, site: Site) -> int:
        """Note a call; gives the variable of its result."""
        if watched != NOTHING:
            self.uses[watched].append(Call(site=len(self.sites)))
            self.sites.append(site)
        return site.result

    def container(self, kind: ContainerKind, fields: Iterable[tuple[Key, int]] = ()) -> int:
        self.containers.append(Container(kind, tuple(field for field in fields if field[1] != NOTHING)))
        return len(self.containers) - 1

    def made(self, kind: ContainerKind, fields: Iterable[tuple[Key, int]] = ()) -> int:
        """The variable of a container that is made here."""
        into = self.node()
        self.seeds.append(Seed(into, "container", self.container(kind, fields)))
        return into

    def bind(self, scope: Scope, body: Sequence[ast.stmt]) -> None:
        """Number the variables that these statements bind in the scope."""
        for name, statement in bindings(body):
            if isinstance(statement, ast.Global):
                scope.outermost.add(name)
                scope.module().names.setdefault(name, NOTHING)
                scope.module().constants[name] = None
            elif isinstance(statement, ast.Nonlocal):
                scope.outer.add(name)
            elif name == "*":
                self.has_star = True
            elif scope.names.get(name, NOTHING) == NOTHING:
                scope.names[name] = self.node()
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                scope.imported.add(name)
            is_first = name not in scope.constants
            scope.constants[name] = _only_constant(name, statement) if is_first else None

    def variable(self, scope: Scope, name: str) -> int:
        """The variable that a name stands for; nothing where it is a built-in that does not matter."""
        binder = scope.binder(name)
        if binder is not None:
            return self._bound_in(binder, name)
        if name in self.free:
            return self.free[name]
        if not self.has_star and name not in MODELLED:
            return NOTHING
        self.free[name] = self.node()
        return self.free[name]

    def _bound_in(self, binder: Scope, name: str) -> int:
        if binder.names.get(name, NOTHING) == NOTHING:
            binder.names[name] = self.node()
        return binder.names[name]

    def build(self, module: Scope) -> Summary:
        names = {name: node for name, node in module.names.items() if node != NOTHING}
        classes = tuple(known for known in self.classes if known is not None)
        stored = self.stored.union(*(known.attrs for known in classes))
        return Summary(
            scopes=tuple(self.scopes),
            functions=tuple(function for function in self.functions if function is not None),
            classes=classes,
            containers=tuple(self.containers),
            imports=tuple(self.imports),
            names=names,
            free=self.free,
            seeds=tuple(self.seeds),
            copies={node: tuple(copies) for node, copies in self.copies.items()},
            uses={node: tuple(uses) for node, uses in self.uses.items()},
            sites=tuple(self.sites),
            stored=tuple(sorted(stored)),
            nodes=self.nodes,
        )


def _only_constant(name: str, statement: ast.AST) -> ast.Constant | None:
    """The constant that a statement gives to a name, where it does nothing else."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return None
    is_name = all(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    return statement.value if is_name else None


def constant_key(node: ast.expr | None, scope: Scope) -> Key:
    """The key that an expression stands for in a container: a constant, or a name that is given one and never anything
    else. None for all others, and for negative positions."""
    if isinstance(node, ast.Name):
        binder = scope.binder(node.id)
        node = binder.constants.get(node.id) if binder is not None else None
    if not isinstance(node, ast.Constant):
        return None
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value if 0 <= node.value < 1 << 31 else None
    return node.value if isinstance(node.value, str) else repr(node.value)[:80]
