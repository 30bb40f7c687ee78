"""The walk over a syntax tree of tree-sitter.

A language is a `LanguageTable`: a query whose captures say what a node is (`@function`, `@call`, `@bind`), and the
shapes of dotted names in its grammar. The walker visits the captured nodes in the order of the file; ACTIONS has a
handler for each capture.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from clew.knowledge.code.languages.descriptions import describe_comment
from clew.knowledge.code.languages.fact_builder import MAX_CHAIN, MAX_NAME, FactBuilder, Lead, Role, Span
from clew.knowledge.code.models import ReferenceKind, SymbolKind
from clew.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from tree_sitter import Node, Query

_JOINT = lazy_pattern(rb"\s*(?:\?\.|!\.|&\.|->|::|\.)\s*")
_PLAIN = lazy_pattern(rb"[@$]{0,2}[\w\x80-\xff]+(?:\.[\w\x80-\xff]+)*")
_PURE = lazy_pattern(rb"[@$#]{0,2}[\w$\x80-\xff]+[!?]?(?:\.[\w$#\x80-\xff]+[!?]?)*")
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
        """The dotted name of an expression: `a.b` as it is, `f(x).b` as `f().b`, `.b` if the object has no name;
        empty without a name."""
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


def comment(walk: Walker, node: Node, start: int) -> None:
    """Keep a comment for the next definition, which it may describe."""
    row, column = node.start_point
    last = walk.comment
    is_next = last is not None and last.last_row == row - 1 and last.column == column
    if last is not None and is_next and walk.source[start : start + 2] != b"/*":
        walk.comment = CommentBlock(last_row(node), last.start, node.end_byte, column)
    elif not walk.source[start - column : start].strip():
        walk.comment = CommentBlock(last_row(node), start, node.end_byte, column)
    if walk.lead is not None and walk.lead.last_row == row - 1:  # between a decorator and its definition
        walk.lead = walk.lead._replace(last_row=last_row(node))


def claim(walk: Walker, node: Node, start: int) -> None:
    """A name that does not refer to anything, such as the key of an argument."""
    walk.claimed.add(start)


def skip(walk: Walker, node: Node, start: int) -> None:
    walk.skip(node)


def bind(walk: Walker, node: Node, start: int) -> None:
    """A pattern of local variables."""
    for name in walk.names(node):
        walk.bind(name)


def type_parameter(walk: Walker, node: Node, start: int) -> None:
    """The `T` of `List<T>` is not a type of the project."""
    walk.claim(node)
    walk.type_parameters.add(walk.raw(node)[:MAX_NAME])


def definition(kind: SymbolKind, role: Role) -> Handler:
    """Define the field `name` and enter its scope. A function in a class is a method."""

    def handle(walk: Walker, node: Node, start: int) -> None:
        name = node.child_by_field_name("name")
        if name is not None:
            walk.bind(name)
            written: SymbolKind = "method" if kind == "function" and walk.scope.role == "class" else kind
            qualname = walk.define(written, walk.label(name), node, until=node.child_by_field_name("body"))
            walk.enter(qualname, node, role)

    return handle


def package(walk: Walker, node: Node, start: int) -> None:
    """The line that names the package of a file."""
    walk.define("module", walk.text(named_at(node, node.named_child_count - 1)), node)
    walk.skip(node)


def anonymous(walk: Walker, node: Node, start: int) -> None:
    """A function without a name. Its uses belong to the symbol around it."""
    walk.enter(walk.scope.name, node, "function")


def value(is_constant: bool | None = None, *, is_field: bool = False) -> Handler:
    """Define the names that a declaration binds, unless they are local to a function. Without `is_constant`, capitals
    show a constant. Types may have the name of a field, so that one is not bound."""

    def handle(walk: Walker, node: Node, start: int) -> None:
        fields = map(node.children_by_field_name, ("left", "name", "declarator"))
        targets = next((found for found in fields if found), [node])
        for name in [name for target in targets for name in walk.names(target)]:
            (walk.claim if is_field else walk.bind)(name)
            text = walk.label(name)
            if walk.scope.role != "function" and text != "_":
                walk.define_value(text, node, is_constant=is_constant)

    return handle


def base(walk: Walker, node: Node, start: int) -> None:
    """A base of the class whose scope is open."""
    if walk.scope.role == "class":
        walk.relate("inherit", walk.target_of(node), node)
        walk.claim(node)


def decorator(walk: Walker, node: Node, start: int) -> None:
    """A decorator inside of the definition that it belongs to."""
    name = _decorating(walk, node)
    walk.relate("decorate", walk.pure_target(name), node, walk.symbols[-1].qualname if walk.symbols else "")
    walk.claim(name)


def lead(walk: Walker, node: Node, start: int) -> None:
    """A decorator before the definition that it belongs to."""
    expression = named_at(node)
    if expression is not None:
        name = _decorating(walk, expression)
        walk.add_lead(node, [walk.pure_target(name)])
        walk.claim(name)


def _decorating(walk: Walker, expression: Node) -> Node:
    field = walk.table.calls.get(expression.type, "")
    return (expression.child_by_field_name(field) if field else None) or expression


def call(walk: Walker, node: Node, start: int) -> None:
    """A call of a function, or of a type as one. A name that is called is not a reference as well."""
    if start in walk.claimed:
        return
    kind = node.type
    function = node.child_by_field_name(walk.table.calls[kind])
    if function is None:
        return
    if kind in walk.table.members:
        walk.claim(function)
        owner = node.child_by_field_name(walk.table.members[kind][0])
        if owner is not None and owner.type not in walk.table.calls and walk.pure_target(owner):
            walk.claim(owner)
        walk.call(walk.target_of(node), node)
        return
    target = walk.target_of(function)
    if target and b"(" not in target and not target.startswith(b"."):
        walk.claim(function)
    if not target.endswith(b")"):  # the result of a call has no name
        walk.call(target, node)


def dotted(walk: Walker, node: Node, start: int) -> None:
    """Mention a dotted name as one. If it starts with another expression, visit that."""
    if target := walk.pure_target(node):
        if start not in walk.claimed:
            walk.add_use(target, node.start_point[0])
        walk.skip(node)
    elif node.type in walk.table.members:
        walk.claim(node.child_by_field_name(walk.table.members[node.type][1]))


def type_name(walk: Walker, node: Node, start: int) -> None:
    """The name of a type, which is never a local variable."""
    target = walk.target_of(node)
    if walk.source.startswith(b"::", start):
        target = target.removeprefix(b".")
    if target and start not in walk.claimed:
        walk.relate("reference", target, node)
    if target:
        walk.skip(node)


def name(walk: Walker, node: Node, start: int) -> None:
    if start not in walk.claimed:
        walk.add_use(walk.source[start : node.end_byte], node.start_point[0])


ACTIONS: dict[str, Handler] = {
    "comment": comment,
    "skip": skip,
    "claim": claim,
    "bind": bind,
    "type_parameter": type_parameter,
    "package": package,
    "class": definition("class", "class"),
    "interface": definition("interface", "class"),
    "function": definition("function", "function"),
    "method": definition("method", "function"),
    "module": definition("module", "module"),
    "constant": value(is_constant=True),
    "variable": value(is_constant=False),
    "value": value(),
    "field": value(is_field=True),
    "anonymous": anonymous,
    "base": base,
    "decorator": decorator,
    "lead": lead,
    "call": call,
    "dotted": dotted,
    "type": type_name,
    "name": name,
}
"""By capture, in the order in which captures of one place are handled."""
