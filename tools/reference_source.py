"""Reference pages that come from the source text: the list of modules, and the library for Python programs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "clew"
LIBRARY = (
    ("Trail", ("trail/__init__", "trail/store", "trail/model/breadcrumb", "trail/model/selector", "trail/model/query")),
    ("Events and work", ("trail/model/event", "trail/work/handlers", "trail/work/correlation", "trail/work/webhooks")),
    (
        "Graphs",
        ("trail/model/edge", "trail/graphs/relations", "trail/graphs/relation_text", "trail/graphs/relation_mirror"),
    ),
    ("Tools and domains", ("tools/tool", "tools/content", "catalog/domain", "catalog/resource", "catalog/catalog")),
    (
        "Skills and rules",
        ("skills/library", "skills/registry", "skills/declarations", "skills/export", "skills/scripts"),
    ),
    ("Models", ("llm/requests", "llm/messages", "llm/embedders", "llm/semantic_cache")),
    ("Agents", ("agents/assembly", "agents/conversations/agent_interface", "agents/conversations/agent_adapters")),
    ("Client", ("client/calls", "client/stream")),
)
"""The modules that programs import, by topic."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules_page() -> Iterator[str]:
    yield "# Modules\n"
    yield "Every package and module of `src/clew`, with the first sentence of its docstring.\n"
    for folder in sorted(path.parent for path in SOURCE.rglob("__init__.py")):
        modules = sorted(path for path in folder.glob("*.py") if not path.name.startswith("__"))
        yield f"## {folder.relative_to(SOURCE.parent).as_posix()}\n"
        yield f"{summary(parse(folder / '__init__.py'))}\n"
        yield from table(("module", "about"), [(f"`{path.name}`", summary(parse(path))) for path in modules])


def python_page() -> Iterator[str]:
    yield "# Python library\n"
    yield "The classes and functions that programs import. The docstrings in the source have the details.\n"
    for topic, modules in LIBRARY:
        yield f"## {topic}\n"
        for module in modules:
            yield from _module_section(module)


def _module_section(module: str) -> Iterator[str]:
    tree = parse(SOURCE / f"{module}.py")
    yield f"### `clew.{module.removesuffix('/__init__').replace('/', '.')}`\n"
    yield f"{summary(tree)}\n"
    rows = [row for node in tree.body for row in _rows(node)]
    yield from table(("name", "about"), rows)


def _rows(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, Function) and not node.name.startswith("_"):
        yield f"`{node.name}({_arguments(node)})`", summary(node)
    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
        yield f"`{node.name}`", summary(node)
        for method in node.body:
            if isinstance(method, Function) and not method.name.startswith("_"):
                yield f"`{node.name}.{method.name}({_arguments(method)})`", summary(method)


def _arguments(function: Function) -> str:
    names = ast.unparse(function.args)
    plain = re.sub(r": [^,=]*?(?=,|=|$)", "", re.sub(r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]", "", names))
    return plain.removeprefix("self").removeprefix("cls").removeprefix(", ")


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def summary(node: ast.Module | ast.ClassDef | Function) -> str:
    """The first sentence of a docstring."""
    first = one_line((ast.get_docstring(node) or "").split("\n\n")[0])
    return re.split(r"(?<=[.?!])\s+(?=[A-Z`])", first)[0]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table, or nothing where it would be empty."""
    if not rows:
        return
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('---' for _ in head)}|"
    for row in rows:
        yield f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
