"""Attributes of classes and instances: the variable in which the value of `thing.name` arrives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from clew.knowledge.code.python_calls.heap import ClassValue, ExternalValue, Heap
from clew.knowledge.code.python_calls.summary import NOTHING

MAX_MRO = 64
"""Classes in a method resolution order that are searched."""


class Attributes:
    """Variables of attributes, made on first use."""

    def __init__(self, heap: Heap, *, has_externals: bool) -> None:
        self._heap = heap
        self._has_externals = has_externals
        self._on_instances: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._on_classes: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._readers: defaultdict[str, set[int]] = defaultdict(set)
        self._lookers: defaultdict[str, set[int]] = defaultdict(set)
        self._slots: dict[tuple[int, str], int] = {}
        self._after: dict[tuple[int, int, str], int] = {}

    def slot(self, value: int, attr: str) -> int:
        """The variable of an attribute of a function."""
        key = (value, attr)
        if key not in self._slots:
            self._slots[key] = self._heap.node()
        return self._slots[key]

    def stored(self, of_class: int, attr: str) -> int:
        """The target of `instance.attr = value`."""
        table = self._on_instances[attr]
        if of_class not in table:
            table[of_class] = self._heap.node()
            for reader in self._readers[attr]:
                if of_class in self.order(reader):
                    self._heap.copy(table[of_class], self._class(reader).reads[attr])
        return table[of_class]

    def stored_on_class(self, of_class: int, attr: str) -> int:
        """The target of `Class.attr = value`."""
        table = self._on_classes[attr]
        if of_class not in table:
            table[of_class] = self._heap.node()
            for looker in self._lookers[attr]:
                if of_class in self.order(looker):
                    self._heap.copy(table[of_class], self._class(looker).lookups[attr])
        return table[of_class]

    def read(self, of_class: int, attr: str) -> int:
        """The values that were set on instances of a class or of its bases."""
        reads = self._class(of_class).reads
        if attr not in reads:
            reads[attr] = self._heap.node()
            self._readers[attr].add(of_class)
            self._connect_read(of_class, attr)
        return reads[attr]

    def lookup(self, of_class: int, attr: str) -> int:
        """The value that a class, or the first of its bases with this name, defines."""
        lookups = self._class(of_class).lookups
        if attr not in lookups:
            lookups[attr] = self._heap.node()
            self._lookers[attr].add(of_class)
            self._connect(self.order(of_class), attr, lookups[attr])
        return lookups[attr]

    def lookup_after(self, of_class: int, receiver: int, attr: str) -> int:
        """As `lookup`, among the classes after `of_class` in the order of the receiver's class."""
        key = (of_class, receiver, attr)
        if key not in self._after:
            self._after[key] = self._heap.node()
            order = self.order(receiver)
            start = order.index(of_class) + 1 if of_class in order else 1
            self._connect(order[start:], attr, self._after[key])
        return self._after[key]

    def definer(self, of_class: int, attr: str, after: int = NOTHING) -> int:
        """The first class, after another if given, whose body defines a name; or NOTHING."""
        order = self.order(of_class)
        start = order.index(after) + 1 if after in order else 0
        for number in order[start:]:
            value = self._heap.values[number]
            if isinstance(value, ClassValue) and value.defines(attr):
                return number
        return NOTHING

    def rebase(self, of_class: int, position: int, base: int) -> None:
        """Record a base of a class and repeat the lookups that it affects."""
        bases = self._class(of_class).bases.setdefault(position, [])
        if base in bases or base == of_class:
            return
        bases.append(base)
        above = self._heap.values[base]
        if isinstance(above, ClassValue):
            above.subclasses.add(of_class)
        self.reconnect(of_class)

    def bases(self, of_class: int) -> list[int]:
        return _bases(self._class(of_class))

    def subclasses(self, of_class: int) -> Iterator[int]:
        """A class and all classes below it."""
        waiting, seen = [of_class], {of_class}
        while waiting:
            number = waiting.pop()
            yield number
            below = self._class(number).subclasses - seen
            seen |= below
            waiting.extend(below)

    def reconnect(self, of_class: int) -> None:
        """Repeat all lookups in a class and the classes below it."""
        found = tuple(self.subclasses(of_class))
        for number in found:
            self._class(number).mro = None
        for number in found:
            for attr, node in self._class(number).lookups.items():
                self._connect(self.order(number), attr, node)
            for attr in self._class(number).reads:
                self._connect_read(number, attr)

    def order(self, of_class: int) -> tuple[int, ...]:
        """The method resolution order (C3; bases as written if C3 has no solution)."""
        known = self._class(of_class).mro
        if known is not None:
            return known
        waiting, begun = [of_class], set[int]()  # no recursion, as hierarchies may be deep
        while waiting:
            number = waiting[-1]
            value = self._class(number)
            if value.mro is None:
                value.mro = (number,)  # seen by a cycle of bases
                begun.add(number)
                waiting.extend(base for base in reversed(_bases(value)) if self._is_unordered(base))
                continue
            waiting.pop()
            if number in begun:
                begun.discard(number)
                value.mro = self._linearize(number, value)
        return self._class(of_class).mro or ()

    def _is_unordered(self, number: int) -> bool:
        value = self._heap.values[number]
        return isinstance(value, ClassValue) and value.mro is None

    def _linearize(self, of_class: int, value: ClassValue) -> tuple[int, ...]:
        bases = _bases(value)
        orders = [self._known_order(base) for base in bases]
        merged = _merge([*orders, bases]) or list(dict.fromkeys(item for order in orders for item in order))
        return (of_class, *(item for item in merged if item != of_class))[:MAX_MRO]

    def _known_order(self, base: int) -> Sequence[int]:
        value = self._heap.values[base]
        return value.mro or (base,) if isinstance(value, ClassValue) else (base,)

    def _connect_read(self, of_class: int, attr: str) -> None:
        table = self._on_instances[attr]
        for number in self.order(of_class) if table else ():
            if number in table:
                self._heap.copy(table[number], self._class(of_class).reads[attr])

    def _connect(self, order: Sequence[int], attr: str, into: int) -> None:
        on_classes = self._on_classes.get(attr, {})
        for number in order:
            value = self._heap.values[number]
            if isinstance(value, ExternalValue):
                if self._has_externals:
                    self._heap.put(into, self._heap.values.external(f"{value.name}.{attr}"))
                return
            if number in on_classes:
                self._heap.copy(on_classes[number], into)
            if isinstance(value, ClassValue) and value.info is not None and attr in value.info.attrs:
                self._heap.copy(value.base + value.info.attrs[attr], into)
                return

    def _class(self, number: int) -> ClassValue:
        value = self._heap.values[number]
        assert isinstance(value, ClassValue)
        return value


def _bases(value: ClassValue) -> list[int]:
    return [base for position in sorted(value.bases) for base in value.bases[position]]


def _merge(orders: Sequence[Sequence[int]]) -> list[int]:
    """Merge the orders of bases by C3; empty if they contradict each other."""
    rest = [list(order) for order in orders if order]
    merged: list[int] = []
    while rest:
        tails = {item for order in rest for item in order[1:]}
        head = next((order[0] for order in rest if order[0] not in tails), None)
        if head is None:
            return []
        merged.append(head)
        rest = [kept for order in rest if (kept := [item for item in order if item != head])]
    return merged
