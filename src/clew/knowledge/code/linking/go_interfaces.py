"""Go types that implement an interface: they have all its methods, without any declaration."""

from __future__ import annotations

from collections import defaultdict
from posixpath import dirname

from clew.knowledge.code.models import SymbolRow
from clew.knowledge.code.rows import find_symbols
from clew.sqlite_file import Sql

MIN_METHODS = 2
"""An implementation is certain if the interface has at least this many methods."""
MAX_METHODS = 100


def find_implementers(sql: Sql, interface: SymbolRow) -> tuple[list[SymbolRow], bool]:
    """The types with all methods of a Go interface, and whether that is certain; no types for any other symbol."""
    if (interface.language, interface.kind) != ("go", "interface"):
        return [], True
    methods = _methods(sql, interface)
    if not 0 < len(methods) <= MAX_METHODS:
        return [], True
    having: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    named = f"WHERE f.language = 'go' AND s.kind = 'method' AND s.lower IN ({', '.join('?' * len(methods))})"
    for row in find_symbols(sql, named, [name.lower() for name in methods]):
        if row.name in methods:
            having[dirname(row.path), row.qualname.rpartition(".")[0]].add(row.name)
    whole = {place for place, names in having.items() if names == methods}
    found = [row for name in sorted({name for _, name in whole}) for row in _types(sql, name)]
    return [row for row in found if (dirname(row.path), row.qualname) in whole], len(methods) >= MIN_METHODS


def _methods(sql: Sql, interface: SymbolRow) -> set[str]:
    """The names of its methods, including those of embedded interfaces."""
    found, waiting, seen = set[str](), [interface], {interface.id}
    while waiting:
        known = waiting.pop()
        own = "WHERE f.path = ? AND s.kind = 'method' AND s.qualname = ? || '.' || s.name"
        found.update(row.name for row in find_symbols(sql, own, (known.path, known.qualname)))
        above = (
            "WHERE s.kind = 'interface' AND s.id IN (SELECT target FROM edges WHERE source = ? AND type = 'inherits')"
        )
        for row in find_symbols(sql, above, (known.id,)):
            if row.id not in seen:
                seen.add(row.id)
                waiting.append(row)
    return found


def _types(sql: Sql, name: str) -> list[SymbolRow]:
    return find_symbols(sql, "WHERE f.language = 'go' AND s.kind = 'class' AND s.qualname = ?", (name,))
