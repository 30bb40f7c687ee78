"""What was used last: so many values by key, of which those that nobody asked for leave first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most `limit` values. `made` counts how often one had to be made."""

    def __init__(self, limit: int) -> None:
        self.made = 0
        self._limit = limit
        self._kept: OrderedDict[K, V] = OrderedDict()

    def find(self, key: K) -> V | None:
        """The value of a key, which counts as used; None where it is not kept."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def keep(self, key: K, value: V) -> V:
        """Keep a value in the place of what the key had. Gives it back."""
        self.made += 1
        self._kept[key] = value
        self._kept.move_to_end(key)
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return value

    def find_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made where it is not kept. What `make` raises leaves everything as it was."""
        found = self.find(key)
        return self.keep(key, make()) if found is None else found

    def clear(self) -> None:
        self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)
