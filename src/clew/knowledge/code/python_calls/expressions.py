"""Expressions, assignment targets and function parameters of a Python file.

Reading an expression records its calls and returns the variable that holds its value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from clew.knowledge.code.python_calls.scopes import (
    Scope,
    SummaryBuilder,
    constant_key,
    guessable_name,
    selecting_constant,
)
from clew.knowledge.code.python_calls.summary import NOTHING, ContainerKind, Function, FunctionKind, Key, Site

Fields = list[tuple[Key, int]]
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Expressions:
    """Reads the expressions of one file into a summary."""

    def __init__(self, builder: SummaryBuilder) -> None:
        self.builder = builder

    def value(self, node: ast.expr | None, scope: Scope, *, is_wanted: bool = True) -> int:
        """The variable of an expression's value; NOTHING if it can hold nothing that is called.

        An expression that is not wanted is only read for its calls.
        """
        if node is None or isinstance(node, ast.Constant):
            return NOTHING
        reader = READERS.get(type(node))
        if reader is not None:
            return reader(self, node, scope, is_wanted)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, scope, is_wanted=False)
        return NOTHING

    def value_or_literal(self, node: ast.expr, scope: Scope) -> int:
        """As `value`; strings, lists and dictionaries are values too."""
        found = self.value(node, scope)
        kind = _literal_kind(node) if found == NOTHING else ""
        return self.builder.seed(kind, 0) if kind else found

    def call(self, watched: int, scope: Scope, line: int, *, args: Sequence[int] = (), decorates: bool = False) -> int:
        """Record a call that is not written as one, and return its result."""
        if watched == NOTHING:
            return NOTHING
        result = self.builder.node()
        return self.builder.call(
            watched, Site("", tuple(args), (), (), (), result, scope.caller, line, decorates=decorates)
        )

    def join(self, nodes: Iterable[int]) -> int:
        """A variable with the values of all these."""
        known = [node for node in nodes if node != NOTHING]
        if len(known) <= 1:
            return known[0] if known else NOTHING
        into = self.builder.node()
        for node in known:
            self.builder.copy(node, into)
        return into

    def read_name(self, node: ast.Name, scope: Scope, is_wanted: bool) -> int:
        return self.builder.variable(scope, node.id)

    def read_attribute(self, node: ast.Attribute, scope: Scope, is_wanted: bool) -> int:
        source = self.value(node.value, scope)
        if is_wanted:
            return self.builder.derive(source, "load", scope, node.lineno, key=node.attr)
        self.builder.use(source, "load", NOTHING, scope, node.lineno, key=node.attr)
        return NOTHING

    def read_call(self, node: ast.Call, scope: Scope, is_wanted: bool) -> int:
        above = self._read_super(node, scope)
        if above != NOTHING:
            return above
        attr, watched = "", NOTHING
        if isinstance(node.func, ast.Attribute):
            attr, watched = node.func.attr, self.value_or_literal(node.func.value, scope)
        else:
            watched = self.value(node.func, scope)
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
            constant=selecting_constant(node, scope),
        )
        return self.builder.call(watched, site)

    def _read_super(self, node: ast.Call, scope: Scope) -> int:
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super" and scope.binder("super") is None
        method = scope.method_scope() if is_super else None
        if method is None:
            return NOTHING
        return self.builder.derive(method.receiver, "super", other=method.of_class)

    def read_subscript(self, node: ast.Subscript, scope: Scope, is_wanted: bool) -> int:
        source = self.value(node.value, scope)
        self.value(node.slice, scope, is_wanted=False)
        if source == NOTHING or not isinstance(node.slice, ast.Slice):
            return self.builder.derive(source, "item", scope, node.lineno, key=constant_key(node.slice, scope))
        start, stop = constant_key(node.slice.lower, scope), constant_key(node.slice.upper, scope)
        return self.builder.derive(source, "slice", key=start, other=stop if isinstance(stop, int) else None)

    def read_sequence(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope, is_wanted: bool) -> int:
        fields: Fields = []
        for position, element in enumerate(node.elts):
            if isinstance(element, ast.Starred):
                source = self.value(element.value, scope)
                fields.append((None, self.builder.derive(source, "iterate", scope, element.lineno)))
            else:
                key = None if isinstance(node, ast.Set) else position
                fields.append((key, self.value(element, scope, is_wanted=is_wanted)))
        return self._fill("sequence", fields) if is_wanted else NOTHING

    def read_dict(self, node: ast.Dict, scope: Scope, is_wanted: bool) -> int:
        fields: Fields = []
        for key, item in zip(node.keys, node.values, strict=True):
            self.value(key, scope, is_wanted=False)
            found = self.value(item, scope, is_wanted=is_wanted)
            found = self.builder.derive(found, "item", scope, item.lineno) if key is None else found
            fields.append((constant_key(key, scope), found))
        return self._fill("mapping", fields) if is_wanted else NOTHING

    def _fill(self, kind: ContainerKind, fields: Fields) -> int:
        """A new container. One of mere data is NOTHING; an empty one may be filled later."""
        is_data = bool(fields) and all(found == NOTHING for _, found in fields)
        return NOTHING if is_data else self.builder.made(kind, fields)

    def read_comprehension(self, node: Comprehension, scope: Scope, is_wanted: bool) -> int:
        inner = Scope("comprehension", scope, caller=scope.caller, qualname=scope.qualname)
        for part in node.generators:
            each = self.builder.derive(self.value(part.iter, inner), "iterate", scope, part.iter.lineno)
            self.assign(part.target, each, inner, is_binding=True)
            for test in part.ifs:
                self.value(test, inner, is_wanted=False)
        if isinstance(node, ast.DictComp):
            self.value(node.key, inner, is_wanted=False)
            return self._fill("mapping", [(None, self.value(node.value, inner, is_wanted=is_wanted))])
        kind: ContainerKind = "generator" if isinstance(node, ast.GeneratorExp) else "sequence"
        return self._fill(kind, [(None, self.value(node.elt, inner, is_wanted=is_wanted))])

    def read_lambda(self, node: ast.Lambda, scope: Scope, is_wanted: bool) -> int:
        owner = scope.owner()
        owner.lambdas += 1
        qualname = owner.qualify(f"<lambda{owner.lambdas}>")
        inner = Scope("function", scope, caller=self.builder.scope(qualname), qualname=qualname)
        number, finish = self.begin_function(inner, scope, node.lineno, node.args, "plain", NOTHING)
        self.builder.copy(self.value(node.body, inner), inner.returned)
        finish()
        return self.builder.seed("function", number)

    def read_choice(self, node: ast.IfExp, scope: Scope, is_wanted: bool) -> int:
        self.value(node.test, scope, is_wanted=False)
        return self.join([self.value(item, scope, is_wanted=is_wanted) for item in (node.body, node.orelse)])

    def read_either(self, node: ast.BoolOp, scope: Scope, is_wanted: bool) -> int:
        return self.join([self.value(item, scope, is_wanted=is_wanted) for item in node.values])

    def read_operation(self, node: ast.BinOp, scope: Scope, is_wanted: bool) -> int:
        """Containers may be added up. A loop, as long sums nest to the left beyond the recursion limit."""
        is_wanted = is_wanted and isinstance(node.op, (ast.Add, ast.BitOr))
        found: list[int] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            found.append(self.value(left.right, scope, is_wanted=is_wanted))
            left = left.left
        found.append(self.value(left, scope, is_wanted=is_wanted))
        return self.join(found) if is_wanted else NOTHING

    def read_walrus(self, node: ast.NamedExpr, scope: Scope, is_wanted: bool) -> int:
        found, owner = self.value(node.value, scope), scope.owner()
        self.assign(node.target, found, owner, is_binding=owner.binder(node.target.id) is None)
        return found

    def read_inner(self, node: ast.Await | ast.Starred, scope: Scope, is_wanted: bool) -> int:
        return self.value(node.value, scope, is_wanted=is_wanted)

    def read_yield(self, node: ast.Yield | ast.YieldFrom, scope: Scope, is_wanted: bool) -> int:
        owner = scope.owner()
        owner.is_generator = True
        found = self.value(node.value, scope)
        if isinstance(node, ast.YieldFrom):
            found = self.builder.derive(found, "iterate", scope, node.lineno)
        if found != NOTHING:
            owner.yields.append(found)
        return NOTHING

    def assign_expression(self, targets: Sequence[ast.expr], value: ast.expr, scope: Scope) -> None:
        """Assign an expression to each target; tuples on both sides are paired element by element."""
        plain = [target for target in targets if not _is_paired(target, value)]
        found = self.value_or_literal(value, scope) if plain else NOTHING
        for target in plain:
            self.assign(target, found, scope)
        for target in targets:
            if _is_paired(target, value):
                self._assign_pairs(target, value, scope)

    def assign(self, target: ast.expr, value: int, scope: Scope, *, is_binding: bool = False) -> None:
        """Assign a value to a target. `is_binding` binds its names in this very scope."""
        match target:
            case ast.Name():
                if is_binding and target.id not in scope.names:
                    scope.names[target.id] = self.builder.node()
                self.builder.copy(value, self.builder.variable(scope, target.id))
            case ast.Attribute():
                self.builder.stored.add(target.attr)
                source = self.value(target.value, scope)
                self.builder.use(source, "store", value, scope, target.lineno, key=target.attr)
            case ast.Subscript():
                self.value(target.slice, scope, is_wanted=False)
                source, key = self.value(target.value, scope), constant_key(target.slice, scope)
                self.builder.use(source, "set_item", value, scope, target.lineno, key=key)
            case ast.Tuple() | ast.List():
                self._unpack(target, value, scope, is_binding)
            case ast.Starred():
                self.assign(target.value, value, scope, is_binding=is_binding)

    def _unpack(self, target: ast.Tuple | ast.List, value: int, scope: Scope, is_binding: bool) -> None:
        is_after_star = False
        for position, element in enumerate(target.elts):
            is_star = isinstance(element, ast.Starred)
            is_after_star = is_after_star or is_star
            key = None if is_after_star else position
            item = self.builder.derive(value, "item", scope, target.lineno, key=key)
            if is_star and item != NOTHING:
                item = self.builder.made("sequence", [(None, item)])
            self.assign(element, item, scope, is_binding=is_binding)

    def _assign_pairs(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
            return
        stars = [position for position, element in enumerate(target.elts) if isinstance(element, ast.Starred)]
        first = stars[0] if stars else len(target.elts)
        for element, item in zip(target.elts[:first], value.elts, strict=False):
            self.assign_expression([element], item, scope)
        if stars:
            last = len(value.elts) - (len(target.elts) - first - 1)
            middle = ast.copy_location(ast.List(elts=value.elts[first:last], ctx=ast.Load()), value)
            self.assign(target.elts[first], self.value(middle, scope), scope)
            for element, item in zip(target.elts[first + 1 :], value.elts[last:], strict=True):
                self.assign_expression([element], item, scope)

    def begin_function(
        self, inner: Scope, outer: Scope, line: int, arguments: ast.arguments, kind: FunctionKind, of_class: int
    ) -> tuple[int, Callable[[], None]]:
        """Number the parameters of a function in its own scope and read their defaults in the outer one.

        Return the number of the function, and a callback for when its body has been read.
        """
        number = len(self.builder.functions)
        self.builder.functions.append(None)
        positional = self._parameters((*arguments.posonlyargs, *arguments.args), inner)
        by_name = self._parameters(arguments.kwonlyargs, inner)
        rest = self._rest_parameter(arguments.vararg, "sequence", inner)
        named_rest = self._rest_parameter(arguments.kwarg, "mapping", inner)
        inner.returned = self.builder.node()
        with_default = positional[len(positional) - len(arguments.defaults) :]
        defaults = (*arguments.defaults, *arguments.kw_defaults)
        for (_, parameter), default in zip((*with_default, *by_name), defaults, strict=True):
            self.builder.copy(self.value(default, outer), parameter)

        def finish() -> None:
            fields = [(None, node) for node in inner.yields]
            generator = self.builder.container("generator", fields) if inner.is_generator else NOTHING
            self.builder.functions[number] = Function(
                inner.qualname, line, inner.caller, kind, of_class, positional, by_name, rest, named_rest,
                inner.returned, generator,
            )  # fmt: skip

        return number, finish

    def _parameters(self, arguments: Iterable[ast.arg], scope: Scope) -> tuple[tuple[str, int], ...]:
        for item in arguments:
            scope.names[item.arg] = self.builder.node()
        return tuple((item.arg, scope.names[item.arg]) for item in arguments)

    def _rest_parameter(self, item: ast.arg | None, kind: ContainerKind, scope: Scope) -> int:
        """The container of `*args` or `**kwargs`."""
        if item is None:
            return NOTHING
        scope.names[item.arg] = self.builder.node()
        container = self.builder.container(kind)
        self.builder.seed("container", container, scope.names[item.arg])
        return container


def _literal_kind(node: ast.expr) -> str:
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return "str"
        case ast.Dict() | ast.DictComp():
            return "dict"
        case ast.List() | ast.ListComp():
            return "list"
    return ""


def _is_paired(target: ast.expr, value: ast.expr) -> bool:
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(value, (ast.Tuple, ast.List)):
        return False
    stars = sum(isinstance(element, ast.Starred) for element in target.elts)
    if any(isinstance(element, ast.Starred) for element in value.elts):
        return False
    return len(target.elts) == len(value.elts) if not stars else stars == 1 and len(value.elts) >= len(target.elts) - 1


READERS: dict[type[ast.expr], Callable[..., int]] = {
    ast.Name: Expressions.read_name,
    ast.Attribute: Expressions.read_attribute,
    ast.Call: Expressions.read_call,
    ast.Subscript: Expressions.read_subscript,
    **dict.fromkeys((ast.Tuple, ast.List, ast.Set), Expressions.read_sequence),
    ast.Dict: Expressions.read_dict,
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), Expressions.read_comprehension),
    ast.Lambda: Expressions.read_lambda,
    ast.IfExp: Expressions.read_choice,
    ast.BoolOp: Expressions.read_either,
    ast.BinOp: Expressions.read_operation,
    ast.NamedExpr: Expressions.read_walrus,
    **dict.fromkeys((ast.Await, ast.Starred), Expressions.read_inner),
    **dict.fromkeys((ast.Yield, ast.YieldFrom), Expressions.read_yield),
}
