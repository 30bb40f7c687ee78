"""Modules: the file that an import means, and the names that a module exports.

Handles packages, namespace packages, `src` layouts, scripts next to each other, and relative imports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from posixpath import commonpath, dirname

from clew.knowledge.code.python_calls.heap import Heap, ModuleValue
from clew.knowledge.code.python_calls.summary import NOTHING, Summary

SUFFIXES = (".py", ".pyi")
SOURCE_FOLDERS = ("src", "lib", "python")
MAX_STAR_DEPTH = 12
"""Modules that `from module import *` is followed through."""


class Modules:
    """The Python files of a project by the names they are imported under. Paths have forward slashes."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self.paths: set[str] = set()
        self._folders: defaultdict[str, int] = defaultdict(int)
        self._by_name: defaultdict[str, set[str]] = defaultdict(set)
        self._found: dict[tuple[str, str], str] = {}
        self._roots: dict[str, str] = {}
        for path in paths:
            self._enter(path)
        for path in self.paths:
            self._by_name[self.name(path)].add(path)

    def add(self, path: str) -> None:
        self._forget()
        self._enter(path)
        self._by_name[self.name(path)].add(path)

    def remove(self, path: str) -> None:
        if path not in self.paths:
            return
        self._by_name[self.name(path)].discard(path)
        self.paths.discard(path)
        for folder in _above(path):
            self._folders[folder] -= 1
        self._forget()

    def _forget(self) -> None:
        self._found.clear()
        self._roots.clear()

    def _enter(self, path: str) -> None:
        if path not in self.paths:
            self.paths.add(path)
            for folder in _above(path):
                self._folders[folder] += 1

    def root(self, path: str) -> str:
        """The folder from which the packages around a file are imported."""
        inner = folder = dirname(path)
        if inner not in self._roots:
            while folder and self._is_package(folder):
                folder = dirname(folder)
            self._roots[inner] = folder
        return self._roots[inner]

    def name(self, path: str) -> str:
        """The dotted name of a file, from the folder above its packages; without packages, from the project's folder or
        its source folder."""
        root = self.root(path)
        if root == dirname(path):
            first = path.partition("/")[0]
            root = first if first in SOURCE_FOLDERS and "/" in path else ""
        inner = path[len(root) + 1 :] if root else path
        dotted = inner.rpartition(".")[0].replace("/", ".")
        return dotted.removesuffix(".__init__") if dotted != "__init__" else ""

    def resolve(self, module: str, level: int, importer: str) -> str:
        """The file of a module, the folder of a namespace package (with a trailing `/`), or an empty string.

        Files near the importer win.
        """
        if level:
            return self._relative(module, level, importer)
        key = (self.root(importer), module)
        if key not in self._found:
            self._found[key] = self._absolute(module, key[0], importer)
        return self._found[key]

    def submodule(self, module: str, name: str) -> str:
        """The file or folder of `name` in a package; `module` is a result of `resolve`."""
        if module.endswith("/"):
            return self._at(module + name)
        return self._at(f"{dirname(module)}/{name}".lstrip("/")) if self.is_package_file(module) else ""

    @staticmethod
    def is_package_file(path: str) -> bool:
        return path.rpartition("/")[2].partition(".")[0] == "__init__"

    def _relative(self, module: str, level: int, importer: str) -> str:
        folder = dirname(importer)
        for _ in range(level - 1):
            folder = dirname(folder)
        inner = module.replace(".", "/")
        return self._at(f"{folder}/{inner}".strip("/")) if inner else self._package(folder)

    def _absolute(self, module: str, root: str, importer: str) -> str:
        inner = module.replace(".", "/")
        folder = root
        while True:
            found = self._at(f"{folder}/{inner}".lstrip("/"))
            if found and not (found.endswith("/") and module in self._by_name):
                return found
            if not folder:
                break
            folder = dirname(folder)
        return self._nearest(module, importer)

    def _nearest(self, module: str, importer: str) -> str:
        candidates = sorted(self._by_name.get(module, ()))
        if not candidates:
            return self._namespace(module)
        return max(candidates, key=lambda path: (len(commonpath(["/" + path, "/" + importer])), path.endswith(".py")))

    def _namespace(self, module: str) -> str:
        inner = module.replace(".", "/")
        folders = [f"{source}/{inner}" for source in SOURCE_FOLDERS if self._folders.get(f"{source}/{inner}")]
        return f"{folders[0]}/" if folders else ""

    def _at(self, stem: str) -> str:
        for suffix in SUFFIXES:
            if stem + suffix in self.paths:
                return stem + suffix
        return self._package(stem)

    def _package(self, folder: str) -> str:
        for suffix in SUFFIXES:
            path = f"{folder}/__init__{suffix}".lstrip("/")
            if path in self.paths:
                return path
        return f"{folder}/" if folder and self._folders.get(folder) else ""

    def _is_package(self, folder: str) -> bool:
        return any(f"{folder}/__init__{suffix}" in self.paths for suffix in SUFFIXES)


class Exports:
    """The names of all modules of a program, and the names that occur as attributes at all."""

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
        """Add a module. Add all modules before looking up names."""
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
        """Remove a module."""
        self.loaded.pop(path, None)
        self.stars.pop(path, None)
        self._found.clear()

    def find(self, path: str, name: str) -> int:
        """The variable of a module's name, or of a submodule; NOTHING if there is neither."""
        key = (path, name)
        if key not in self._found:
            own = self._named(path, name)
            self._found[key] = own if own != NOTHING else self.submodule(path, name)
        return self._found[key]

    def through_stars(self, path: str, name: str) -> int:
        """The variable of a name that a module has through `from other import *` only; or NOTHING."""
        waiting, seen = [(path, MAX_STAR_DEPTH)], set[str]()
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

    def submodule(self, path: str, name: str) -> int:
        """A variable with a submodule of a package, or NOTHING."""
        found = self.modules.submodule(path, name)
        if not found:
            return NOTHING
        node = self._heap.node()
        self._heap.put(node, self._heap.values.number(ModuleValue, found))
        return node


def _above(path: str) -> Iterable[str]:
    folder = dirname(path)
    while folder:
        yield folder
        folder = dirname(folder)
