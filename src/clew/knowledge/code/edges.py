"""Edges between symbols as rows of `code.db`. What one file uses is written together, and only when it is new; a file
whose edges are as they were found has a row in `linked`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from clew.knowledge.code.linking import CodeEdge
from clew.knowledge.code.store import Sql

_AT_ONCE = 50
"""With more files than this, the numbers of all symbols are read together."""


class Hop(NamedTuple):
    """An edge that was followed: the number of the symbol it was followed from, the one reached, type, line, and
    whether only a name speaks for it."""

    near: int
    far: int
    type: str
    line: int
    is_guess: bool


class _Symbol(NamedTuple):
    id: int
    kind: str


class _Symbols(Protocol):
    def get(self, place: tuple[str, str], /) -> _Symbol | None: ...


def write_edges(sql: Sql, by_path: Mapping[str, Iterable[CodeEdge]]) -> int:
    """Put the edges of some files in the place of those that they had; how many files had others. A file with an edge
    to what is not known counts as not linked."""
    symbols = _all_symbols(sql) if len(by_path) > _AT_ONCE else _SomeSymbols(sql)
    changed = 0
    for path, edges in by_path.items():
        found = sql.execute(
            "SELECT f.id, l.digest FROM files f LEFT JOIN linked l ON l.file = f.id WHERE f.path = ?", (path,)
        )
        for file, before in found.fetchall():
            rows, is_whole = _to_rows(edges, symbols)
            digest = hashlib.sha1(repr(rows).encode(), usedforsecurity=False).digest()
            if before != digest:
                _replace(sql, file, rows, digest if is_whole else None)
                changed += 1
    return changed


def _replace(sql: Sql, file: int, rows: list[tuple[int, str, int, int, bool]], digest: bytes | None) -> None:
    sql.execute("DELETE FROM edges WHERE source IN (SELECT id FROM symbols WHERE file = ?)", (file,))
    sql.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, ?)", rows)
    sql.execute("DELETE FROM linked WHERE file = ?", (file,))
    if digest is not None:
        sql.execute("INSERT INTO linked VALUES (?, ?)", (file, digest))


def _to_rows(edges: Iterable[CodeEdge], symbols: _Symbols) -> tuple[list[tuple[int, str, int, int, bool]], bool]:
    """Edges by number, each line of them once, and whether all ends were known."""
    found: dict[tuple[int, str, int, int], bool] = {}
    is_whole = True
    for edge in edges:
        source = symbols.get((edge.source_path, edge.source_qualname))
        target = symbols.get((edge.target_path, edge.target_qualname))
        if source is None or target is None:
            is_whole = False
            continue
        key = (source.id, _stored_type(edge.type, source, target), target.id, edge.line)
        found[key] = found.get(key, True) and edge.is_guess
    return sorted((*key, is_guess) for key, is_guess in found.items()), is_whole


def _stored_type(type: str, source: _Symbol, target: _Symbol) -> str:
    """What takes over from an interface and is none itself implements it."""
    is_implementing = type == "inherits" and target.kind == "interface" and source.kind != "interface"
    return "implements" if is_implementing else type


def unlinked(sql: Sql) -> set[str]:
    """Files of which edges are missing."""
    query = "SELECT path FROM files WHERE left_out = '' AND id NOT IN (SELECT file FROM linked)"
    return {path for (path,) in sql.execute(query)}


def follow(sql: Sql, ids: Collection[int], types: Collection[str], *, backwards: bool) -> list[Hop]:
    """The edges from some symbols, or to them, in the order of what they reach. No types means all."""
    near, far = ("target", "source") if backwards else ("source", "target")
    chosen = " AND type IN (SELECT value FROM json_each(?))" if types else ""
    values = [json.dumps(list(ids)), *([json.dumps(list(types))] if types else [])]
    query = (
        f"SELECT {near}, {far}, type, line, guess FROM edges WHERE {near} IN (SELECT value FROM json_each(?)){chosen}"
    )
    return sorted(
        (Hop(*row) for row in sql.execute(query, values)), key=lambda hop: (hop.far, hop.is_guess, hop.near, hop.line)
    )


_PLACES = "SELECT f.path, s.qualname, s.id, s.kind FROM symbols s JOIN files f ON f.id = s.file"
_SHORT_FIRST = "ORDER BY s.line_end - s.line_start, s.line_start DESC"


def _all_symbols(sql: Sql) -> dict[tuple[str, str], _Symbol]:
    """Every symbol by path and qualname; of several of one name, the longest."""
    rows = sql.execute(f"{_PLACES} {_SHORT_FIRST}")
    return {(path, qualname): _Symbol(id, kind) for path, qualname, id, kind in rows}


class _SomeSymbols:
    """The same, read file by file when they are asked for."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._files: dict[str, dict[str, _Symbol]] = {}

    def get(self, place: tuple[str, str], /) -> _Symbol | None:
        path, qualname = place
        if path not in self._files:
            rows = self._sql.execute(f"{_PLACES} WHERE f.path = ? {_SHORT_FIRST}", (path,))
            self._files[path] = {name: _Symbol(id, kind) for _, name, id, kind in rows}
        return self._files[path].get(qualname)
