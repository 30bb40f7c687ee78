"""Reads the statements of a Python file into a summary of how its values move."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Sequence

from clew.knowledge.code.python_annotations import annotated
from clew.knowledge.code.python_building import SummaryBuilder
from clew.knowledge.code.python_expressions import Expressions
from clew.knowledge.code.python_functions import begin_function, copy_defaults
from clew.knowledge.code.python_older import in_older_words
from clew.knowledge.code.python_scopes import BODIES, FUNCTIONS, Scope
from clew.knowledge.code.python_summary import (
    NOTHING,
    Base,
    Class,
    Enter,
    FunctionKind,
    Iterate,
    ModuleImport,
    Seed,
    Summary,
)
from clew.knowledge.code.python_targets import assign, assign_expression

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
KINDS: dict[str, FunctionKind] = {
    "staticmethod": "static",
    "classmethod": "class",
    "property": "property",
    "cached_property": "property",
    "abstractproperty": "property",
    "setter": "setter",
    "deleter": "setter",
    "getter": "property",
}
"""What a decorator with this last name makes of a method."""
LARGEST = 4_000_000
"""Bytes of a file; a larger one is not code that a person wrote."""


def summarize(content: bytes) -> Summary:
    """The summary of a Python file. Never raises: a file that cannot be read gives a summary with `error`."""
    if len(content) > LARGEST:
        return Summary(error="too large")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Statements().file(_parse(content))
    except SyntaxError as error:
        return Summary(error=f"line {error.lineno or 0}: {error.msg}"[:200])
    except ValueError as error:
        return Summary(error=str(error)[:200])
    except (RecursionError, MemoryError):
        return Summary(error="nested too deeply or too large")


def _parse(content: bytes) -> ast.Module:
    """The tree of a file; where this version of Python cannot read it, as far as it can be said in older words. Raises
    SyntaxError, ValueError, RecursionError, MemoryError."""
    try:
        return ast.parse(content)
    except SyntaxError as error:
        text = content.decode("utf-8-sig", errors="replace")
        older = in_older_words(text)
        if older == text:
            raise
        try:
            return ast.parse(older)
        except SyntaxError:
            raise error from None


class Statements:
    """The statements of one file, read into a summary."""

    def __init__(self) -> None:
        self.builder = SummaryBuilder()
        self.reader = Expressions(self.builder)

    def file(self, tree: ast.Module) -> Summary:
        scope = Scope("module", None, caller=0, qualname="")
        self.builder.bind(scope, tree.body)
        self.run(tree.body, scope)
        return self.builder.build(scope)

    def run(self, body: Iterable[ast.stmt], scope: Scope) -> None:
        for statement in body:
            reader = READERS.get(type(statement))
            if reader is not None:
                reader(self, statement, scope)
            else:
                self._parts(statement, scope)

    def _parts(self, statement: ast.stmt, scope: Scope) -> None:
        """A statement that moves no value: read for what it calls, and for what is in it."""
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.reader.value(child, scope, is_wanted=False)
        for field in BODIES:
            self.run(getattr(statement, field, ()), scope)

    def run_function(self, node: FunctionNode, scope: Scope) -> None:
        kind, decorators = _sorted_decorators(node.decorator_list)
        qualname = scope.qualify(node.name)
        inner = Scope("function", scope, caller=self.builder.scope(qualname), qualname=qualname)
        of_class = scope.of_class if scope.kind == "class" else NOTHING
        number, finish = begin_function(self.reader, inner, node.lineno, node.args, kind, of_class)
        copy_defaults(self.reader, node.args, inner, scope)
        self._annotate(node, inner, scope)
        positional = [*node.args.posonlyargs, *node.args.args]
        if of_class != NOTHING and kind != "static" and positional:
            inner.receiver, inner.of_class = inner.names[positional[0].arg], of_class
        self.builder.bind(inner, node.body)
        self.run(node.body, inner)
        finish()
        self._name(node, Seed(self.builder.node(), "function", number), decorators, scope)

    def _annotate(self, node: FunctionNode, inner: Scope, scope: Scope) -> None:
        arguments = node.args
        for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.builder.copy(annotated(self.reader, item.annotation, scope), inner.names[item.arg])
        self.builder.copy(annotated(self.reader, node.returns, scope), inner.returned)

    def run_class(self, node: ast.ClassDef, scope: Scope) -> None:
        number = len(self.builder.classes)
        self.builder.classes.append(None)
        for position, base in enumerate(node.bases):
            plain = base.value if isinstance(base, ast.Subscript) else base
            self.builder.use(self.reader.value(plain, scope), Base(number, position))
        for keyword in node.keywords:
            self.reader.value(keyword.value, scope, is_wanted=False)
        qualname = scope.qualify(node.name)
        inner = Scope("class", scope, caller=self.builder.scope(qualname), qualname=qualname)
        inner.of_class = number
        self.builder.bind(inner, node.body)
        self.run(node.body, inner)
        self.builder.classes[number] = Class(qualname, node.lineno, inner.names)
        self._name(node, Seed(self.builder.node(), "class", number), node.decorator_list, scope)

    def _name(
        self, node: FunctionNode | ast.ClassDef, made: Seed, decorators: Sequence[ast.expr], scope: Scope
    ) -> None:
        """Give what was defined, as its decorators leave it, to its name."""
        self.builder.seeds.append(made)
        value = made.into
        for decorator in reversed(decorators):
            called = self.reader.value(decorator, scope)
            result = self.reader.called(called, scope, decorator.lineno, args=(value,), decorates=True)
            value = value if result == NOTHING else result
        self.builder.copy(value, self.builder.variable(scope, node.name))

    def run_assign(self, node: ast.Assign, scope: Scope) -> None:
        assign_expression(self.reader, node.targets, node.value, scope)

    def run_annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        assign(self.reader, node.target, annotated(self.reader, node.annotation, scope), scope)
        if node.value is not None:
            assign_expression(self.reader, [node.target], node.value, scope)

    def run_augmented(self, node: ast.AugAssign, scope: Scope) -> None:
        found = self.reader.value(node.value, scope)
        if isinstance(node.op, (ast.Add, ast.BitOr)) and found != NOTHING:
            assign(self.reader, node.target, found, scope)

    def run_for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        source = self.reader.value(node.iter, scope)
        if source != NOTHING:
            into = self.builder.node()
            self.builder.use(source, Iterate(into, scope.caller, node.iter.lineno))
            assign(self.reader, node.target, into, scope)
        self.run(node.body, scope)
        self.run(node.orelse, scope)

    def run_with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> None:
        for item in node.items:
            source = self.reader.value(item.context_expr, scope)
            into = self.builder.node()
            self.builder.use(source, Enter(into, scope.caller, item.context_expr.lineno))
            if item.optional_vars is not None:
                assign(self.reader, item.optional_vars, into, scope)
        self.run(node.body, scope)

    def run_return(self, node: ast.Return, scope: Scope) -> None:
        self.builder.copy(self.reader.value(node.value, scope), scope.owner().returned)

    def run_raise(self, node: ast.Raise, scope: Scope) -> None:
        """`raise Error` makes one, as `raise Error()` does."""
        found = self.reader.value(node.exc, scope)
        if found != NOTHING and isinstance(node.exc, (ast.Name, ast.Attribute)):
            self.reader.called(found, scope, node.lineno)
        self.reader.value(node.cause, scope, is_wanted=False)

    def run_try(self, node: ast.Try, scope: Scope) -> None:
        self.run(node.body, scope)
        for handler in node.handlers:
            caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            found = self.reader.joined([self.reader.value(item, scope) for item in caught])
            if handler.name:
                made = self.reader.instance(found)
                self.builder.copy(made, self.builder.variable(scope, handler.name))
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
        found = self.reader.value(node.subject, scope)
        for case in node.cases:
            self._pattern(case.pattern, found, scope)
            self.reader.value(case.guard, scope, is_wanted=False)
            self.run(case.body, scope)

    def _pattern(self, pattern: ast.pattern, found: int, scope: Scope) -> None:
        """A name in a pattern holds the subject where it is all of it, and an instance of the class that it names."""
        if isinstance(pattern, ast.MatchOr):
            for choice in pattern.patterns:
                self._pattern(choice, found, scope)
        if not isinstance(pattern, ast.MatchAs) or pattern.name is None:
            return
        variable = self.builder.variable(scope, pattern.name)
        if isinstance(pattern.pattern, ast.MatchClass):
            self.builder.copy(self.reader.instance(self.reader.value(pattern.pattern.cls, scope)), variable)
        else:
            self.builder.copy(found, variable)


def _sorted_decorators(decorators: Sequence[ast.expr]) -> tuple[FunctionKind, list[ast.expr]]:
    """What the decorators make of a method, and those that are called like any other function."""
    kind: FunctionKind = "plain"
    others: list[ast.expr] = []
    for decorator in decorators:
        name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
        if name in KINDS:
            kind = KINDS[name]
        else:
            others.append(decorator)
    return kind, others


READERS: dict[type[ast.stmt], Callable[..., None]] = {
    **dict.fromkeys(FUNCTIONS, Statements.run_function),
    ast.ClassDef: Statements.run_class,
    ast.Assign: Statements.run_assign,
    ast.AnnAssign: Statements.run_annotated,
    ast.AugAssign: Statements.run_augmented,
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
