"""One walk over the tree of a file. A table says what to do at a kind of node; the walk keeps the scopes, so that each
fact knows the symbol around it and local variables are left out. No recursion: trees may be deep."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from clew.knowledge.code.extraction.wording import describe_comment, sign, sign_value
from clew.knowledge.code.facts import Import, Reference, ReferenceKind, Symbol, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Language, Node

Role = Literal["module", "class", "function"]
Handler = Callable[["Walk", "Node", int], bool]
"""Takes what it wants from a node that begins at a byte; whether the nodes below are to be visited."""

MAX_NAME = 200
MAX_SCOPE = 600
MAX_CHAIN = 8
"""Links of `a().b().c()` that are followed."""

_JOINT = re.compile(rb"\s*(?:\?\.|!\.|&\.|->|::|\.)\s*")
_PLAIN = re.compile(rb"[@$]{0,2}[\w\x80-\xff]+(?:\.[\w\x80-\xff]+)*")
_PURE = re.compile(rb"[@$#]{0,2}[\w$\x80-\xff]+[!?]?(?:\.[\w$#\x80-\xff]+[!?]?)*")


class Shape(NamedTuple):
    """How a grammar writes `a.b` and `a()`: kinds of nodes with the fields of their object and their name."""

    members: Mapping[str, tuple[str, str]] = {}
    calls: Mapping[str, str] = {}
    wrappers: Mapping[str, str] = {}
    """Kinds whose name is that of one field: `List<T>`, `f::<T>`."""
    own: tuple[bytes, ...] = ()
    """What stands for the object itself, with a dot: `self.`."""
    builtins: Collection[bytes] = ()


class Grammar(NamedTuple):
    """A language, ready to walk: what to do at a kind of node, by the number of the kind."""

    language: Language
    handlers: Mapping[int, Handler]
    shape: Shape


def build_grammar(language: Language, table: Mapping[str, Handler], shape: Shape) -> Grammar:
    """The table by numbers; one name may have several."""
    kinds = ((each, language.node_kind_for_id(each)) for each in range(language.node_kind_count))
    named = {each: kind for each, kind in kinds if kind is not None and language.node_kind_is_named(each)}
    return Grammar(language, {each: table[kind] for each, kind in named.items() if kind in table}, shape)


class Scope:
    """A part of a file with names of its own. `calls` and `uses` are rows of what is named here for the first time."""

    __slots__ = ("bound", "calls", "carried", "end", "name", "role", "uses")

    def __init__(self, name: str, end: int, role: Role, calls: dict[bytes, int]) -> None:
        self.name = name
        self.end = end
        self.role: Role = role
        self.calls = calls
        self.uses: dict[bytes, int] = {}
        self.bound: set[bytes] = set()
        self.carried: dict[bytes, list[tuple[bytes, str, int]]] = {}
        """Uses in scopes below that are not bound there, by the first part of the name."""


class Lead(NamedTuple):
    """Decorators before a definition, outside of its node."""

    first_row: int
    last_row: int
    targets: list[tuple[bytes, int]]


class Comment(NamedTuple):
    """Lines of comment without a gap."""

    first_row: int
    last_row: int
    start: int
    end: int
    column: int


class Walk:
    """The state of one walk, and what the handlers of a language do."""

    def __init__(self, source: bytes, shape: Shape) -> None:
        self.source = source
        self.shape = shape
        self.symbols: list[Symbol] = []
        self.imports: list[Import] = []
        self.skips: set[int] = set()
        """Bytes where nothing is to be recorded: it was, by the node above."""
        self.opened: set[int] = set()
        self.type_parameters: set[bytes] = set()
        self.typed_until = 0
        """Up to this byte names are types, which are never local variables."""
        self.comment: Comment | None = None
        self.lead: Lead | None = None
        self.last_name: tuple[int, bytes] = (-1, b"")
        self.scope = Scope("", len(source) + 1, "module", {})
        self._scopes = [self.scope]
        self._variables: set[str] = set()
        self._found: dict[tuple[ReferenceKind, bytes, str], int] = {}

    def run(self, root: Node, handlers: Mapping[int, Handler]) -> None:
        cursor = root.walk()
        find = handlers.get
        while True:
            node = cursor.node
            handler = find(node.kind_id) if node is not None else None
            descend = True
            if handler is not None and node is not None:
                start = node.start_byte
                while start >= self.scope.end:
                    self._leave()
                descend = handler(self, node, start)
            if descend and cursor.goto_first_child():
                continue
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    self._finish()
                    return

    def raw(self, node: Node) -> bytes:
        return self.source[node.start_byte : node.end_byte]

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : min(node.end_byte, node.start_byte + MAX_NAME)].decode("utf-8", "replace")

    def target_of(self, node: Node) -> bytes:
        """The name that an expression stands for, with dots: `a.b` as it is, `f(x).b` as `f().b`, `.b` where the object
        has no name; empty for no name at all."""
        pure = self.pure_target(node)
        return pure or self._chain_of(node)

    def pure_target(self, node: Node) -> bytes:
        """The dotted name, empty for an expression that is more than names."""
        start = node.start_byte
        end = node.end_byte
        if end - start > MAX_NAME:
            return b""
        text = self.source[start:end]
        if _PLAIN.fullmatch(text):
            return text
        text = _JOINT.sub(b".", text)
        return text if _PURE.fullmatch(text) else b""

    def _chain_of(self, node: Node) -> bytes:
        members, calls, wrappers, *_ = self.shape
        parts: list[bytes] = []
        called = b""
        at: Node | None = node
        for _ in range(MAX_CHAIN):
            kind = at.type if at is not None else ""
            if at is None:
                break
            if kind in members:
                inner, field = members[kind]
                name = at.child_by_field_name(field)
                parts.append((self.target_of_leaf(name) if name is not None else b"") + called)
                if kind in calls:
                    parts[-1] = parts[-1] if parts[-1].endswith(b"()") or at == node else parts[-1] + b"()"
                called = b""
                at = at.child_by_field_name(inner)
                if at is None and kind in calls:
                    return b".".join(reversed(parts))
            elif kind in calls:
                called = b"()"
                at = at.child_by_field_name(calls[kind])
            elif kind in wrappers:
                at = at.child_by_field_name(wrappers[kind]) if wrappers[kind] else named_at(at)
            else:
                pure = self.pure_target(at)
                return b".".join(reversed([*parts, pure + called])) if pure else _dotted_tail(parts)
        return _dotted_tail(parts)

    def target_of_leaf(self, node: Node) -> bytes:
        """The name at the end of a chain, without type arguments."""
        for _ in range(MAX_CHAIN):
            if node.type not in self.shape.wrappers:
                break
            field = self.shape.wrappers[node.type]
            below = node.child_by_field_name(field) if field else named_at(node)
            if below is None:
                break
            node = below
        return self.pure_target(node)

    def enter(self, name: str, end: int, role: Role) -> None:
        """A scope up to a byte; `name` is the whole qualname. A scope of the same name goes on with its calls."""
        calls = self.scope.calls if name == self.scope.name and role == "function" else {}
        self.scope = Scope(name, min(end, self.scope.end), role, calls)
        self._scopes.append(self.scope)

    def enter_nameless(self, node: Node) -> None:
        """The scope of a function without a name: what it does is done by the symbol around it."""
        self.enter(self.scope.name, node.end_byte, "function")

    def _leave(self) -> None:
        scope = self._scopes.pop()
        self.scope = above = self._scopes[-1]
        if scope.calls is not above.calls:
            self._keep("call", scope.calls, scope.name)
        carried = scope.carried
        if scope.role == "function":
            for name in scope.bound:
                carried.pop(name, None)
        for target, row in scope.uses.items():
            head = target.partition(b".")[0]
            if head not in scope.bound and head not in self.shape.builtins:
                carried.setdefault(head, []).append((target, scope.name, row))
        if len(self._scopes) == 1:
            self._keep_carried(carried)
        else:
            _merge(above, carried)

    def _finish(self) -> None:
        while len(self._scopes) > 1:
            self._leave()
        self._keep("call", self.scope.calls, "")
        uses = {key: row for key, row in self.scope.uses.items() if key not in self.shape.builtins}
        self._keep("reference", uses, "")

    def _keep(self, kind: ReferenceKind, rows: Mapping[bytes, int], inside: str) -> None:
        for target, row in rows.items():
            self._found.setdefault((kind, target, inside), row)

    def _keep_carried(self, carried: Mapping[bytes, list[tuple[bytes, str, int]]]) -> None:
        for uses in carried.values():
            for target, inside, row in uses:
                self._found.setdefault(("reference", target, inside), row)

    def call(self, target: bytes, node: Node) -> None:
        if target and target not in self.scope.calls:
            self.scope.calls[target] = node.start_point[0]

    def mention(self, target: bytes, node: Node, start: int) -> None:
        """A name used as a value or a type."""
        if not target:
            return
        if start < self.typed_until:
            self.relate("reference", target, node)
        elif target not in self.scope.uses:
            self.scope.uses[target] = node.start_point[0]
            if target.startswith(self.shape.own):
                self.relate("reference", target, node)

    def relate(self, kind: ReferenceKind, target: bytes, node: Node, inside: str | None = None) -> None:
        if target and target not in self.shape.builtins and target not in self.type_parameters:
            key = (kind, target, self.scope.name if inside is None else inside)
            self._found.setdefault(key, node.start_point[0])

    def bring(self, module: str, name: str, alias: str, node: Node) -> None:
        """An import. Inside of a function its name is a local one, yet what it names is not."""
        self.imports.append(Import(module, name, "" if alias == name else alias, node.start_point[0] + 1))

    def qualify(self, name: str) -> str:
        """The name with those around it; what is nested deeper than anybody writes goes by the name around it."""
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
        """Record a symbol in the current scope; its qualname. The signature ends before `until`; `outer` is the node
        with the decorators. Not recorded where it has no name, as in broken code, or is too deep."""
        name = name[:MAX_NAME].strip()
        qualname = self.qualify(name)
        if not name or qualname == self.scope.name:
            return self.scope.name
        first = (outer or node).start_point[0]
        if self.lead is not None:
            first = self._take_lead(first, qualname)
        head = self.source[node.start_byte : until.start_byte if until is not None else node.end_byte]
        is_value = kind in ("constant", "variable")
        symbol = Symbol(
            kind,
            name,
            qualname,
            first + 1,
            last_row(node) + 1,
            sign_value(head) if is_value else sign(head),
            doc or self._comment_above(first),
        )
        self.symbols.append(symbol)
        return qualname

    def define_value(self, name: str, node: Node, *, is_constant: bool, until: Node | None = None) -> None:
        """A variable or constant, where it is given a value for the first time."""
        qualname = self.qualify(name[:MAX_NAME].strip())
        if qualname not in self._variables:
            self._variables.add(qualname)
            self.define("constant" if is_constant else "variable", name, node, until=until)

    def references(self) -> list[Reference]:
        """By line, then kind and name."""
        found = sorted((row + 1, kind, target, inside) for (kind, target, inside), row in self._found.items())
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


def named_at(node: Node, index: int = 0) -> Node | None:
    return node.named_child(index) if index < node.named_child_count else None


def last_row(node: Node) -> int:
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _dotted_tail(parts: list[bytes]) -> bytes:
    return b"." + b".".join(reversed(parts)) if parts and parts[0] else b""


def _merge(above: Scope, carried: dict[bytes, list[tuple[bytes, str, int]]]) -> None:
    """The smaller into the larger: deep nesting stays cheap."""
    small, large = sorted((above.carried, carried), key=len)
    for head, uses in small.items():
        if head in large and len(large[head]) < len(uses):
            large[head], uses = uses, large[head]
        large.setdefault(head, []).extend(uses)
    above.carried = large
