"""Which file a Python import means: packages and namespace packages, `src` layouts, scripts beside each other, relative
imports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from posixpath import commonpath, dirname

SUFFIXES = (".py", ".pyi")
SOURCE_FOLDERS = ("src", "lib", "python")


class Modules:
    """The Python files of a project, found by what imports of them are written like. Paths have forward slashes."""

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
        """The dotted name of a file: from the folder above its packages; without packages from the project's folder,
        or its folder of sources."""
        root = self.root(path)
        if root == dirname(path):
            first = path.partition("/")[0]
            root = first if first in SOURCE_FOLDERS and "/" in path else ""
        inner = path[len(root) + 1 :] if root else path
        dotted = inner.rpartition(".")[0].replace("/", ".")
        return dotted.removesuffix(".__init__") if dotted != "__init__" else ""

    def resolve(self, module: str, level: int, importer: str) -> str:
        """The file of a module, the folder of a namespace package (with `/` at its end), or nothing where the project
        has neither. Nearer files come before farther ones."""
        if level:
            return self._relative(module, level, importer)
        key = (self.root(importer), module)
        if key not in self._found:
            self._found[key] = self._absolute(module, key[0], importer)
        return self._found[key]

    def submodule(self, module: str, name: str) -> str:
        """The file or folder of `name` in a package, which is given as `resolve` gives it."""
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


def _above(path: str) -> Iterable[str]:
    folder = dirname(path)
    while folder:
        yield folder
        folder = dirname(folder)
