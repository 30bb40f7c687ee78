"""LRU cache with a size limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _one(_: object) -> int:
    return 1


class LruCache(Generic[K, V]):
    """LRU cache with a limit: a number of values, or a total weight if `weigh` is given. A value heavier than the limit
    is not stored. `made` counts the cache misses, `weight` is the total."""

    def __init__(self, limit: int, weigh: Callable[[V], int] = _one) -> None:
        self.made = 0
        self.weight = 0
        self._limit = limit
        self._weigh = weigh
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def find(self, key: K) -> V | None:
        """Return the value of a key and mark it as used; None if it is not cached."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def keep(self, key: K, value: V) -> V:
        """Store a value under a key, and return it."""
        self.made += 1
        self.drop(key)
        weight = self._weigh(value)
        if weight > self._limit:
            return value
        self._kept[key] = value, weight
        self.weight += weight
        while self.weight > self._limit:
            _, (_, gone) = self._kept.popitem(last=False)
            self.weight -= gone
        return value

    def drop(self, key: K) -> None:
        """Remove a key, if it is cached."""
        _, weight = self._kept.pop(key, (None, 0))
        self.weight -= weight

    def drop_while(self, is_stale: Callable[[V], bool]) -> None:
        """Drop values from the least recently used on, up to the first that is not stale."""
        while self._kept:
            key, (value, _) = next(iter(self._kept.items()))
            if not is_stale(value):
                return
            self.drop(key)

    def find_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key. If it is not cached, call `make` and store the result. If `make` raises, the cache
        stays unchanged."""
        found = self.find(key)
        return self.keep(key, make()) if found is None else found

    def clear(self) -> None:
        self._kept.clear()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._kept)
