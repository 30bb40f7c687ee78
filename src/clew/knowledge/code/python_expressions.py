"""Reads the expressions of a Python file: each gives the variable that holds its value, and notes what is called."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from clew.knowledge.code.python_building import SummaryBuilder, constant_key
from clew.knowledge.code.python_functions import begin_function, copy_defaults
from clew.knowledge.code.python_scopes import Scope
from clew.knowledge.code.python_sites import guessable_name, told_apart_by
from clew.knowledge.code.python_summary import (
    NOTHING,
    ContainerKind,
    Instance,
    Item,
    Iterate,
    Key,
    Load,
    Seed,
    Site,
    Slice,
    Super,
)
from clew.knowledge.code.python_targets import assign


class Expressions:
    """Expressions of one file, read into a summary."""

    def __init__(self, builder: SummaryBuilder) -> None:
        self.builder = builder

    def value(self, node: ast.expr | None, scope: Scope, *, is_wanted: bool = True) -> int:
        """The variable with the value of an expression; nothing where it can hold nothing that is called. What is not
        wanted is only read for what it calls."""
        if node is None or isinstance(node, ast.Constant):
            return NOTHING
        reader = READERS.get(type(node))
        if reader is not None:
            return reader(self, node, scope, is_wanted)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, scope, is_wanted=False)
        return NOTHING

    def kept(self, node: ast.expr, scope: Scope) -> int:
        """As `value`, for what is kept in a variable or asked for a method: literals are values there too."""
        found = self.value(node, scope)
        kind = _literal_kind(node) if found == NOTHING else ""
        return self._seeded(kind, 0) if kind else found

    def called(
        self,
        watched: int,
        scope: Scope,
        line: int,
        *,
        args: Sequence[int] = (),
        attr: str = "",
        decorates: bool = False,
    ) -> int:
        """Note a call that is not written as one; gives its result."""
        result = self.builder.node()
        site = Site("", tuple(args), (), (), (), result, scope.caller, line, decorates=decorates)
        return self.builder.call(watched, site) if watched != NOTHING else NOTHING

    def joined(self, nodes: Iterable[int]) -> int:
        known = [node for node in nodes if node != NOTHING]
        if len(known) <= 1:
            return known[0] if known else NOTHING
        into = self.builder.node()
        for node in known:
            self.builder.copy(node, into)
        return into

    def iterated(self, source: int, scope: Scope, line: int) -> int:
        if source == NOTHING:
            return NOTHING
        into = self.builder.node()
        self.builder.use(source, Iterate(into, scope.caller, line))
        return into

    def item(self, source: int, key: Key, scope: Scope, line: int) -> int:
        if source == NOTHING:
            return NOTHING
        into = self.builder.node()
        self.builder.use(source, Item(into, key, scope.caller, line))
        return into

    def instance(self, source: int) -> int:
        if source == NOTHING:
            return NOTHING
        into = self.builder.node()
        self.builder.use(source, Instance(into))
        return into

    def seed(self, into: int, kind: str, number: int) -> None:
        self.builder.seeds.append(Seed(into, kind, number))  # type: ignore[arg-type]  # one of Seed's words

    def _seeded(self, kind: str, number: int) -> int:
        into = self.builder.node()
        self.seed(into, kind, number)
        return into

    def read_name(self, node: ast.Name, scope: Scope, is_wanted: bool) -> int:
        return self.builder.variable(scope, node.id)

    def read_attribute(self, node: ast.Attribute, scope: Scope, is_wanted: bool) -> int:
        source = self.value(node.value, scope)
        if source == NOTHING:
            return NOTHING
        into = self.builder.node() if is_wanted else NOTHING
        self.builder.use(source, Load(into, node.attr, scope.caller, node.lineno))
        return into

    def read_call(self, node: ast.Call, scope: Scope, is_wanted: bool) -> int:
        above = self._super(node, scope)
        if above != NOTHING:
            return above
        attr = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        watched = self.kept(node.func.value, scope) if isinstance(node.func, ast.Attribute) else NOTHING
        watched = watched if attr else self.value(node.func, scope)
        args = tuple(self.value(item, scope) for item in node.args if not isinstance(item, ast.Starred))
        starred = tuple(self.value(item.value, scope) for item in node.args if isinstance(item, ast.Starred))
        named = [(item.arg, self.value(item.value, scope)) for item in node.keywords]
        if watched == NOTHING:
            return NOTHING
        site = Site(
            attr,
            args,
            tuple((name, found) for name, found in named if name and found != NOTHING),
            tuple(found for found in starred if found != NOTHING),
            tuple(found for name, found in named if not name and found != NOTHING),
            self.builder.node() if is_wanted else NOTHING,
            scope.caller,
            node.lineno,
            guessable_name(node.func, scope),
            constant=told_apart_by(node, scope),
        )
        return self.builder.call(watched, site)

    def _super(self, node: ast.Call, scope: Scope) -> int:
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super" and scope.binder("super") is None
        method = scope.method_scope() if is_super else None
        if method is None:
            return NOTHING
        into = self.builder.node()
        self.builder.use(method.receiver, Super(into, method.of_class))
        return into

    def read_subscript(self, node: ast.Subscript, scope: Scope, is_wanted: bool) -> int:
        source = self.value(node.value, scope)
        self.value(node.slice, scope, is_wanted=False)
        if not isinstance(node.slice, ast.Slice):
            return self.item(source, constant_key(node.slice, scope), scope, node.lineno)
        if source == NOTHING:
            return NOTHING
        start, stop = constant_key(node.slice.lower, scope), constant_key(node.slice.upper, scope)
        into = self.builder.node()
        first = start if isinstance(start, int) else 0
        last = stop if isinstance(stop, int) else None
        self.builder.use(source, Slice(into, first, last, self.builder.container("sequence")))
        return into

    def read_sequence(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope, is_wanted: bool) -> int:
        fields: list[tuple[Key, int]] = []
        for position, element in enumerate(node.elts):
            if isinstance(element, ast.Starred):
                source = self.value(element.value, scope)
                fields.append((None, self.iterated(source, scope, element.lineno)))
            else:
                is_ordered = not isinstance(node, ast.Set)
                fields.append((position if is_ordered else None, self.value(element, scope, is_wanted=is_wanted)))
        return self._filled("sequence", fields) if is_wanted else NOTHING

    def _filled(self, kind: ContainerKind, fields: list[tuple[Key, int]]) -> int:
        """A container; one that is filled with nothing but data is none, an empty one may be filled later."""
        is_data = bool(fields) and all(found == NOTHING for _, found in fields)
        return NOTHING if is_data else self.builder.made(kind, fields)

    def read_dict(self, node: ast.Dict, scope: Scope, is_wanted: bool) -> int:
        fields: list[tuple[Key, int]] = []
        for key, item in zip(node.keys, node.values, strict=True):
            self.value(key, scope, is_wanted=False)
            found = self.value(item, scope, is_wanted=is_wanted)
            fields.append(
                (constant_key(key, scope), self.item(found, None, scope, item.lineno) if key is None else found)
            )
        return self._filled("mapping", fields) if is_wanted else NOTHING

    def read_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope, is_wanted: bool
    ) -> int:
        inner = Scope("comprehension", scope, caller=scope.caller, qualname=scope.qualname)
        for part in node.generators:
            source = self.value(part.iter, inner)
            assign(self, part.target, self.iterated(source, scope, part.iter.lineno), inner, is_binding=True)
            for test in part.ifs:
                self.value(test, inner, is_wanted=False)
        if isinstance(node, ast.DictComp):
            self.value(node.key, inner, is_wanted=False)
            return self._filled("mapping", [(None, self.value(node.value, inner, is_wanted=is_wanted))])
        kind: ContainerKind = "generator" if isinstance(node, ast.GeneratorExp) else "sequence"
        return self._filled(kind, [(None, self.value(node.elt, inner, is_wanted=is_wanted))])

    def read_lambda(self, node: ast.Lambda, scope: Scope, is_wanted: bool) -> int:
        owner = scope.owner()
        owner.lambdas += 1
        qualname = owner.qualify(f"<lambda{owner.lambdas}>")
        inner = Scope("function", scope, caller=self.builder.scope(qualname), qualname=qualname)
        number, finish = begin_function(self, inner, node.lineno, node.args, "plain", NOTHING)
        copy_defaults(self, node.args, inner, scope)
        self.builder.copy(self.value(node.body, inner), inner.returned)
        finish()
        return self._seeded("function", number)

    def read_choice(self, node: ast.IfExp, scope: Scope, is_wanted: bool) -> int:
        self.value(node.test, scope, is_wanted=False)
        return self.joined(self.value(item, scope, is_wanted=is_wanted) for item in (node.body, node.orelse))

    def read_either(self, node: ast.BoolOp, scope: Scope, is_wanted: bool) -> int:
        return self.joined([self.value(item, scope, is_wanted=is_wanted) for item in node.values])

    def read_operation(self, node: ast.BinOp, scope: Scope, is_wanted: bool) -> int:
        """Long sums lean to the left, deeper than a recursion may go: walked in a loop. What is added up may be
        containers."""
        is_wanted = is_wanted and isinstance(node.op, (ast.Add, ast.BitOr))
        found: list[int] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            found.append(self.value(left.right, scope, is_wanted=is_wanted))
            left = left.left
        found.append(self.value(left, scope, is_wanted=is_wanted))
        return self.joined(found) if is_wanted else NOTHING

    def read_walrus(self, node: ast.NamedExpr, scope: Scope, is_wanted: bool) -> int:
        found = self.value(node.value, scope)
        assign(self, node.target, found, scope.owner(), is_binding=scope.owner().binder(node.target.id) is None)
        return found

    def read_inner(self, node: ast.Await | ast.Starred, scope: Scope, is_wanted: bool) -> int:
        return self.value(node.value, scope, is_wanted=is_wanted)

    def read_yield(self, node: ast.Yield | ast.YieldFrom, scope: Scope, is_wanted: bool) -> int:
        owner = scope.owner()
        owner.is_generator = True
        found = self.value(node.value, scope)
        if isinstance(node, ast.YieldFrom):
            found = self.iterated(found, scope, node.lineno)
        if found != NOTHING:
            owner.yields.append(found)
        return NOTHING


def _literal_kind(node: ast.expr) -> str:
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return "str"
        case ast.Dict() | ast.DictComp():
            return "dict"
        case ast.List() | ast.ListComp():
            return "list"
    return ""


READERS: dict[type[ast.expr], Callable[..., int]] = {
    ast.Name: Expressions.read_name,
    ast.Attribute: Expressions.read_attribute,
    ast.Call: Expressions.read_call,
    ast.Subscript: Expressions.read_subscript,
    ast.Tuple: Expressions.read_sequence,
    ast.List: Expressions.read_sequence,
    ast.Set: Expressions.read_sequence,
    ast.Dict: Expressions.read_dict,
    ast.ListComp: Expressions.read_comprehension,
    ast.SetComp: Expressions.read_comprehension,
    ast.GeneratorExp: Expressions.read_comprehension,
    ast.DictComp: Expressions.read_comprehension,
    ast.Lambda: Expressions.read_lambda,
    ast.IfExp: Expressions.read_choice,
    ast.BoolOp: Expressions.read_either,
    ast.BinOp: Expressions.read_operation,
    ast.NamedExpr: Expressions.read_walrus,
    ast.Await: Expressions.read_inner,
    ast.Starred: Expressions.read_inner,
    ast.Yield: Expressions.read_yield,
    ast.YieldFrom: Expressions.read_yield,
}
