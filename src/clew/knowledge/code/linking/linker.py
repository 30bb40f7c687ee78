"""Edges between the symbols of a project: definitions, imports, bases, calls and references.

Calls of Python come from following its values; those of other languages from scopes and imports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from posixpath import basename, dirname, splitext

from clew.knowledge.code.linking.imports import NO_PACKAGES, DeclaredFolders, ImportResolver, SymbolPlace, words_of
from clew.knowledge.code.linking.names import COMMON, ProjectNames
from clew.knowledge.code.models import CodeEdge, EdgeType, FileFacts, ImportFact, ReferenceFact
from clew.knowledge.code.python_calls.program import PythonFlow, uncollected
from clew.knowledge.code.python_calls.summary import FlowSummary

TYPES: dict[str, EdgeType] = {
    "call": "calls",
    "inherit": "inherits",
    "reference": "references",
    "decorate": "references",
}


class Linker:
    """The edges of a project, updated file by file. Paths have forward slashes, relative to the project. Values are
    followed in Python files with a summary; other files are linked by names."""

    def __init__(
        self,
        files: Mapping[str, FileFacts],
        summaries: Mapping[str, FlowSummary] | None = None,
        *,
        packages: DeclaredFolders = NO_PACKAGES,
    ) -> None:
        self._facts = dict(files)
        self._resolver = ImportResolver({path: facts.language for path, facts in files.items()}, packages)
        self._names = ProjectNames(self._resolver)
        for path, facts in self._facts.items():
            self._names.add(path, facts)
        self._flow = PythonFlow(_readable(summaries or {}, self._facts))
        self._importers: defaultdict[str, set[str]] = defaultdict(set)
        self._edges: dict[str, tuple[CodeEdge, ...]] = {}
        self._unfollowed = self._find_unfollowed()
        with uncollected():
            for path in sorted(self._facts):
                self._edges[path] = self._find_edges(path)

    def edges(self, path: str) -> tuple[CodeEdge, ...]:
        """The edges that start in a file, in order; empty for an unknown file."""
        return self._edges.get(path, ())

    def update(
        self,
        changed: Mapping[str, FileFacts],
        summaries: Mapping[str, FlowSummary] | None = None,
        removed: Collection[str] = (),
    ) -> list[str]:
        """Update the edges after a change: those of the files, of their importers, and calls elsewhere that depend on
        them. Returns the files whose edges changed, in order."""
        touched = self._affected(changed, removed)
        for path in removed:
            self._facts.pop(path, None)
            self._resolver.remove(path)
            self._names.remove(path)
        for path, facts in changed.items():
            if path not in self._facts:
                self._resolver.add(path, facts.language)
            self._facts[path] = facts
            self._names.add(path, facts)
        touched |= self._affected(changed, removed)
        readable = _readable(summaries or {}, changed)
        touched |= self._flow.update(readable, [path for path in (*removed, *changed) if path not in readable])
        self._unfollowed = self._find_unfollowed()
        return [path for path in sorted(touched) if self._relink(path)]

    def _affected(self, changed: Iterable[str], removed: Collection[str]) -> set[str]:
        """The files whose edges may change: the changed ones, their importers, and files with an import that may mean a
        new or removed file."""
        paths = {*changed, *removed}
        new = {_stem(path) for path in paths if path not in self._facts or path in removed}
        affected = paths.union(*(self._importers[path] for path in paths))
        if new:
            affected.update(path for path, facts in self._facts.items() if not new.isdisjoint(words_of(facts.imports)))
        return affected

    def _relink(self, path: str) -> bool:
        """Find the edges of a file again. Returns whether they changed."""
        before = self._edges.pop(path, ())
        if path in self._facts:
            self._edges[path] = self._find_edges(path)
        return before != self._edges.get(path, ())

    def _find_edges(self, path: str) -> tuple[CodeEdge, ...]:
        facts = self._facts[path]
        is_followed = self._flow.has(path)
        found = {*self._definitions(path, facts), *self._imports(path, facts.imports)}
        for reference in facts.references:
            by_values = is_followed and reference.kind in ("call", "inherit")
            if by_values and not (self._unfollowed and self._leaves_flow(path, reference)):
                continue
            edge = self._reference(path, reference)
            if edge is not None:
                found.add(edge)
        if is_followed:
            found.update(self._followed(path))
            found.update(self._indirect(path, facts))
            found.update(self._guessed(path))
        return tuple(sorted(found))

    def _find_unfollowed(self) -> set[str]:
        """The Python files whose values are not followed, such as files with unknown syntax."""
        python = (path for path, facts in self._facts.items() if facts.language == "python")
        return {path for path in python if not self._flow.has(path)}

    def _leaves_flow(self, path: str, reference: ReferenceFact) -> bool:
        """Whether a name leads to a file whose values are not followed, so that the name must be resolved without
        them."""
        place = self._names.resolve(path, _scope_of(reference), reference.target)
        return place is not None and not place.is_guess and place.path in self._unfollowed

    def _definitions(self, path: str, facts: FileFacts) -> Iterator[CodeEdge]:
        names = self._names.files[path]
        for symbol in facts.symbols:
            around = names.around(symbol.qualname.rpartition(".")[0])
            yield CodeEdge(path, around, path, symbol.qualname, "defines", symbol.line_start)

    def _imports(self, path: str, imports: Iterable[ImportFact]) -> Iterator[CodeEdge]:
        for item in imports:
            targets = self._resolver.resolve(path, item)
            for target in targets:
                self._importers[target].add(path)
            named = self._imported_symbol(path, item, targets)
            name = "*" if item.name == "*" else item.alias or item.name
            for place in [named] if named is not None else [SymbolPlace(target, "") for target in targets]:
                if place.path != path:
                    yield CodeEdge(path, "", place.path, place.qualname, "imports", item.line, name=name)
                elif not item.module and place.qualname:
                    yield CodeEdge(path, "", path, place.qualname, "exports", item.line, name=name)

    def _imported_symbol(self, path: str, item: ImportFact, targets: list[str]) -> SymbolPlace | None:
        if item.name in ("", "*"):
            return None
        for target in targets:
            found = self._names.find(target, item.name) if target != path or not item.module else None
            if found is not None:
                return found
        return SymbolPlace(targets[-1], "") if len(targets) > 1 else None

    def _reference(self, path: str, reference: ReferenceFact) -> CodeEdge | None:
        place = self._names.resolve(path, _scope_of(reference), reference.target)
        if place is None or (place.is_guess and reference.kind not in ("call", "inherit")):
            return None
        source = self._names.files[path].around(reference.inside)
        is_itself = (place.path, place.qualname) == (path, source)
        if is_itself and (reference.kind != "call" or place.is_guess):
            return None
        kind = self._edge_type(path, reference, place)
        return CodeEdge(path, source, place.path, place.qualname, kind, reference.line, place.is_guess)

    def _edge_type(self, path: str, reference: ReferenceFact, place: SymbolPlace) -> EdgeType:
        """The type of an edge. In Ruby the bare name of a method calls it."""
        kind = self._names.files[place.path].kinds.get(place.qualname)
        if reference.kind == "reference" and self._facts[path].language == "ruby" and kind in ("method", "function"):
            return "calls"
        return TYPES[reference.kind]

    def _followed(self, path: str) -> Iterator[CodeEdge]:
        """Calls and bases from following values, if both ends are symbols."""
        names = self._names.files[path]
        for call in (*self._flow.calls(path), *self._flow.indirect_calls(path)):
            if self._is_symbol(call.target_path, call.target):
                yield CodeEdge(path, names.around(call.caller), call.target_path, call.target, "calls", call.line)
        for base in self._flow.bases(path):
            if self._is_symbol(base.target_path, base.target):
                yield CodeEdge(path, base.caller, base.target_path, base.target, "inherits", base.line)

    def _indirect(self, path: str, facts: FileFacts) -> Iterator[CodeEdge]:
        """Calls by a name whose value may be other code: a variable or a decorated definition. Such a call is also
        recorded as a call of the symbol with that name."""
        names = self._names.files[path]
        for reference in facts.references:
            is_called = reference.kind in ("call", "decorate")
            if not is_called or not self._names.indirect[reference.target.rpartition(".")[2]]:
                continue
            inside = reference.inside.rpartition(".")[0] if reference.kind == "decorate" else reference.inside
            place = self._names.resolve(path, inside, reference.target)
            if place is not None and not place.is_guess and self._names.files[place.path].is_indirect(place.qualname):
                yield CodeEdge(path, names.around(inside), place.path, place.qualname, "calls", reference.line)

    def _guessed(self, path: str) -> Iterator[CodeEdge]:
        names = self._names.files[path]
        for call in self._flow.unresolved(path):
            is_common = call.target in COMMON
            place = self._names.guess(path, call.target, is_method=True) if not is_common else None
            if place is not None:
                source = names.around(call.caller)
                yield CodeEdge(path, source, place.path, place.qualname, "calls", call.line, is_guess=True)

    def _is_symbol(self, path: str, qualname: str) -> bool:
        names = self._names.files.get(path)
        return names is not None and qualname in names.kinds


def _scope_of(reference: ReferenceFact) -> str:
    """The scope to search for the name of a reference: a class may inherit from another of its own name."""
    return reference.inside.rpartition(".")[0] if reference.kind == "inherit" else reference.inside


def _stem(path: str) -> str:
    """The name of a file in imports: its stem, or the name of its folder for an index file."""
    stem = splitext(basename(path))[0]
    return basename(dirname(path)) if stem in ("__init__", "index", "mod") else stem


def _readable(summaries: Mapping[str, FlowSummary], files: Mapping[str, FileFacts]) -> dict[str, FlowSummary]:
    """The summaries of these files that have no error."""
    return {path: summary for path, summary in summaries.items() if path in files and not summary.error}
