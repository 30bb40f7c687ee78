"""The facts of one file while its syntax tree is read: symbols, imports and references. Scopes decide which names are
local."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Literal, NamedTuple

from clew.knowledge.code.languages.descriptions import sign, sign_value
from clew.knowledge.code.models import ImportFact, ReferenceFact, ReferenceKind, Symbol, SymbolKind
from clew.lazy_pattern import lazy_pattern

MAX_NAME = 200
MAX_SCOPE = 600
MAX_CHAIN = 8
"""Links of `a().b().c()` that are followed."""
MAX_SYMBOLS, MAX_IMPORTS, MAX_REFERENCES = 10_000, 10_000, 200_000
"""Limits for one file. Only generated files exceed them."""

_CONSTANT_NAME = lazy_pattern(r"_*[A-Z][A-Z0-9_]*")

Role = Literal["module", "class", "function"]
Uses = dict[bytes, list[tuple[bytes, str, int]]]
"""Uses of names that no scope has bound yet, by the first part of the name: target, qualname of the user, row."""


class Span(NamedTuple):
    """A part of a file: its bytes, and its rows from 0, the last one included."""

    start: int
    end: int
    row: int
    last_row: int


class SyntaxScope:
    """A part of a file with its own names. `calls` has every row of a call, `uses` the first row of each name."""

    __slots__ = ("bound", "calls", "end", "name", "role", "unbound", "uses")

    def __init__(self, name: str, end: int, role: Role, calls: dict[bytes, list[int]]) -> None:
        self.name = name
        self.end = end
        self.role: Role = role
        self.calls = calls
        self.uses: dict[bytes, int] = {}
        self.bound: set[bytes] = set()
        self.unbound: Uses = {}
        """Uses in inner scopes that those did not bind."""

    def merge(self, unbound: Uses) -> None:
        """Take over the uses of an inner scope, the smaller into the larger: deep nesting stays cheap."""
        small, large = sorted((self.unbound, unbound), key=len)
        for head, uses in small.items():
            if head in large and len(large[head]) < len(uses):
                large[head], uses = uses, large[head]
            large.setdefault(head, []).extend(uses)
        self.unbound = large


class Lead(NamedTuple):
    """Decorators before a definition: their rows, and `(target, row)` of each."""

    first_row: int
    last_row: int
    targets: list[tuple[bytes, int]]


class FactBuilder(ABC):
    """The facts that were found so far. Rows count from 0."""

    def __init__(self, source: bytes, builtins: Collection[bytes], own: tuple[bytes, ...]) -> None:
        """Names of `builtins` are not references. `own` are prefixes that mean the object itself: `self.`."""
        self.source = source
        self.symbols: list[Symbol] = []
        self.imports: list[ImportFact] = []
        self.is_cut = False
        """Whether the file has more facts than the limits allow."""
        self.type_parameters: set[bytes] = set()
        self.lead: Lead | None = None
        self.scope = SyntaxScope("", len(source) + 1, "module", {})
        self._builtins = builtins
        self._own = own
        self._scopes = [self.scope]
        self._values: set[str] = set()
        self._found: dict[tuple[ReferenceKind, bytes, str], int] = {}
        self._calls: set[tuple[int, ReferenceKind, bytes, str]] = set()

    @abstractmethod
    def comment_above(self, row: int) -> str:
        """The description in the comment that ends right above a row; empty without one."""

    def open_scope(self, name: str, end: int, role: Role) -> None:
        """Open a scope up to a byte. `name` is the full qualname; an inner function of the same name shares calls."""
        calls = self.scope.calls if name == self.scope.name and role == "function" else {}
        self.scope = SyntaxScope(name, min(end, self.scope.end), role, calls)
        self._scopes.append(self.scope)

    def close_scope(self) -> None:
        scope = self._scopes.pop()
        above = self._scopes[-1] if self._scopes else None
        if above is None or scope.calls is not above.calls:
            for target, rows in scope.calls.items():
                self._calls.update((row + 1, "call", target, scope.name) for row in rows)
        unbound = scope.unbound
        if scope.role == "function":
            for name in scope.bound:
                unbound.pop(name, None)
        for target, row in scope.uses.items():
            head = target.partition(b".")[0]
            if head not in self._builtins and (above is None or head not in scope.bound):
                unbound.setdefault(head, []).append((target, scope.name, row))
        if above is not None:
            self.scope = above
            above.merge(unbound)
            return
        for uses in unbound.values():
            for target, inside, row in uses:
                key: tuple[ReferenceKind, bytes, str] = ("reference", target, inside)
                self._found[key] = min(row, self._found.get(key, row))

    def add_call(self, target: bytes, row: int) -> None:
        if target:
            self.scope.calls.setdefault(target, []).append(row)

    def add_use(self, target: bytes, row: int) -> None:
        """Record a name that is used as a value."""
        known = self.scope.uses.get(target)
        if target and (known is None or row < known):
            self.scope.uses[target] = row
            if target.startswith(self._own):
                self.add_reference("reference", target, row)

    def add_reference(self, kind: ReferenceKind, target: bytes, row: int, inside: str | None = None) -> None:
        if target and target not in self._builtins:
            key = (kind, target, self.scope.name if inside is None else inside)
            self._found[key] = min(row, self._found.get(key, row))

    def add_import(self, module: str, name: str, alias: str, row: int) -> None:
        if len(self.imports) < MAX_IMPORTS:
            self.imports.append(ImportFact(module, name, "" if alias == name else alias, row + 1))
        else:
            self.is_cut = True

    def qualify(self, name: str) -> str:
        """The name with the enclosing names before it. Past the limit of nesting it is the enclosing name."""
        if len(self.scope.name) > MAX_SCOPE:
            return self.scope.name
        return f"{self.scope.name}.{name}" if self.scope.name else name

    def add_symbol(self, kind: SymbolKind, name: str, span: Span, head_end: int) -> str:
        """Record a symbol in the current scope and return its qualname. It begins with its decorators, and its
        signature ends at `head_end`. A symbol without a name, as in broken code, is not recorded."""
        name = name[:MAX_NAME].strip()
        qualname = self.qualify(name)
        if not name or qualname == self.scope.name:
            return self.scope.name
        if len(self.symbols) >= MAX_SYMBOLS:
            self.is_cut = True
            return qualname
        first = self._take_lead(span.row, qualname) if self.lead is not None else span.row
        head = self.source[span.start : head_end]
        signature = sign_value(head) if kind in ("constant", "variable") else sign(head)
        doc = self.comment_above(first) or self.comment_above(span.row)
        self.symbols.append(Symbol(kind, name, qualname, first + 1, span.last_row + 1, signature, doc))
        return qualname

    def add_value(self, name: str, span: Span, *, is_constant: bool | None = None) -> None:
        """Record a variable or constant at its first assignment. Without `is_constant`, capitals show a constant."""
        qualname = self.qualify(name[:MAX_NAME].strip())
        if qualname not in self._values:
            self._values.add(qualname)
            is_constant = _CONSTANT_NAME.fullmatch(name) is not None if is_constant is None else is_constant
            kind: SymbolKind = "constant" if is_constant else "variable"
            self.add_symbol(kind, name, span, span.end)

    def _take_lead(self, row: int, qualname: str) -> int:
        """The first row of a definition with its decorators, which are recorded."""
        lead, self.lead = self.lead, None
        if lead is None or not lead.last_row <= row <= lead.last_row + 1:
            return row
        for target, at in lead.targets:
            self.add_reference("decorate", target, at, qualname)
        return lead.first_row

    def references(self) -> list[ReferenceFact]:
        """All references by line, then kind and name."""
        named = ((row + 1, kind, target, inside) for (kind, target, inside), row in self._found.items())
        found = sorted({*(each for each in named if each[2] not in self.type_parameters), *self._calls})
        self.is_cut |= len(found) > MAX_REFERENCES
        del found[MAX_REFERENCES:]
        return [
            ReferenceFact(kind, target.decode("utf-8", "replace"), inside, row) for row, kind, target, inside in found
        ]
