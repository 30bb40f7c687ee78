"""Brings the summaries of a program's files together: values are followed through it until nothing changes, and what
was called by whom is known then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set

from clew.knowledge.code.python_attributes import Attributes
from clew.knowledge.code.python_calls import CallRecord, Calls
from clew.knowledge.code.python_containers import Containers
from clew.knowledge.code.python_exports import Exports
from clew.knowledge.code.python_heap import Heap
from clew.knowledge.code.python_modules import Modules
from clew.knowledge.code.python_program import MASK, SHIFT, Loaded
from clew.knowledge.code.python_summary import NOTHING, Call, ModuleImport, Site, Summary
from clew.knowledge.code.python_uses import HANDLERS
from clew.knowledge.code.python_values import ClassValue, FunctionValue

FOLLOWED = ("functools",)
"""Modules outside the project whose functions are known."""
ROUNDS = 4


class Solver:
    """A program of Python files. With `has_externals` calls of what the project does not define are kept too."""

    def __init__(
        self,
        modules: Modules,
        *,
        has_externals: bool = False,
        blocked: Set[int] = frozenset(),
        records: Mapping[int, CallRecord] | None = None,
    ) -> None:
        """`blocked` variables hold nothing; `records` are those of a solver that the same files were loaded into."""
        self.heap = Heap(self._settle, blocked)
        self.exports = Exports(self.heap, modules)
        self.attributes = Attributes(self.heap, has_externals=has_externals)
        self.containers = Containers(self.heap)
        self.calls = Calls(self.heap, self.attributes, self.containers, self.exports, has_externals=has_externals)
        self.calls.records.update(records or {})
        self.files: dict[str, Loaded] = {}
        self.by_number: dict[int, Loaded] = {}
        self.importers: defaultdict[str, set[str]] = defaultdict(set)
        self.unfound: defaultdict[str, set[str]] = defaultdict(set)
        self.last = 0
        self._waiting: list[tuple[Call, int, Set[int]]] | None = None

    def load(self, summaries: Mapping[str, Summary]) -> None:
        """Bring files in, or in anew, and follow what changes through them."""
        loaded = [self._enter(path, summary) for path, summary in summaries.items()]
        self._waiting = []  # calls wait until the bases of classes are known
        for file in loaded:
            self._seed(file)
        self.heap.run()
        waiting, self._waiting = self._waiting, None
        for use, number, values in waiting:
            self.call(use, number, values)
        self.heap.run()
        self._leave_undecorated(loaded)

    def _enter(self, path: str, summary: Summary) -> Loaded:
        self.last += 1
        file = Loaded(path, self.last, summary)
        self.files[path] = self.by_number[self.last] = file
        self.exports.enter(path, self.last << SHIFT, summary)
        base = self.last << SHIFT
        ordinals: defaultdict[str, int] = defaultdict(int)
        for known in summary.classes:
            number = self.heap.values.of_class(path, known.qualname, ordinals[known.qualname])
            value = self.heap.values[number]
            assert isinstance(value, ClassValue)
            value.base, value.info, value.is_gone = base, known, False
            file.classes.append(number)
            ordinals[known.qualname] += 1
        for function in summary.functions:
            number = self.heap.values.function(path, function.qualname, ordinals[function.qualname])
            made = self.heap.values[number]
            assert isinstance(made, FunctionValue)
            made.base, made.info, made.is_gone = base, function, False
            file.functions.append(number)
            ordinals[function.qualname] += 1
        return file

    def _seed(self, file: Loaded) -> None:
        """Give the variables of a file the values that they have from the start."""
        base, summary = file.number << SHIFT, file.summary
        numbers = {"function": file.functions, "class": file.classes}
        for seed in summary.seeds:
            if seed.kind == "container":
                self.heap.put(base + seed.into, self._container(file, seed.number))
            elif seed.kind in numbers:
                self.heap.put(base + seed.into, numbers[seed.kind][seed.number])
            elif self.calls.has_externals:
                self.heap.put(base + seed.into, self.heap.values.external(seed.kind, is_instance=True))
        for function in summary.functions:
            self._seed_receiver(file, function.of_class, function.kind, function.parameters)
            if function.generator != NOTHING:
                self._container(file, function.generator)
        for item in summary.imports:
            self.tie_import(file, item)
        for name, node in summary.free.items():
            found = self.exports.through_stars(file.path, name)
            self.heap.copy(found, base + node)
            if found == NOTHING:
                self.heap.put(base + node, self.heap.values.external(name))

    def _seed_receiver(self, file: Loaded, of_class: int, kind: str, parameters: tuple[tuple[str, int], ...]) -> None:
        """A method may be called by those outside: its receiver is an instance of its class."""
        if of_class == NOTHING or kind == "static" or not parameters:
            return
        number = file.classes[of_class]
        value = number if kind == "class" else self.heap.values.instance(number)
        self.heap.seed((file.number << SHIFT) + parameters[0][1], value)

    def _container(self, file: Loaded, number: int) -> int:
        base = file.number << SHIFT
        info = file.summary.containers[number]
        made = self.containers.made(info.kind, (base, number))
        for key, node in info.fields:
            self.heap.copy(base + node, self.containers.field(made, key))
        return made

    def tie_import(self, file: Loaded, item: ModuleImport) -> None:
        """Give a file what one of its imports brings."""
        found = self.exports.modules.resolve(item.module, item.level, file.path)
        into = (file.number << SHIFT) + item.into if item.into != NOTHING else NOTHING
        if found:
            self.importers[found].add(file.path)
        if item.name == "*" or into == NOTHING:
            return
        if not found:
            self.unfound[item.module.rpartition(".")[2] or item.name].add(file.path)
            self._import_external(item, into)
        elif not item.name:
            self.heap.put(into, self.heap.values.module(found))
        else:
            source = self.exports.find(found, item.name)
            self.heap.copy(source, into)
            if source == NOTHING:
                self.unfound[item.name].add(file.path)
            submodule = self.exports.modules.submodule(found, item.name)
            if submodule:
                self.importers[submodule].add(file.path)

    def _import_external(self, item: ModuleImport, into: int) -> None:
        if item.level or not (self.calls.has_externals or item.module in FOLLOWED):
            return
        name = f"{item.module}.{item.name}" if item.name else item.module
        self.heap.put(into, self.heap.values.external(name))

    def _leave_undecorated(self, files: list[Loaded]) -> None:
        """Where nothing is known of what a decorator gives back, it gives back what it was given. Those of outside come
        first: what they leave as it is may be what one of the project gives back."""
        sites = [
            ((file.number << SHIFT) + position, file.number << SHIFT, site)
            for file in files
            for position, site in enumerate(file.summary.sites)
            if site.decorates
        ]
        for _ in range(ROUNDS):
            sites = [known for known in sites if not self.heap.of(known[1] + known[2].result)]
            outside = [known for known in sites if known[0] not in self.calls.resolved]
            for _, base, site in outside or sites:
                self.heap.copy(base + site.args[0], base + site.result)
            self.heap.run()

    def _settle(self, node: int, values: Set[int]) -> None:
        file = self.by_number.get(node >> SHIFT)
        if file is None:
            return
        local, base, summary = node & MASK, node & ~MASK, file.summary
        if local in summary.copies:
            for into in summary.copies[local]:
                self.heap.add(base + into, values)
        if local in summary.uses:
            for use in summary.uses[local]:
                HANDLERS[type(use)](self, use, file.number, values)

    def call(self, use: Call, number: int, values: Set[int]) -> None:
        """Call values at a site; later, while the bases of classes are not known."""
        if self._waiting is not None:
            self._waiting.append((use, number, values))
            return
        record = self._record(number, use.site)
        if not record.attr:
            self.calls.call_all(values, record)
            return
        for value in values:
            self.calls.call_attr(value, record.attr, record)

    def _record(self, number: int, site: int) -> CallRecord:
        base = number << SHIFT
        found = self.calls.records.get(base + site)
        if found is None:
            found = _numbered(self.by_number[number].summary.sites[site], number, base, site)
            self.calls.records[base + site] = found
        return found


def _numbered(site: Site, number: int, base: int, position: int) -> CallRecord:
    """A site with its variables numbered over the whole program."""
    record = CallRecord(
        base + position,
        number,
        site.caller,
        site.line,
        attr=site.attr,
        args=tuple([base + node if node != NOTHING else NOTHING for node in site.args]),
        result=base + site.result if site.result != NOTHING else NOTHING,
    )
    if site.keywords:
        record.keywords = tuple([(name, base + node) for name, node in site.keywords])
    record.starred = tuple(base + node for node in site.starred)
    record.double_starred = tuple(base + node for node in site.double_starred)
    record.constant = site.constant
    return record
