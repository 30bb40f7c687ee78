"""Modules: the file that an import means, and the names that a module exports.

Handles packages, namespace packages, `src` layouts, scripts next to each other, and relative imports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from posixpath import commonpath, dirname

from clew.knowledge.code.python_calls.heap import Heap, ModuleValue
from clew.knowledge.code.python_calls.summary import NOTHING, FlowSummary

SUFFIXES = (".py", ".pyi")
SOURCE_FOLDERS = ("src", "lib", "python")


class Modules:
    """The Python files of a project by the names they are imported under. Paths have forward slashes."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self.paths: set[str] = set(paths)
        self._roots: dict[str, str] = {}

    def add(self, path: str) -> None:
        self.paths.add(path)
        self._forget()

    def remove(self, path: str) -> None:
        self.paths.discard(path)
        self._forget()

    def _forget(self) -> None:
        self._roots.clear()
        for name in ("_folders", "_by_name"):
            self.__dict__.pop(name, None)

    @cached_property
    def _folders(self) -> set[str]:
        return {folder for inner in {dirname(path) for path in self.paths} for folder in _upwards(inner)}

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for path in sorted(self.paths):
            found[self.name(path)].append(path)
        return dict(found)

    def root(self, path: str) -> str:
        """The folder from which the packages around a file are imported."""
        inner = dirname(path)
        if inner not in self._roots:
            self._roots[inner] = next((folder for folder in _upwards(inner) if not self._package_file(folder)), "")
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
        return self._relative(module, level, importer) if level else self._absolute(module, importer)

    def submodule(self, module: str, name: str) -> str:
        """The file or folder of `name` in a package; `module` is a result of `resolve`."""
        folder, _, file = module.rpartition("/")
        is_package = not file or file.partition(".")[0] == "__init__"
        return self._at(f"{folder}/{name}".lstrip("/")) if is_package and module else ""

    def _relative(self, module: str, level: int, importer: str) -> str:
        folder = importer
        for _ in range(level):
            folder = dirname(folder)
        inner = module.replace(".", "/")
        return self._at(f"{folder}/{inner}".strip("/")) if inner else self._package(folder)

    def _absolute(self, module: str, importer: str) -> str:
        inner = module.replace(".", "/")
        for folder in (*_upwards(self.root(importer)), ""):
            found = self._at(f"{folder}/{inner}".lstrip("/"))
            if found and not (found.endswith("/") and module in self._by_name):
                return found
        if module in self._by_name:
            return max(
                self._by_name[module],
                key=lambda path: (len(commonpath(["/" + path, "/" + importer])), path.endswith(".py")),
            )
        return next((f"{top}/{inner}/" for top in SOURCE_FOLDERS if f"{top}/{inner}" in self._folders), "")

    def _at(self, stem: str) -> str:
        return next((stem + suffix for suffix in SUFFIXES if stem + suffix in self.paths), "") or self._package(stem)

    def _package(self, folder: str) -> str:
        return self._package_file(folder) or (f"{folder}/" if folder in self._folders else "")

    def _package_file(self, folder: str) -> str:
        stem = f"{folder}/__init__".lstrip("/")
        return next((stem + suffix for suffix in SUFFIXES if stem + suffix in self.paths), "")


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

    def enter(self, path: str, base: int, summary: FlowSummary) -> None:
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


def _upwards(folder: str) -> Iterator[str]:
    """A folder and those above it, without that of the project."""
    while folder:
        yield folder
        folder = dirname(folder)
