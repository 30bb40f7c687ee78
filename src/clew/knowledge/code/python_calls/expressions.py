"""Expressions, assignment targets, annotations and function signatures of a Python file.

Reading an expression records its calls and returns the variable that holds its value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from clew.knowledge.code.python_calls.scopes import PythonScope, SummaryBuilder
from clew.knowledge.code.python_calls.summary import NOTHING, Function, FunctionKind, Key, Site

Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
TRANSPARENT = frozenset(
    ("optional", "union", "annotated", "final", "classvar", "required", "notrequired", "awaitable", "initvar")
)
SEQUENCES = frozenset(
    {
        "list", "tuple", "set", "frozenset", "abstractset", "deque", "sequence", "mutablesequence", "iterable",
        "iterator", "collection", "generator", "asynciterator", "asynciterable", "asyncgenerator",
    }
)  # fmt: skip
MAPPINGS = frozenset(("dict", "mapping", "mutablemapping", "defaultdict", "ordereddict"))
"""Generic types by their names in lower case."""


class Expressions(SummaryBuilder):
    """Reads the expressions of one file into a summary."""

    def value(self, node: ast.expr | None, scope: PythonScope, *, is_wanted: bool = True) -> int:
        """The variable of an expression's value, or NOTHING if the value cannot be or contain a callable. If not
        `is_wanted`, the expression is only read for its calls.
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

    def read_name(self, node: ast.Name, scope: PythonScope, is_wanted: bool) -> int:
        return self.variable(scope, node.id)

    def read_attribute(self, node: ast.Attribute, scope: PythonScope, is_wanted: bool) -> int:
        source = self.value(node.value, scope)
        if is_wanted:
            return self.derive(source, "load", scope, node.lineno, node.attr)
        self.use(source, "load", NOTHING, scope, node.lineno, node.attr)
        return NOTHING

    def read_call(self, node: ast.Call, scope: PythonScope, is_wanted: bool) -> int:
        called = node.func
        if isinstance(called, ast.Name) and called.id == "super" and not scope.binder("super"):
            method = scope.method_scope()
            if method is not None:
                return self.derive(method.receiver, "super", key=method.of_class)
        attr = called.attr if isinstance(called, ast.Attribute) else ""
        watched = self.value(called.value if isinstance(called, ast.Attribute) else called, scope)
        args = tuple([self.value(item, scope) for item in node.args if not isinstance(item, ast.Starred)])
        starred = [self.value(item, scope) for item in node.args if isinstance(item, ast.Starred)]
        keywords = [(item.arg or "", self.value(item.value, scope)) for item in node.keywords]
        if watched == NOTHING:
            return NOTHING
        site = Site(
            attr,
            args,
            tuple([found for found in starred if found != NOTHING]),
            tuple([known for known in keywords if known[1] != NOTHING]),
            self.node() if is_wanted else NOTHING,
            scope.caller,
            node.lineno,
            _guessable_name(called, scope),
            constant=_selecting_constant(node),
        )
        return self.call(watched, site)

    def call_plainly(self, watched: int, scope: PythonScope, line: int, *, decorated: int = NOTHING) -> int:
        """Record a call that is not written as one, and return its result."""
        if watched == NOTHING:
            return NOTHING
        args = (decorated,) if decorated != NOTHING else ()
        return self.call(watched, Site("", args, (), (), self.node(), scope.caller, line, decorates=bool(args)))

    def read_subscript(self, node: ast.Subscript, scope: PythonScope, is_wanted: bool) -> int:
        """An item; a slice is a sequence with all elements, as their positions differ."""
        source = self.value(node.value, scope)
        self.value(node.slice, scope, is_wanted=False)
        item = self.derive(source, "item", scope, node.lineno, constant_key(node.slice))
        if item == NOTHING or not isinstance(node.slice, ast.Slice):
            return item
        return self.made([(None, item)])

    def read_sequence(self, node: ast.Tuple | ast.List | ast.Set, scope: PythonScope, is_wanted: bool) -> int:
        fields: list[tuple[Key, int]] = []
        for position, element in enumerate(node.elts):
            found = self.value(element, scope, is_wanted=is_wanted)
            if isinstance(element, ast.Starred):
                fields.append((None, self.derive(found, "iterate", scope, element.lineno)))
            else:
                fields.append((None if isinstance(node, ast.Set) else position, found))
        return self._fill(fields, is_wanted=is_wanted)

    def read_dict(self, node: ast.Dict, scope: PythonScope, is_wanted: bool) -> int:
        fields: list[tuple[Key, int]] = []
        for key, item in zip(node.keys, node.values, strict=True):
            self.value(key, scope, is_wanted=False)
            found = self.value(item, scope, is_wanted=is_wanted)
            found = self.derive(found, "item", scope, item.lineno) if key is None else found
            fields.append((constant_key(key), found))
        return self._fill(fields, is_wanted=is_wanted, is_mapping=True)

    def _fill(self, fields: Sequence[tuple[Key, int]], *, is_wanted: bool = True, is_mapping: bool = False) -> int:
        """A new container. A container of plain data is NOTHING. An empty container gets a variable, because it may be
        filled later."""
        is_data = bool(fields) and all(found == NOTHING for _, found in fields)
        return NOTHING if is_data or not is_wanted else self.made(fields, is_mapping=is_mapping)

    def read_comprehension(self, node: Comprehension, scope: PythonScope, is_wanted: bool) -> int:
        inner = PythonScope("comprehension", scope, scope.caller, scope.qualname)
        for part in node.generators:
            each = self.derive(self.value(part.iter, inner), "iterate", scope, part.iter.lineno)
            self.assign(part.target, each, inner)
            for test in part.ifs:
                self.value(test, inner, is_wanted=False)
        if not isinstance(node, ast.DictComp):
            return self._fill([(None, self.value(node.elt, inner, is_wanted=is_wanted))])
        self.value(node.key, inner, is_wanted=False)
        return self._fill([(None, self.value(node.value, inner, is_wanted=is_wanted))], is_mapping=True)

    def read_lambda(self, node: ast.Lambda, scope: PythonScope, is_wanted: bool) -> int:
        owner = scope.owner()
        owner.lambdas += 1
        return self.define_function(node, f"<lambda{owner.lambdas}>", scope)

    def read_choice(self, node: ast.IfExp, scope: PythonScope, is_wanted: bool) -> int:
        self.value(node.test, scope, is_wanted=False)
        return self.join([self.value(item, scope, is_wanted=is_wanted) for item in (node.body, node.orelse)])

    def read_either(self, node: ast.BoolOp, scope: PythonScope, is_wanted: bool) -> int:
        return self.join([self.value(item, scope, is_wanted=is_wanted) for item in node.values])

    def read_operation(self, node: ast.BinOp, scope: PythonScope, is_wanted: bool) -> int:
        """An operation, which may join containers. It is read in a loop, because long sums are nested beyond the
        recursion limit."""
        is_wanted = is_wanted and isinstance(node.op, (ast.Add, ast.BitOr))
        found: list[int] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            found.append(self.value(left.right, scope, is_wanted=is_wanted))
            left = left.left
        found.append(self.value(left, scope, is_wanted=is_wanted))
        return self.join(found) if is_wanted else NOTHING

    def read_walrus(self, node: ast.NamedExpr, scope: PythonScope, is_wanted: bool) -> int:
        found = self.value(node.value, scope)
        self.assign(node.target, found, scope.owner())
        return found

    def read_inner(self, node: ast.Await | ast.Starred, scope: PythonScope, is_wanted: bool) -> int:
        return self.value(node.value, scope, is_wanted=is_wanted)

    def read_yield(self, node: ast.Yield | ast.YieldFrom, scope: PythonScope, is_wanted: bool) -> int:
        owner, found = scope.owner(), self.value(node.value, scope)
        if isinstance(node, ast.YieldFrom):
            found = self.derive(found, "iterate", scope, node.lineno)
        owner.yields.append((None, found))
        return NOTHING

    def assign_expression(self, targets: Iterable[ast.expr], value: ast.expr, scope: PythonScope) -> None:
        """Assign an expression to each target."""
        found = self.value(value, scope)
        for target in targets:
            self.assign(target, found, scope)

    def assign(self, target: ast.expr, value: int, scope: PythonScope) -> None:
        """Assign a value to a target."""
        match target:
            case ast.Name():
                self.copy(value, self.bind(scope, target.id))
            case ast.Attribute():
                self.stored.add(target.attr)
                self.use(self.value(target.value, scope), "store", value, scope, target.lineno, target.attr)
            case ast.Subscript():
                self.value(target.slice, scope, is_wanted=False)
                source, key = self.value(target.value, scope), constant_key(target.slice)
                self.use(source, "set_item", value, scope, target.lineno, key)
            case ast.Tuple() | ast.List():
                self._unpack(target, value, scope)
            case ast.Starred():
                self.assign(target.value, value, scope)

    def _unpack(self, target: ast.Tuple | ast.List, value: int, scope: PythonScope) -> None:
        is_after_star = False
        for position, element in enumerate(target.elts):
            is_star = isinstance(element, ast.Starred)
            is_after_star = is_after_star or is_star
            item = self.derive(value, "item", scope, target.lineno, None if is_after_star else position)
            if is_star and item != NOTHING:
                item = self.made([(None, item)])
            self.assign(element, item, scope)

    def define_function(
        self, node: FunctionNode, name: str, scope: PythonScope, kind: FunctionKind = "plain", of_class: int = NOTHING
    ) -> int:
        """The variable of a new function. Its parameters get their defaults and annotations; its body waits."""
        inner, arguments = self.inner_scope("function", scope, name), node.args
        inner.returned = self.node()
        positional = self._parameters((*arguments.posonlyargs, *arguments.args), inner, scope)
        by_name = self._parameters(arguments.kwonlyargs, inner, scope)
        with_default = positional[len(positional) - len(arguments.defaults) :]
        defaults = (*arguments.defaults, *arguments.kw_defaults)
        for (_, parameter), default in zip((*with_default, *by_name), defaults, strict=True):
            self.copy(self.value(default, scope), parameter)
        if not isinstance(node, ast.Lambda):
            self.copy(self.annotated(node.returns, scope), inner.returned)
        rest = self._rest_parameter(arguments.vararg, inner)
        named_rest = self._rest_parameter(arguments.kwarg, inner, is_mapping=True)
        function = Function(
            self.node(), inner.qualname, node.lineno, kind, of_class,
            positional, by_name, rest, named_rest, inner.returned,
        )  # fmt: skip
        inner.receiver, inner.of_class = function.receiver, of_class
        self.functions.append(function)
        self.pending.append((node, inner))
        return function.node

    def _parameters(
        self, arguments: Iterable[ast.arg], inner: PythonScope, outer: PythonScope
    ) -> tuple[tuple[str, int], ...]:
        found = tuple([(item, self.bind(inner, item.arg)) for item in arguments])
        for item, parameter in found:
            self.copy(self.annotated(item.annotation, outer), parameter)
        return tuple([(item.arg, parameter) for item, parameter in found])

    def _rest_parameter(self, item: ast.arg | None, scope: PythonScope, *, is_mapping: bool = False) -> int:
        """The container of `*args` or `**kwargs`."""
        return NOTHING if item is None else self.container(self.bind(scope, item.arg), is_mapping=is_mapping)

    def annotated(self, annotation: ast.expr | None, scope: PythonScope) -> int:
        """A variable with the values that an annotation promises: an instance of each class that it names."""
        match annotation:
            case ast.Constant(value=str() as text):
                return self.annotated(_parse_expression(text), scope)
            case ast.Name() | ast.Attribute():
                return self.derive(self.value(annotation, scope), "instance")
            case ast.BinOp(op=ast.BitOr()):
                sides = (annotation.left, annotation.right)
                return self.join([self.annotated(side, scope) for side in sides])
            case ast.Subscript():
                return self._generic(annotation, scope)
        return NOTHING

    def _generic(self, annotation: ast.Subscript, scope: PythonScope) -> int:
        name = last_name(annotation.value).lower()
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if name == "type":
            return self.join([self.value(item, scope) for item in inner])
        if name not in TRANSPARENT | SEQUENCES | MAPPINGS:
            return self.annotated(annotation.value, scope)
        inner = inner[:1] if name.endswith("generator") else inner  # the others are sent and returned
        parts = [self.annotated(item, scope) for item in inner]
        held = parts[-1] if name in MAPPINGS else self.join(parts)
        if name in TRANSPARENT or held == NOTHING:
            return held
        return self.made([(None, held)], is_mapping=name in MAPPINGS)


def constant_key(node: ast.expr | None) -> Key:
    """The container key of a constant; None for everything else, and for negative positions."""
    if not isinstance(node, ast.Constant):
        return None
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value if 0 <= node.value < 1 << 31 else None
    text = node.value if isinstance(node.value, str) else repr(node.value)[:80]
    return text.encode(errors="replace").decode()  # a lone surrogate cannot be stored


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _selecting_constant(call: ast.Call) -> Key:
    """The name in `getattr(thing, name)`, the key in `thing.get(key)`."""
    position = 0 if isinstance(call.func, ast.Attribute) else 1
    return constant_key(call.args[position]) if len(call.args) > position else None


def _guessable_name(called: ast.expr, scope: PythonScope) -> str:
    """The method name to guess a target by: none for imported modules and methods of the same object."""
    if not isinstance(called, ast.Attribute):
        return ""
    root = called.value
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return called.attr
    binder, method = scope.binder(root.id), scope.method_scope()
    is_own = root is called.value and method is not None and method.names.get(root.id) == method.receiver
    is_imported = binder is not None and root.id in binder.imported
    return "" if is_own or is_imported else called.attr


def _parse_expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


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
