"""Annotations: what they say of the value of a variable. A variable that is annotated with a class holds an instance of
it, whoever may have set it."""

from __future__ import annotations

import ast

from clew.knowledge.code.python_expressions import Expressions
from clew.knowledge.code.python_scopes import Scope
from clew.knowledge.code.python_summary import NOTHING

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
DEEPEST = 6


def annotated(reader: Expressions, annotation: ast.expr | None, scope: Scope, *, depth: int = 0) -> int:
    """A variable that holds what the annotation promises; nothing where that says nothing of interest."""
    if annotation is None or depth > DEEPEST:
        return NOTHING
    match annotation:
        case ast.Constant(value=str() as text):
            return annotated(reader, _parsed(text), scope, depth=depth + 1)
        case ast.Name() | ast.Attribute():
            return reader.instance(reader.value(annotation, scope))
        case ast.BinOp(op=ast.BitOr()):
            sides = (annotation.left, annotation.right)
            return reader.joined([annotated(reader, side, scope, depth=depth + 1) for side in sides])
        case ast.Subscript():
            return _generic(reader, annotation, scope, depth)
    return NOTHING


def _generic(reader: Expressions, annotation: ast.Subscript, scope: Scope, depth: int) -> int:
    name = _last_name(annotation.value)
    inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if name in ("type", "Type"):
        return reader.joined([reader.value(item, scope) for item in inner if not isinstance(item, ast.Constant)])
    if name not in TRANSPARENT | SEQUENCES | MAPPINGS:
        return annotated(reader, annotation.value, scope, depth=depth + 1)
    parts = [annotated(reader, item, scope, depth=depth + 1) for item in inner]
    if name in TRANSPARENT:
        return reader.joined(parts)
    if name in MAPPINGS:
        return reader.builder.made("mapping", [(None, parts[-1])]) if parts[-1] != NOTHING else NOTHING
    held = reader.joined(parts)
    return reader.builder.made("sequence", [(None, held)]) if held != NOTHING else NOTHING


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
