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
from typing import TYPE_CHECKING, NamedTuple

from clew.knowledge.code.languages.descriptions import describe_comment
from clew.knowledge.code.languages.fact_builder import MAX_CHAIN, MAX_NAME, FactBuilder, Lead, Role, Span
from clew.knowledge.code.models import ReferenceKind, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node, Query

_JOINT = re.compile(rb"\s*(?:\?\.|!\.|&\.|->|::|\.)\s*")
_PLAIN = re.compile(rb"[@$]{0,2}[\w\x80-\xff]+(?:\.[\w\x80-\xff]+)*")
_PURE = re.compile(rb"[@$#]{0,2}[\w$\x80-\xff]+[!?]?(?:\.[\w$#\x80-\xff]+[!?]?)*")
_BITS, _RANK_BITS = 32, 6
_RANKS = (1 << _RANK_BITS) - 1
_BOUND_FIELDS = ("pattern", "name", "left", "value")

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


class CommentBlock(NamedTuple):
    """Consecutive lines of comment."""

    last_row: int
    start: int
    end: int
    column: int


class Walker(FactBuilder):
    """The state of one walk, and the operations for handlers."""

    def __init__(self, source: bytes, table: LanguageTable) -> None:
        super().__init__(source, table.builtins, table.own)
        self.table = table
        self.claimed: set[int] = set()
        """Start bytes of nodes that a node above has recorded."""
        self.comment: CommentBlock | None = None
        self.skip_until = 0

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
                    self.close_scope()
                ranked[key & _RANKS](self, node, start)
        while self._scopes:
            self.close_scope()

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

    def claim(self, node: Node | None) -> None:
        """Keep the handler of a node below from recording it again."""
        if node is not None:
            self.claimed.add(node.start_byte)

    def bind(self, name: Node) -> None:
        """Make a name local to the current scope."""
        self.claimed.add(name.start_byte)
        self.scope.bound.add(self.raw(name))

    def enter(self, name: str, node: Node, role: Role) -> None:
        self.open_scope(name, node.end_byte, role)

    def call(self, target: bytes, node: Node) -> None:
        self.add_call(target, node.start_point[0])

    def relate(self, kind: ReferenceKind, target: bytes, node: Node, inside: str | None = None) -> None:
        self.add_reference(kind, target, node.start_point[0], inside)

    def note_import(self, module: str, name: str, alias: str, node: Node) -> None:
        self.add_import(module, name, alias, node.start_point[0])

    def add_lead(self, node: Node, targets: list[bytes]) -> None:
        """Record the decorators in a node that stands before their definition."""
        row = node.start_point[0]
        lead = self.lead if self.lead is not None and self.lead.last_row >= row - 1 else Lead(row, row, [])
        lead.targets.extend((target, row) for target in targets)
        self.lead = Lead(lead.first_row, node.end_point[0], lead.targets)

    def define(self, kind: SymbolKind, name: str, node: Node, *, until: Node | None = None) -> str:
        """As `add_symbol`. The signature ends before `until`."""
        return self.add_symbol(kind, name, span_of(node), node.end_byte if until is None else until.start_byte)

    def define_value(self, name: str, node: Node, *, is_constant: bool | None = None) -> None:
        """As `add_value`."""
        self.add_value(name, span_of(node), is_constant=is_constant)

    def comment_above(self, row: int) -> str:
        comment = self.comment
        if comment is None or comment.last_row != row - 1:
            return ""
        return describe_comment(self.source[comment.start : comment.end])


def named_at(node: Node | None, index: int = 0) -> Node | None:
    return node.named_child(index) if node is not None and index < node.named_child_count else None


def span_of(node: Node) -> Span:
    return Span(node.start_byte, node.end_byte, node.start_point[0], last_row(node))


def last_row(node: Node) -> int:
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _unwrap(wrapper: Node, field: str) -> Node | None:
    return wrapper.child_by_field_name(field) if field else named_at(wrapper)


def _tail(parts: list[bytes]) -> bytes:
    return b"." + b".".join(reversed(parts)) if parts and parts[0] else b""
