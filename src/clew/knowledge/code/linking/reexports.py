"""Re-exported and inherited names: `package.name` for a symbol that the package imports from one of its files, and
`Class.method` for a method of a base class. The edges of imports have the names that they give to their targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clew.knowledge.code.files import kind_of
from clew.knowledge.code.models import FILE_KIND, SymbolRow
from clew.knowledge.code.rows import find_symbols
from clew.sqlite_file import Sql

DEEPEST = 8
"""Files that re-export a name one after the other, and levels of base classes."""
MOST_FILES = 20

_MODULES = (
    "/__init__.py", ".py", "/__init__.pyi", ".pyi", "/index.ts", ".ts", "/index.js", ".js", "/src/lib.rs", "/mod.rs",
    ".rs",
)  # fmt: skip
_CLASSES = ("class", "interface")
_IMPORTED = "WHERE s.id IN (SELECT target FROM edges WHERE source = ? AND type IN ('imports', 'exports') AND name = ?)"
_NAMED_SO = "WHERE s.qualname != '' AND s.id IN (SELECT target FROM edges WHERE name = ? AND name != '')"

_Seen = set[tuple[int, tuple[str, ...]]]
"""Symbols that were searched for a name already: classes and files may refer to each other in cycles."""


def find_reexported(sql: Sql, file: SymbolRow | None, parts: Sequence[str]) -> SymbolRow | None:
    """The symbol of a dotted name in a file, or in the module or class that its first parts name."""
    if file is not None:
        return _in_file(sql, file, parts, set(), DEEPEST)
    for end in range(len(parts) - 1, 0, -1):
        for module in _modules(sql, parts[:end]):
            found = _in_file(sql, module, parts[end:], set(), DEEPEST)
            if found is not None:
                return found
    return _of_class_named(sql, parts)


def find_renamed(sql: Sql, name: str) -> list[SymbolRow]:
    """The symbols that files export or import under a name which is not their own."""
    found = find_symbols(sql, _NAMED_SO, (name,)) if name != "default" else []
    return sorted(found, key=lambda row: (kind_of(row.path), row.path))[:MOST_FILES]


def _modules(sql: Sql, parts: Sequence[str]) -> list[SymbolRow]:
    """The files that a dotted name may mean, tests and examples last."""
    stem = "/".join(parts)
    ends = [f"/{stem}{suffix}" for suffix in _MODULES]
    where = " OR ".join(["substr('/' || f.path, ?) = ?"] * len(ends))
    values = [value for end in ends for value in (-len(end), end)]
    found = find_symbols(sql, f"WHERE s.kind = '{FILE_KIND}' AND ({where})", values)
    return sorted(found, key=lambda row: (kind_of(row.path), len(row.path), row.path))[:MOST_FILES]


def _in_file(sql: Sql, file: SymbolRow, parts: Sequence[str], seen: _Seen, depth: int) -> SymbolRow | None:
    """The symbol of a dotted name in a file: its own, an imported one, or one of a module that it imports."""
    if (file.id, tuple(parts)) in seen:
        return None
    found = _member(sql, file, parts, seen, DEEPEST)
    if found is not None or not depth:
        return found
    first, rest = parts[0], parts[1:]
    for target in find_symbols(sql, _IMPORTED, (file.id, first)):
        if not rest:
            found = target if target.qualname else None
        elif target.qualname:
            found = _member(sql, target, rest, seen, DEEPEST)
        else:
            found = _in_file(sql, target, rest, seen, depth - 1)
        if found is not None:
            return found
    whole = (target for target in find_symbols(sql, _IMPORTED, (file.id, "*")) if not target.qualname)
    reached = (_in_file(sql, target, parts, seen, depth - 1) for target in whole)
    return next((each for each in reached if each is not None), None)


def _of_class_named(sql: Sql, parts: Sequence[str]) -> SymbolRow | None:
    """An inherited method of a class."""
    owner = ".".join(parts[:-1])
    for row in find_symbols(sql, "WHERE s.qualname = ? ORDER BY f.path", (owner,)):
        found = _inherited(sql, row, parts[-1:], set(), DEEPEST) if row.kind in _CLASSES else None
        if found is not None:
            return found
    return None


def _member(sql: Sql, of: SymbolRow, parts: Sequence[str], seen: _Seen, depth: int) -> SymbolRow | None:
    """A symbol of a file or a class by its dotted name; None if it was searched already."""
    if (of.id, tuple(parts)) in seen:
        return None
    seen.add((of.id, tuple(parts)))
    qualname = ".".join((of.qualname, *parts) if of.qualname else parts)
    where = "WHERE f.path = ? AND s.qualname = ? ORDER BY s.line_end - s.line_start DESC, s.line_start LIMIT 1"
    found = find_symbols(sql, where, (of.path, qualname))
    if found:
        return found[0]
    if of.qualname:
        return _inherited(sql, of, parts, seen, depth)
    owners = find_symbols(sql, where, (of.path, ".".join(parts[:-1]))) if len(parts) > 1 else []
    return next((row for owner in owners if (row := _inherited(sql, owner, parts[-1:], seen, depth)) is not None), None)


def _inherited(sql: Sql, of: SymbolRow, parts: Sequence[str], seen: _Seen, depth: int) -> SymbolRow | None:
    for base in _bases(sql, of) if depth else ():
        found = _member(sql, base, parts, seen, depth - 1)
        if found is not None:
            return found
    return None


def _bases(sql: Sql, of: SymbolRow) -> Iterator[SymbolRow]:
    where = "WHERE s.id IN (SELECT target FROM edges WHERE source = ? AND type IN ('inherits', 'implements'))"
    yield from find_symbols(sql, where, (of.id,))
