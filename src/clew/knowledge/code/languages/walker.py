"""The walk over the syntax tree of one file.

A language is a `LanguageTable`: a tree-sitter query whose captures say what a node is (`@function`, `@call`, `@bind`),
and the shapes of dotted names in its grammar. `actions` has a handler for each capture. The walker visits the captured
nodes in the order of the file and keeps the scopes: each fact names the symbol around it, and local variables are left
out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from clew.knowledge.code.languages.descriptions import describe_comment, sign, sign_value
from clew.knowledge.code.models import ImportFact, ReferenceFact, ReferenceKind, Symbol, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node, Query

MAX_NAME = 200
MAX_SCOPE = 600
MAX_CHAIN = 8
"""Links of `a().b().c()` that are followed."""
MAX_SYMBOLS, MAX_IMPORTS, MAX_REFERENCES = 10_000, 10_000, 200_000
"""Limits for one file. Only generated files exceed them."""

_JOINT = re.compile(rb"\s*(?:\?\.|!\.|&\.|->|::|\.)\s*")
_PLAIN = re.compile(rb"[@$]{0,2}[\w\x80-\xff]+(?:\.[\w\x80-\xff]+)*")
_PURE = re.compile(rb"[@$#]{0,2}[\w$\x80-\xff]+[!?]?(?:\.[\w$#\x80-\xff]+[!?]?)*")
_BITS, _RANK_BITS = 32, 6
_RANKS = (1 << _RANK_BITS) - 1
_BOUND_FIELDS = ("pattern", "name", "left", "value")

Role = Literal["module", "class", "function"]
Uses = dict[bytes, list[tuple[bytes, str, int]]]
"""Uses of names that no scope has bound yet, by the first part of the name: target, qualname of the user, row."""
Handler = Callable[["Walker", "Node", int], None]
"""Records the facts of a captured node, which starts at a byte."""


class LanguageTable(NamedTuple):
    """A language: its query, and how its grammar writes `a.b`, `a()` and patterns of names."""

    query: str
    members: Mapping[str, tuple[str, str]] = {}
    """Kinds of nodes for `a.b`, with the fields of the object and the name."""
    calls: Mapping[str, str] = {}
    """Kinds of calls, with the field of the function."""
    wrappers: Mapping[str, str] = {}
    """Kinds with the field that holds their name: `List<T>`, `f::<T>`. An empty field is the first child."""
    names: Collection[str] = ("identifier",)
    patterns: Collection[str] = ()
    """Kinds of nodes that bind the names in them."""
    own: tuple[bytes, ...] = ()
    """Prefixes that mean the object itself: `self.`."""
    builtins: Collection[bytes] = ()
    handlers: Mapping[str, Handler] = {}
    """Handlers of captures that only this language has."""


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
    """Decorators before a definition, outside of its node: rows and `(target, row)` of each."""

    first_row: int
    last_row: int
    targets: list[tuple[bytes, int]]


class CommentBlock(NamedTuple):
    """Consecutive lines of comment."""

    last_row: int
    start: int
    end: int
    column: int


class Walker:
    """The state of one walk, and the operations for handlers."""

    def __init__(self, source: bytes, table: LanguageTable) -> None:
        self.source = source
        self.table = table
        self.symbols: list[Symbol] = []
        self.imports: list[ImportFact] = []
        self.is_cut = False
        """Whether the file has more facts than the limits allow."""
        self.claimed: set[int] = set()
        """Start bytes of nodes that a node above has recorded."""
        self.type_parameters: set[bytes] = set()
        self.comment: CommentBlock | None = None
        self.lead: Lead | None = None
        self.skip_until = 0
        self.scope = SyntaxScope("", len(source) + 1, "module", {})
        self._scopes = [self.scope]
        self._values: set[str] = set()
        self._found: dict[tuple[ReferenceKind, bytes, str], int] = {}
        self._calls: set[tuple[int, ReferenceKind, bytes, str]] = set()

    def run(self, root: Node, query: Query, handlers: Mapping[str, Handler]) -> None:
        """Visit the captured nodes, outer before inner ones; of equal ones, in the order of `handlers`."""
        from tree_sitter import QueryCursor  # native code, loaded only to read code

        captured = QueryCursor(query).captures(root)
        last = len(self.source)
        visits = [
            ((node.start_byte << _BITS | last - node.end_byte) << _RANK_BITS | rank, node)
            for rank, name in enumerate(handlers)
            for node in captured.pop(name, ())
        ]
        visits.sort(key=itemgetter(0))
        ranked = [*handlers.values()]
        for key, node in visits:
            start = key >> _BITS + _RANK_BITS
            if start >= self.skip_until:
                while start >= self.scope.end:
                    self._leave()
                ranked[key & _RANKS](self, node, start)
        while self._scopes:
            self._leave()

    def skip(self, node: Node) -> None:
        """Do not visit the nodes in this one."""
        self.skip_until = node.end_byte

    def raw(self, node: Node) -> bytes:
        return self.source[node.start_byte : node.end_byte]

    def text(self, node: Node | None) -> str:
        """The text of a name; empty without a node."""
        if node is None:
            return ""
        return self.source[node.start_byte : min(node.end_byte, node.start_byte + MAX_NAME)].decode("utf-8", "replace")

    def label(self, node: Node | None) -> str:
        """The text of a name without quotes, type arguments, or brackets around it, with dots."""
        if node is not None and node.type in self.table.wrappers:
            node = _unwrap(node, self.table.wrappers[node.type])
        text = self.text(node).strip("'\"`").replace("::", ".")
        return text[1:-1].strip("'\"`") if text[:1] == "[" and len(text) > 2 and text[-1] == "]" else text

    def target_of(self, node: Node) -> bytes:
        """The dotted name of an expression: `a.b` as it is, `f(x).b` as `f().b`, `.b` where the object has no name;
        empty for no name at all."""
        return self.pure_target(node) or self._chain(node)

    def pure_target(self, node: Node) -> bytes:
        """The dotted name; empty for an expression that is more than names."""
        start = node.start_byte
        end = node.end_byte
        if end - start > MAX_NAME:
            return b""
        text = self.source[start:end]
        if _PLAIN.fullmatch(text):
            return text
        text = _JOINT.sub(b".", text)
        return text if _PURE.fullmatch(text) else b""

    def _chain(self, node: Node) -> bytes:
        """The name of a chain of members and calls."""
        members, calls, wrappers = self.table.members, self.table.calls, self.table.wrappers
        parts: list[bytes] = []
        called = b""
        at: Node | None = node
        for _ in range(MAX_CHAIN):
            if at is None:
                break
            kind = at.type
            if kind in members:
                inner, field = members[kind]
                name = at.child_by_field_name(field)
                part = (self._last_name(name) if name is not None else b"") + called
                is_open_call = kind in calls and at != node and not part.endswith(b"()")
                parts.append(part + b"()" if is_open_call else part)
                called = b""
                at = at.child_by_field_name(inner)
                if at is None and kind in calls:
                    return b".".join(reversed(parts))
            elif kind in calls:
                called = b"()"
                at = at.child_by_field_name(calls[kind])
            elif kind in wrappers:
                at = _unwrap(at, wrappers[kind])
            else:
                pure = self.pure_target(at)
                return b".".join(reversed([*parts, pure + called])) if pure else _tail(parts)
        return _tail(parts)

    def _last_name(self, node: Node) -> bytes:
        """The name at the end of a chain, without type arguments."""
        for _ in range(MAX_CHAIN):
            below = _unwrap(node, self.table.wrappers[node.type]) if node.type in self.table.wrappers else None
            if below is None:
                break
            node = below
        return self.pure_target(node)

    def names(self, node: Node) -> Iterator[Node]:
        """The names that a pattern binds."""
        pending = [node]
        while pending:
            at = pending.pop()
            if at.type in self.table.names:
                yield at
            elif at.type in self.table.patterns:
                bound = next((each for field in _BOUND_FIELDS if (each := at.child_by_field_name(field))), None)
                kind = at.child_by_field_name("type")
                pending += [bound] if bound is not None else [each for each in at.named_children[::-1] if each != kind]

    def enter(self, name: str, node: Node, role: Role) -> None:
        """Open a scope up to the end of a node. `name` is the full qualname; an inner function of the same name shares
        calls."""
        calls = self.scope.calls if name == self.scope.name and role == "function" else {}
        self.scope = SyntaxScope(name, min(node.end_byte, self.scope.end), role, calls)
        self._scopes.append(self.scope)

    def _leave(self) -> None:
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
            if head not in self.table.builtins and (above is None or head not in scope.bound):
                unbound.setdefault(head, []).append((target, scope.name, row))
        if above is not None:
            self.scope = above
            above.merge(unbound)
            return
        for uses in unbound.values():
            for target, inside, row in uses:
                key: tuple[ReferenceKind, bytes, str] = ("reference", target, inside)
                self._found[key] = min(row, self._found.get(key, row))

    def claim(self, node: Node | None) -> None:
        """Keep the handler of a node below from recording it again."""
        if node is not None:
            self.claimed.add(node.start_byte)

    def bind(self, name: Node) -> None:
        """Make a name local to the current scope."""
        self.claimed.add(name.start_byte)
        self.scope.bound.add(self.raw(name))

    def call(self, target: bytes, node: Node) -> None:
        if target:
            self.scope.calls.setdefault(target, []).append(node.start_point[0])

    def mention(self, target: bytes, node: Node) -> None:
        """Record a name that is used as a value."""
        if target and target not in self.scope.uses:
            self.scope.uses[target] = node.start_point[0]
            if target.startswith(self.table.own):
                self.relate("reference", target, node)

    def relate(self, kind: ReferenceKind, target: bytes, node: Node, inside: str | None = None) -> None:
        if target and target not in self.table.builtins:
            key = (kind, target, self.scope.name if inside is None else inside)
            self._found.setdefault(key, node.start_point[0])

    def add_import(self, module: str, name: str, alias: str, node: Node) -> None:
        if len(self.imports) < MAX_IMPORTS:
            self.imports.append(ImportFact(module, name, "" if alias == name else alias, node.start_point[0] + 1))
        else:
            self.is_cut = True

    def add_lead(self, node: Node, targets: list[bytes]) -> None:
        """Record the decorators in a node that stands before their definition."""
        row = node.start_point[0]
        lead = self.lead if self.lead is not None and self.lead.last_row >= row - 1 else Lead(row, row, [])
        lead.targets.extend((target, row) for target in targets if target and target not in self.table.builtins)
        self.lead = Lead(lead.first_row, node.end_point[0], lead.targets)

    def qualify(self, name: str) -> str:
        """The name with the enclosing names before it. Past the limit of nesting it is the enclosing name."""
        if len(self.scope.name) > MAX_SCOPE:
            return self.scope.name
        return f"{self.scope.name}.{name}" if self.scope.name else name

    def define(self, kind: SymbolKind, name: str, node: Node, *, until: Node | None = None) -> str:
        """Record a symbol in the current scope and return its qualname. The signature ends before `until`. A symbol
        without a name, as in broken code, is not recorded."""
        name = name[:MAX_NAME].strip()
        qualname = self.qualify(name)
        if not name or qualname == self.scope.name:
            return self.scope.name
        if len(self.symbols) >= MAX_SYMBOLS:
            self.is_cut = True
            return qualname
        first = node.start_point[0]
        if self.lead is not None:
            first = self._take_lead(first, qualname)
        head = self.source[node.start_byte : until.start_byte if until is not None else node.end_byte]
        signature = sign_value(head) if kind in ("constant", "variable") else sign(head)
        doc = self._comment_above(first) or self._comment_above(node.start_point[0])
        self.symbols.append(Symbol(kind, name, qualname, first + 1, last_row(node) + 1, signature, doc))
        return qualname

    def define_value(self, name: str, node: Node, *, is_constant: bool) -> None:
        """Record a variable or constant at its first assignment."""
        qualname = self.qualify(name[:MAX_NAME].strip())
        if qualname not in self._values:
            self._values.add(qualname)
            self.define("constant" if is_constant else "variable", name, node)

    def references(self) -> list[ReferenceFact]:
        """All references by line, then kind and name."""
        named = ((row + 1, kind, target, inside) for (kind, target, inside), row in self._found.items())
        found = sorted({*(each for each in named if each[2] not in self.type_parameters), *self._calls})
        self.is_cut |= len(found) > MAX_REFERENCES
        del found[MAX_REFERENCES:]
        return [
            ReferenceFact(kind, target.decode("utf-8", "replace"), inside, row) for row, kind, target, inside in found
        ]

    def _take_lead(self, first: int, qualname: str) -> int:
        lead, self.lead = self.lead, None
        if lead is None or not lead.last_row <= first <= lead.last_row + 1:
            return first
        for target, row in lead.targets:
            self._found.setdefault(("decorate", target, qualname), row)
        return lead.first_row

    def _comment_above(self, first: int) -> str:
        comment = self.comment
        if comment is None or comment.last_row != first - 1:
            return ""
        return describe_comment(self.source[comment.start : comment.end])


def named_at(node: Node | None, index: int = 0) -> Node | None:
    return node.named_child(index) if node is not None and index < node.named_child_count else None


def last_row(node: Node) -> int:
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _unwrap(wrapper: Node, field: str) -> Node | None:
    return wrapper.child_by_field_name(field) if field else named_at(wrapper)


def _tail(parts: list[bytes]) -> bytes:
    return b"." + b".".join(reversed(parts)) if parts and parts[0] else b""
