"""Attributes: in which variable the value of `thing.name` arrives, over classes with their bases (in the order of C3),
instances, modules and what they pass on from others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from clew.knowledge.code.python_heap import Heap
from clew.knowledge.code.python_summary import NOTHING
from clew.knowledge.code.python_values import ClassValue, ExternalValue

LONGEST = 64
"""Classes in the order of resolution that are looked at."""


class Attributes:
    """Variables of attributes, made when they are first asked for."""

    def __init__(self, heap: Heap, *, has_externals: bool) -> None:
        self._heap = heap
        self._has_externals = has_externals
        self._own: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._read: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._set_on_class: defaultdict[str, dict[int, int]] = defaultdict(dict)
        self._looked_up: defaultdict[str, set[int]] = defaultdict(set)
        self._slots: dict[tuple[int, str], int] = {}
        self._after: dict[tuple[int, int, str], int] = {}

    def slot(self, value: int, attr: str) -> int:
        """The variable of an attribute of a value that is neither a class nor an instance."""
        key = (value, attr)
        if key not in self._slots:
            self._slots[key] = self._heap.node()
        return self._slots[key]

    def stored(self, of_class: int, attr: str) -> int:
        """Where `instance.attr = value` puts it."""
        own = self._own[attr]
        if of_class not in own:
            own[of_class] = self._heap.node()
            for reader, node in self._read[attr].items():
                if of_class in self.order(reader):
                    self._heap.copy(own[of_class], node)
        return own[of_class]

    def read(self, of_class: int, attr: str) -> int:
        """Where what was set on instances of a class, or of its bases, arrives."""
        reads = self._class(of_class).reads
        if attr not in reads:
            reads[attr] = self._read[attr][of_class] = self._heap.node()
            self._connect_read(of_class, attr)
        return reads[attr]

    def stored_on_class(self, of_class: int, attr: str) -> int:
        """Where `Class.attr = value` puts it."""
        table = self._set_on_class[attr]
        if of_class not in table:
            table[of_class] = self._heap.node()
            for reader in self._looked_up[attr]:
                if of_class in self.order(reader):
                    self._heap.copy(table[of_class], self._class(reader).lookups[attr])
        return table[of_class]

    def lookup(self, of_class: int, attr: str) -> int:
        """Where what the class, or the first of its bases that has it, defines under a name arrives."""
        lookups = self._class(of_class).lookups
        if attr not in lookups:
            lookups[attr] = self._heap.node()
            self._looked_up[attr].add(of_class)
            self._connect(self.order(of_class), attr, lookups[attr])
        return lookups[attr]

    def lookup_after(self, of_class: int, receiver: int, attr: str) -> int:
        """As `lookup`, among the classes that come after `of_class` for this class of a receiver."""
        key = (of_class, receiver, attr)
        if key not in self._after:
            self._after[key] = self._heap.node()
            order = self.order(receiver)
            start = order.index(of_class) + 1 if of_class in order else 1
            self._connect(order[start:], attr, self._after[key])
        return self._after[key]

    def definer(self, of_class: int, attr: str, after: int = NOTHING) -> int:
        """The first class, of those after another, whose body defines a name; nothing where none does."""
        order = self.order(of_class)
        start = order.index(after) + 1 if after in order else 0
        for number in order[start:]:
            value = self._heap.values[number]
            if isinstance(value, ClassValue) and value.info is not None and attr in value.info.attrs:
                return number
        return NOTHING

    def has(self, of_class: int, attr: str) -> bool:
        """Whether the class or one of its bases defines a name in its body."""
        for number in self.order(of_class):
            value = self._heap.values[number]
            if isinstance(value, ClassValue) and value.info is not None and attr in value.info.attrs:
                return True
        return False

    def rebase(self, of_class: int, position: int, base: int) -> None:
        """Note a base of a class; what was looked up before then is looked up again."""
        value = self._class(of_class)
        bases = value.bases.setdefault(position, [])
        if base in bases or base == of_class:
            return
        bases.append(base)
        above = self._heap.values[base]
        if isinstance(above, ClassValue):
            above.subclasses.add(of_class)
        self.reconnect(of_class)

    def reconnect(self, of_class: int) -> None:
        """Look up again what was looked up in a class and in those below it."""
        waiting, seen = [of_class], {of_class}
        while waiting:
            value = self._class(waiting.pop())
            value.mro = None
            waiting.extend(value.subclasses - seen)
            seen |= value.subclasses
        for number in seen:
            for attr, node in self._class(number).lookups.items():
                self._connect(self.order(number), attr, node)
            for attr in self._class(number).reads:
                self._connect_read(number, attr)

    def order(self, of_class: int) -> tuple[int, ...]:
        """The class and its bases in the order in which they are asked (C3, or as written where C3 has no answer)."""
        known = self._class(of_class).mro
        if known is not None:
            return known
        waiting, begun = [of_class], set[int]()  # no recursion: classes may be many above each other
        while waiting:
            number = waiting[-1]
            value = self._class(number)
            if value.mro is None:
                value.mro = (number,)  # what a cycle of bases sees
                begun.add(number)
                waiting.extend(base for base in reversed(_bases(value)) if self._is_unordered(base))
                continue
            waiting.pop()
            if number in begun:
                begun.discard(number)
                value.mro = self._linear(number, value)
        return self._class(of_class).mro or ()

    def _is_unordered(self, number: int) -> bool:
        value = self._heap.values[number]
        return isinstance(value, ClassValue) and value.mro is None

    def _linear(self, of_class: int, value: ClassValue) -> tuple[int, ...]:
        bases = _bases(value)
        orders = [self._order_of(base) for base in bases]
        merged = merge([*orders, bases]) or list(dict.fromkeys(item for order in orders for item in order))
        return (of_class, *(item for item in merged if item != of_class))[:LONGEST]

    def _order_of(self, base: int) -> Sequence[int]:
        value = self._heap.values[base]
        return value.mro or (base,) if isinstance(value, ClassValue) else (base,)

    def _connect_read(self, of_class: int, attr: str) -> None:
        own = self._own[attr]
        if not own:
            return
        for number in self.order(of_class):
            if number in own:
                self._heap.copy(own[number], self._read[attr][of_class])

    def _connect(self, order: Sequence[int], attr: str, into: int) -> None:
        on_class = self._set_on_class.get(attr, {})
        for number in order:
            value = self._heap.values[number]
            if isinstance(value, ExternalValue):
                if self._has_externals:
                    self._heap.put(into, self._heap.values.external(f"{value.name}.{attr}"))
                return
            if number in on_class:
                self._heap.copy(on_class[number], into)
            if isinstance(value, ClassValue) and value.info is not None and attr in value.info.attrs:
                self._heap.copy(value.base + value.info.attrs[attr], into)
                return

    def _class(self, number: int) -> ClassValue:
        value = self._heap.values[number]
        assert isinstance(value, ClassValue)
        return value


def _bases(value: ClassValue) -> list[int]:
    return [base for position in sorted(value.bases) for base in value.bases[position]]


def merge(orders: Sequence[Sequence[int]]) -> list[int]:
    """The orders of bases as one, by C3; empty where they contradict each other."""
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
