"""What a module of Python says of itself: its docstring and those of its public classes and functions. The source is
parsed, never imported."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from clew.fences import clean
from clew.knowledge.references.sections import Piece
from clew.secrecy import mask_document

MAX_SOURCE = 500_000
MAX_DOC = 8_000

_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstring_pieces(module: str, source: bytes, hash: str) -> list[Piece]:
    """The docstrings of a module, its own first, with their lines; none from what cannot be parsed."""
    if len(source) > MAX_SOURCE:
        return []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    pieces = []
    if doc := ast.get_docstring(tree):
        pieces.append(_piece(module, f"module {module}", doc, tree.body[0], hash))
    for name, node in _public(tree.body, module):
        if doc := ast.get_docstring(node):
            pieces.append(_piece(name, _signature(node, name), doc, node, hash))
    return pieces


def offered_modules(source: bytes) -> list[str]:
    """The private modules beside it that the `__init__` of a package brings names in from, each once."""
    try:
        tree = ast.parse(source) if len(source) <= MAX_SOURCE else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level == 1] if tree else []
    named = (node.module or "" for node in imports)
    return list(dict.fromkeys(name for name in named if name.startswith("_") and "." not in name))


def _public(body: list[ast.stmt], within: str) -> Iterator[tuple[str, _Definition]]:
    """Classes and functions at the top of a module, and the methods of these classes, without private ones."""
    for node in body:
        if isinstance(node, _Definition) and not node.name.startswith("_"):
            name = f"{within}.{node.name}"
            yield name, node
            if isinstance(node, ast.ClassDef):
                methods = [each for each in node.body if not isinstance(each, ast.ClassDef)]
                yield from _public(methods, name)


def _signature(node: _Definition, name: str) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {name}({', '.join(ast.unparse(base) for base in node.bases)})" if node.bases else f"class {name}"
    prefix = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{prefix} {name}({ast.unparse(node.args)}){returns}"


def _piece(name: str, signature: str, doc: str, node: ast.stmt, hash: str) -> Piece:
    text = clean(mask_document(f"{signature[:1_000]}\n\n{inspect.cleandoc(doc)}"))[:MAX_DOC]
    last = getattr(node, "end_lineno", None) or node.lineno
    return Piece(key=f"doc:{name}", name=name[:200], text=text, first=node.lineno, last=last, hash=hash)
