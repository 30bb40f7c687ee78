"""The solver of a program: it loads the summaries of files and follows values through them until nothing changes.

Variables are numbered over the whole program: the number of the file in the upper bits, the number in its summary in
the lower ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from clew.knowledge.code.python_calls.attributes import Attributes
from clew.knowledge.code.python_calls.builtins import iterate
from clew.knowledge.code.python_calls.calls import CallRecord, Calls
from clew.knowledge.code.python_calls.heap import (
    ClassValue,
    ContainerValue,
    ExternalValue,
    FunctionValue,
    Heap,
    InstanceValue,
    ModuleValue,
    SuperValue,
)
from clew.knowledge.code.python_calls.modules import Exports, Modules
from clew.knowledge.code.python_calls.summary import NOTHING, Class, Function, ModuleImport, Operation, Summary, Use

SHIFT = 20
MASK = (1 << SHIFT) - 1
MODELLED_MODULES = ("functools", "typing", "copy")
"""Modules outside the project with models in `builtins`."""
DECORATOR_ROUNDS = 4


@dataclass(slots=True, eq=False)
class LoadedFile:
    """A file of the program: its number, its summary, and the values that it defines."""

    path: str
    number: int
    base: int
    """The offset of its variables."""
    summary: Summary
    functions: list[int] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)


class Solver:
    """A program of Python files. With `has_externals`, calls of functions outside the project are recorded too."""

    def __init__(
        self,
        modules: Modules,
        *,
        has_externals: bool = False,
        blocked: Set[int] = frozenset(),
        records: Mapping[int, CallRecord] | None = None,
    ) -> None:
        """`blocked` variables hold nothing; `records` come from a solver that loaded the same files."""
        self.heap = Heap(self._settle, blocked)
        self.exports = Exports(self.heap, modules)
        self.attributes = Attributes(self.heap, has_externals=has_externals)
        self.calls = Calls(self.heap, self.attributes, self.exports, has_externals=has_externals)
        self.calls.records.update(records or {})
        self.files: dict[str, LoadedFile] = {}
        self.by_number: dict[int, LoadedFile] = {}
        self.importers: defaultdict[str, set[str]] = defaultdict(set)
        self.missing: defaultdict[str, set[str]] = defaultdict(set)
        """Files by the last word of an import that could not be resolved."""
        self.last = 0
        self._waiting: list[tuple[LoadedFile, Use, int]] | None = None

    def load(self, summaries: Mapping[str, Summary]) -> None:
        """Load or reload files and follow their values."""
        loaded = [self._enter(path, summary) for path, summary in summaries.items()]
        self._waiting = []  # calls and type tests wait until the bases of all classes are known
        for file in loaded:
            self._seed(file)
        self.heap.run()
        waiting, self._waiting = self._waiting, None
        for file, use, value in waiting:
            HANDLERS[use.op](self, file, use, value)
        self.heap.run()
        self._undecorate(loaded)

    def _enter(self, path: str, summary: Summary) -> LoadedFile:
        self.last += 1
        file = LoadedFile(path, self.last, self.last << SHIFT, summary)
        self.files[path] = self.by_number[self.last] = file
        self.exports.enter(path, file.base, summary)
        ordinals: defaultdict[str, int] = defaultdict(int)
        defined: list[Class | Function] = [*summary.classes, *summary.functions]
        for known in defined:
            kind = FunctionValue if isinstance(known, Function) else ClassValue
            identity = (path, known.qualname, ordinals[known.qualname])
            number = self.heap.values.number(kind, *identity[:2], key=identity)
            value: Any = self.heap.values[number]
            value.base, value.info, value.is_gone = file.base, known, False
            (file.functions if isinstance(known, Function) else file.classes).append(number)
            ordinals[known.qualname] += 1
        return file

    def _seed(self, file: LoadedFile) -> None:
        """Give the variables of a file their initial values."""
        base, summary, values = file.base, file.summary, self.heap.values
        numbers = {"function": file.functions, "class": file.classes}
        for seed in summary.seeds:
            if seed.kind == "container":
                self.heap.put(base + seed.into, self._container(file, seed.number))
            elif seed.kind in numbers:
                self.heap.put(base + seed.into, numbers[seed.kind][seed.number])
            elif self.calls.has_externals:
                self.heap.put(base + seed.into, values.external(seed.kind, is_instance=True))
        for function in summary.functions:
            self._seed_receiver(file, function)
            if function.generator != NOTHING:
                self._container(file, function.generator)
        for item in summary.imports:
            self.bind_import(file, item)
        for name, node in summary.free.items():
            found = self.exports.through_stars(file.path, name)
            self.heap.copy(found, base + node)
            if found == NOTHING:
                self.heap.put(base + node, values.external(name))

    def _seed_receiver(self, file: LoadedFile, function: Function) -> None:
        """Code outside the program may call a method: its receiver is an instance of its class."""
        if function.of_class == NOTHING or function.kind == "static" or not function.parameters:
            return
        number = file.classes[function.of_class]
        value = number if function.kind == "class" else self.heap.values.instance(number)
        self.heap.seed(file.base + function.parameters[0][1], value)

    def _container(self, file: LoadedFile, number: int) -> int:
        info = file.summary.containers[number]
        made = self.heap.values.container(info.kind, (file.base, number))
        for key, node in info.fields:
            self.heap.copy(file.base + node, self.heap.containers.field(made, key))
        return made

    def bind_import(self, file: LoadedFile, item: ModuleImport) -> None:
        """Bind the variable of an import."""
        modules = self.exports.modules
        found = modules.resolve(item.module, item.level, file.path)
        if found:
            self.importers[found].add(file.path)
        if item.name == "*" or item.into == NOTHING:
            return
        into = file.base + item.into
        if not found:
            self.missing[item.module.rpartition(".")[2] or item.name].add(file.path)
            self._import_external(item, into)
        elif not item.name:
            self.heap.put(into, self.heap.values.number(ModuleValue, found))
        else:
            source = self.exports.find(found, item.name)
            if source == into:  # `from . import name` in a package: the variable is not its own source
                source = self.exports.submodule(found, item.name)
            self.heap.copy(source, into)
            if source == NOTHING:
                self.missing[item.name].add(file.path)
            submodule = modules.submodule(found, item.name)
            if submodule:
                self.importers[submodule].add(file.path)

    def _import_external(self, item: ModuleImport, into: int) -> None:
        if not item.level and (self.calls.has_externals or item.module in MODELLED_MODULES):
            name = f"{item.module}.{item.name}" if item.name else item.module
            self.heap.put(into, self.heap.values.external(name))

    def _undecorate(self, files: Sequence[LoadedFile]) -> None:
        """A decorator with an unknown result returns its argument. Decorators outside the project come first: a
        decorator of the project may return what they leave unchanged."""
        sites = [
            (file.base, at, site) for file in files for at, site in enumerate(file.summary.sites) if site.decorates
        ]
        for _ in range(DECORATOR_ROUNDS):
            sites = [known for known in sites if not self.heap.of(known[0] + known[2].result)]
            outside = [known for known in sites if known[0] + known[1] not in self.calls.resolved]
            for base, _, site in outside or sites:
                self.heap.copy(base + site.args[0], base + site.result)
            self.heap.run()

    def _settle(self, node: int, values: Set[int]) -> None:
        """Pass new values of a file's variable on to its copies and uses."""
        file = self.by_number.get(node >> SHIFT)
        if file is None:
            return
        local, base, summary = node & MASK, node & ~MASK, file.summary
        if local in summary.copies:
            for into in summary.copies[local]:
                self.heap.add(base + into, values)
        if local in summary.uses:
            for use in summary.uses[local]:
                handler = HANDLERS[use.op]
                for value in values:
                    handler(self, file, use, value)

    def _call(self, file: LoadedFile, use: Use, value: int) -> None:
        if self._waiting is not None:
            self._waiting.append((file, use, value))
            return
        record = self.calls.records.get(file.base + use.node) or self._record(file, use.node)
        if record.attr:
            self.calls.call_attr(value, record.attr, record)
        else:
            self.calls.call(value, record)

    def _record(self, file: LoadedFile, position: int) -> CallRecord:
        """A site with variables of the whole program."""
        site, base = file.summary.sites[position], file.base
        record = self.calls.records[base + position] = CallRecord(
            base + position,
            file.number,
            site.caller,
            site.line,
            site.attr,
            tuple([base + node if node != NOTHING else NOTHING for node in site.args]),
            base + site.result if site.result != NOTHING else NOTHING,
            tuple([(name, base + node) for name, node in site.keywords if name]),
            tuple([base + node for node in site.starred]),
            tuple([base + node for name, node in site.keywords if not name]),
            site.constant,
        )
        return record

    def _load(self, file: LoadedFile, use: Use, value: int) -> None:
        if use.node != NOTHING or use.key in self.exports.property_names:
            self.calls.load(value, str(use.key), _node(file, use), _place(file, use))

    def _store(self, file: LoadedFile, use: Use, value: int) -> None:
        self.calls.store(value, str(use.key), _node(file, use), _place(file, use))

    def _item(self, file: LoadedFile, use: Use, value: int) -> None:
        if isinstance(self.heap.values[value], ContainerValue):
            self.heap.containers.read(value, use.key, _node(file, use))
        else:
            self.calls.call_special(value, "__getitem__", _place(file, use), result=_node(file, use))

    def _set_item(self, file: LoadedFile, use: Use, value: int) -> None:
        if isinstance(self.heap.values[value], ContainerValue):
            self.heap.copy(_node(file, use), self.heap.containers.field(value, use.key))
        else:
            self.calls.call_special(value, "__setitem__", _place(file, use), args=(NOTHING, _node(file, use)))

    def _iterate(self, file: LoadedFile, use: Use, value: int) -> None:
        iterate(value, self.calls, _node(file, use), _place(file, use))

    def _enter_with(self, file: LoadedFile, use: Use, value: int) -> None:
        known, into, record = self.heap.values[value], _node(file, use), _place(file, use)
        if isinstance(known, ContainerValue):
            self.heap.containers.elements(value, into)
        elif isinstance(known, InstanceValue):
            enters = ("__enter__", "__aenter__")
            if all(self.attributes.definer(known.of_class, name) == NOTHING for name in enters):
                self.heap.put(into, value)
            for attr in (*enters, "__exit__", "__aexit__"):
                self.calls.call_special(value, attr, record, result=into if attr in enters else NOTHING)

    def _instance(self, file: LoadedFile, use: Use, value: int) -> None:
        known = self.heap.values[value]
        if isinstance(known, ClassValue):
            self.heap.put(_node(file, use), self.heap.values.instance(value))
        elif isinstance(known, ExternalValue) and self.calls.has_externals:
            self.heap.put(_node(file, use), self.heap.values.external(known.name, is_instance=True))

    def _super(self, file: LoadedFile, use: Use, value: int) -> None:
        if isinstance(use.key, int) and isinstance(self.heap.values[value], (InstanceValue, ClassValue)):
            self.heap.put(_node(file, use), self.heap.values.number(SuperValue, file.classes[use.key], value))

    def _base(self, file: LoadedFile, use: Use, value: int) -> None:
        known = self.heap.values[value]
        is_outside = isinstance(known, ExternalValue) and (self.calls.has_externals or "." not in known.name)
        if is_outside or isinstance(known, ClassValue):  # `typing.Generic` and its like define nothing
            self.attributes.rebase(file.classes[use.node], int(use.key or 0), value)


def _node(file: LoadedFile, use: Use) -> int:
    return file.base + use.node if use.node != NOTHING else NOTHING


def _place(file: LoadedFile, use: Use) -> CallRecord:
    """The place of a use that may call."""
    return CallRecord(NOTHING, file.number, use.caller, use.line)


HANDLERS: dict[Operation, Callable[[Solver, LoadedFile, Use, int], None]] = {
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
}
"""The handler of each operation, for one value of the watched variable."""
