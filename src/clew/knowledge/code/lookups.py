"""Questions to the tables of code that need no text search: symbols by reference and by name, neighbours, files."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.edges import Hop, follow
from clew.knowledge.code.refs import CodeRef, node_id, readings
from clew.knowledge.code.rows import SymbolRow, find_symbols
from clew.knowledge.code.store import Sql
from clew.knowledge.code.views import FileInfo

MAX_LINKS = 2_000
"""So many neighbours are followed at most."""

_SHOWN = 5
_LONGEST_FIRST = "ORDER BY s.line_end - s.line_start DESC, s.line_start LIMIT 1"


class Reached(NamedTuple):
    """A neighbour, and the edge and number of steps by which it was first reached."""

    row: SymbolRow
    hop: Hop
    depth: int


def get_symbol(sql: Sql, ref: str) -> SymbolRow:
    """The symbol, the file, or the innermost symbol around the line that a reference names; a name alone will do where
    only one has it. Raises NotFound, and InvalidInput for a name that several have."""
    for reading in readings(ref):
        for path in _spellings(reading.path):
            if found := _find(sql, reading._replace(path=path)):
                return found
    named = find_named(sql, ref)
    if not named:
        raise NotFound("code", ref[:200])
    if len(named) > 1 and named[0].qualname != ref:
        shown = ", ".join(node_id(row.path, row.qualname) for row in named[:_SHOWN])
        raise InvalidInput("symbol", f"{len(named)} have the name {ref[:200]!r}", hint=f"Name one: {shown}")
    return named[0]


def find_place(sql: Sql, path: str, qualname: str) -> SymbolRow | None:
    """The symbol of a path and a qualname, exactly; without a qualname, the file."""
    return _find(sql, CodeRef(path, qualname))


def find_named(sql: Sql, name: str, limit: int = 50) -> list[SymbolRow]:
    """Symbols of a name, without regard to case, the same spelling first. Of a dotted one, the parts before the last
    are enclosing names or the end of a module's path."""
    parts = [part for part in name.replace("::", ".").replace("/", ".").removesuffix("()").split(".") if part]
    if not parts:
        return []
    rows = find_symbols(sql, "WHERE s.lower = ? ORDER BY f.path, s.line_start LIMIT 2000", (parts[-1].lower(),))
    wanted = [part.lower() for part in parts]
    fitting = [row for row in rows if row.qualname and _ends_with(row, wanted)]
    fitting.sort(key=lambda row: (row.qualname != name, row.name != parts[-1]))
    return fitting[:limit]


def find_prefixed(sql: Sql, prefix: str, limit: int) -> list[SymbolRow]:
    """Symbols whose name begins so, the shortest first."""
    low = prefix.lower()
    where = "WHERE s.lower > ? AND s.lower < ? AND s.qualname != '' ORDER BY length(s.lower), f.path LIMIT ?"
    return find_symbols(sql, where, (low, f"{low}\U0010ffff", limit))


def find_in_file(sql: Sql, path: str) -> list[SymbolRow]:
    """The symbols of a file in their order, the file itself first. Raises NotFound."""
    for spelling in _spellings(path.removeprefix("code:").removeprefix("./")):
        rows = find_symbols(sql, "WHERE f.path = ? ORDER BY s.qualname != '', s.line_start, s.id", (spelling,))
        if rows:
            return rows
    raise NotFound("file", path[:200])


def find_linked(sql: Sql, start: SymbolRow, types: Collection[str], depth: int, *, backwards: bool) -> list[Reached]:
    """What is linked to a symbol within some steps, nearest first, each once. For a file, its symbols count as one."""
    near = [row.id for row in find_in_file(sql, start.path)] if not start.qualname else [start.id]
    seen = set(near)
    hops: list[tuple[Hop, int]] = []
    for step in range(1, depth + 1):
        fresh = {hop.far: hop for hop in reversed(follow(sql, near, types, backwards=backwards)) if hop.far not in seen}
        seen |= fresh.keys()
        hops += [(hop, step) for hop in fresh.values()]
        near = list(fresh)
        if not near or len(hops) >= MAX_LINKS:
            break
    rows = find_by_number(sql, [hop.far for hop, _ in hops[:MAX_LINKS]])
    return [Reached(rows[hop.far], hop, step) for hop, step in hops if hop.far in rows]


def find_by_number(sql: Sql, ids: Sequence[int]) -> dict[int, SymbolRow]:
    found: dict[int, SymbolRow] = {}
    for at in range(0, len(ids), 500):
        some = ids[at : at + 500]
        marks = ", ".join("?" * len(some))
        found |= {row.id: row for row in find_symbols(sql, f"WHERE s.id IN ({marks})", some)}
    return found


def list_files(sql: Sql) -> list[FileInfo]:
    """All files whose text is known, by path."""
    query = (
        "SELECT f.path, f.blob, f.language, f.lines, f.size, count(s.id) - 1 FROM files f"
        " JOIN symbols s ON s.file = f.id WHERE f.left_out = '' GROUP BY f.id ORDER BY f.path"
    )
    return [
        FileInfo(path=path, blob=blob.hex(), language=language, lines=lines, size=size, symbols=symbols)
        for path, blob, language, lines, size, symbols in sql.execute(query)
    ]


def _find(sql: Sql, ref: CodeRef) -> SymbolRow | None:
    if ref.line is None:
        where = f"WHERE f.path = ? AND s.qualname = ? {_LONGEST_FIRST}"
        return _first(find_symbols(sql, where, (ref.path, ref.qualname)))
    where = (
        "WHERE f.path = ? AND s.line_start <= ? AND s.line_end >= ? ORDER BY s.line_end - s.line_start, s.id LIMIT 1"
    )
    return _first(find_symbols(sql, where, (ref.path, ref.line, ref.line)))


def _spellings(path: str) -> list[str]:
    """A path as the tree has it: some systems write accents in two ways."""
    forms = dict.fromkeys((path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path)))
    return list(forms)


def _ends_with(row: SymbolRow, wanted: list[str]) -> bool:
    stem = row.path.rpartition(".")[0].removesuffix("/__init__").lower()
    return [*stem.split("/"), *row.qualname.lower().split(".")][-len(wanted) :] == wanted


def _first(rows: Iterable[SymbolRow]) -> SymbolRow | None:
    return next(iter(rows), None)
