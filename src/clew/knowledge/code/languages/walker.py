"""One walk over the tree of a file. A table says what to do at a kind of node; the walk keeps the scopes, so that each
fact knows the symbol around it and local variables are left out. No recursion: trees may be deep."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from clew.knowledge.code.languages.chains import chain_of
from clew.knowledge.code.languages.descriptions import describe_comment, sign, sign_value
from clew.knowledge.code.languages.grammar import Handler, Shape
from clew.knowledge.code.languages.nodes import last_row
from clew.knowledge.code.languages.scopes import Carried, Comment, Lead, Role, Scope
from clew.knowledge.code.models import Import, Reference, ReferenceKind, Symbol, SymbolKind

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NAME = 200
MAX_SCOPE = 600
MAX_SYMBOLS, MAX_IMPORTS, MAX_REFERENCES = 10_000, 10_000, 200_000
"""What is kept of one file: more of it a machine wrote."""

_JOINT = re.compile(rb"\s*(?:\?\.|!\.|&\.|->|::|\.)\s*")
_PLAIN = re.compile(rb"[@$]{0,2}[\w\x80-\xff]+(?:\.[\w\x80-\xff]+)*")
_PURE = re.compile(rb"[@$#]{0,2}[\w$\x80-\xff]+[!?]?(?:\.[\w$#\x80-\xff]+[!?]?)*")


class Walk:
    """The state of one walk, and what the handlers of a language do."""

    def __init__(self, source: bytes, shape: Shape) -> None:
        self.source = source
        self.shape = shape
        self.symbols: list[Symbol] = []
        self.imports: list[Import] = []
        self.is_cut = False
        """Whether there was more than is kept."""
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
        self._calls: set[tuple[int, ReferenceKind, bytes, str]] = set()

    def run(self, root: Node, handlers: Mapping[int, Handler]) -> None:
        cursor = root.walk()
        find, go_down, go_on, go_up = (
            handlers.get,
            cursor.goto_first_child,
            cursor.goto_next_sibling,
            cursor.goto_parent,
        )
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

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : min(node.end_byte, node.start_byte + MAX_NAME)].decode("utf-8", "replace")

    def target_of(self, node: Node) -> bytes:
        """The name that an expression stands for, with dots: `a.b` as it is, `f(x).b` as `f().b`, `.b` where the object
        has no name; empty for no name at all."""
        return self.pure_target(node) or chain_of(self, node)

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
            self._keep_calls(scope)
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
            above.take_over(carried)

    def _finish(self) -> None:
        while len(self._scopes) > 1:
            self._leave()
        self._keep_calls(self.scope)
        for target, row in self.scope.uses.items():
            if target not in self.shape.builtins:
                self._found.setdefault(("reference", target, ""), row)

    def _keep_calls(self, scope: Scope) -> None:
        """Each line of a call: who asks for callers wants to see all of them."""
        for target, rows in scope.calls.items():
            self._calls.update((row + 1, "call", target, scope.name) for row in rows)

    def _keep_carried(self, carried: Carried) -> None:
        for uses in carried.values():
            for target, inside, row in uses:
                self._found.setdefault(("reference", target, inside), row)

    def bind(self, name: Node) -> None:
        """A name that is one of the scope's own from here on."""
        self.skips.add(name.start_byte)
        self.scope.bound.add(self.raw(name))

    def call(self, target: bytes, node: Node) -> None:
        if target:
            self.scope.calls.setdefault(target, []).append(node.start_point[0])

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
        if len(self.imports) < MAX_IMPORTS:
            self.imports.append(Import(module, name, "" if alias == name else alias, node.start_point[0] + 1))
        else:
            self.is_cut = True

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

    def define_value(self, name: str, node: Node, *, is_constant: bool, until: Node | None = None) -> None:
        """A variable or constant, where it is given a value for the first time."""
        qualname = self.qualify(name[:MAX_NAME].strip())
        if qualname not in self._variables:
            self._variables.add(qualname)
            self.define("constant" if is_constant else "variable", name, node, until=until)

    def references(self) -> list[Reference]:
        """By line, then kind and name."""
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
