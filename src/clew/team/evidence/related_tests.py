"""The tests that cover a change: those that import a changed module, name it, or were changed themselves. Imports are
followed through the project's own modules."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from clew.knowledge.project.tools import language_by_extension
from clew.team.evidence.check_commands import walk_files
from clew.team.evidence.found_tests import is_test_file

MAX_BYTES = 500_000
_SOURCES = ("src/", "lib/")
_IMPORT = re.compile(r"""(?:\bfrom\s+|\bimport\s*\(?\s*|\brequire\s*\(\s*|\bmock\(\s*)['"](?P<path>[^'"]+)['"]""")
_GENERAL = frozenset(("index", "main", "mod", "lib", "utils", "types", "__init__", "__main__", "app", "test", "tests"))
"""Module names that are too general to identify a module."""


def is_code(path: str) -> bool:
    """Whether a file is code that tests can load: a source file of a programming language that is not a test itself."""
    return bool(language_by_extension(path)) and not is_test_file(path) and not path.endswith((".md", ".sh", ".tf"))


def find_covering(root: str, changed: Sequence[str]) -> tuple[str, ...]:
    """The test files that cover the changed files, as far as imports and names show; may be empty."""
    files = walk_files(root)
    tests = [path for path in files if is_test_file(path) and not path.endswith("conftest.py")]
    own = {path for path in changed if path in set(tests)}
    code = [path for path in changed if is_code(path)]
    texts = _Texts(root)
    covering = {path for path in tests if covered_by(path, code, files, texts)}
    return tuple(sorted(own | covering))


def covered_by(test: str, changed: Sequence[str], files: Sequence[str], texts: _Texts) -> tuple[str, ...]:
    """The changed files that a test file names or imports, directly or through other modules."""
    if test.endswith(".py"):
        reached = _reach_python(test, files, texts)
        return tuple(path for path in changed if path in reached)
    folder = os.path.dirname(test)
    found = []
    for path in changed:
        is_beside = os.path.dirname(path) == folder and path.endswith(".go") and test.endswith(".go")
        if is_beside or _names(test, path, texts):
            found.append(path)
    return tuple(found)


class _Texts:
    """The contents of files, read once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, str] = {}

    def __getitem__(self, path: str) -> str:
        if path not in self._known:
            place = Path(self._root, path)
            try:
                is_short = place.stat().st_size <= MAX_BYTES
                self._known[path] = place.read_text(errors="replace") if is_short and not place.is_symlink() else ""
            except OSError:
                self._known[path] = ""
        return self._known[path]


# -- Python ------------------------------------------------------------------------------------------------------


def _reach_python(start: str, files: Sequence[str], texts: _Texts) -> set[str]:
    """The modules of the project that a module imports, directly or indirectly."""
    modules = python_modules(files)
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        for name in _imports(path, texts):
            for found in _resolve(name, modules):
                if found not in reached:
                    reached.add(found)
                    waiting.append(found)
    return reached


def python_modules(files: Iterable[str]) -> dict[str, str]:
    """Python files by the names under which they can be imported."""
    found: dict[str, str] = {}
    for path in files:
        if path.endswith(".py"):
            inner = next((path.removeprefix(each) for each in _SOURCES if path.startswith(each)), path)
            found[inner.removesuffix(".py").removesuffix("/__init__").replace("/", ".")] = path
    return found


def _resolve(name: str, modules: Mapping[str, str]) -> list[str]:
    """The file of a module, and of the packages above it, which are imported too."""
    parts = name.split(".")
    names = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return [modules[each] for each in names if each in modules]


def _imports(path: str, texts: _Texts) -> list[str]:
    try:
        tree = ast.parse(texts[path])
    except (SyntaxError, ValueError, RecursionError):
        return []
    inner = next((path.removeprefix(each) for each in _SOURCES if path.startswith(each)), path)
    package = inner.removesuffix(".py").removesuffix("/__init__").split("/")
    package = package if path.endswith("__init__.py") else package[:-1]
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found += [base, *(f"{base}.{each.name}".strip(".") for each in node.names)]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            found += [
                each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
    return [name for name in found if name]


# -- other languages ---------------------------------------------------------------------------------------------


def _names(test: str, path: str, texts: _Texts) -> bool:
    """Whether a test imports a file by its path, or mentions its name, if the name is specific enough."""
    stem = os.path.basename(path).rpartition(".")[0]
    for match in _IMPORT.finditer(texts[test]):
        named = os.path.normpath(os.path.join(os.path.dirname(test), match["path"]))
        if named in (path, path.rpartition(".")[0], os.path.dirname(path) if stem == "index" else path):
            return True
    return stem not in _GENERAL and re.search(rf"\b{re.escape(stem)}\b", texts[test]) is not None


def loaded_statically(root: str, changed: Sequence[str]) -> tuple[str, ...]:
    """The changed files that any test file imports or names, and the changed test files themselves."""
    files = walk_files(root)
    texts = _Texts(root)
    code = [path for path in changed if is_code(path)]
    tests = [path for path in files if is_test_file(path)]
    reached = {path for test in tests for path in covered_by(test, code, files, texts)}
    crate = "Cargo.toml" in files  # all sources of a crate are compiled into its tests
    return tuple(path for path in changed if path in reached or path in tests or (crate and path.endswith(".rs")))
