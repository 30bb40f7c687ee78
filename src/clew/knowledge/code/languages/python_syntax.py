"""Facts of Python files from the syntax trees of the standard library, which `python_calls` reads too. A file
that they cannot represent is read by way of its table in `python`, as any other language.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import msgspec

from clew.knowledge.code.languages.descriptions import describe_comment, describe_docstring
from clew.knowledge.code.languages.fact_builder import MAX_CHAIN, MAX_NAME, FactBuilder, Lead, Span
from clew.knowledge.code.languages.python import BUILTINS, NAMES_IN_TYPE, OWN
from clew.knowledge.code.models import CUT, FileFacts, SymbolKind
from clew.lazy_pattern import lazy_pattern

_UNCOUNTED = lazy_pattern(rb"\r|\f")
"""Characters that make Python count lines or columns in another way."""
_BARE_FIELDS = frozenset(("ctx", "op", "ops"))
"""Fields of nodes without names."""
_NEW_SYNTAX = ("TypeAlias", "TypeVar", "TypeVarTuple", "ParamSpec", "TemplateStr")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@lru_cache(1)
def parse_python(source: bytes) -> ast.Module:
    """The syntax tree of a file in UTF-8. The tree of the last file is cached: two readers want it. Raises SyntaxError,
    ValueError, RecursionError and MemoryError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source.decode("utf-8"))


def read_python(source: bytes) -> FileFacts | None:
    """The facts of a file in UTF-8; None if it has errors, or syntax that this version of Python does not know."""
    if _UNCOUNTED.search(source):
        return None
    try:
        reader = _PythonReader(source)
        return reader.read(parse_python(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _FieldNames(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each type of nodes that may have names."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = self[kind] = tuple(name for name in kind._fields if name not in _BARE_FIELDS)
        return found


_fields = _FieldNames()


class _PythonReader(FactBuilder):
    """Visits the nodes of one file."""

    def __init__(self, source: bytes) -> None:
        super().__init__(source, BUILTINS, OWN)
        self._lines = source.split(b"\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def read(self, tree: ast.Module) -> FileFacts:
        self._visit_body(tree.body)
        self.close_scope()
        references = self.references()
        lines = len(self._lines) - (not self._lines[-1])
        error = CUT if self.is_cut else ""
        return FileFacts("python", self.symbols, self.imports, references, self._describe(tree), lines, error)

    def comment_above(self, row: int) -> str:
        first = row
        while first > 0 and self._is_comment(first - 1) and self._column(first - 1) == self._column(row - 1):
            first -= 1
        return describe_comment(b"\n".join(self._lines[first:row]).lstrip()) if first < row else ""

    def _is_comment(self, row: int) -> bool:
        return row < len(self._lines) and self._lines[row].lstrip().startswith(b"#")

    def _column(self, row: int) -> int:
        return len(self._lines[row]) - len(self._lines[row].lstrip())

    def _describe(self, tree: ast.Module) -> str:
        """The string or the comment at the top of the file, unless it is a licence or belongs to the first
        definition."""
        first = tree.body[0] if tree.body else None
        until = len(self._lines) if first is None else _first_line(first) - 1
        ends = [row + 1 for row in range(until) if self._is_comment(row) and not self._is_comment(row + 1)]
        comments = [self.comment_above(row) for row in ends]
        if found := next(filter(None, comments[:-1]), ""):
            return found
        if first is not None and _is_string(first):
            return describe_docstring(self._raw(first))
        is_import = isinstance(first, ast.Import) or (
            isinstance(first, ast.ImportFrom) and first.module != "__future__"
        )
        return comments[-1] if comments and (first is None or ends[-1] < until or is_import) else ""

    def _span(self, node: ast.stmt | ast.expr, first: ast.expr | None = None) -> Span:
        """The place of a node, or from `first` to its end."""
        begin = first or node
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[begin.lineno - 1] + begin.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        return Span(start, end, begin.lineno - 1, node.end_lineno - 1)

    def _last_row(self, node: _Definition) -> int:
        """The last row of a definition with the comments at its end."""
        last = (node.end_lineno or node.lineno) - 1
        for row in range(last + 1, len(self._lines)):
            if self._is_comment(row) and self._column(row) > node.col_offset:
                last = row
            elif self._lines[row].strip():
                break
        return last

    def _raw(self, node: ast.stmt) -> bytes:
        span = self._span(node)
        return self.source[span.start : span.end]

    # -- statements ------------------------------------------------------------------------------------------------

    def _visit_body(self, body: Sequence[ast.stmt]) -> None:
        for at, statement in enumerate(body):
            self.visit(statement)
            is_below = at > 0 and isinstance(body[at - 1], (ast.Assign, ast.AnnAssign)) and _is_string(statement)
            last = self.symbols[-1] if is_below and self.symbols else None
            if last is not None and last.kind in ("constant", "variable") and last.line_end == statement.lineno - 1:
                self._describe_last(statement)

    def _describe_last(self, string: ast.stmt) -> None:
        if doc := describe_docstring(self._raw(string)):
            self.symbols[-1] = msgspec.structs.replace(self.symbols[-1], doc=doc)

    def visit(self, node: ast.AST) -> None:
        kind = type(node)
        reader = _READERS.get(kind)
        if reader is not None:
            reader(self, node)
            return
        for name in _fields[kind]:
            self._visit_field(getattr(node, name, None))

    def _visit_field(self, value: object) -> None:
        if isinstance(value, ast.AST):
            self.visit(value)
        elif isinstance(value, list) and value:
            if isinstance(value[0], ast.stmt):
                self._visit_body(value)
            else:
                for each in value:
                    if isinstance(each, ast.AST):
                        self.visit(each)

    def _visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_definition(self, node: _Definition) -> None:
        span = self._span(node)._replace(last_row=self._last_row(node))
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call):
                self._visit_all((*decorator.args, *decorator.keywords))
        if node.decorator_list:
            targets = [(_pure(_called(each)), each.lineno - 1) for each in node.decorator_list]
            self.lead = Lead(node.decorator_list[0].lineno - 1, span.row, targets)
        first = node.body[0]
        decorators = first.decorator_list if isinstance(first, _Definition) else []
        head_end = self._span(first, decorators[0]).start - 1 if decorators else self._span(first).start
        self.scope.bound.add(node.name.encode())
        is_class = isinstance(node, ast.ClassDef)
        kind: SymbolKind = "class" if is_class else "method" if self.scope.role == "class" else "function"
        before = len(self.symbols)
        qualname = self.add_symbol(kind, node.name, span, head_end)
        self.open_scope(qualname, span.end, "class" if is_class else "function")
        if len(self.symbols) > before and _is_string(first):
            self._describe_last(first)
        self._visit_all(getattr(node, "type_params", ()))
        if isinstance(node, ast.ClassDef):
            self._visit_bases(node)
        else:
            self.visit(node.args)
            self._visit_annotation(node.returns)
        self._visit_body(node.body)
        self.close_scope()

    def _visit_bases(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            if isinstance(plain, (ast.Name, ast.Attribute)):
                self.add_reference("inherit", _target(plain), plain.lineno - 1)
                if isinstance(plain, ast.Attribute) and not _pure(plain):
                    self.visit(plain.value)
                if isinstance(base, ast.Subscript):
                    self.visit(base.slice)
            else:
                self.visit(base)
        self._visit_all(node.keywords)

    def visit_arguments(self, node: ast.arguments) -> None:
        rest = [each for each in (node.vararg, node.kwarg) if each is not None]
        for each in (*node.posonlyargs, *node.args, *node.kwonlyargs, *rest):
            self.scope.bound.add(each.arg.encode())
            self._visit_annotation(each.annotation)
        self._visit_all((*node.defaults, *node.kw_defaults))

    def visit_lambda(self, node: ast.Lambda) -> None:
        self.open_scope(self.scope.name, self.scope.end, "function")
        self.visit(node.args)
        self.visit(node.body)
        self.close_scope()

    def visit_assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node)
        self.visit(node.value)

    def visit_annotated(self, node: ast.AnnAssign) -> None:
        self._assign(node.target, node)
        self._visit_annotation(node.annotation)
        self._visit_all((node.value,))

    def _assign(self, target: ast.expr, node: ast.stmt) -> None:
        """Bind the names of a target, and define them unless they are local to a function."""
        for name in self._bind(target):
            if self.scope.role != "function" and name != "_":
                self.add_value(name, self._span(node, target))

    def _bind(self, target: ast.expr) -> list[str]:
        """Make the names of a target local, and visit its other expressions."""
        if isinstance(target, ast.Name):
            self.scope.bound.add(target.id.encode())
            return [target.id]
        if isinstance(target, ast.Starred):
            return self._bind(target.value)
        if isinstance(target, (ast.Tuple, ast.List)):
            return [name for each in target.elts for name in self._bind(each)]
        self.visit(target)
        return []

    def visit_loop(self, node: ast.For | ast.AsyncFor) -> None:
        self._bind(node.target)
        self.visit(node.iter)
        self._visit_body(node.body)
        self._visit_body(node.orelse)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._bind(node.target)
        self._visit_all((node.iter, *node.ifs))

    def visit_item(self, node: ast.withitem) -> None:
        self.visit(node.context_expr)
        if node.optional_vars is not None:
            self._bind(node.optional_vars)

    def visit_walrus(self, node: ast.NamedExpr) -> None:
        self._bind(node.target)
        self.visit(node.value)

    def visit_named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        """A node that binds a name itself."""
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None:
            self.scope.bound.add(name.encode())
        for field in node._fields:
            self._visit_field(getattr(node, field))

    def visit_import(self, node: ast.Import) -> None:
        for each in node.names:
            self.add_import(each.name, "", each.asname or "", each.lineno - 1)

    def visit_import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for each in node.names:
            self.add_import(module, each.name, each.asname or "", each.lineno - 1)

    def skip(self, node: ast.AST) -> None:
        """A node without references."""

    def give_up(self, node: ast.AST) -> None:
        """Refuse syntax that only some versions of Python know. Raises ValueError, so that all versions read the file
        by its table."""
        raise ValueError(f"{type(node).__name__} is not read here")

    # -- expressions -----------------------------------------------------------------------------------------------

    def visit_name(self, node: ast.Name) -> None:
        self.add_use(node.id.encode(), node.lineno - 1)

    def visit_attribute(self, node: ast.Attribute) -> None:
        """Mention a dotted name as one. If it starts with another expression, visit that."""
        if target := _pure(node):
            self.add_use(target, node.lineno - 1)
        else:
            self.visit(node.value)

    def visit_call(self, node: ast.Call) -> None:
        """Record a call. The called name is not recorded as a reference too. The result of a call has no name."""
        target = _target(node.func)
        if not target.endswith(b")"):
            self.add_call(target, node.lineno - 1)
        if not target or target.startswith(b".") or b"(" in target:
            self.visit(node.func)
        for each in node.args:
            self.visit(each)
        for keyword in node.keywords:
            self.visit(keyword.value)

    def _visit_annotation(self, node: ast.expr | None) -> None:
        """An annotation, or a part of it, may be written as a string."""
        if node is None:
            return
        self.visit(node)
        for row, text in _strings(node):
            for found in NAMES_IN_TYPE.findall(text[:2_000].encode("utf-8", "replace")):
                self.add_reference("reference", found, row)


def _first_line(statement: ast.stmt) -> int:
    """The line on which a statement begins with its decorators."""
    decorators = statement.decorator_list if isinstance(statement, _Definition) else []
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _is_string(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and (
        isinstance(statement.value, ast.JoinedStr)
        or (isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, (str, bytes)))
    )


def _strings(annotation: ast.expr) -> list[tuple[int, str]]:
    """The strings of an annotation that are types, with their rows."""
    match annotation:
        case ast.Constant(value=str() as text):
            return [(annotation.lineno - 1, text)]
        case ast.BinOp():
            return [*_strings(annotation.left), *_strings(annotation.right)]
        case ast.Subscript() if _pure(annotation.value).rpartition(b".")[2] != b"Literal":
            return _strings(annotation.slice)
        case ast.Tuple() | ast.List():
            return [found for each in annotation.elts for found in _strings(each)]
    return []


def _called(expression: ast.expr) -> ast.expr:
    return expression.func if isinstance(expression, ast.Call) else expression


def _pure(node: ast.expr) -> bytes:
    """A dotted name; empty for an expression that is more than names."""
    dotted = ""
    while isinstance(node, ast.Attribute):
        dotted = f".{node.attr}{dotted}"
        node = node.value
    found = f"{node.id}{dotted}".encode() if isinstance(node, ast.Name) else b""
    return found if len(found) <= MAX_NAME else b""


def _target(node: ast.expr) -> bytes:
    """The dotted name of an expression: `a.b` as it is, `f(x).b` as `f().b`, `.b` where the object has no name; empty
    for no name at all."""
    if pure := _pure(node):
        return pure
    parts: list[str] = []
    called = ""
    for _ in range(MAX_CHAIN):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr + called)
            node, called = node.value, ""
        elif isinstance(node, ast.Call):
            node, called = node.func, "()"
        elif isinstance(node, ast.Name):
            return ".".join(reversed([*parts, node.id + called])).encode()
        else:
            break
    return ".".join(["", *reversed(parts)]).encode()


_READERS: dict[type[ast.AST], Callable[..., None]] = {
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), _PythonReader.visit_definition),
    ast.arguments: _PythonReader.visit_arguments,
    ast.Lambda: _PythonReader.visit_lambda,
    ast.Assign: _PythonReader.visit_assign,
    ast.AnnAssign: _PythonReader.visit_annotated,
    **dict.fromkeys((ast.For, ast.AsyncFor), _PythonReader.visit_loop),
    ast.comprehension: _PythonReader.visit_comprehension,
    ast.withitem: _PythonReader.visit_item,
    ast.NamedExpr: _PythonReader.visit_walrus,
    **dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping), _PythonReader.visit_named),
    ast.Import: _PythonReader.visit_import,
    ast.ImportFrom: _PythonReader.visit_import_from,
    **dict.fromkeys((ast.Global, ast.Nonlocal, ast.Constant, ast.Load), _PythonReader.skip),
    ast.Name: _PythonReader.visit_name,
    ast.Attribute: _PythonReader.visit_attribute,
    ast.Call: _PythonReader.visit_call,
    **{getattr(ast, name): _PythonReader.give_up for name in _NEW_SYNTAX if hasattr(ast, name)},
}
