"""The call graph of a Python program, and its update after files change."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager

import msgspec

from clew.knowledge.code.python_calls.calls import CallRecord
from clew.knowledge.code.python_calls.heap import ClassValue, ExternalValue, FunctionValue
from clew.knowledge.code.python_calls.modules import Modules
from clew.knowledge.code.python_calls.overrides import find_overrides
from clew.knowledge.code.python_calls.solver import SHIFT, LoadedFile, Solver
from clew.knowledge.code.python_calls.summary import NOTHING, ModuleImport, Summary

SMALL = 20_000
"""Variables of a program that is solved from scratch on every change: a tenth of a second."""
MAX_UPDATES = 100


class PythonCall(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """`caller` in the file calls `target` in `target_path`, both by qualname; the file itself is the empty qualname.

    A target outside the project has an empty path and its dotted name.
    """

    caller: str
    target_path: str
    target: str
    line: int


class Unresolved(msgspec.Struct, frozen=True, array_like=True):
    """A method call on an unknown receiver; `is_own` if that is `self`."""

    caller: str
    name: str
    line: int
    is_own: bool


class PythonFlow:
    """The calls of a program. `has_externals` includes calls of functions outside the project."""

    def __init__(self, summaries: Mapping[str, Summary], *, has_externals: bool = False, small: int = SMALL) -> None:
        self._modules = Modules(summaries)
        self._has_externals = has_externals
        self._small = small
        self._updates = 0
        self._solver = self._solve(summaries)

    def _solve(self, summaries: Mapping[str, Summary]) -> Solver:
        with uncollected():
            solver = Solver(self._modules, has_externals=self._has_externals)
            solver.load(summaries)
            overfull = {node for node in solver.heap.overfull if node >= 0}
            if overfull:  # they hold an arbitrary part of their values: solve again with these variables empty
                records = solver.calls.records
                solver.heap.clear()
                solver = Solver(self._modules, has_externals=self._has_externals, blocked=overfull, records=records)
                solver.load(summaries)
        return solver

    def has(self, path: str) -> bool:
        return path in self._solver.files

    def calls(self, path: str) -> list[PythonCall]:
        """The calls of a file, in order."""
        file = self._solver.files.get(path)
        return [] if file is None else self._to_calls(file, self._solver.calls.edges.get(file.number, ()))

    def wrapped(self, path: str) -> list[PythonCall]:
        """The calls of a file that reach a method through its decorator, in order."""
        file = self._solver.files.get(path)
        return [] if file is None else self._to_calls(file, self._solver.calls.wrapped.get(file.number, ()))

    def _to_calls(self, file: LoadedFile, edges: Iterable[tuple[int, int, int]]) -> list[PythonCall]:
        found = set()
        for caller, target, line in edges:
            value = self._solver.heap.values[target]
            if isinstance(value, ExternalValue):
                found.add(PythonCall(file.summary.scopes[caller], "", value.name, line))
            elif isinstance(value, (FunctionValue, ClassValue)) and not value.is_gone:
                found.add(PythonCall(file.summary.scopes[caller], value.path, value.qualname, line))
        return sorted(found)

    def overrides(self, path: str) -> list[PythonCall]:
        """The calls of a file through `self` that reach overrides in subclasses, in order."""
        file = self._solver.files.get(path)
        return [] if file is None else self._to_calls(file, find_overrides(self._solver, file))

    def bases(self, path: str) -> list[PythonCall]:
        """The base classes of a file's classes, each as the class, its base and the line of the class."""
        file = self._solver.files.get(path)
        found = set()
        for number in file.classes if file is not None else ():
            value = self._solver.heap.values[number]
            assert isinstance(value, ClassValue)
            for base in self._solver.attributes.bases(number):
                above = self._solver.heap.values[base]
                if isinstance(above, ClassValue) and not above.is_gone:
                    line = value.info.line if value.info is not None else 0
                    found.add(PythonCall(value.qualname, above.path, above.qualname, line))
        return sorted(found)

    def unresolved(self, path: str) -> Iterator[Unresolved]:
        """The method calls of a file without a target whose name allows a guess."""
        file = self._solver.files.get(path)
        if file is None:
            return
        for position, site in enumerate(file.summary.sites):
            if not site.name or file.base + position in self._solver.calls.resolved:
                continue
            is_own = site.name.startswith("self.")
            yield Unresolved(file.summary.scopes[site.caller], site.name.removeprefix("self."), site.line, is_own)

    def update(self, changed: Mapping[str, Summary], removed: Collection[str] = ()) -> set[str]:
        """Apply changes and return the files whose calls may differ.

        A small program is solved from scratch. In a large one only the changed files and their importers are followed
        again: other files keep values that a changed file no longer provides, until the program is solved from scratch
        after `MAX_UPDATES` changes.
        """
        if sum(file.summary.nodes for file in self._solver.files.values()) > self._small:
            self._updates += 1
            bases = self._base_files(changed.keys() | set(removed))
            touched = Reload(self._solver).apply(changed, removed) | bases | self._base_files(changed)
            return touched if self._updates < MAX_UPDATES else self._refresh()
        for path in removed:
            self._modules.remove(path)
        for path in changed:
            self._modules.add(path)
        kept = {path: file.summary for path, file in self._solver.files.items() if path not in set(removed)}
        self._solver = self._solve({**kept, **changed})
        return {*kept, *changed, *removed}

    def _base_files(self, paths: Iterable[str]) -> set[str]:
        """The files of the base classes of files: their calls through `self` reach overrides."""
        values = self._solver.heap.values
        classes = [number for path in paths if (file := self._solver.files.get(path)) for number in file.classes]
        bases = [values[base] for number in classes for base in self._solver.attributes.order(number)]
        return {base.path for base in bases if isinstance(base, ClassValue)} & self._solver.files.keys()

    def _refresh(self) -> set[str]:
        self._updates = 0
        self._solver = self._solve({path: file.summary for path, file in self._solver.files.items()})
        return set(self._solver.files)


class Reload:
    """Reloads changed files and the importers of what they no longer provide; the rest of the program stays."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver

    def apply(self, changed: Mapping[str, Summary], removed: Collection[str]) -> set[str]:
        """Apply changes and return all files whose calls may differ."""
        solver, modules = self._solver, self._solver.exports.modules
        counts = {number: len(edges) for number, edges in solver.calls.edges.items()}
        new = changed.keys() - solver.files.keys()
        exported = {path: self._exported(path) for path in {*changed, *removed}}
        for path in removed:
            modules.remove(path)
        for path in new:
            modules.add(path)
        self._replace(changed, exported.keys() & solver.files.keys(), is_gone=True)
        importers = self._importers_of({path: self._lost(path, names) for path, names in exported.items()}, new)
        self._replace({path: solver.files[path].summary for path in importers}, importers, is_gone=False)
        grown = {
            file.path
            for number, file in solver.by_number.items()
            if len(solver.calls.edges[number]) != counts.get(number, 0)
        }
        return exported.keys() | importers | grown

    def _replace(self, summaries: Mapping[str, Summary], old: Set[str], *, is_gone: bool) -> None:
        if not summaries and not old:
            return
        before = {path: self._solver.files[path] for path in old}
        visits = self._unload(old)
        if is_gone:
            self._mark_gone(old)
        self._block_again(before, summaries)
        self._solver.load(summaries)
        for function, record, receiver in visits:
            self._solver.calls.enter(function, record, None if receiver == NOTHING else receiver)
        self._import_again(summaries.keys())
        self._solver.heap.run()

    def _block_again(self, before: Mapping[str, LoadedFile], summaries: Mapping[str, Summary]) -> None:
        """Variables that were overfull stay so; those of a changed file are matched by name."""
        overfull = self._solver.heap.overfull
        for position, (path, summary) in enumerate(summaries.items(), start=1):
            old = before.get(path)
            if old is None:
                continue
            new_base = (self._solver.last + position) << SHIFT
            if old.summary is summary:
                nodes = {old.base + node: new_base + node for node in range(summary.nodes)}
            else:
                named = dict(_named_nodes(summary))
                pairs = ((node, named.get(name)) for name, node in _named_nodes(old.summary))
                nodes = {old.base + node: new_base + new for node, new in pairs if new is not None}
            overfull.update([nodes[node] for node in nodes.keys() & overfull])

    def _exported(self, path: str) -> dict[str, Set[int]]:
        """The values that a file provides to importers, by name."""
        file = self._solver.files.get(path)
        if file is None:
            return {}
        return {name: self._solver.heap.of(file.base + node) for name, node in file.summary.names.items()}

    def _lost(self, path: str, before: Mapping[str, Set[int]]) -> set[str]:
        """The names whose values a file no longer provides in full."""
        after = self._exported(path)
        return {name for name, values in before.items() if not values <= after.get(name, set())}

    def _importers_of(self, lost: Mapping[str, Set[str]], new: Set[str]) -> set[str]:
        """The files that import a lost name, or that missed a file which exists now."""
        solver = self._solver
        words = [solver.exports.modules.name(path).rpartition(".")[2] for path in new]
        found = set().union(*(solver.missing[word] for word in words))
        for path, names in lost.items():
            for importer in (solver.importers[path] & solver.files.keys()) if names else ():
                if any(self._imports(importer, item, path, names) for item in solver.files[importer].summary.imports):
                    found.add(importer)
        return (found & solver.files.keys()) - lost.keys()

    def _imports(self, importer: str, item: ModuleImport, path: str, names: Set[str]) -> bool:
        """Whether an import is about one of these names of a file, or about the file as a whole."""
        modules = self._solver.exports.modules
        module = modules.resolve(item.module, item.level, importer)
        if module == path:
            return item.name in names or item.name in ("", "*")
        return bool(item.name) and modules.submodule(module, item.name) == path

    def _unload(self, paths: Set[str]) -> list[tuple[int, CallRecord, int]]:
        """Forget the variables of files; return the calls of their functions from elsewhere with their receivers."""
        solver = self._solver
        files = [solver.files.pop(path) for path in sorted(paths)]
        for file in files:
            del solver.by_number[file.number]
        visits: list[tuple[int, CallRecord, int]] = []
        for file in files:
            self._drop_calls(file)
            solver.exports.leave(file.path)
            for function in file.functions:
                value = solver.heap.values[function]
                assert isinstance(value, FunctionValue)
                for (_, receiver), record in value.visits.items():
                    if record.module in solver.by_number:
                        visits.append((function, record, receiver))
                value.visits.clear()
            solver.heap.forget(range(file.base, file.base + file.summary.nodes))
        return visits

    def _drop_calls(self, file: LoadedFile) -> None:
        calls = self._solver.calls
        calls.edges.pop(file.number, None)
        calls.wrapped.pop(file.number, None)
        for site in range(file.base, file.base + len(file.summary.sites)):
            calls.records.pop(site, None)
            calls.resolved.discard(site)

    def _mark_gone(self, paths: Set[str]) -> None:
        """Mark the definitions of files as gone; loading brings back those that still exist."""
        for value in self._solver.heap.values:
            if isinstance(value, (FunctionValue, ClassValue)) and value.path in paths:
                value.is_gone = True
                if isinstance(value, ClassValue):
                    value.bases.clear()
                    value.mro = None

    def _import_again(self, paths: Set[str]) -> None:
        """Bind imports from reloaded files to the new variables, and repeat the lookups of their subclasses."""
        solver = self._solver
        importers = {path for old in paths for path in solver.importers[old]} - paths
        for path in sorted(importers & solver.files.keys()):
            for item in solver.files[path].summary.imports:
                if solver.exports.modules.resolve(item.module, item.level, path) in paths:
                    solver.bind_import(solver.files[path], item)
        for path in sorted(paths & solver.files.keys()):
            for of_class in solver.files[path].classes:
                solver.attributes.reconnect(of_class)


def _named_nodes(summary: Summary) -> Iterator[tuple[tuple[str, str], int]]:
    """Parameters, results and module variables of a file by name."""
    yield from ((("", name), node) for name, node in summary.names.items())
    for function in summary.functions:
        yield (function.qualname, "return"), function.returned
        for name, node in (*function.parameters, *function.keyword_only):
            yield (function.qualname, name), node


@contextmanager
def uncollected() -> Iterator[None]:
    """Without garbage collection: millions of records are made that all stay, and scanning them doubles the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
