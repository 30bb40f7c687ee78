"""Brings the summaries of a program's files together: values are followed through it until nothing changes, and what
was called by whom is known then. Files that change later are followed again with what they touch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from typing import Any

from clew.knowledge.code.python_accesses import load_all, store_all
from clew.knowledge.code.python_attributes import Attributes
from clew.knowledge.code.python_builtins import iterate
from clew.knowledge.code.python_calls import CallRecord, Calls
from clew.knowledge.code.python_containers import Containers
from clew.knowledge.code.python_exports import Exports
from clew.knowledge.code.python_heap import Heap
from clew.knowledge.code.python_modules import Modules
from clew.knowledge.code.python_summary import (
    NOTHING,
    Base,
    Call,
    Enter,
    Instance,
    Item,
    Iterate,
    Load,
    ModuleImport,
    SetItem,
    Site,
    Slice,
    Store,
    Summary,
    Super,
    Use,
)
from clew.knowledge.code.python_values import ClassValue, ContainerValue, ExternalValue, FunctionValue, InstanceValue

SHIFT = 20
MASK = (1 << SHIFT) - 1
FOLLOWED = ("functools",)
"""Modules outside the project whose functions are known."""
ROUNDS = 4


class Loaded:
    """A file in the program: its number, its summary, and the values of what it defines."""

    __slots__ = ("classes", "functions", "number", "path", "summary")

    def __init__(self, path: str, number: int, summary: Summary) -> None:
        self.path = path
        self.number = number
        self.summary = summary
        self.functions: list[int] = []
        self.classes: list[int] = []


class Solver:
    """A program of Python files. With `has_externals` calls of what the project does not define are kept too."""

    def __init__(self, modules: Modules, *, has_externals: bool = False, blocked: Set[int] = frozenset()) -> None:
        self.heap = Heap(self._settle, blocked)
        self.exports = Exports(self.heap, modules)
        self.attributes = Attributes(self.heap, has_externals=has_externals)
        self.containers = Containers(self.heap)
        self.calls = Calls(self.heap, self.attributes, self.containers, self.exports, has_externals=has_externals)
        self.files: dict[str, Loaded] = {}
        self.by_number: dict[int, Loaded] = {}
        self.importers: defaultdict[str, set[str]] = defaultdict(set)
        self.unfound: defaultdict[str, set[str]] = defaultdict(set)
        self._last = 0
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
            self._call(use, number, values)
        self.heap.run()
        self._leave_undecorated(loaded)

    def reload(self, changed: Mapping[str, Summary], removed: Collection[str]) -> set[str]:
        """Bring files in anew, and those that import what is another now; gives all files that this touched."""
        counts = {number: len(edges) for number, edges in self.calls.edges.items()}
        new = changed.keys() - self.files.keys()
        given = {path: self._given(path) for path in {*changed, *removed}}
        for path in removed:
            self.exports.modules.remove(path)
        for path in new:
            self.exports.modules.add(path)
        self._replace(changed, {*changed, *removed} & self.files.keys(), is_gone=True)
        again = self._importing({path: self._lost(path, names) for path, names in given.items()}, new)
        self._replace({path: self.files[path].summary for path in again}, again, is_gone=False)
        grown = {
            file.path
            for number, file in self.by_number.items()
            if len(self.calls.edges[number]) != counts.get(number, 0)
        }
        return {*changed, *removed} | again | grown

    def _replace(self, summaries: Mapping[str, Summary], old: Set[str], *, is_gone: bool) -> None:
        before = {path: self.files[path] for path in old}
        visits = self._leave(old)
        if is_gone:
            self._orphan(old)
        self._block_again(before, summaries)
        self.load(summaries)
        for function, record, receiver in visits:
            self.calls.enter(function, record, None if receiver < 0 else receiver)
        self._import_again(summaries.keys())
        self.heap.run()

    def _block_again(self, before: Mapping[str, Loaded], summaries: Mapping[str, Summary]) -> None:
        """What held too much before is not filled again; parameters and results of functions are known by name."""
        for position, (path, summary) in enumerate(summaries.items(), start=1):
            old = before.get(path)
            if old is None:
                continue
            base, new = old.number << SHIFT, (self._last + position) << SHIFT
            if old.summary is summary:
                nodes = {base + node: new + node for node in range(summary.nodes)}
            else:
                named = dict(_named_nodes(summary))
                nodes = {base + node: new + named[name] for name, node in _named_nodes(old.summary) if name in named}
            self.heap.overfull.update(nodes[node] for node in nodes.keys() & self.heap.overfull)

    def _given(self, path: str) -> dict[str, Set[int]]:
        """What a file gives to those that import it, by name."""
        file = self.files.get(path)
        if file is None:
            return {}
        return {name: self.heap.of((file.number << SHIFT) + node) for name, node in file.summary.names.items()}

    def _lost(self, path: str, before: Mapping[str, Set[int]]) -> set[str]:
        """The names under which a file no longer gives all that it did."""
        after = self._given(path)
        return {name for name, values in before.items() if not values <= after.get(name, set())}

    def _importing(self, lost: Mapping[str, Set[str]], new: Set[str]) -> set[str]:
        """The files that import what was lost, or that looked for a file which is there now."""
        words = [self.exports.modules.name(path).rpartition(".")[2] for path in new]
        found = set().union(*(self.unfound[word] for word in words))
        for path, names in lost.items():
            for importer in (self.importers[path] & self.files.keys()) if names else ():
                imports = self.files[importer].summary.imports
                if any(item.name in names or item.name in ("", "*") for item in imports):
                    found.add(importer)
        return (found & self.files.keys()) - lost.keys()

    def _leave(self, paths: Set[str]) -> list[tuple[int, CallRecord, int]]:
        """Forget what variables of these files hold; gives the calls of their functions from elsewhere, each as the
        function, the place and the receiver."""
        files = [self.files.pop(path) for path in sorted(paths)]
        numbers = {file.number for file in files}
        visits: list[tuple[int, CallRecord, int]] = []
        for file in files:
            del self.by_number[file.number]
            self.calls.edges.pop(file.number, None)
            self.exports.leave(file.path)
            for function in file.functions:
                value = self.heap.values[function]
                assert isinstance(value, FunctionValue)
                kept = [(key, record) for key, record in value.visits.items() if record.module not in numbers]
                visits += [(function, record, receiver) for (_, receiver), record in kept]
                value.visits.clear()
        self.heap.forget(lambda node: node >> SHIFT in numbers)
        return visits

    def _orphan(self, paths: Set[str]) -> None:
        """Mark what changed files defined as gone; what they still define comes back when they are loaded."""
        for value in self.heap.values.all:
            if isinstance(value, (FunctionValue, ClassValue)) and value.path in paths:
                value.is_gone = True
                if isinstance(value, ClassValue):
                    value.bases.clear()
                    value.mro = None

    def _import_again(self, paths: Set[str]) -> None:
        """Tie those that import from files that were brought in anew to their new variables, and look up again what
        classes elsewhere inherit from them."""
        importers = {path for old in paths for path in self.importers[old]} - paths
        for path in sorted(importers & self.files.keys()):
            for item in self.files[path].summary.imports:
                if self.exports.modules.resolve(item.module, item.level, path) in paths:
                    self._import(self.files[path], item)
        for path in sorted(paths & self.files.keys()):
            for of_class in self.files[path].classes:
                self.attributes.reconnect(of_class)

    def _enter(self, path: str, summary: Summary) -> Loaded:
        self._last += 1
        file = Loaded(path, self._last, summary)
        self.files[path] = self.by_number[self._last] = file
        self.exports.enter(path, self._last << SHIFT, summary)
        base = self._last << SHIFT
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
            self._import(file, item)
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

    def _import(self, file: Loaded, item: ModuleImport) -> None:
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
        local, base = node & MASK, node & ~MASK
        for into in file.summary.copies.get(local, ()):
            self.heap.add(base + into, values)
        for use in file.summary.uses.get(local, ()):
            HANDLERS[type(use)](self, use, file.number, values)

    def _call(self, use: Call, number: int, values: Set[int]) -> None:
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

    def _load(self, use: Load, number: int, values: Set[int]) -> None:
        if use.into == NOTHING and use.attr not in self.exports.property_names:
            return
        into = (number << SHIFT) + use.into if use.into != NOTHING else NOTHING
        load_all(values, self.calls, use.attr, into, _place(number, use))

    def _store(self, use: Store, number: int, values: Set[int]) -> None:
        source = (number << SHIFT) + use.value if use.value != NOTHING else NOTHING
        store_all(values, self.calls, use.attr, source, _place(number, use))

    def _item(self, use: Item, number: int, values: Set[int]) -> None:
        into = (number << SHIFT) + use.into
        for value in values:
            known = self.heap.values[value]
            if isinstance(known, ContainerValue):
                self.containers.read(value, use.key, into)
            elif isinstance(known, InstanceValue):
                self.calls.call_special(value, "__getitem__", _place(number, use), result=into)

    def _set_item(self, use: SetItem, number: int, values: Set[int]) -> None:
        source = (number << SHIFT) + use.value if use.value != NOTHING else NOTHING
        for value in values:
            known = self.heap.values[value]
            if isinstance(known, ContainerValue):
                self.heap.copy(source, self.containers.field(value, use.key))
            elif isinstance(known, InstanceValue):
                self.calls.call_special(value, "__setitem__", _place(number, use), args=(NOTHING, source))

    def _iterate(self, use: Iterate, number: int, values: Set[int]) -> None:
        iterate(self.calls, values, (number << SHIFT) + use.into, _place(number, use))

    def _enter_with(self, use: Enter, number: int, values: Set[int]) -> None:
        into = (number << SHIFT) + use.into
        for value in values:
            known = self.heap.values[value]
            if isinstance(known, ContainerValue):
                self.containers.elements(value, into)
            elif isinstance(known, InstanceValue):
                self._ask_to_enter(value, known.of_class, into, _place(number, use))

    def _ask_to_enter(self, value: int, of_class: int, into: int, record: CallRecord) -> None:
        if not any(self.attributes.has(of_class, name) for name in ("__enter__", "__aenter__")):
            self.heap.put(into, value)
        for attr in ("__enter__", "__aenter__", "__exit__", "__aexit__"):
            self.calls.call_special(value, attr, record, result=into if "enter" in attr else NOTHING)

    def _instance(self, use: Instance, number: int, values: Set[int]) -> None:
        into = (number << SHIFT) + use.into
        for value in values:
            known = self.heap.values[value]
            if isinstance(known, ClassValue):
                self.heap.put(into, self.heap.values.instance(value))
            elif isinstance(known, ExternalValue) and self.calls.has_externals:
                self.heap.put(into, self.heap.values.external(known.name, is_instance=True))

    def _super(self, use: Super, number: int, values: Set[int]) -> None:
        of_class = self.by_number[number].classes[use.of_class]
        for value in values:
            if isinstance(self.heap.values[value], (InstanceValue, ClassValue)):
                self.heap.put((number << SHIFT) + use.into, self.heap.values.above(of_class, value))

    def _base(self, use: Base, number: int, values: Set[int]) -> None:
        of_class = self.by_number[number].classes[use.of_class]
        for value in values:
            if isinstance(self.heap.values[value], (ClassValue, ExternalValue)):
                self.attributes.rebase(of_class, use.position, value)

    def _slice(self, use: Slice, number: int, values: Set[int]) -> None:
        base = number << SHIFT
        for value in values:
            if isinstance(self.heap.values[value], ContainerValue):
                made = self.containers.made("sequence", (base, use.container, value))
                self.containers.slice(value, use.start, use.stop, made)
                self.heap.put(base + use.into, made)


def _named_nodes(summary: Summary) -> Iterator[tuple[tuple[str, str], int]]:
    """The variables of a file that have a name of their own: parameters, results, and what is at its top."""
    yield from ((("", name), node) for name, node in summary.names.items())
    for function in summary.functions:
        yield (function.qualname, "return"), function.returned
        for name, node in (*function.parameters, *function.keyword_only):
            yield (function.qualname, name), node


def _place(number: int, use: Load | Store | Item | SetItem | Iterate | Enter) -> CallRecord:
    """Where something happens that may call."""
    return CallRecord(NOTHING, number, use.caller, use.line)


def _numbered(site: Site, number: int, base: int, position: int) -> CallRecord:
    """A site with its variables numbered over the whole program."""

    def of(node: int) -> int:
        return base + node if node != NOTHING else NOTHING

    args = tuple(of(node) for node in site.args)
    record = CallRecord(
        base + position, number, site.caller, site.line, attr=site.attr, args=args, result=of(site.result)
    )
    record.keywords = tuple((name, of(node)) for name, node in site.keywords)
    record.starred = tuple(of(node) for node in site.starred)
    record.double_starred = tuple(of(node) for node in site.double_starred)
    record.constant = site.constant
    return record


HANDLERS: dict[type[Use], Callable[[Solver, Any, int, Set[int]], None]] = {
    Load: Solver._load,
    Store: Solver._store,
    Item: Solver._item,
    SetItem: Solver._set_item,
    Call: Solver._call,
    Iterate: Solver._iterate,
    Enter: Solver._enter_with,
    Instance: Solver._instance,
    Super: Solver._super,
    Base: Solver._base,
    Slice: Solver._slice,
}
