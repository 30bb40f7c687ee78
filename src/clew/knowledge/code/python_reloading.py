"""Follows files that changed again, together with those that import what is another now, and leaves the rest of a
program as it was followed before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set

from clew.knowledge.code.python_calls import CallRecord
from clew.knowledge.code.python_program import SHIFT, Loaded
from clew.knowledge.code.python_solver import Solver
from clew.knowledge.code.python_summary import ModuleImport, Summary
from clew.knowledge.code.python_values import ClassValue, FunctionValue


class Reloading:
    """Changes of the files of one program."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver

    def reload(self, changed: Mapping[str, Summary], removed: Collection[str]) -> set[str]:
        """Bring files in anew, and those that import what is another now; gives all files that this touched."""
        counts = {number: len(edges) for number, edges in self._solver.calls.edges.items()}
        new = changed.keys() - self._solver.files.keys()
        given = {path: self._given(path) for path in {*changed, *removed}}
        for path in removed:
            self._solver.exports.modules.remove(path)
        for path in new:
            self._solver.exports.modules.add(path)
        self._replace(changed, {*changed, *removed} & self._solver.files.keys(), is_gone=True)
        again = self._importing({path: self._lost(path, names) for path, names in given.items()}, new)
        self._replace({path: self._solver.files[path].summary for path in again}, again, is_gone=False)
        grown = {
            file.path
            for number, file in self._solver.by_number.items()
            if len(self._solver.calls.edges[number]) != counts.get(number, 0)
        }
        return {*changed, *removed} | again | grown

    def _replace(self, summaries: Mapping[str, Summary], old: Set[str], *, is_gone: bool) -> None:
        if not summaries and not old:
            return
        before = {path: self._solver.files[path] for path in old}
        visits = self._leave(old)
        if is_gone:
            self._orphan(old)
        self._block_again(before, summaries)
        self._solver.load(summaries)
        for function, record, receiver in visits:
            self._solver.calls.enter(function, record, None if receiver < 0 else receiver)
        self._import_again(summaries.keys())
        self._solver.heap.run()

    def _block_again(self, before: Mapping[str, Loaded], summaries: Mapping[str, Summary]) -> None:
        """What held too much before is not filled again; parameters and results of functions are known by name."""
        for position, (path, summary) in enumerate(summaries.items(), start=1):
            old = before.get(path)
            if old is None:
                continue
            base, new = old.number << SHIFT, (self._solver.last + position) << SHIFT
            if old.summary is summary:
                nodes = {base + node: new + node for node in range(summary.nodes)}
            else:
                named = dict(_named_nodes(summary))
                nodes = {base + node: new + named[name] for name, node in _named_nodes(old.summary) if name in named}
            self._solver.heap.overfull.update(nodes[node] for node in nodes.keys() & self._solver.heap.overfull)

    def _given(self, path: str) -> dict[str, Set[int]]:
        """What a file gives to those that import it, by name."""
        file = self._solver.files.get(path)
        if file is None:
            return {}
        return {name: self._solver.heap.of((file.number << SHIFT) + node) for name, node in file.summary.names.items()}

    def _lost(self, path: str, before: Mapping[str, Set[int]]) -> set[str]:
        """The names under which a file no longer gives all that it did."""
        after = self._given(path)
        return {name for name, values in before.items() if not values <= after.get(name, set())}

    def _importing(self, lost: Mapping[str, Set[str]], new: Set[str]) -> set[str]:
        """The files that import what was lost, or that looked for a file which is there now."""
        words = [self._solver.exports.modules.name(path).rpartition(".")[2] for path in new]
        found = set().union(*(self._solver.unfound[word] for word in words))
        for path, names in lost.items():
            for importer in (self._solver.importers[path] & self._solver.files.keys()) if names else ():
                if any(
                    self._takes(importer, item, path, names) for item in self._solver.files[importer].summary.imports
                ):
                    found.add(importer)
        return (found & self._solver.files.keys()) - lost.keys()

    def _takes(self, importer: str, item: ModuleImport, path: str, names: Set[str]) -> bool:
        """Whether an import is about one of these names of a file, or about the file as a whole."""
        module = self._solver.exports.modules.resolve(item.module, item.level, importer)
        if module == path:
            return item.name in names or item.name in ("", "*")
        return bool(item.name) and self._solver.exports.modules.submodule(module, item.name) == path

    def _leave(self, paths: Set[str]) -> list[tuple[int, CallRecord, int]]:
        """Forget what variables of these files hold; gives the calls of their functions from elsewhere, each as the
        function, the place and the receiver."""
        files = [self._solver.files.pop(path) for path in sorted(paths)]
        numbers = {file.number for file in files}
        visits: list[tuple[int, CallRecord, int]] = []
        for file in files:
            del self._solver.by_number[file.number]
            self._drop_calls(file)
            self._solver.exports.leave(file.path)
            for function in file.functions:
                value = self._solver.heap.values[function]
                assert isinstance(value, FunctionValue)
                there = [
                    (receiver, record)
                    for (_, receiver), record in value.visits.items()
                    if record.module in self._solver.by_number and record.module not in numbers
                ]
                visits += [(function, record, receiver) for receiver, record in there]
                value.visits.clear()
            self._solver.heap.forget(range(file.number << SHIFT, (file.number << SHIFT) + file.summary.nodes))
        return visits

    def _drop_calls(self, file: Loaded) -> None:
        calls, base = self._solver.calls, file.number << SHIFT
        calls.edges.pop(file.number, None)
        calls.wrapped.pop(file.number, None)
        for site in range(base, base + len(file.summary.sites)):
            calls.records.pop(site, None)
            calls.resolved.discard(site)

    def _orphan(self, paths: Set[str]) -> None:
        """Mark what changed files defined as gone; what they still define comes back when they are loaded."""
        for value in self._solver.heap.values:
            if isinstance(value, (FunctionValue, ClassValue)) and value.path in paths:
                value.is_gone = True
                if isinstance(value, ClassValue):
                    value.bases.clear()
                    value.mro = None

    def _import_again(self, paths: Set[str]) -> None:
        """Tie those that import from files that were brought in anew to their new variables, and look up again what
        classes elsewhere inherit from them."""
        importers = {path for old in paths for path in self._solver.importers[old]} - paths
        for path in sorted(importers & self._solver.files.keys()):
            for item in self._solver.files[path].summary.imports:
                if self._solver.exports.modules.resolve(item.module, item.level, path) in paths:
                    self._solver.tie_import(self._solver.files[path], item)
        for path in sorted(paths & self._solver.files.keys()):
            for of_class in self._solver.files[path].classes:
                self._solver.attributes.reconnect(of_class)


def _named_nodes(summary: Summary) -> Iterator[tuple[tuple[str, str], int]]:
    """The variables of a file that have a name of their own: parameters, results, and what is at its top."""
    yield from ((("", name), node) for name, node in summary.names.items())
    for function in summary.functions:
        yield (function.qualname, "return"), function.returned
        for name, node in (*function.parameters, *function.keyword_only):
            yield (function.qualname, name), node
