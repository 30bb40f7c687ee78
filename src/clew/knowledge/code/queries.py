"""Questions to the tables that need no text search: the symbols that a name means, their neighbours, and files.

Definitions of one qualname in one file, such as overloads, are one symbol; so are a declaration in a C header and its
definition.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from posixpath import basename, splitext
from typing import NamedTuple

from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.go_interfaces import find_implementers
from clew.knowledge.code.imports import HEADER_SUFFIXES, family
from clew.knowledge.code.models import CUT, FileInfo, LeftOut, Link, SymbolRow, to_node
from clew.knowledge.code.path_kinds import ASIDE, TEST, kind_of
from clew.knowledge.code.reexports import find_reexported, find_renamed
from clew.knowledge.code.refs import CodeRef, check_name, check_ref, is_text, name_parts, node_id, readings, short_ref
from clew.knowledge.code.rows import Hop, find_hops, find_symbols
from clew.knowledge.code.secret_files import BINARY
from clew.knowledge.code.store import Sql

EDGE_TYPES = {
    "imports": ("imports",),
    "calls": ("calls",),
    "references": ("references",),
    "extends": ("inherits",),
    "implements": ("implements",),
}
SHOWN = 5
"""Definitions that one answer shows, or an error names."""
MAX_LINKS = 2_000
SUGGESTED = 3
MAX_COMPARED = 20_000
"""Names that suggestions compare."""

_MAX_NAMED = 2_000
_CLOSE = 0.75
_LONGEST_FIRST = "ORDER BY s.line_end - s.line_start DESC, s.line_start"
_FOLDER_STEMS = frozenset(("__init__", "mod", "lib", "main", "index"))
_BY_FOLDER = frozenset(("go", "java"))
"""Languages whose packages are folders: the name of the file is no part of a qualified name."""


class Definition(NamedTuple):
    """One symbol: the definition to show, and the numbers of all its definitions."""

    row: SymbolRow
    ids: tuple[int, ...]


class Reached(NamedTuple):
    """A neighbour, the edge and number of steps by which it was first reached, and all lines of that use."""

    row: SymbolRow
    hop: Hop
    depth: int
    lines: tuple[int, ...]


def get_symbol(sql: Sql, ref: str) -> SymbolRow:
    """The symbol or file of a reference, or the innermost symbol around its line. Raises NotFound, and InvalidInput for
    a name that several symbols have."""
    found = get_definitions(sql, ref)
    exact = [each for each in found if each.row.qualname == ref] if len(found) > 1 else found
    if len(exact) != 1:
        raise too_many(ref, found)
    return exact[0].row


def get_definitions(sql: Sql, ref: str) -> list[Definition]:
    """The symbols that a reference or a name may mean: exact spelling first, and tests and examples last. Raises
    NotFound, with similar names, and InvalidInput for a text that can be no name."""
    check_ref(ref)
    found = _find_placed(sql, ref.strip()) or _find_by_name(sql, ref.strip())
    if not found:
        raise NotFound("code", ref[:200], hint=_suggest(sql, ref.strip()))
    return found


def too_many(ref: str, found: Sequence[Definition]) -> InvalidInput:
    """The error for an ambiguous name, which shows how to name one symbol."""
    shown = ", ".join(short_ref(each.row.path, each.row.qualname) for each in found[:SHOWN])
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return InvalidInput("symbol", f"{len(found):,} have the name {ref[:200]!r}", hint=f"Name one: {shown}{more}")


def find_definition(sql: Sql, row: SymbolRow) -> Definition:
    """All definitions and declarations of a symbol."""
    if not row.qualname:
        return Definition(row, (row.id,))
    also = " OR f.language IN ('c', 'cpp')" if family(row.language) == "c" else ""
    where = f"WHERE s.qualname = ? AND (f.path = ?{also}) {_LONGEST_FIRST}"
    found = find_symbols(sql, where, (row.qualname, row.path))
    return next((each for each in _grouped(found) if row.id in each.ids), Definition(row, (row.id,)))


def find_place(sql: Sql, path: str, qualname: str) -> SymbolRow | None:
    """The symbol with exactly this path and qualname; without a qualname, the file."""
    return _find(sql, CodeRef(path, qualname))


def find_named(sql: Sql, name: str, limit: int = 50) -> list[SymbolRow]:
    """Symbols of a name in any case, exact spelling first. The parts of a dotted name before the last are enclosing
    names, or the end of the path of a module or package."""
    parts = name_parts(name) if is_text(name) else []
    if not parts:
        return []
    where = f"WHERE s.lower = ? ORDER BY f.path, s.line_start LIMIT {_MAX_NAMED}"
    wanted = [part.lower() for part in parts]
    longest: dict[tuple[str, str], SymbolRow] = {}
    for row in find_symbols(sql, where, (wanted[-1],)):
        if row.qualname and _ends_with(row, wanted):
            known = longest.setdefault((row.path, row.qualname), row)
            if _length(row)[0] >= _length(known)[0]:
                longest[row.path, row.qualname] = row
    return sorted(longest.values(), key=lambda row: (row.qualname != name, row.name != parts[-1]))[:limit]


def find_prefixed(sql: Sql, prefix: str, limit: int) -> list[SymbolRow]:
    """Symbols whose name starts with a prefix, the shortest first."""
    if not is_text(prefix):
        return []
    low = prefix.lower()
    where = "WHERE s.lower > ? AND s.lower < ? AND s.qualname != '' ORDER BY length(s.lower), f.path LIMIT ?"
    return find_symbols(sql, where, (low, f"{low}\U0010ffff", limit))


def find_in_file(sql: Sql, path: str) -> list[SymbolRow]:
    """The file and its symbols in their order. Raises NotFound, and InvalidInput for a text that can be no path."""
    check_ref(path)
    for spelling in _spellings(path.removeprefix("code:").removeprefix("./")):
        rows = find_symbols(sql, "WHERE f.path = ? ORDER BY s.qualname != '', s.line_start, s.id", (spelling,))
        if rows:
            return rows
    raise NotFound("file", path[:200])


def find_linked(sql: Sql, start: SymbolRow, types: Collection[str], depth: int, *, backwards: bool) -> list[Reached]:
    """The symbols within some steps of a symbol, nearest first, each once. For a file, its symbols count as one."""
    rows = [] if start.qualname else find_in_file(sql, start.path)
    near = list(find_definition(sql, start).ids) if start.qualname else [row.id for row in rows]
    seen = set(near)
    hops: list[tuple[list[Hop], int]] = []
    for step in range(1, depth + 1):
        fresh: dict[int, list[Hop]] = {}
        for hop in find_hops(sql, near, types, backwards=backwards):
            if hop.far not in seen:
                fresh.setdefault(hop.far, []).append(hop)
        seen |= fresh.keys()
        hops += [(found, step) for found in fresh.values()]
        near = list(fresh)
        if not near or len(hops) >= MAX_LINKS:
            break
    by_id = _find_by_id(sql, [found[0].far for found, _ in hops[:MAX_LINKS]])
    reached = [
        Reached(by_id[found[0].far], found[0], step, _lines(found)) for found, step in hops if found[0].far in by_id
    ]
    return [*reached, *_implementers(sql, start, seen)] if backwards and "implements" in types else reached


def _implementers(sql: Sql, start: SymbolRow, seen: Collection[int]) -> list[Reached]:
    """The types that implement an interface without naming it."""
    types, is_sure = find_implementers(sql, start)
    return [
        Reached(row, Hop(start.id, row.id, "implements", row.line_start, not is_sure), 1, (row.line_start,))
        for row in types
        if row.id not in seen
    ]


def _lines(hops: Sequence[Hop]) -> tuple[int, ...]:
    """The lines of the edges that are as certain as the first, and of its type."""
    first = hops[0]
    return tuple(sorted({hop.line for hop in hops if (hop.is_guess, hop.type) == (first.is_guess, first.type)}))


def _find_by_id(sql: Sql, ids: Sequence[int]) -> dict[int, SymbolRow]:
    found: dict[int, SymbolRow] = {}
    for at in range(0, len(ids), 500):
        some = ids[at : at + 500]
        found |= {row.id: row for row in find_symbols(sql, f"WHERE s.id IN ({', '.join('?' * len(some))})", some)}
    return found


def to_links(start: SymbolRow, found: Sequence[Reached]) -> list[Link]:
    """Neighbours as results: nearest first, certain before guessed, and code before examples before tests."""
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
        for each in sorted(found, key=_order)
    ]


def _order(each: Reached) -> tuple[int, bool, int, str, int]:
    kind = kind_of(each.row.path)
    aside = 2 if kind & TEST else int(bool(kind & ASIDE))
    return each.depth, bool(each.hop.is_guess), aside, each.row.path, each.hop.line


def edge_types(edge_type: str) -> tuple[str, ...]:
    """The stored types of edges. Raises InvalidInput."""
    if edge_type == "all":
        return tuple(name for names in EDGE_TYPES.values() for name in names)
    if edge_type not in EDGE_TYPES:
        raise InvalidInput(
            "edge_type", f"{edge_type[:80]!r} is none", hint=f"Types are {', '.join(EDGE_TYPES)} and all"
        )
    return EDGE_TYPES[edge_type]


def list_left_out(sql: Sql) -> list[LeftOut]:
    """The text files that are not indexed, or only in part because they are too large, by path."""
    query = (
        "SELECT path, left_out FROM files WHERE left_out NOT IN ('', ?) UNION ALL SELECT f.path, ? FROM files f"
        " JOIN blobs b ON b.blob = f.blob AND b.language = f.language WHERE f.left_out = '' AND instr(b.facts, ?) > 0"
        " ORDER BY 1"
    )
    rows = sql.execute(query, (BINARY, CUT, CUT.encode()))
    return [LeftOut(path=path, reason=reason) for path, reason in rows]


def list_files(sql: Sql) -> list[FileInfo]:
    """All indexed files by path."""
    query = (
        "SELECT f.path, f.blob, f.language, f.lines, f.size, count(s.id) - 1 FROM files f"
        " JOIN symbols s ON s.file = f.id WHERE f.left_out = '' GROUP BY f.id ORDER BY f.path"
    )
    return [
        FileInfo(path=path, blob=blob.hex(), language=language, lines=lines, size=size, symbols=symbols)
        for path, blob, language, lines, size, symbols in sql.execute(query)
    ]


def _spellings(path: str) -> list[str]:
    """A path in both Unicode normal forms: file systems differ in how they write accents."""
    return list(dict.fromkeys((path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path))))


def _find_placed(sql: Sql, ref: str) -> list[Definition]:
    """The symbols of a path, a line of it, or a name in it. The name may lack its enclosing names, or be reexported."""
    for reading in readings(ref):
        for path in _spellings(reading.path):
            if found := _find(sql, reading._replace(path=path)):
                return [find_definition(sql, found)]
    for reading in readings(ref):
        for path in _spellings(reading.path) if reading.qualname and reading.line is None else ():
            if inner := _find_within(sql, path, reading.qualname):
                return inner
    return []


def _find_within(sql: Sql, path: str, name: str) -> list[Definition]:
    file = _find(sql, CodeRef(path))
    if file is None:
        return []
    inner = find_symbols(sql, f"WHERE f.path = ? AND s.name = ? {_LONGEST_FIRST}", (path, name))
    passed = find_reexported(sql, file, name_parts(name)) if not inner else None
    return _grouped(inner or ([passed] if passed is not None else []))


def _find_by_name(sql: Sql, name: str) -> list[Definition]:
    """By the end of a qualified name in exact spelling, then by reexports, then in any case."""
    check_name(name)
    parts = name_parts(name)
    if not parts:
        return []
    rows = find_named(sql, name, _MAX_NAMED)
    same = [row for row in rows if row.name == parts[-1]]
    if not same and (passed := _find_reexported(sql, parts)):
        return [find_definition(sql, row) for row in passed]
    if not rows and name.startswith("#"):
        return _find_by_name(sql, name.lstrip("#"))
    return sorted(_grouped(same or rows), key=lambda each: (each.row.qualname != name, kind_of(each.row.path)))


def _find_reexported(sql: Sql, parts: Sequence[str]) -> list[SymbolRow]:
    if len(parts) == 1:
        return find_renamed(sql, parts[0])
    found = find_reexported(sql, None, parts)
    return [] if found is None else [found]


def _grouped(rows: Sequence[SymbolRow]) -> list[Definition]:
    """Rows grouped to symbols, in the order of the first row of each."""
    places: dict[tuple[str, str], list[SymbolRow]] = {}
    for row in rows:
        places.setdefault((row.path, row.qualname), []).append(row)
    homes = {place: _home(place, places) for place in places}
    merged: dict[tuple[str, str], list[SymbolRow]] = {}
    for place in sorted(places, key=lambda place: homes[place] != place):  # definitions before declarations
        merged.setdefault(homes[place], []).extend(sorted(places[place], key=_length, reverse=True))
    return [Definition(found[0], tuple(row.id for row in found)) for found in merged.values()]


def _home(place: tuple[str, str], places: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The definition of a declaration in a header: the only one, or the one in the file of the same name."""
    path, qualname = place
    if not path.endswith(HEADER_SUFFIXES):
        return place
    homes = [other for other in places if other[1] == qualname and not other[0].endswith(HEADER_SUFFIXES)]
    beside = [other for other in homes if _stem(other[0]) == _stem(path)]
    chosen = homes if len(homes) == 1 else beside
    return chosen[0] if chosen else place


def _find(sql: Sql, ref: CodeRef) -> SymbolRow | None:
    if ref.line is None:
        where = f"WHERE f.path = ? AND s.qualname = ? {_LONGEST_FIRST} LIMIT 1"
        found = find_symbols(sql, where, (ref.path, ref.qualname))
    else:
        named = " AND s.qualname = ?" if ref.qualname else ""
        where = f"WHERE f.path = ? AND s.line_start <= ? AND s.line_end >= ?{named}"
        values = (ref.path, ref.line, ref.line, *([ref.qualname] if ref.qualname else []))
        found = find_symbols(sql, f"{where} ORDER BY s.line_end - s.line_start, s.id LIMIT 1", values)
    return found[0] if found else None


def _ends_with(row: SymbolRow, wanted: list[str]) -> bool:
    *folders, stem = row.path.rpartition(".")[0].lower().split("/")
    names = row.qualname.lower().split(".")
    whole = [*folders, *([] if stem == "__init__" else [stem]), *names]
    if whole[-len(wanted) :] == wanted:
        return True
    is_folder = row.language in _BY_FOLDER or stem in _FOLDER_STEMS
    return is_folder and [*folders, *names][-len(wanted) :] == wanted


def _length(row: SymbolRow) -> tuple[int, int]:
    return row.line_end - row.line_start, -row.line_start


def _stem(path: str) -> str:
    return splitext(basename(path))[0]


def _suggest(sql: Sql, ref: str) -> str:
    """A sentence with the most similar names; empty if none is similar."""
    found = _suggest_elsewhere(sql, ref) or _suggest_similar(sql, ref)
    return f"Did you mean {' or '.join(found)}?" if found else ""


def _suggest_elsewhere(sql: Sql, ref: str) -> list[str]:
    """Symbols of the same name in other files."""
    query = "SELECT DISTINCT f.path, s.qualname FROM symbols s JOIN files f ON f.id = s.file WHERE s.qualname = ?"
    names = [reading.qualname for reading in readings(ref) if reading.qualname and reading.line is None]
    rows = sql.execute(f"{query} ORDER BY f.path LIMIT ?", (names[0], SUGGESTED)) if names else ()
    return [short_ref(path, qualname) for path, qualname in rows]


def _suggest_similar(sql: Sql, ref: str) -> list[str]:
    """Names that differ by a letter or two; of a dotted name, those of the same owner first."""
    owner, _, name = ref.rpartition("#")[2].replace("::", ".").rpartition(".")
    if owner:
        query = "SELECT DISTINCT qualname FROM symbols WHERE abs(length(qualname) - ?) <= 2 AND qualname LIKE '%.%'"
        if found := _most_similar(sql, query, f"{owner.rpartition('.')[2]}.{name}"):
            return found
    return _most_similar(
        sql, "SELECT DISTINCT name FROM symbols WHERE abs(length(lower) - ?) <= 2 AND qualname != ''", name
    )


def _most_similar(sql: Sql, query: str, wanted: str) -> list[str]:
    known = {name.lower(): name for (name,) in sql.execute(f"{query} LIMIT ?", (len(wanted), MAX_COMPARED))}
    return [known[low] for low in difflib.get_close_matches(wanted.lower(), known, SUGGESTED, _CLOSE)]
