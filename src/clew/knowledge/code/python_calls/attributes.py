"""Names on values: attributes of classes and instances, and names of modules, each as the variable of its value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from clew.knowledge.code.python_calls.heap import ClassValue, ExternalValue, Heap, ModuleValue
from clew.knowledge.code.python_calls.modules import Modules
from clew.knowledge.code.python_calls.summary import NOTHING, Summary

MAX_MRO = 64
"""Classes in a method resolution order that are searched."""


class Attributes:
    """Variables of attributes, made on first use."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap
        self._stored: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._readers: defaultdict[str, set[int]] = defaultdict(set)

    def stored(self, of_class: int, attr: str) -> int:
        """The target of `instance.attr = value` and `Class.attr = value`."""
        table = self._stored[attr]
        if of_class not in table:
            table[of_class] = self._heap.node()
            for reader in self._readers[attr]:
                if of_class in self.order(reader):
                    self._heap.copy(table[of_class], self._heap.class_of(reader).reads[attr])
        return table[of_class]

    def read(self, of_class: int, attr: str) -> int:
        """The values that were set on a class, its bases, and their instances."""
        reads = self._heap.class_of(of_class).reads
        if attr not in reads:
            reads[attr] = self._heap.node()
            self._readers[attr].add(of_class)
            self._connect_read(of_class, attr)
        return reads[attr]

    def lookup(self, of_class: int, attr: str, after: int = NOTHING) -> int:
        """The value that a class, or the first of its bases with this name, defines; with `after`, among the classes
        after another one in the order."""
        lookups, key = self._heap.class_of(of_class).lookups, (attr, after)
        if key not in lookups:
            lookups[key] = self._heap.node()
            self._connect(of_class, attr, after)
        return lookups[key]

    def definer(self, of_class: int, attr: str, after: int = NOTHING) -> int:
        """The first class whose body defines a name, or a base outside the project before it; or NOTHING."""
        order = self.order(of_class)
        for number in order[order.index(after) + 1 if after in order else 0 :]:
            value = self._heap.values[number]
            if isinstance(value, ClassValue) and value.variable(attr) != NOTHING:
                return number
        return NOTHING

    def rebase(self, of_class: int, position: int, base: int) -> None:
        """Record a base of a class and repeat the lookups that it affects."""
        bases = self._heap.class_of(of_class).bases.setdefault(position, [])
        if base in bases or base == of_class:
            return
        bases.append(base)
        above = self._heap.values[base]
        if isinstance(above, ClassValue):
            above.subclasses.add(of_class)
        self.reconnect(of_class)

    def subclasses(self, of_class: int) -> Iterator[int]:
        """A class and all classes below it."""
        waiting, seen = [of_class], {of_class}
        while waiting:
            number = waiting.pop()
            yield number
            below = self._heap.class_of(number).subclasses - seen
            seen |= below
            waiting.extend(below)

    def reconnect(self, of_class: int) -> None:
        """Repeat all lookups in a class and the classes below it."""
        found = [(number, self._heap.class_of(number)) for number in self.subclasses(of_class)]
        for _, value in found:
            value.mro = None
        for number, value in found:
            for attr, after in value.lookups:
                self._connect(number, attr, after)
            for attr in value.reads:
                self._connect_read(number, attr)

    def order(self, of_class: int, depth: int = 0) -> tuple[int, ...]:
        """The method resolution order. A base comes after all classes that derive from it, as in C3."""
        value = self._heap.class_of(of_class)
        if value.mro is None:
            value.mro = (of_class,)  # seen by a cycle of bases
            bases = value.all_bases() if depth < MAX_MRO else ()
            above = [item for base in bases for item in self._order_of_base(base, depth + 1) if item != of_class]
            value.mro = (of_class, *reversed(dict.fromkeys(reversed(above))))[:MAX_MRO]
        return value.mro

    def _order_of_base(self, base: int, depth: int) -> tuple[int, ...]:
        return self.order(base, depth) if isinstance(self._heap.values[base], ClassValue) else (base,)

    def _connect_read(self, of_class: int, attr: str) -> None:
        table = self._stored[attr]
        for number in self.order(of_class) if table else ():
            if number in table:
                self._heap.copy(table[number], self._heap.class_of(of_class).reads[attr])

    def _connect(self, of_class: int, attr: str, after: int) -> None:
        into, order = self._heap.class_of(of_class).lookups[attr, after], self.order(of_class)
        for number in order[order.index(after) + 1 if after in order else 0 :]:
            value = self._heap.values[number]
            if isinstance(value, ExternalValue):
                self._heap.put(into, self._heap.external(f"{value.name}.{attr}"))
                return
            found = self._heap.class_of(number).variable(attr)
            if found != NOTHING:
                self._heap.copy(found, into)
                return


class Exports:
    """The names of all modules of a program, and the names that occur as attributes at all."""

    def __init__(self, heap: Heap, modules: Modules) -> None:
        self._heap = heap
        self.modules = modules
        self.stored_names: set[str] = set()
        self.class_names: set[str] = set()
        self.property_names: set[str] = set()
        self._names: dict[str, dict[str, int]] = {}
        self.stars: dict[str, list[str]] = {}
        self._found: dict[tuple[str, str], int] = {}

    def enter(self, path: str, base: int, summary: Summary) -> None:
        """Add a module. Add all modules before looking up names."""
        self._found.clear()
        self._names[path] = {name: base + node for name, node in summary.names.items()}
        stars = [item for item in summary.imports if item.name == "*"]
        self.stars[path] = [self.modules.resolve(item.module, item.level, path) for item in stars]
        self.stored_names.update(summary.stored)
        for known in summary.classes:
            self.class_names.update(known.attrs)
        for function in summary.functions:
            if function.kind in ("property", "setter"):
                self.property_names.add(function.qualname.rpartition(".")[2])

    def leave(self, path: str) -> None:
        """Remove a module."""
        self._names.pop(path, None)
        self.stars.pop(path, None)

    def find(self, path: str, name: str) -> int:
        """The variable of a module's name, or of a submodule; NOTHING if there is neither."""
        key = (path, name)
        if key not in self._found:
            own = self.exported(path, name)
            self._found[key] = own if own != NOTHING else self.submodule(path, name)
        return self._found[key]

    def exported(self, path: str, name: str) -> int:
        """The variable of a name that a module binds, itself or through `from other import *`; or NOTHING."""
        waiting, seen = [path], set[str]()
        while waiting:
            module = waiting.pop()
            if module in seen:
                continue
            seen.add(module)
            if name in self._names.get(module, ()):
                return self._names[module][name]
            if not name.startswith("_"):
                waiting.extend(reversed(self.stars.get(module, ())))
        return NOTHING

    def submodule(self, path: str, name: str) -> int:
        """A variable with a submodule of a package, or NOTHING."""
        found = self.modules.submodule(path, name)
        if not found:
            return NOTHING
        return self._heap.holding(self._heap.number(ModuleValue, found))
