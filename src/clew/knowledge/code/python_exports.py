"""What modules give to those that import them: their own names, names that they pass on from others, submodules."""

from __future__ import annotations

from collections import defaultdict

from clew.knowledge.code.python_heap import Heap
from clew.knowledge.code.python_modules import Modules
from clew.knowledge.code.python_summary import NOTHING, Summary

DEEPEST = 12
"""Modules that `from module import *` is followed through."""


class Exports:
    """Names of modules, over a whole program; and which names are used for attributes at all."""

    def __init__(self, heap: Heap, modules: Modules) -> None:
        self._heap = heap
        self.modules = modules
        self.loaded: dict[str, tuple[int, Summary]] = {}
        self.stars: defaultdict[str, list[str]] = defaultdict(list)
        self.stored_names: set[str] = set()
        self.class_names: set[str] = set()
        self.property_names: set[str] = set()
        self._found: dict[tuple[str, str], int] = {}

    def enter(self, path: str, base: int, summary: Summary) -> None:
        """Note a module; call this for all of them before any is asked for its names."""
        self.loaded[path] = (base, summary)
        self.stars[path] = [
            found
            for item in summary.imports
            if item.name == "*" and (found := self.modules.resolve(item.module, item.level, path))
        ]
        self.stored_names.update(summary.stored)
        for known in summary.classes:
            self.class_names.update(known.attrs)
        for function in summary.functions:
            if function.kind in ("property", "setter"):
                self.property_names.add(function.qualname.rpartition(".")[2])

    def leave(self, path: str) -> None:
        """Forget a module, and where names were found."""
        self.loaded.pop(path, None)
        self.stars.pop(path, None)
        self._found.clear()

    def find(self, path: str, name: str) -> int:
        """The variable of a module's name; nothing where it has none of that name."""
        key = (path, name)
        if key not in self._found:
            own = self._named(path, name)
            self._found[key] = own if own != NOTHING else self._submodule(path, name)
        return self._found[key]

    def through_stars(self, path: str, name: str) -> int:
        """The variable of a name that a module has only by importing everything from others; each is asked once."""
        waiting, seen = [(path, DEEPEST)], set[str]()
        while waiting:
            module, depth = waiting.pop()
            if module in seen:
                continue
            seen.add(module)
            own = self._own(module, name) if module != path else NOTHING
            if own != NOTHING:
                return own
            others = self.stars.get(module, ()) if depth and not name.startswith("_") else ()
            waiting.extend((other, depth - 1) for other in reversed(others))
        return NOTHING

    def _named(self, path: str, name: str) -> int:
        own = self._own(path, name)
        return own if own != NOTHING else self.through_stars(path, name)

    def _own(self, path: str, name: str) -> int:
        loaded = self.loaded.get(path)
        return loaded[0] + loaded[1].names[name] if loaded is not None and name in loaded[1].names else NOTHING

    def _submodule(self, path: str, name: str) -> int:
        found = self.modules.submodule(path, name)
        if not found:
            return NOTHING
        node = self._heap.node()
        self._heap.put(node, self._heap.values.module(found))
        return node
