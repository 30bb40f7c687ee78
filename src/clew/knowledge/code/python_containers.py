"""Containers: lists, tuples, dictionaries and generators as variables by key."""

from __future__ import annotations

from collections.abc import Hashable

from clew.knowledge.code.python_heap import Heap
from clew.knowledge.code.python_summary import NOTHING, ContainerKind, Key
from clew.knowledge.code.python_values import ContainerValue

MOST_KEYS = 64
"""Keys of one container that are told apart."""


class Containers:
    """What is in containers. The key `None` stands for one that is not known."""

    def __init__(self, heap: Heap) -> None:
        self._heap = heap

    def made(self, kind: ContainerKind, key: Hashable) -> int:
        return self._heap.values.container(kind, key)

    def field(self, container: int, key: Key) -> int:
        """The variable of one key."""
        value = self._value(container)
        if key not in value.fields and len(value.fields) >= MOST_KEYS:
            key = None
        if key not in value.fields:
            value.fields[key] = self._heap.node()
            if value.everything:
                self._heap.copy(value.fields[key], value.everything)
        return value.fields[key]

    def everything(self, container: int) -> int:
        """The variable that holds what is under any key."""
        value = self._value(container)
        if not value.everything:
            value.everything = self._heap.node()
            for node in value.fields.values():
                self._heap.copy(node, value.everything)
        return value.everything

    def read(self, container: int, key: Key, into: int) -> None:
        if into == NOTHING:
            return
        if key is None:
            self._heap.copy(self.everything(container), into)
            return
        self._heap.copy(self.field(container, key), into)
        self._heap.copy(self.field(container, None), into)

    def elements(self, container: int, into: int) -> None:
        """What iterating gives: of a dictionary its keys, which are never functions here."""
        if self._value(container).kind != "mapping":
            self._heap.copy(self.everything(container), into)

    def slice(self, container: int, start: int, stop: int | None, made: int) -> None:
        """Fill a container with those between two positions of another."""
        for key, node in tuple(self._value(container).fields.items()):
            if key is None:
                self._heap.copy(node, self.field(made, None))
            elif isinstance(key, int) and key >= start and (stop is None or key < stop):
                self._heap.copy(node, self.field(made, key - start))

    def _value(self, container: int) -> ContainerValue:
        value = self._heap.values[container]
        assert isinstance(value, ContainerValue)
        return value
