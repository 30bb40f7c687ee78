"""Small projects in many languages, given as facts, and the edges between their symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from clew.knowledge.code.linking.imports import NO_PACKAGES, DeclaredFolders
from clew.knowledge.code.linking.linker import Linker
from clew.knowledge.code.models import CodeEdge, FileFacts, ImportFact, ReferenceFact, Symbol
from clew.knowledge.code.python_calls.statements import summarize
from clew.knowledge.code.python_calls.summary import FlowSummary


def facts(
    language: str,
    *,
    symbols: Mapping[str, str] | None = None,
    imports: Iterable[tuple[str, ...]] = (),
    uses: Iterable[tuple[str, str, str]] = (),
) -> FileFacts:
    """Facts from qualnames with their kinds, imports (module, name, alias) and uses (kind, target, inside)."""
    return FileFacts(
        language=language,
        symbols=[
            Symbol(kind, name.rpartition(".")[2], name, line, line)  # type: ignore[arg-type]
            for line, (name, kind) in enumerate((symbols or {}).items(), start=1)
        ],
        imports=[_import(line, *item) for line, item in enumerate(imports, start=1)],
        references=[ReferenceFact(*use, line) for line, use in enumerate(uses, start=1)],  # type: ignore[arg-type]
    )


def _import(line: int, module: str, name: str = "", alias: str = "") -> ImportFact:
    return ImportFact(module, name, alias, line)


def edges_of(files: Mapping[str, FileFacts], *types: str, packages: DeclaredFolders = NO_PACKAGES) -> set[str]:
    """The edges of these types as `source -> target`, with `?` where it is a guess."""
    return shown(all_edges(Linker(files, packages=packages), files), *types)


def all_edges(linker: Linker, files: Iterable[str]) -> list[CodeEdge]:
    return [edge for path in sorted(files) for edge in linker.edges(path)]


def shown(edges: Iterable[CodeEdge], *types: str) -> set[str]:
    return {
        f"{edge.source_path}#{edge.source_qualname} -> {edge.target_path}#{edge.target_qualname}" + "?" * edge.is_guess
        for edge in edges
        if edge.type in types
    }


def python_facts(summary: FlowSummary) -> FileFacts:
    """The summary of a file's symbols that is needed for edges between them."""
    classes = {known.qualname: "class" for known in summary.classes}
    functions = {known.qualname: "function" for known in summary.functions if "<" not in known.qualname}
    imports = [("." * item.level + item.module, item.name, "") for item in summary.imports if item.level or item.module]
    return facts("python", symbols={**functions, **classes}, imports=imports)


def read_project(folder: Path) -> tuple[dict[str, FileFacts], dict[str, FlowSummary]]:
    """The Python files of a folder."""
    paths = {str(path.relative_to(folder).as_posix()): path for path in sorted(folder.rglob("*.py"))}
    summaries = {name: summarize(path.read_bytes()) for name, path in paths.items()}
    return {name: python_facts(summary) for name, summary in summaries.items()}, summaries
