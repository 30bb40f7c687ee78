"""Statements of a Python file: `summarize` turns a file into its summary."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from clew.knowledge.code.languages.extract import has_more_tokens
from clew.knowledge.code.languages.python_syntax import parse_python
from clew.knowledge.code.python_calls.expressions import Expressions, last_name
from clew.knowledge.code.python_calls.scopes import PythonScope
from clew.knowledge.code.python_calls.summary import NOTHING, Class, FlowSummary, FunctionKind, ModuleImport
from clew.lazy_pattern import lazy_pattern

DECORATOR_KINDS: dict[str, FunctionKind] = {
    "staticmethod": "static",
    "classmethod": "class",
    **dict.fromkeys(("property", "cached_property", "abstractproperty", "getter"), "property"),
    **dict.fromkeys(("setter", "deleter"), "setter"),
}
"""The kind of method that a decorator with this last name makes."""
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)

_INNER = r"(?>(?:[^\[\]]|\[(?>(?:[^\[\]]|\[[^\[\]]*+\])*)\])*)"
_ALIAS = lazy_pattern(rf"^([ \t]*+)type[ \t]++(\w++)[ \t]*+(?>(?:\[{_INNER}\])?)[ \t]*+=(?!=)", re.MULTILINE)
_LAZY = lazy_pattern(r"^([ \t]*+)lazy[ \t]++(?=import\b|from\b)", re.MULTILINE)
_EXCEPT = lazy_pattern(r"^([ \t]*+except\*?)[ \t]++([\w.]++(?>(?:[ \t]*+,[ \t]*+[\w.]++)+))[ \t]*+:", re.MULTILINE)
_PARAMETERS = lazy_pattern(
    rf"^([ \t]*+(?:(?>(?:async[ \t]++)?)def|class)[ \t]++\w++)[ \t]*+\[({_INNER})\](\(?)", re.MULTILINE
)
"""Type parameters, with brackets nested up to three deep."""


def summarize(content: bytes) -> FlowSummary:
    """The summary of a Python file. Never raises: an unreadable file has a summary with `error`."""
    if has_more_tokens(content):
        return FlowSummary(error="too large")
    try:
        return Statements().read_file(_parse(content))
    except SyntaxError as error:
        return FlowSummary(error=f"line {error.lineno or 0}: {error.msg}"[:200])
    except ValueError as error:
        return FlowSummary(error=str(error)[:200])
    except (RecursionError, MemoryError):
        return FlowSummary(error="nested too deeply or too large")


def _parse(content: bytes) -> ast.Module:
    """The syntax tree of a file, even if its syntax is newer than the running interpreter."""
    try:
        return parse_python(content)
    except SyntaxError as error:
        try:
            return parse_python(downgrade_syntax(content.decode("utf-8-sig", errors="replace")).encode())
        except SyntaxError:
            raise error from None


def downgrade_syntax(text: str) -> str:
    """Rewrite newer syntax into older syntax with the same lines: type aliases, type parameters, lazy imports and bare
    lists of exceptions."""
    text = _EXCEPT.sub(r"\1 (\2):", _LAZY.sub(r"\1", text))
    return _PARAMETERS.sub(_drop_parameters, _ALIAS.sub(r"\1\2 =", text))


def _drop_parameters(found: re.Match[str]) -> str:
    """A definition without its type parameters; their line ends move into the arguments or bases."""
    lines = "\n" * found[2].count("\n")
    return f"{found[1]}({lines}" + ("" if found[3] else ")")


class Statements(Expressions):
    """Reads the statements of one file into a summary."""

    def read_file(self, tree: ast.Module) -> FlowSummary:
        self.run(tree.body, self.module)
        while self.pending:
            node, scope = self.pending.popleft()
            if isinstance(node, ast.Lambda):
                self.copy(self.value(node.body, scope), scope.returned)
            else:
                self.run(node.body, scope)
            if scope.yields:
                self.container(scope.returned, scope.yields)
        return self.build()

    def run(self, body: Sequence[ast.stmt], scope: PythonScope) -> None:
        narrowed: list[tuple[str, int]] = []
        for statement in body:
            READERS.get(type(statement), Statements.run_other)(self, statement, scope)
            if isinstance(statement, ast.Assert):
                narrowed += self._narrow(statement.test, scope)
            elif isinstance(statement, ast.If) and isinstance(statement.body[-1], LEAVING) and not statement.orelse:
                narrowed += self._narrow(statement.test, scope, is_negated=True)
        self._widen(narrowed, scope)

    def run_other(self, statement: ast.stmt, scope: PythonScope) -> None:
        """A statement that moves no value: only its calls and its bodies matter."""
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.value(child, scope, is_wanted=False)
        for body in ("body", "orelse"):
            self.run(getattr(statement, body, ()), scope)

    def run_if(self, node: ast.If, scope: PythonScope) -> None:
        self.value(node.test, scope, is_wanted=False)
        for body, is_negated in ((node.body, False), (node.orelse, True)):
            narrowed = self._narrow(node.test, scope, is_negated=is_negated)
            self.run(body, scope)
            self._widen(narrowed, scope)

    def _narrow(self, test: ast.expr, scope: PythonScope, *, is_negated: bool = False) -> list[tuple[str, int]]:
        """Give a name that a condition tests by `isinstance` a narrower variable; return it with the previous one."""
        name, classes, is_negated = _type_test(test, is_negated)
        found = self.join([self.value(item, scope) for item in classes])
        if found == NOTHING or name not in scope.names:
            return []
        before = scope.names[name]
        scope.narrowed.setdefault(name, before)
        scope.names[name] = self.derive(before, "exclude" if is_negated else "narrow", key=found)
        if not is_negated:
            self.use(found, "instance", scope.names[name])
        return [(name, before)]

    def _widen(self, narrowed: Sequence[tuple[str, int]], scope: PythonScope) -> None:
        for name, before in reversed(narrowed):
            scope.names[name] = before
            if scope.narrowed.get(name) == before:
                del scope.narrowed[name]

    def run_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: PythonScope) -> None:
        kinds = [DECORATOR_KINDS[name] for item in node.decorator_list if (name := last_name(item)) in DECORATOR_KINDS]
        decorators = [item for item in node.decorator_list if last_name(item) not in DECORATOR_KINDS]
        of_class = scope.of_class if scope.kind == "class" else NOTHING
        value = self.define_function(node, node.name, scope, kinds[-1] if kinds else "plain", of_class)
        self._define(node.name, value, decorators, scope)

    def run_class(self, node: ast.ClassDef, scope: PythonScope) -> None:
        number, value, inner = len(self.classes), self.node(), self.inner_scope("class", scope, node.name)
        self.classes.append(Class(value, inner.qualname, node.lineno, inner.names))
        inner.of_class = number
        for position, base in enumerate(node.bases):
            plain = base.value if isinstance(base, ast.Subscript) else base
            self.use(self.value(plain, scope), "base", number, key=position)
        for keyword in node.keywords:
            self.value(keyword.value, scope, is_wanted=False)
        self.run(node.body, inner)
        self._define(node.name, value, node.decorator_list, scope)

    def _define(self, name: str, value: int, decorators: Sequence[ast.expr], scope: PythonScope) -> None:
        """Assign a definition, as its decorators leave it, to its name."""
        for decorator in reversed(decorators):
            result = self.call_plainly(self.value(decorator, scope), scope, decorator.lineno, decorated=value)
            value = value if result == NOTHING else result
        self.copy(value, self.bind(scope, name))

    def run_assign(self, node: ast.Assign, scope: PythonScope) -> None:
        self.assign_expression(node.targets, node.value, scope)

    def run_annotated(self, node: ast.AnnAssign, scope: PythonScope) -> None:
        self.assign(node.target, self.annotated(node.annotation, scope), scope)
        if node.value is not None:
            self.assign_expression([node.target], node.value, scope)

    def run_augmented(self, node: ast.AugAssign, scope: PythonScope) -> None:
        found = self.value(node.value, scope)
        if isinstance(node.op, (ast.Add, ast.BitOr)) and found != NOTHING:
            self.assign(node.target, found, scope)

    def run_declared(self, node: ast.Global | ast.Nonlocal, scope: PythonScope) -> None:
        for name in node.names:
            outer = scope.parent.binder(name) if isinstance(node, ast.Nonlocal) and scope.parent else None
            scope.declared[name] = outer or self.module

    def run_for(self, node: ast.For | ast.AsyncFor, scope: PythonScope) -> None:
        each = self.derive(self.value(node.iter, scope), "iterate", scope, node.iter.lineno)
        self.assign(node.target, each, scope)
        self.run([*node.body, *node.orelse], scope)

    def run_with(self, node: ast.With | ast.AsyncWith, scope: PythonScope) -> None:
        for item in node.items:
            source = self.value(item.context_expr, scope)
            into = self.derive(source, "enter", scope, item.context_expr.lineno)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, into, scope)
        self.run(node.body, scope)

    def run_return(self, node: ast.Return, scope: PythonScope) -> None:
        self.copy(self.value(node.value, scope), scope.returned)

    def run_raise(self, node: ast.Raise, scope: PythonScope) -> None:
        """`raise Error` calls the class, as `raise Error()` does."""
        found = self.value(node.exc, scope)
        if isinstance(node.exc, (ast.Name, ast.Attribute)):
            self.call_plainly(found, scope, node.lineno)
        self.value(node.cause, scope, is_wanted=False)

    def run_try(self, node: ast.Try | ast.TryStar, scope: PythonScope) -> None:
        self.run(node.body, scope)
        for handler in node.handlers:
            caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            found = self.join([self.value(item, scope) for item in caught])
            if handler.name:
                self.copy(self.derive(found, "instance"), self.bind(scope, handler.name))
            self.run(handler.body, scope)
        self.run([*node.orelse, *node.finalbody], scope)

    def run_import(self, node: ast.Import, scope: PythonScope) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            module = alias.name if alias.asname else top
            self._import(module, 0, "", alias.asname or top, scope)
            if module != alias.name:
                self.imports.append(ModuleImport(alias.name, 0, "", NOTHING))

    def run_import_from(self, node: ast.ImportFrom, scope: PythonScope) -> None:
        for alias in node.names:
            self._import(node.module or "", node.level, alias.name, alias.asname or alias.name, scope)

    def _import(self, module: str, level: int, name: str, bound: str, scope: PythonScope) -> None:
        self.has_star = self.has_star or name == "*"
        into = NOTHING if name == "*" else self.bind(scope, bound)
        scope.imported.add(bound)
        self.imports.append(ModuleImport(module, level, name, into))

    def run_match(self, node: ast.Match, scope: PythonScope) -> None:
        found = self.value(node.subject, scope)
        for case in node.cases:
            for part in ast.walk(case.pattern):
                if isinstance(part, ast.MatchAs) and part.name is not None:
                    self.copy(found if part is case.pattern else NOTHING, self.bind(scope, part.name))
            self.value(case.guard, scope, is_wanted=False)
            self.run(case.body, scope)


def _type_test(test: ast.expr, is_negated: bool) -> tuple[str, list[ast.expr], bool]:
    """The name and the classes of an `isinstance` test, and whether the test must fail."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            return _type_test(test.operand, not is_negated)
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), classes]):
            return name, classes.elts if isinstance(classes, ast.Tuple) else [classes], is_negated
    return "", [], is_negated


READERS: dict[type[ast.stmt], Callable[..., None]] = {
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef), Statements.run_function),
    ast.ClassDef: Statements.run_class,
    ast.Assign: Statements.run_assign,
    ast.AnnAssign: Statements.run_annotated,
    ast.AugAssign: Statements.run_augmented,
    ast.If: Statements.run_if,
    **dict.fromkeys((ast.Global, ast.Nonlocal), Statements.run_declared),
    **dict.fromkeys((ast.For, ast.AsyncFor), Statements.run_for),
    **dict.fromkeys((ast.With, ast.AsyncWith), Statements.run_with),
    ast.Return: Statements.run_return,
    ast.Raise: Statements.run_raise,
    **dict.fromkeys((ast.Try, ast.TryStar), Statements.run_try),
    ast.Import: Statements.run_import,
    ast.ImportFrom: Statements.run_import_from,
    ast.Match: Statements.run_match,
}
