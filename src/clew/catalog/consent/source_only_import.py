"""Runs the modules of a folder only from the source that the user agreed to, never from compiled files. A file in
`__pycache__` may contain other code than the source beside it, and its recorded time and size do not reveal that."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from clew.catalog.consent.module_files import is_inside


class _SourceLoader(SourceFileLoader):
    """Compiles each time; reads and writes no compiled files."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class _SourceFinder:
    """Delegates to the other finders, and loads modules of the noted packages with `_SourceLoader`. It stays installed
    for the whole process, since a package may import its submodules at any time."""

    def __init__(self) -> None:
        self._packages: dict[str, Path] = {}

    def note(self, package: str, folder: Path) -> None:
        """Run a package from its source. Moves this finder back to the front if other finders were installed before
        it."""
        self._packages[package] = folder
        sys.meta_path[:] = [self, *(each for each in sys.meta_path if each is not self)]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        folder = self._packages.get(fullname.partition(".")[0])
        if folder is None:
            return None
        finders = (each.find_spec for each in sys.meta_path if each is not self and hasattr(each, "find_spec"))
        spec = next((found for find in finders if (found := find(fullname, path, target)) is not None), None)
        if spec is not None and type(spec.loader) is SourceFileLoader and is_inside(spec.loader.path, folder):
            spec.loader, spec.cached = _SourceLoader(spec.loader.name, spec.loader.path), None
        return spec


_finder = _SourceFinder()


def run_from_source(module: str, folder: Path) -> None:
    """Have Python run the files of a module's package that lie in a folder from their source, from now on. Modules that
    it has imported already stay."""
    _finder.note(module.partition(".")[0], folder)
