"""The walk over the syntax tree of one file.

A language gives a table of handlers by kind of node, and a `Syntax`. The walker keeps the scopes, so that each fact
names the symbol around it and local variables are left out. It does not recurse: trees can be deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from clew.knowledge.code.languages.descriptions import describe_comment, sign, sign_value
from clew.knowledge.code.models import Import, Reference, ReferenceKind, Symbol, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NAME = 200
MAX_SCOPE = 600
MAX_CHAIN = 8
"""Links of `a().b().c()` that are followed."""
MAX_SYMBOLS, MAX_IMPORTS, MAX_REFERENCES = 10_000, 10_000, 200_000
"""Limits for one file. Only generated files exceed them."""

_JOINT = re.compile(rb"\s*(?:\?\.|!\.|&\.|->|::|\.)\s*")
_PLAIN = re.compile(rb"[@$]{0,2}[\w\x80-\xff]+(?:\.[\w\x80-\xff]+)*")
_PURE = re.compile(rb"[@$#]{0,2}[\w$\x80-\xff]+[!?]?(?:\.[\w$#\x80-\xff]+[!?]?)*")

Role = Literal["module", "class", "function"]
Uses = dict[bytes, list[tuple[bytes, str, int]]]
"""Uses of names that no scope has bound yet, by the first part of the name: target, qualname of the user, row."""
Handler = Callable[["Walker", "Node", int], bool]
"""Records the facts of a node that starts at a byte. Returns whether to visit the nodes below it."""


class Syntax(NamedTuple):
    """How a grammar writes `a.b` and `a()`: kinds of nodes with the fields of their object and their name."""

    members: Mapping[str, tuple[str, str]] = {}
    calls: Mapping[str, str] = {}
    wrappers: Mapping[str, str] = {}
    """Kinds with the field that holds their name: `List<T>`, `f::<T>`. An empty field is the first child."""
    own: tuple[bytes, ...] = ()
    """Prefixes that mean the object itself: `self.`."""
    builtins: Collection[bytes] = ()


class Scope:
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


class Comment(NamedTuple):
    """Consecutive lines of comment."""

    first_row: int
    last_row: int
    start: int
    end: int
    column: int


class Walker:
    """The state of one walk, and the operations for handlers."""

    def __init__(self, source: bytes, syntax: Syntax) -> None:
        self.source = source
        self.syntax = syntax
        self.symbols: list[Symbol] = []
        self.imports: list[Import] = []
        self.is_cut = False
        """Whether the file has more facts than the limits allow."""
        self.claimed: set[int] = set()
        """Start bytes of nodes that a node above has recorded."""
        self.entered: set[int] = set()
        """Start bytes of definitions whose scope a node above has entered."""
        self.type_parameters: set[bytes] = set()
        self.typed_until = 0
        """Names up to this byte are types, which are never local variables."""
        self.comment: Comment | None = None
        self.lead: Lead | None = None
        self.last_name: tuple[int, bytes] = (-1, b"")
        self.scope = Scope("", len(source) + 1, "module", {})
        self._scopes = [self.scope]
        self._values: set[str] = set()
        self._found: dict[tuple[ReferenceKind, bytes, str], int] = {}
        self._calls: set[tuple[int, ReferenceKind, bytes, str]] = set()

    def run(self, root: Node, handlers: Mapping[int, Handler]) -> None:
        cursor = root.walk()
        find, go_down = handlers.get, cursor.goto_first_child
        go_on, go_up = cursor.goto_next_sibling, cursor.goto_parent
        while (node := cursor.node) is not None:
            handler = find(node.kind_id)
            if handler is None:
                descend = True
            else:
                start = node.start_byte
                while start >= self.scope.end:
                    self._leave()
                descend = handler(self, node, start)
            if descend and go_down():
                continue
            while not go_on():
                if not go_up():
                    self._finish()
                    return

    def raw(self, node: Node) -> bytes:
        return self.source[node.start_byte : node.end_byte]

    def text(self, node: Node | None) -> str:
        """The text of a name; empty without a node."""
        if node is None:
            return ""
        return self.source[node.start_byte : min(node.end_byte, node.start_byte + MAX_NAME)].decode("utf-8", "replace")

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

    def dotted(self, node: Node) -> str:
        """`target_of` as text."""
        return self.target_of(node).decode("utf-8", "replace")

    def _chain(self, node: Node) -> bytes:
        """The name of a chain of members and calls."""
        members, calls, wrappers, *_ = self.syntax
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
            below = _unwrap(node, self.syntax.wrappers[node.type]) if node.type in self.syntax.wrappers else None
            if below is None:
                break
            node = below
        return self.pure_target(node)

    def enter(self, name: str, end: int, role: Role) -> None:
        """Open a scope up to a byte. `name` is the full qualname; an inner function of the same name shares calls."""
        calls = self.scope.calls if name == self.scope.name and role == "function" else {}
        self.scope = Scope(name, min(end, self.scope.end), role, calls)
        self._scopes.append(self.scope)

    def enter_anonymous(self, node: Node) -> None:
        """Open the scope of a function without a name. Its uses belong to the symbol around it."""
        self.enter(self.scope.name, node.end_byte, "function")

    def _leave(self) -> None:
        scope = self._scopes.pop()
        self.scope = above = self._scopes[-1]
        if scope.calls is not above.calls:
            self._add_calls(scope)
        unbound = scope.unbound
        if scope.role == "function":
            for name in scope.bound:
                unbound.pop(name, None)
        for target, row in scope.uses.items():
            head = target.partition(b".")[0]
            if head not in scope.bound and head not in self.syntax.builtins:
                unbound.setdefault(head, []).append((target, scope.name, row))
        if len(self._scopes) > 1:
            above.merge(unbound)
            return
        for uses in unbound.values():
            for target, inside, row in uses:
                self._found.setdefault(("reference", target, inside), row)

    def _finish(self) -> None:
        while len(self._scopes) > 1:
            self._leave()
        self._add_calls(self.scope)
        for target, row in self.scope.uses.items():
            if target not in self.syntax.builtins:
                self._found.setdefault(("reference", target, ""), row)

    def _add_calls(self, scope: Scope) -> None:
        for target, rows in scope.calls.items():
            self._calls.update((row + 1, "call", target, scope.name) for row in rows)

    def claim(self, node: Node) -> None:
        """Keep the handler of a node below from recording it again."""
        self.claimed.add(node.start_byte)

    def bind(self, name: Node) -> None:
        """Make a name local to the current scope."""
        self.claimed.add(name.start_byte)
        self.scope.bound.add(self.raw(name))

    def call(self, target: bytes, node: Node) -> None:
        if target:
            self.scope.calls.setdefault(target, []).append(node.start_point[0])

    def mention(self, target: bytes, node: Node, start: int) -> None:
        """Record a name that is used as a value or a type."""
        if not target:
            return
        if start < self.typed_until:
            self.relate("reference", target, node)
        elif target not in self.scope.uses:
            self.scope.uses[target] = node.start_point[0]
            if target.startswith(self.syntax.own):
                self.relate("reference", target, node)

    def relate(self, kind: ReferenceKind, target: bytes, node: Node, inside: str | None = None) -> None:
        if target and target not in self.syntax.builtins and target not in self.type_parameters:
            key = (kind, target, self.scope.name if inside is None else inside)
            self._found.setdefault(key, node.start_point[0])

    def inherit(self, target: bytes, node: Node) -> None:
        """Record a base of the class whose scope is open."""
        self.relate("inherit", target, node)
        self.claim(node)

    def add_import(self, module: str, name: str, alias: str, node: Node) -> None:
        if len(self.imports) < MAX_IMPORTS:
            self.imports.append(Import(module, name, "" if alias == name else alias, node.start_point[0] + 1))
        else:
            self.is_cut = True

    def add_lead(self, node: Node, targets: list[tuple[bytes, int]]) -> None:
        """Record a decorator that stands before the definition that it belongs to."""
        row = node.start_point[0]
        lead = self.lead if self.lead is not None and self.lead.last_row >= row - 1 else None
        if lead is not None:
            lead.targets.extend(targets)  # in place: a hostile file may have very many
        self.lead = Lead(lead.first_row if lead else row, node.end_point[0], lead.targets if lead else targets)

    def qualify(self, name: str) -> str:
        """The name with the enclosing names before it. Past the limit of nesting it is the enclosing name."""
        if len(self.scope.name) > MAX_SCOPE:
            return self.scope.name
        return f"{self.scope.name}.{name}" if self.scope.name else name

    def define(
        self,
        kind: SymbolKind,
        name: str,
        node: Node,
        *,
        until: Node | None = None,
        doc: str = "",
        outer: Node | None = None,
    ) -> str:
        """Record a symbol in the current scope and return its qualname. The signature ends before `until`; `outer` is
        the node with the decorators. A symbol without a name, as in broken code, is not recorded."""
        name = name[:MAX_NAME].strip()
        qualname = self.qualify(name)
        if not name or qualname == self.scope.name:
            return self.scope.name
        if len(self.symbols) >= MAX_SYMBOLS:
            self.is_cut = True
            return qualname
        first = (outer or node).start_point[0]
        if self.lead is not None:
            first = self._take_lead(first, qualname)
        head = self.source[node.start_byte : until.start_byte if until is not None else node.end_byte]
        signature = sign_value(head) if kind in ("constant", "variable") else sign(head)
        described = doc or self._comment_above(first)
        self.symbols.append(Symbol(kind, name, qualname, first + 1, last_row(node) + 1, signature, described))
        return qualname

    def define_value(self, name: str, node: Node, *, is_constant: bool) -> None:
        """Record a variable or constant at its first assignment."""
        qualname = self.qualify(name[:MAX_NAME].strip())
        if qualname not in self._values:
            self._values.add(qualname)
            self.define("constant" if is_constant else "variable", name, node)

    def references(self) -> list[Reference]:
        """All references by line, then kind and name."""
        named = ((row + 1, kind, target, inside) for (kind, target, inside), row in self._found.items())
        found = sorted({*named, *self._calls})
        self.is_cut |= len(found) > MAX_REFERENCES
        del found[MAX_REFERENCES:]
        return [Reference(kind, target.decode("utf-8", "replace"), inside, row) for row, kind, target, inside in found]

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


def child_at(node: Node, index: int = 0) -> Node | None:
    return node.child(index) if index < node.child_count else None


def named_at(node: Node | None, index: int = 0) -> Node | None:
    return node.named_child(index) if node is not None and index < node.named_child_count else None


def last_row(node: Node) -> int:
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _unwrap(wrapper: Node, field: str) -> Node | None:
    return wrapper.child_by_field_name(field) if field else named_at(wrapper)


def _tail(parts: list[bytes]) -> bytes:
    return b"." + b".".join(reversed(parts)) if parts and parts[0] else b""
