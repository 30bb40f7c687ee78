"""Statements and annotations of a Python file: `summarize` turns a file into its summary."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence

from clew.knowledge.code.python_calls.expressions import Expressions
from clew.knowledge.code.python_calls.scopes import BODIES, FUNCTIONS, Scope, SummaryBuilder, names_bound_by
from clew.knowledge.code.python_calls.summary import NOTHING, Class, FunctionKind, ModuleImport, Summary
from clew.knowledge.code.python_calls.syntax import parse_expression, parse_module

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
DECORATOR_KINDS: dict[str, FunctionKind] = {
    "staticmethod": "static",
    "classmethod": "class",
    "property": "property",
    "cached_property": "property",
    "abstractproperty": "property",
    "getter": "property",
    "setter": "setter",
    "deleter": "setter",
}
"""The kind of method that a decorator with this last name makes."""
TRANSPARENT = frozenset(
    {
        "Optional", "Union", "Annotated", "Final", "ClassVar", "Required", "NotRequired", "Awaitable", "InitVar",
    }
)  # fmt: skip
SEQUENCES = frozenset(
    {
        "list", "List", "tuple", "Tuple", "set", "Set", "frozenset", "FrozenSet", "AbstractSet", "deque", "Deque",
        "Sequence", "MutableSequence", "Iterable", "Iterator", "Collection", "Generator",
        "AsyncIterator", "AsyncIterable", "AsyncGenerator",
    }
)  # fmt: skip
MAPPINGS = frozenset(("dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict"))
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
MAX_TYPE_TESTS = 200
"""`isinstance` conditions of one scope that are followed: each scans the statements that it applies to."""
MAX_ANNOTATION_DEPTH = 6
MAX_BYTES = 4_000_000
"""A larger file was hardly written by a person."""


def summarize(content: bytes) -> Summary:
    """The summary of a Python file. Never raises: an unreadable file has a summary with `error`."""
    if len(content) > MAX_BYTES:
        return Summary(error="too large")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Statements().read_file(parse_module(content))
    except SyntaxError as error:
        return Summary(error=f"line {error.lineno or 0}: {error.msg}"[:200])
    except ValueError as error:
        return Summary(error=str(error)[:200])
    except (RecursionError, MemoryError):
        return Summary(error="nested too deeply or too large")


class Statements:
    """Reads the statements of one file into a summary."""

    def __init__(self) -> None:
        self.builder = SummaryBuilder()
        self.expressions = Expressions(self.builder)

    def read_file(self, tree: ast.Module) -> Summary:
        scope = Scope("module", None, caller=0, qualname="")
        self.builder.bind(scope, tree.body)
        self.run(tree.body, scope)
        return self.builder.build(scope)

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        before: dict[str, int] = {}
        for position, statement in enumerate(body, start=1):
            reader = READERS.get(type(statement), Statements.run_other)
            reader(self, statement, scope)
            if isinstance(statement, ast.Assert):
                before = self._narrow(statement.test, body[position:], scope) | before
            elif isinstance(statement, ast.If) and isinstance(statement.body[-1], LEAVING) and not statement.orelse:
                before = self._narrow(statement.test, body[position:], scope, is_negated=True) | before
        scope.names.update(before)

    def run_other(self, statement: ast.stmt, scope: Scope) -> None:
        """A statement that moves no value: only its calls and its body matter."""
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.expressions.value(child, scope, is_wanted=False)
        for field in BODIES:
            self.run(getattr(statement, field, ()), scope)

    def run_if(self, node: ast.If, scope: Scope) -> None:
        self.expressions.value(node.test, scope, is_wanted=False)
        for body, is_negated in ((node.body, False), (node.orelse, True)):
            before = self._narrow(node.test, body, scope, is_negated=is_negated)
            self.run(body, scope)
            scope.names.update(before)

    def _narrow(
        self, test: ast.expr, body: Sequence[ast.stmt], scope: Scope, *, is_negated: bool = False
    ) -> dict[str, int]:
        """Give names that a condition tests by `isinstance` narrower variables, unless the body assigns them.

        Return their previous variables.
        """
        before: dict[str, int] = {}
        for name, classes, is_excluded in type_tests(test, is_negated):
            scope.type_tests += 1
            if scope.type_tests > MAX_TYPE_TESTS:
                break
            node = scope.names.get(name, NOTHING)
            found = self.expressions.join([self.expressions.value(item, scope) for item in classes])
            if NOTHING in (node, found) or name in names_bound_by(body):
                continue
            into = scope.names[name] = self.builder.node()
            before.setdefault(name, node)
            self.builder.use(node, "exclude" if is_excluded else "narrow", into, other=found)
            if not is_excluded:
                self.builder.use(found, "instance", into)
        return before

    def run_function(self, node: FunctionNode, scope: Scope) -> None:
        kind, decorators = _split_decorators(node.decorator_list)
        qualname = scope.qualify(node.name)
        inner = Scope("function", scope, caller=self.builder.scope(qualname), qualname=qualname)
        of_class = scope.of_class if scope.kind == "class" else NOTHING
        number, finish = self.expressions.begin_function(inner, scope, node.lineno, node.args, kind, of_class)
        positional = [*node.args.posonlyargs, *node.args.args]
        for item in (*positional, *node.args.kwonlyargs):
            self.builder.copy(self.annotated(item.annotation, scope), inner.names[item.arg])
        self.builder.copy(self.annotated(node.returns, scope), inner.returned)
        if of_class != NOTHING and kind != "static" and positional:
            inner.receiver, inner.of_class = inner.names[positional[0].arg], of_class
        self.builder.bind(inner, node.body)
        self.run(node.body, inner)
        finish()
        self._define(node, self.builder.seed("function", number), decorators, scope)

    def run_class(self, node: ast.ClassDef, scope: Scope) -> None:
        number = len(self.builder.classes)
        self.builder.classes.append(None)
        for position, base in enumerate(node.bases):
            plain = base.value if isinstance(base, ast.Subscript) else base
            self.builder.use(self.expressions.value(plain, scope), "base", number, other=position)
        for keyword in node.keywords:
            self.expressions.value(keyword.value, scope, is_wanted=False)
        qualname = scope.qualify(node.name)
        inner = Scope("class", scope, caller=self.builder.scope(qualname), qualname=qualname)
        inner.of_class = number
        self.builder.bind(inner, node.body)
        self.run(node.body, inner)
        self.builder.classes[number] = Class(qualname, node.lineno, inner.names)
        self._define(node, self.builder.seed("class", number), node.decorator_list, scope)

    def _define(
        self, node: FunctionNode | ast.ClassDef, value: int, decorators: Sequence[ast.expr], scope: Scope
    ) -> None:
        """Assign a definition, as its decorators leave it, to its name."""
        for decorator in reversed(decorators):
            called = self.expressions.value(decorator, scope)
            result = self.expressions.call(called, scope, decorator.lineno, args=(value,), decorates=True)
            value = value if result == NOTHING else result
        self.builder.copy(value, self.builder.variable(scope, node.name))

    def run_assign(self, node: ast.Assign, scope: Scope) -> None:
        self.expressions.assign_expression(node.targets, node.value, scope)

    def run_annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        self.expressions.assign(node.target, self.annotated(node.annotation, scope), scope)
        if node.value is not None:
            self.expressions.assign_expression([node.target], node.value, scope)

    def run_augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        found = self.expressions.value(node.value, scope)
        if isinstance(node.op, (ast.Add, ast.BitOr)) and found != NOTHING:
            self.expressions.assign(node.target, found, scope)

    def run_for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        source = self.expressions.value(node.iter, scope)
        if source != NOTHING:
            each = self.builder.derive(source, "iterate", scope, node.iter.lineno)
            self.expressions.assign(node.target, each, scope)
        self.run(node.body, scope)
        self.run(node.orelse, scope)

    def run_with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        for item in node.items:
            source = self.expressions.value(item.context_expr, scope)
            into = self.builder.derive(source, "enter", scope, item.context_expr.lineno)
            if item.optional_vars is not None:
                self.expressions.assign(item.optional_vars, into, scope)
        self.run(node.body, scope)

    def run_return(self, node: ast.Return, scope: Scope) -> None:
        self.builder.copy(self.expressions.value(node.value, scope), scope.owner().returned)

    def run_raise(self, node: ast.Raise, scope: Scope) -> None:
        """`raise Error` calls the class, as `raise Error()` does."""
        found = self.expressions.value(node.exc, scope)
        if isinstance(node.exc, (ast.Name, ast.Attribute)):
            self.expressions.call(found, scope, node.lineno)
        self.expressions.value(node.cause, scope, is_wanted=False)

    def run_try(self, node: ast.Try, scope: Scope) -> None:
        self.run(node.body, scope)
        for handler in node.handlers:
            caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            found = self.expressions.join([self.expressions.value(item, scope) for item in caught])
            if handler.name:
                self.builder.copy(self.builder.derive(found, "instance"), self.builder.variable(scope, handler.name))
            self.run(handler.body, scope)
        self.run(node.orelse, scope)
        self.run(node.finalbody, scope)

    def run_import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            module = alias.name if alias.asname else top
            into = self.builder.variable(scope, alias.asname or top)
            self.builder.imports.append(ModuleImport(module, 0, "", into, node.lineno))
            if module != alias.name:
                self.builder.imports.append(ModuleImport(alias.name, 0, "", NOTHING, node.lineno))

    def run_import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            into = NOTHING if alias.name == "*" else self.builder.variable(scope, alias.asname or alias.name)
            self.builder.imports.append(ModuleImport(node.module or "", node.level, alias.name, into, node.lineno))

    def run_match(self, node: ast.Match, scope: Scope) -> None:
        found = self.expressions.value(node.subject, scope)
        for case in node.cases:
            self._bind_pattern(case.pattern, found, scope)
            self.expressions.value(case.guard, scope, is_wanted=False)
            self.run(case.body, scope)

    def _bind_pattern(self, pattern: ast.pattern, found: int, scope: Scope) -> None:
        """A name for the whole subject holds it, or an instance of the class that the pattern names."""
        if isinstance(pattern, ast.MatchOr):
            for choice in pattern.patterns:
                self._bind_pattern(choice, found, scope)
        if not isinstance(pattern, ast.MatchAs) or pattern.name is None:
            return
        if isinstance(pattern.pattern, ast.MatchClass):
            found = self.builder.derive(self.expressions.value(pattern.pattern.cls, scope), "instance")
        self.builder.copy(found, self.builder.variable(scope, pattern.name))

    def annotated(self, annotation: ast.expr | None, scope: Scope, *, depth: int = 0) -> int:
        """A variable with the values that an annotation promises: an instance of each class that it names."""
        if annotation is None or depth > MAX_ANNOTATION_DEPTH:
            return NOTHING
        match annotation:
            case ast.Constant(value=str() as text):
                return self.annotated(parse_expression(text), scope, depth=depth + 1)
            case ast.Name() | ast.Attribute():
                return self.builder.derive(self.expressions.value(annotation, scope), "instance")
            case ast.BinOp(op=ast.BitOr()):
                sides = (annotation.left, annotation.right)
                return self.expressions.join([self.annotated(side, scope, depth=depth + 1) for side in sides])
            case ast.Subscript():
                return self._generic(annotation, scope, depth + 1)
        return NOTHING

    def _generic(self, annotation: ast.Subscript, scope: Scope, depth: int) -> int:
        name = _last_name(annotation.value)
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        if name in ("type", "Type"):
            classes = [item for item in inner if not isinstance(item, ast.Constant)]
            return self.expressions.join([self.expressions.value(item, scope) for item in classes])
        if name not in TRANSPARENT | SEQUENCES | MAPPINGS:
            return self.annotated(annotation.value, scope, depth=depth)
        parts = [self.annotated(item, scope, depth=depth) for item in inner]
        held = parts[-1] if name in MAPPINGS else self.expressions.join(parts)
        if name in TRANSPARENT or held == NOTHING:
            return held
        return self.builder.made("mapping" if name in MAPPINGS else "sequence", [(None, held)])


def type_tests(test: ast.expr, is_negated: bool) -> Iterator[tuple[str, Sequence[ast.expr], bool]]:
    """Names that a condition tests by `isinstance` if it is true (false if `is_negated`): the name, the classes, and
    whether they are excluded."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            yield from type_tests(test.operand, not is_negated)
        case ast.BoolOp():
            if isinstance(test.op, ast.Or if is_negated else ast.And):
                for part in test.values:
                    yield from type_tests(part, is_negated)
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), classes]):
            yield name, classes.elts if isinstance(classes, ast.Tuple) else [classes], is_negated


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _split_decorators(decorators: Sequence[ast.expr]) -> tuple[FunctionKind, list[ast.expr]]:
    """The kind of function that the decorators make, and the decorators that are called like any other function."""
    kinds = [DECORATOR_KINDS[name] for item in decorators if (name := _last_name(item)) in DECORATOR_KINDS]
    return kinds[-1] if kinds else "plain", [item for item in decorators if _last_name(item) not in DECORATOR_KINDS]


READERS: dict[type[ast.stmt], Callable[..., None]] = {
    **dict.fromkeys(FUNCTIONS, Statements.run_function),
    ast.ClassDef: Statements.run_class,
    ast.Assign: Statements.run_assign,
    ast.AnnAssign: Statements.run_annotated,
    ast.AugAssign: Statements.run_augmented,
    ast.If: Statements.run_if,
    ast.For: Statements.run_for,
    ast.AsyncFor: Statements.run_for,
    ast.With: Statements.run_with,
    ast.AsyncWith: Statements.run_with,
    ast.Return: Statements.run_return,
    ast.Raise: Statements.run_raise,
    ast.Try: Statements.run_try,
    ast.TryStar: Statements.run_try,
    ast.Import: Statements.run_import,
    ast.ImportFrom: Statements.run_import_from,
    ast.Match: Statements.run_match,
}
