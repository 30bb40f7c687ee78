"""The call graph of a Python program, and its update after files change."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from clew.knowledge.code.python_calls.heap import ClassValue, FunctionValue
from clew.knowledge.code.python_calls.modules import Modules
from clew.knowledge.code.python_calls.solver import LoadedFile, Solver
from clew.knowledge.code.python_calls.summary import NOTHING, FlowSummary, Function

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


class PythonFlow:
    """The calls of a program."""

    def __init__(self, summaries: Mapping[str, FlowSummary], *, small: int = SMALL) -> None:
        self._modules = Modules(summaries)
        self._small = small
        self._updates = 0
        self._solver = self._solve(summaries)

    def _solve(self, summaries: Mapping[str, FlowSummary]) -> Solver:
        with uncollected():
            solver = Solver(self._modules)
            solver.load(summaries)
            overfull = {node for node in solver.heap.overfull if node >= 0}
            if overfull:  # they hold an arbitrary part of their values: solve again with these variables empty
                solver.heap.clear()
                solver = Solver(self._modules, blocked=overfull)
                solver.load(summaries)
        return solver

    def has(self, path: str) -> bool:
        return path in self._solver.files

    def calls(self, path: str) -> list[PythonCall]:
        """The calls of a file, in order."""
        file = self._solver.files.get(path)
        return [] if file is None else self._to_calls(file, self._solver.calls.edges.get(file.number, ()))

    def indirect_calls(self, path: str) -> list[PythonCall]:
        """The calls of a file that reach a method through its decorator, or through `self` in a subclass, in order."""
        file = self._solver.files.get(path)
        if file is None:
            return []
        wrapped = self._solver.calls.wrapped.get(file.number, ())
        return self._to_calls(file, {*wrapped, *_find_overrides(self._solver, file)})

    def _to_calls(self, file: LoadedFile, edges: Iterable[tuple[int, int, int]]) -> list[PythonCall]:
        found = set()
        for caller, target, line in edges:
            value = self._solver.heap.values[target]
            if isinstance(value, (FunctionValue, ClassValue)) and not value.is_gone:
                found.add(PythonCall(file.summary.scopes[caller], value.path, value.qualname, line))
        return sorted(found)

    def bases(self, path: str) -> list[PythonCall]:
        """The base classes of a file's classes, each as the class, its base and the line of the class."""
        file, found = self._solver.files.get(path), set()
        for number, info in zip(file.classes, file.summary.classes, strict=True) if file is not None else ():
            for base in self._solver.heap.class_of(number).all_bases():
                above = self._solver.heap.values[base]
                if isinstance(above, ClassValue) and not above.is_gone:
                    found.add(PythonCall(info.qualname, above.path, above.qualname, info.line))
        return sorted(found)

    def unresolved(self, path: str) -> list[PythonCall]:
        """The method calls of a file without a target whose name allows a guess; the name is the target."""
        file, resolved = self._solver.files.get(path), self._solver.calls.resolved
        if file is None:
            return []
        sites = [site for at, site in enumerate(file.summary.sites, file.base) if site.name and at not in resolved]
        return [PythonCall(file.summary.scopes[site.caller], "", site.name, site.line) for site in sites]

    def update(self, changed: Mapping[str, FlowSummary], removed: Collection[str] = ()) -> set[str]:
        """Apply changes and return the files whose calls may differ.

        A small program is solved from scratch, and so is every program that lost a file: values that went through it
        may be anywhere. After other changes of a large program only the changed files and their importers are followed
        again. Other files keep values that a changed file no longer provides, until the program is solved from scratch
        after `MAX_UPDATES` changes.
        """
        self._updates += 1
        has_lost = any(path in self._solver.files for path in removed)
        is_small = sum(file.summary.nodes for file in self._solver.files.values()) <= self._small
        for path in removed:
            self._modules.remove(path)
        for path in changed:
            self._modules.add(path)
        if not is_small and not has_lost and self._updates < MAX_UPDATES:
            bases = self._base_files(changed)
            return self._solver.reload(changed) | bases | self._base_files(changed)
        self._updates = 0
        kept = {path: file.summary for path, file in self._solver.files.items() if path not in set(removed)}
        self._solver = self._solve({**kept, **changed})
        return {*kept, *changed, *removed}

    def _base_files(self, paths: Iterable[str]) -> set[str]:
        """The files that define the base classes of the classes in these files. Calls through `self` in a base class
        can reach an override."""
        values = self._solver.heap.values
        classes = [number for path in paths if (file := self._solver.files.get(path)) for number in file.classes]
        bases = [values[base] for number in classes for base in self._solver.attributes.order(number)]
        return {base.path for base in bases if isinstance(base, ClassValue)} & self._solver.files.keys()


def _find_overrides(solver: Solver, file: LoadedFile) -> Iterator[tuple[int, int, int]]:
    """The methods of subclasses that the methods of a file call through `self`: caller, override and line."""
    for function in file.summary.functions:
        uses = list(_receiver_uses(file.summary, function.receiver)) if function.receiver != NOTHING else []
        for below in _heirs(solver, file.classes[function.of_class], function) if uses else ():
            for attr, is_call, caller, line in uses:
                override = _override(solver, below, attr, file.classes[function.of_class])
                if override is not None and (is_call or override.info.kind == "property"):
                    yield caller, solver.heap.function(override.path, override.qualname), line


def _override(solver: Solver, below: int, attr: str, of_class: int) -> FunctionValue | None:
    """The method that a subclass has under a name, from its own body or another base. None if it is the method of the
    class itself."""
    definer = solver.attributes.definer(below, attr)
    return None if definer in solver.attributes.order(of_class) else _method(solver, definer, attr)


def _receiver_uses(summary: FlowSummary, receiver: int) -> Iterator[tuple[str, bool, int, int]]:
    """The attributes of a method's receiver that are called or read: name, whether called, caller and line."""
    for use in summary.uses.get(receiver, ()):
        if use.op == "load":
            yield str(use.key), False, use.caller, use.line
        elif use.op == "call" and (site := summary.sites[use.node]).attr:
            yield site.attr, True, site.caller, site.line


def _heirs(solver: Solver, of_class: int, function: Function) -> Iterator[int]:
    """The subclasses that inherit a method of the class."""
    name = function.qualname.rpartition(".")[2]
    for below in solver.attributes.subclasses(of_class):
        if below != of_class and solver.attributes.definer(below, name) == of_class:
            yield below


def _method(solver: Solver, of_class: int, name: str) -> FunctionValue | None:
    """The function that the body of a class defines under a name."""
    value = solver.heap.values[of_class] if of_class != NOTHING else None
    found = solver.heap.function(value.path, f"{value.qualname}.{name}") if isinstance(value, ClassValue) else NOTHING
    method = solver.heap.values[found] if found != NOTHING else None
    return method if isinstance(method, FunctionValue) and not method.is_gone else None


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable garbage collection within the block. The analysis creates millions of records that stay alive, and
    scanning them would double its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
