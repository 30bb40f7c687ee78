"""Questions to the tables of code that need no text search: symbols by how they begin, neighbours, files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from clew.errors import NotFound
from clew.knowledge.code.edges import Hop, follow
from clew.knowledge.code.go_interfaces import find_implementers
from clew.knowledge.code.models import CUT
from clew.knowledge.code.path_kinds import ASIDE, TEST, kind_of
from clew.knowledge.code.queries import find_definition, spellings
from clew.knowledge.code.refs import check_ref, is_text, node_id
from clew.knowledge.code.rows import SymbolRow, find_symbols
from clew.knowledge.code.secret_files import BINARY
from clew.knowledge.code.store import Sql
from clew.knowledge.code.views import FileInfo, LeftOut, Link, to_node

MAX_LINKS = 2_000
"""So many neighbours are followed at most."""


class Reached(NamedTuple):
    """A neighbour, the edge and number of steps by which it was first reached, and all lines where that is used."""

    row: SymbolRow
    hop: Hop
    depth: int
    lines: tuple[int, ...]


def find_prefixed(sql: Sql, prefix: str, limit: int) -> list[SymbolRow]:
    """Symbols whose name begins so, the shortest first."""
    if not is_text(prefix):
        return []
    low = prefix.lower()
    where = "WHERE s.lower > ? AND s.lower < ? AND s.qualname != '' ORDER BY length(s.lower), f.path LIMIT ?"
    return find_symbols(sql, where, (low, f"{low}\U0010ffff", limit))


def find_in_file(sql: Sql, path: str) -> list[SymbolRow]:
    """The symbols of a file in their order, the file itself first. Raises NotFound, and InvalidInput for what can be no
    path."""
    check_ref(path)
    for spelling in spellings(path.removeprefix("code:").removeprefix("./")):
        rows = find_symbols(sql, "WHERE f.path = ? ORDER BY s.qualname != '', s.line_start, s.id", (spelling,))
        if rows:
            return rows
    raise NotFound("file", path[:200])


def find_linked(sql: Sql, start: SymbolRow, types: Collection[str], depth: int, *, backwards: bool) -> list[Reached]:
    """What is linked to a symbol, in all that it is defined by, within some steps, nearest first, each once. For a
    file, its symbols count as one."""
    near = _numbers(sql, start)
    seen = set(near)
    hops: list[tuple[list[Hop], int]] = []
    for step in range(1, depth + 1):
        fresh: dict[int, list[Hop]] = {}
        for hop in follow(sql, near, types, backwards=backwards):
            if hop.far not in seen:
                fresh.setdefault(hop.far, []).append(hop)
        seen |= fresh.keys()
        hops += [(found, step) for found in fresh.values()]
        near = list(fresh)
        if not near or len(hops) >= MAX_LINKS:
            break
    rows = find_by_number(sql, [found[0].far for found, _ in hops[:MAX_LINKS]])
    reached = [
        Reached(rows[found[0].far], found[0], step, _lines(found)) for found, step in hops if found[0].far in rows
    ]
    return [*reached, *_implementers(sql, start, seen)] if backwards and "implements" in types else reached


def _implementers(sql: Sql, start: SymbolRow, seen: Collection[int]) -> list[Reached]:
    """What implements an interface without saying so."""
    types, is_sure = find_implementers(sql, start)
    return [
        Reached(row, Hop(start.id, row.id, "implements", row.line_start, not is_sure), 1, (row.line_start,))
        for row in types
        if row.id not in seen
    ]


def _numbers(sql: Sql, start: SymbolRow) -> list[int]:
    if start.qualname:
        return list(find_definition(sql, start).ids)
    return [row.id for row in find_in_file(sql, start.path)]


def _lines(hops: Sequence[Hop]) -> tuple[int, ...]:
    """Lines of the edges that are as sure as the first, and of its type."""
    first = hops[0]
    return tuple(sorted({hop.line for hop in hops if (hop.is_guess, hop.type) == (first.is_guess, first.type)}))


def to_links(start: SymbolRow, found: Sequence[Reached]) -> list[Link]:
    """What was reached from a symbol, as it is shown: nearest first, what is certain before guesses, and the product
    before what stands beside it and its tests."""
    ids = {each.row.id: node_id(each.row.path, each.row.qualname) for each in found}
    start_id = node_id(start.path, start.qualname)
    return [
        Link(
            node=to_node(each.row),
            edge_type=each.hop.type,
            depth=each.depth,
            via=ids.get(each.hop.near, start_id),
            line=each.hop.line,
            is_guess=bool(each.hop.is_guess),
            lines=each.lines,
        )
        for each in sorted(found, key=_place_of)
    ]


def _place_of(each: Reached) -> tuple[int, bool, int, str, int]:
    kind = kind_of(each.row.path)
    return (
        each.depth,
        bool(each.hop.is_guess),
        2 if kind & TEST else int(bool(kind & ASIDE)),
        each.row.path,
        each.hop.line,
    )


def find_by_number(sql: Sql, ids: Sequence[int]) -> dict[int, SymbolRow]:
    found: dict[int, SymbolRow] = {}
    for at in range(0, len(ids), 500):
        some = ids[at : at + 500]
        marks = ", ".join("?" * len(some))
        found |= {row.id: row for row in find_symbols(sql, f"WHERE s.id IN ({marks})", some)}
    return found


def list_left_out(sql: Sql) -> list[LeftOut]:
    """The files that are not known, or known in part only because they are too much, by path; without binary ones."""
    query = (
        "SELECT path, left_out FROM files WHERE left_out NOT IN ('', ?) UNION ALL SELECT f.path, ? FROM files f"
        " JOIN blobs b ON b.blob = f.blob AND b.language = f.language WHERE f.left_out = '' AND instr(b.facts, ?) > 0"
        " ORDER BY 1"
    )
    rows = sql.execute(query, (BINARY, CUT, CUT.encode()))
    return [LeftOut(path=path, reason=reason) for path, reason in rows]


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
