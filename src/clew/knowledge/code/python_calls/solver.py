"""The solver of a program: it loads the summaries of files and follows values through them until nothing changes.

Variables are numbered over the whole program: the number of the file in the upper bits, the number in its summary in
the lower ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from clew.knowledge.code.python_calls.builtins import MODELS, iterate
from clew.knowledge.code.python_calls.calls import CallRecord, CallRules
from clew.knowledge.code.python_calls.heap import (
    ClassValue,
    FunctionValue,
    Heap,
    InstanceValue,
    ModuleValue,
    SuperValue,
)
from clew.knowledge.code.python_calls.modules import Exports, Modules
from clew.knowledge.code.python_calls.summary import (
    NOTHING,
    Class,
    FlowSummary,
    Function,
    ModuleImport,
    Operation,
    ValueUse,
)

SHIFT = 20
MASK = (1 << SHIFT) - 1
MODELLED_MODULES = frozenset(name.rpartition(".")[0] for name in MODELS)
DECORATOR_ROUNDS = 2


@dataclass(slots=True, eq=False)
class LoadedFile:
    """A file of the program: its number, its summary, and the values that it defines."""

    path: str
    number: int
    base: int
    """The offset of its variables."""
    summary: FlowSummary
    copies: Mapping[int, Sequence[int]]
    uses: Mapping[int, Sequence[ValueUse]]
    """Those of the summary, which are asked for most."""
    functions: list[int] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    records: dict[int, CallRecord] = field(default_factory=dict)

    def named_variables(self) -> Iterator[tuple[tuple[str, str, str], int]]:
        """Module variables, parameters and results, by names that survive a change of the file."""
        yield from (((self.path, "", name), self.base + node) for name, node in self.summary.names.items())
        for function in self.summary.functions:
            for name, node in (*function.parameters, *function.keyword_only, ("return", function.returned)):
                yield (self.path, function.qualname, name), self.base + node


class Solver:
    """A program of Python files."""

    def __init__(self, modules: Modules, *, blocked: Set[int] = frozenset()) -> None:
        """`blocked` variables hold nothing; their numbers come from a solver that loaded the same files."""
        self.heap = Heap(self._settle, blocked)
        self.exports = Exports(self.heap, modules)
        self.calls = CallRules(self.heap, self.exports)
        self.attributes = self.calls.attributes
        self.files: dict[str, LoadedFile] = {}
        self.by_number: dict[int, LoadedFile] = {}
        self._importers: defaultdict[str, set[str]] = defaultdict(set)
        self._visits: list[tuple[int, int, CallRecord]] = []
        """Calls of functions that were loaded again, with their receivers."""
        self._last = 0
        self._waiting: list[tuple[LoadedFile, ValueUse, int]] | None = None

    def load(self, summaries: Mapping[str, FlowSummary]) -> None:
        """Load files and follow their values."""
        self._follow([self._enter(path, summary) for path, summary in summaries.items()])

    def reload(self, changed: Mapping[str, FlowSummary]) -> set[str]:
        """Load changed files again, and return the files whose calls may differ.

        Other files keep the values that a changed file no longer provides.
        """
        counts = {number: len(edges) for number, edges in self.calls.edges.items()}
        importers = self._importers_of(changed.keys())
        again = {path: self.files[path].summary for path in sorted(self._outdated(changed.keys()))}
        old = [self.files[path] for path in (*again, *sorted(changed)) if path in self.files]
        overfull = {name for file in old for name, node in file.named_variables() if node in self.heap.overfull}
        callers = {module for file in old for module in self._unload(file)}
        loaded = [self._enter(path, summary) for path, summary in {**again, **changed}.items()]
        named = [known for file in loaded for known in file.named_variables()]
        self.heap.overfull.update(node for name, node in named if name in overfull)
        self._follow(loaded)
        self._connect_again(loaded, importers - again.keys())
        grown = {number for number, edges in self.calls.edges.items() if len(edges) != counts.get(number, 0)}
        touched = {file.path for number, file in self.by_number.items() if number in grown | callers}
        return touched | {*changed, *importers, *again}

    def _importers_of(self, paths: Set[str]) -> set[str]:
        return {importer for path in paths for importer in self._importers[path] if importer in self.files} - paths

    def _outdated(self, changed: Set[str]) -> set[str]:
        """Unchanged files to load again: they import a formerly missing file, or `*` from a changed one."""
        words = {self.exports.modules.name(path).rpartition(".")[2] for path in changed - self.files.keys()}
        missing = {path for path, file in self.files.items() if any(_names_module(file, word) for word in words)}
        stars = {path for path in self._importers_of(changed) if self.exports.stars[path]}
        return (missing | stars) - changed

    def _unload(self, file: LoadedFile) -> set[int]:
        """Take a file out of the program: its definitions are gone. Return the numbers of the files that call them."""
        del self.files[file.path], self.by_number[file.number]
        self.calls.edges.pop(file.number, None)
        self.calls.wrapped.pop(file.number, None)
        self.exports.leave(file.path)
        callers: set[int] = set()
        for number in (*file.functions, *file.classes):
            value = self.heap.values[number]
            if isinstance(value, FunctionValue):
                value.is_gone = True
                callers.update(record.module for record in value.visits.values())
            elif isinstance(value, ClassValue):
                value.bases, value.mro, value.is_gone = {}, None, True
        return callers

    def _connect_again(self, loaded: Sequence[LoadedFile], importers: Set[str]) -> None:
        """Bind calls, imports and subclasses in other files to the new variables of loaded files."""
        visits, self._visits = self._visits, []
        for function, receiver, record in visits:
            if record.module in self.by_number:
                self.calls.enter(function, record, receiver)
        paths = {file.path for file in loaded}
        for importer in sorted(importers):
            for item in self.files[importer].summary.imports:
                if self.exports.modules.resolve(item.module, item.level, importer) in paths:
                    self._bind_import(self.files[importer], item)
        for of_class in [number for file in loaded for number in file.classes]:
            self.attributes.reconnect(of_class)
        self.heap.run()

    def _enter(self, path: str, summary: FlowSummary) -> LoadedFile:
        self._last += 1
        file = LoadedFile(path, self._last, self._last << SHIFT, summary, summary.copies, summary.uses)
        self.files[path] = self.by_number[self._last] = file
        self.exports.enter(path, file.base, summary)
        ordinals: defaultdict[str, int] = defaultdict(int)
        defined: list[Class | Function] = [*summary.classes, *summary.functions]
        for known in defined:
            kind = FunctionValue if isinstance(known, Function) else ClassValue
            identity = (path, known.qualname, ordinals[known.qualname])
            number = self.heap.number(kind, path, known.qualname, file.base, known, key=identity)
            value: Any = self.heap.values[number]
            value.base, value.info, value.is_gone = file.base, known, False
            if isinstance(value, FunctionValue) and value.visits:
                self._visits += [(number, receiver, record) for (_, receiver), record in value.visits.items()]
                value.visits = {}
            (file.functions if isinstance(known, Function) else file.classes).append(number)
            ordinals[known.qualname] += 1
        return file

    def _follow(self, loaded: Sequence[LoadedFile]) -> None:
        self._waiting = []  # calls and type tests wait until the bases of all classes are known
        for file in loaded:
            self._seed(file)
        self.heap.run()
        waiting, self._waiting = self._waiting, None
        for file, use, value in waiting:
            HANDLERS[use.op](self, file, use, value)
        self.heap.run()
        self._undecorate(loaded)

    def _seed(self, file: LoadedFile) -> None:
        """Give the variables of a file their initial values."""
        base, summary = file.base, file.summary
        for number, known in zip(file.classes, summary.classes, strict=True):
            self.heap.put(base + known.node, number)
        for number, function in zip(file.functions, summary.functions, strict=True):
            self.heap.put(base + function.node, number)
            if function.receiver != NOTHING:  # code outside the program may call a method
                of_class = file.classes[function.of_class]
                value = of_class if function.kind == "class" else self.heap.instance(of_class)
                self.heap.seed(base + function.receiver, value)
        for number, container in enumerate(summary.containers):
            made = self.heap.container((base, number), is_mapping=container.is_mapping)
            self.heap.put(base + container.node, made)
            for key, node in container.fields:
                self.heap.copy(base + node, self.heap.field(made, key))
        for item in summary.imports:
            self._bind_import(file, item)
        for name, node in summary.free.items():
            found = self.exports.exported(file.path, name)
            self.heap.copy(found, base + node)
            if found == NOTHING:
                self.heap.put(base + node, self.heap.external(name))

    def _bind_import(self, file: LoadedFile, item: ModuleImport) -> None:
        """Bind the variable of an import."""
        modules = self.exports.modules
        found = modules.resolve(item.module, item.level, file.path)
        self._importers[found].add(file.path)
        if item.into == NOTHING:
            return
        into = file.base + item.into
        if not found:
            if not item.level and item.module in MODELLED_MODULES:
                name = f"{item.module}.{item.name}" if item.name else item.module
                self.heap.put(into, self.heap.external(name))
        elif not item.name:
            self.heap.put(into, self.heap.number(ModuleValue, found))
        else:
            self._importers[modules.submodule(found, item.name)].add(file.path)
            source = self.exports.find(found, item.name)
            if source == into:  # `from . import name` in a package: the variable is not its own source
                source = self.exports.submodule(found, item.name)
            self.heap.copy(source, into)

    def _undecorate(self, files: Sequence[LoadedFile]) -> None:
        """Assume that a decorator with an unknown result returns its argument. Decorators outside the project are
        handled first, because a decorator of the project may return their result."""
        sites = [
            (file.base, at, site) for file in files for at, site in enumerate(file.summary.sites) if site.decorates
        ]
        for _ in range(DECORATOR_ROUNDS):
            sites = [known for known in sites if not self.heap.of(known[0] + known[2].result)]
            outside = [known for known in sites if known[0] + known[1] not in self.calls.resolved]
            for base, _, site in outside or sites:
                self.heap.copy(base + site.args[0], base + site.result)
            self.heap.run()

    def _settle(self, node: int, values: frozenset[int]) -> None:
        """Pass new values of a file's variable on to its copies and uses."""
        file = self.by_number.get(node >> SHIFT)
        if file is None:
            return
        local = node & MASK
        copies, uses = file.copies.get(local), file.uses.get(local)
        if copies is not None:
            base, add = file.base, self.heap.add
            for into in copies:
                add(base + into, values)
        if uses is not None:
            for use in uses:
                handler = HANDLERS[use.op]
                for value in values:
                    handler(self, file, use, value)

    def _call(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        if self._waiting is not None:
            self._waiting.append((file, use, value))
            return
        record = file.records.get(use.node) or self._record(file, use.node)
        if record.attr:
            self.calls.call_attr(value, record.attr, record)
        else:
            self.calls.call(value, record)

    def _record(self, file: LoadedFile, position: int) -> CallRecord:
        """A site with variables of the whole program."""
        site, base = file.summary.sites[position], file.base
        record = file.records[position] = CallRecord(
            base + position,
            file.number,
            site.caller,
            site.line,
            site.attr,
            tuple([base + node if node != NOTHING else NOTHING for node in site.args]),
            base + site.result if site.result != NOTHING else NOTHING,
            tuple([base + node for node in site.starred]),
            tuple([(name, base + node) for name, node in site.keywords]),
            site.constant,
        )
        return record

    def _load(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        if use.node != NOTHING or use.key in self.exports.property_names:
            self.calls.load(value, str(use.key), _node(file, use), _place(file, use))

    def _store(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        self.calls.store(value, str(use.key), _node(file, use), _place(file, use))

    def _item(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        if self.heap.is_container(value):
            self.heap.read_item(value, use.key, _node(file, use))
        else:
            self.calls.call_special(value, "__getitem__", _place(file, use), result=_node(file, use))

    def _set_item(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        if self.heap.is_container(value):
            self.heap.copy(_node(file, use), self.heap.field(value, use.key))
        else:
            self.calls.call_special(value, "__setitem__", _place(file, use), args=(NOTHING, _node(file, use)))

    def _iterate(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        iterate(value, self.calls, _node(file, use), _place(file, use))

    def _enter_with(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        known, into, record = self.heap.values[value], _node(file, use), _place(file, use)
        if self.heap.is_container(value):
            self.heap.read_elements(value, into)
        elif isinstance(known, InstanceValue):
            enters = ("__enter__", "__aenter__")
            if all(self.attributes.definer(known.of_class, name) == NOTHING for name in enters):
                self.heap.put(into, value)
            for attr in (*enters, "__exit__", "__aexit__"):
                self.calls.call_special(value, attr, record, result=into if attr in enters else NOTHING)

    def _instance(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        if isinstance(self.heap.values[value], ClassValue):
            self.heap.put(_node(file, use), self.heap.instance(value))

    def _super(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        if isinstance(use.key, int) and isinstance(self.heap.values[value], (InstanceValue, ClassValue)):
            self.heap.put(_node(file, use), self.heap.number(SuperValue, file.classes[use.key], value))

    def _base(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        if isinstance(use.key, int) and isinstance(self.heap.values[value], ClassValue):
            self.attributes.rebase(file.classes[use.node], use.key, value)

    def _narrow(self, file: LoadedFile, use: ValueUse, value: int) -> None:
        """Narrow a value by a type test. If the class is unknown, the value passes."""
        if self._waiting is not None:
            self._waiting.append((file, use, value))
            return
        known, classes = self.heap.values[value], self.heap.of(file.base + int(use.key or 0))
        is_instance = isinstance(known, InstanceValue) and not classes.isdisjoint(self.attributes.order(known.of_class))
        if not classes or is_instance == (use.op == "narrow"):
            self.heap.put(_node(file, use), value)


def _names_module(file: LoadedFile, word: str) -> bool:
    """Whether an import of a file may mean a module with this last word."""
    return any(word in (item.module.rpartition(".")[2], item.name) for item in file.summary.imports)


def _node(file: LoadedFile, use: ValueUse) -> int:
    return file.base + use.node if use.node != NOTHING else NOTHING


def _place(file: LoadedFile, use: ValueUse) -> CallRecord:
    """The place of a use that may call."""
    return CallRecord(NOTHING, file.number, use.caller, use.line)


HANDLERS: dict[Operation, Callable[[Solver, LoadedFile, ValueUse, int], None]] = {
    "load": Solver._load,
    "store": Solver._store,
    "item": Solver._item,
    "set_item": Solver._set_item,
    "iterate": Solver._iterate,
    "enter": Solver._enter_with,
    "super": Solver._super,
    "call": Solver._call,
    "base": Solver._base,
    "instance": Solver._instance,
    "narrow": Solver._narrow,
    "exclude": Solver._narrow,
}
"""The handler of each operation, for one value of the watched variable."""
