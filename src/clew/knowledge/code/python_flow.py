"""Who calls what in the Python files of a project: values are followed from where they are made to where they are
called, over files. What one file says of that is its summary, made once a content; bringing summaries together is quick
enough to be done anew for a whole project, and for a few changed files at once."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from clew.knowledge.code.python_modules import Modules
from clew.knowledge.code.python_program import SHIFT
from clew.knowledge.code.python_reloading import Reloading
from clew.knowledge.code.python_solver import Solver
from clew.knowledge.code.python_statements import summarize
from clew.knowledge.code.python_summary import Summary
from clew.knowledge.code.python_values import ClassValue, ExternalValue, FunctionValue

SMALL = 20_000
"""Variables of a program that is followed anew whenever a file changes: a tenth of a second."""
MOST_UPDATES = 100

__all__ = ["PythonCall", "PythonFlow", "Summary", "Unresolved", "summarize", "uncollected"]


class PythonCall(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """`caller` in the file calls `target` in `target_path`, both by qualname; the file itself is the empty one. What
    the project does not define has no path, and its dotted name as target."""

    caller: str
    target_path: str
    target: str
    line: int


class Unresolved(msgspec.Struct, frozen=True, array_like=True):
    """A method that is called on something of which nothing is known. `of_class` is the class around the call where the
    receiver is the method's own."""

    caller: str
    name: str
    line: int
    of_class: str


class PythonFlow:
    """The calls of a program. `has_externals` keeps calls of what the project does not define."""

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
            if overfull:  # what an overfull variable holds is by chance: all is followed again as if it held nothing
                records = solver.calls.records
                solver.heap.clear()
                solver = Solver(self._modules, has_externals=self._has_externals, blocked=overfull, records=records)
                solver.load(summaries)
        return solver

    def calls(self, path: str) -> list[PythonCall]:
        """The calls that a file makes, in order; those of what is no longer there are left out."""
        file = self._solver.files.get(path)
        if file is None:
            return []
        found = set()
        for caller, target, line in self._solver.calls.edges.get(file.number, ()):
            value = self._solver.heap.values[target]
            if isinstance(value, ExternalValue):
                found.add(PythonCall(file.summary.scopes[caller], "", value.name, line))
            elif isinstance(value, (FunctionValue, ClassValue)) and not value.is_gone:
                found.add(PythonCall(file.summary.scopes[caller], value.path, value.qualname, line))
        return sorted(found)

    def wrapped(self, path: str) -> list[PythonCall]:
        """The calls in a file that reach a method through what a decorator made of it, in order."""
        file = self._solver.files.get(path)
        found = set()
        for caller, target, line in self._solver.calls.wrapped.get(file.number, ()) if file is not None else ():
            value = self._solver.heap.values[target]
            if file is not None and isinstance(value, FunctionValue) and not value.is_gone:
                found.add(PythonCall(file.summary.scopes[caller], value.path, value.qualname, line))
        return sorted(found)

    def has(self, path: str) -> bool:
        return path in self._solver.files

    def bases(self, path: str) -> list[PythonCall]:
        """The bases of the classes of a file, each as the class, its base and the line of the class."""
        file = self._solver.files.get(path)
        found = set()
        for number in file.classes if file is not None else ():
            value = self._solver.heap.values[number]
            if isinstance(value, ClassValue) and value.info is not None:
                for base in (item for items in value.bases.values() for item in items):
                    above = self._solver.heap.values[base]
                    if isinstance(above, ClassValue) and not above.is_gone:
                        found.add(PythonCall(value.qualname, above.path, above.qualname, value.info.line))
        return sorted(found)

    def unresolved(self, path: str) -> Iterator[Unresolved]:
        """The calls of methods in a file that came to nothing and whose name may be guessed from."""
        file = self._solver.files.get(path)
        if file is None:
            return
        resolved, base = self._solver.calls.resolved, file.number << SHIFT
        classes = {function.scope: function.of_class for function in file.summary.functions}
        for position, site in enumerate(file.summary.sites):
            if not site.name or base + position in resolved:
                continue
            is_own = site.name.startswith("self.")
            of_class = classes.get(site.caller, -1) if is_own else -1
            around = file.summary.classes[of_class].qualname if of_class >= 0 else ""
            yield Unresolved(file.summary.scopes[site.caller], site.name.removeprefix("self."), site.line, around)

    def update(self, changed: Mapping[str, Summary], removed: Collection[str] = ()) -> set[str]:
        """Follow changed files again; gives the files whose calls may be others now. A small program is followed anew.
        In a large one only the changed files are and those that import them: what others hold of values that a changed
        file no longer gives them stays until all is followed anew, once in `MOST_UPDATES` changes."""
        if sum(file.summary.nodes for file in self._solver.files.values()) > self._small:
            self._updates += 1
            touched = Reloading(self._solver).reload(changed, removed)
            return touched if self._updates < MOST_UPDATES else self._refresh()
        for path in removed:
            self._modules.remove(path)
        for path in changed:
            self._modules.add(path)
        kept = {path: file.summary for path, file in self._solver.files.items() if path not in set(removed)}
        self._solver = self._solve({**kept, **changed})
        return {*kept, *changed, *removed}

    def _refresh(self) -> set[str]:
        """Follow the whole program anew, from the summaries that it has."""
        self._updates = 0
        self._solver = self._solve({path: file.summary for path, file in self._solver.files.items()})
        return set(self._solver.files)


@contextmanager
def uncollected() -> Iterator[None]:
    """Millions of small records are made and none can go: looking through them for garbage would double the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
