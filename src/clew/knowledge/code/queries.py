"""Questions to the tables that need no text search: the symbols that a name means, their neighbours and callers, and
files.

Definitions of one qualname in one file, such as overloads, are one symbol; so are a declaration in a C header and its
definition.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.file_content import BINARY
from clew.knowledge.code.files import ASIDE, TEST, kind_of
from clew.knowledge.code.linking.go_interfaces import find_implementers
from clew.knowledge.code.linking.imports import HEADER_SUFFIXES, family
from clew.knowledge.code.linking.reexports import find_reexported, find_renamed
from clew.knowledge.code.linking.unresolved_calls import find_unresolved
from clew.knowledge.code.models import (
    CUT,
    CalledSymbol,
    Callers,
    FileInfo,
    LeftOutFile,
    LocatedFile,
    SymbolLink,
    SymbolRow,
    to_node,
)
from clew.knowledge.code.refs import CodeRef, check_ref, name_parts, node_id, readings, short_ref
from clew.knowledge.code.rows import EdgeHop, find_hops, find_symbols, read_files
from clew.knowledge.code.search.search_index import FileHit
from clew.sqlite_file import Sql

EDGE_TYPES = {
    "imports": ("imports",),
    "calls": ("calls",),
    "references": ("references",),
    "extends": ("inherits",),
    "implements": ("implements",),
    "all": ("imports", "calls", "references", "inherits", "implements"),
}
SHOWN = 5
"""Definitions that one answer shows, or an error names."""
MAX_LINKS = 2_000
MAX_PLACES = 50
"""Unresolved calls that are listed."""
SUGGESTED = 3
MAX_COMPARED = 20_000
"""Names that suggestions compare."""

_MAX_NAMED = 2_000
_NAMES_FROM = (
    "SELECT DISTINCT lower FROM symbols WHERE lower >= ? AND lower < ? AND abs(length(lower) - ?) <= 2"
    " AND qualname != '' LIMIT ?"
)
_CLOSE = 0.75
_LONGEST_FIRST = "ORDER BY s.line_end - s.line_start DESC, s.line_start DESC"
"""Of definitions of one name, stubs and overloads come after the implementation."""
_FOLDER_STEMS = frozenset(("__init__", "mod", "lib", "main", "index"))
_BY_FOLDER = frozenset(("go", "java"))
"""Languages whose packages are folders: the name of the file is no part of a qualified name."""
_CALLED = frozenset(("function", "method", "class", "interface"))
_CONSTRUCTORS = frozenset(("constructor", "initialize"))
"""Methods of JavaScript and Ruby that run when their class is called."""
_FRAME = re.compile(r'File "([^"\n]{1,300})", line (\d{1,7}), in (\w{1,200})')
_MAX_TRACE, _MAX_FRAMES = 20_000, 100


# -- symbols -------------------------------------------------------------------------------------------------------


def get_symbol(sql: Sql, ref: str) -> SymbolRow:
    """The symbol or file of a reference, or the innermost symbol around its line. Raises NotFound, and InvalidInput for
    a name that several symbols have."""
    found = get_symbols(sql, ref)
    exact = [row for row in found if row.qualname == ref] if len(found) > 1 else found
    if len(exact) != 1:
        raise _too_many(ref, found)
    return exact[0]


def get_symbols(sql: Sql, ref: str) -> list[SymbolRow]:
    """The symbols that a reference or a name may mean: exact spelling first, and tests and examples last. Raises
    NotFound, with similar names, and InvalidInput for a text that can be no name."""
    check_ref(ref)
    name = ref.strip()
    found = _find_placed(sql, name) or _find_by_name(sql, name)
    if not found and name.startswith("#"):
        found = _find_by_name(sql, name.lstrip("#"))
    if not found:
        raise NotFound("code", ref[:200], hint=suggest(sql, name))
    return found


def _too_many(ref: str, found: Sequence[SymbolRow]) -> InvalidInput:
    """The error for an ambiguous name, which shows how to name one symbol."""
    shown = ", ".join(short_ref(row.path, row.qualname) for row in found[:SHOWN])
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return InvalidInput("symbol", f"{len(found):,} have the name {ref[:200]!r}", hint=f"Name one: {shown}{more}")


def find_place(sql: Sql, path: str, qualname: str) -> SymbolRow | None:
    """The symbol with exactly this path and qualname; without a qualname, the file."""
    where = f"WHERE f.path = ? AND s.qualname = ? {_LONGEST_FIRST} LIMIT 1"
    return next(iter(find_symbols(sql, where, (path, qualname))), None)


def find_named(sql: Sql, name: str, limit: int = 50) -> list[SymbolRow]:
    """Symbols of a name in any case, exact spelling first. The parts of a dotted name before the last are enclosing
    names, or the end of the path of a module or package."""
    parts = name_parts(name)
    if not parts:
        return []
    wanted = [part.lower() for part in parts]
    where = f"WHERE s.lower = ? AND s.qualname != '' {_LONGEST_FIRST} LIMIT {_MAX_NAMED}"
    longest: dict[tuple[str, str], SymbolRow] = {}
    for row in find_symbols(sql, where, wanted[-1:]):
        if _ends_with(row, wanted):
            longest.setdefault((row.path, row.qualname), row)
    in_order = sorted(longest.values(), key=lambda row: (row.path, row.line_start))
    return sorted(in_order, key=lambda row: (row.qualname != name, row.name != parts[-1]))[:limit]


def find_prefixed(sql: Sql, prefix: str, limit: int) -> list[SymbolRow]:
    """Symbols whose name starts with a prefix, the shortest first."""
    low = prefix.lower()
    where = "WHERE s.lower > ? AND s.lower < ? AND s.qualname != '' ORDER BY length(s.lower), f.path LIMIT ?"
    return find_symbols(sql, where, (low, f"{low}\U0010ffff", limit)) if name_parts(prefix) else []


def find_in_file(sql: Sql, path: str) -> list[SymbolRow]:
    """The file and its symbols in their order. Raises NotFound, and InvalidInput for a text that can be no path."""
    check_ref(path)
    where = "WHERE f.path = ? ORDER BY s.qualname != '', s.line_start, s.id"
    rows = find_symbols(sql, where, (path.removeprefix("code:").removeprefix("./"),))
    if not rows:
        raise NotFound("file", path[:200])
    return rows


def locate_hit(sql: Sql, text: str, hit: FileHit) -> LocatedFile | None:
    """A file that was found for a text, with the function that a traceback in the text names, or the symbol that fits
    best; None if the file is gone."""
    row = _find_traced(sql, text, hit.path) or find_place(sql, hit.path, hit.name) or find_place(sql, hit.path, "")
    if row is None:
        return None
    return LocatedFile(
        path=row.path, score=hit.score, blob=row.blob, line=row.line_start, symbol=row.qualname, why=hit.why
    )


def _find_traced(sql: Sql, text: str, path: str) -> SymbolRow | None:
    """The function of the innermost frame. Of several of its name the one around the line, or the first: the line may
    be that of another version."""
    for frame, line, name in reversed(_FRAME.findall(text[:_MAX_TRACE])[-_MAX_FRAMES:]):
        place = "/" + frame.replace("\\", "/")
        if place.endswith(f"/{path}") or f"/{path}".endswith(place):
            where = "WHERE f.path = ? AND s.name = ? ORDER BY ? NOT BETWEEN s.line_start AND s.line_end, s.line_start"
            if rows := find_symbols(sql, where, (path, name, int(line))):
                return rows[0]
    return None


def _find_placed(sql: Sql, ref: str) -> list[SymbolRow]:
    """The symbols of a path, a line of it, or a name in it. The name may lack its enclosing names, or be reexported."""
    for reading in readings(ref):
        if found := _find_around(sql, reading) if reading.line else find_place(sql, reading.path, reading.qualname):
            return _definitions_of(sql, found)[:1]
    for reading in readings(ref):
        if reading.qualname and (inner := _find_within(sql, reading)):
            return inner
    return []


def _find_around(sql: Sql, ref: CodeRef) -> SymbolRow | None:
    where = "WHERE f.path = ? AND ? BETWEEN s.line_start AND s.line_end ORDER BY s.line_end - s.line_start, s.id"
    return next(iter(find_symbols(sql, f"{where} LIMIT 1", (ref.path, ref.line))), None)


def _find_within(sql: Sql, ref: CodeRef) -> list[SymbolRow]:
    file, parts = find_place(sql, ref.path, ""), name_parts(ref.qualname)
    if file is None or not parts:
        return []
    inner = find_symbols(sql, f"WHERE f.path = ? AND s.name = ? {_LONGEST_FIRST}", (ref.path, ref.qualname))
    passed = find_reexported(sql, file, parts) if not inner else None
    return [passed] if passed is not None else [rows[0] for rows in _grouped(inner)]


def _find_by_name(sql: Sql, name: str) -> list[SymbolRow]:
    """By the end of a qualified name in exact spelling, then by reexports, then in any case."""
    parts = name_parts(name)
    if not parts:
        return []
    rows = find_named(sql, name, _MAX_NAMED)
    same = [row for row in rows if row.name == parts[-1]]
    if not same:
        passed = [find_reexported(sql, None, parts)] if len(parts) > 1 else find_renamed(sql, parts[0])
        if any(passed):
            return [_definitions_of(sql, row)[0] for row in passed if row is not None]
    found = [group[0] for group in _grouped(same or rows)]
    return sorted(found, key=lambda row: (row.qualname != name, kind_of(row.path, row.qualname)))


def _definitions_of(sql: Sql, row: SymbolRow) -> list[SymbolRow]:
    """All definitions and declarations of a symbol, the one to show first."""
    if not row.qualname:
        return [row]
    also = " OR f.language IN ('c', 'cpp')" if family(row.language) == "c" else ""
    where = f"WHERE s.qualname = ? AND (f.path = ?{also}) {_LONGEST_FIRST}"
    found = find_symbols(sql, where, (row.qualname, row.path))
    return next((group for group in _grouped(found) if row in group), [row])


def _grouped(rows: Sequence[SymbolRow]) -> list[list[SymbolRow]]:
    """Rows grouped to symbols, in the order of the first row of each; definitions before declarations in headers."""
    groups: dict[tuple[str, str], list[SymbolRow]] = {}
    for row in sorted(rows, key=_is_declared):
        home = _home(row, groups) if _is_declared(row) else (row.path, row.qualname)
        groups.setdefault(home, []).append(row)
    return list(groups.values())


def _is_declared(row: SymbolRow) -> bool:
    return row.path.endswith(HEADER_SUFFIXES)


def _home(row: SymbolRow, places: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The definition of a declaration in a header: the only one, or the one in the file of the same name."""
    homes = [(path, name) for path, name in places if name == row.qualname and not path.endswith(HEADER_SUFFIXES)]
    beside = [place for place in homes if PurePosixPath(place[0]).stem == PurePosixPath(row.path).stem]
    chosen = homes if len(homes) == 1 else beside
    return chosen[0] if chosen else (row.path, row.qualname)


def _ends_with(row: SymbolRow, wanted: list[str]) -> bool:
    *folders, stem = row.path.rpartition(".")[0].lower().split("/")
    names = row.qualname.lower().split(".")
    whole = [*folders, *([] if stem == "__init__" else [stem]), *names]
    if whole[-len(wanted) :] == wanted:
        return True
    is_folder = row.language in _BY_FOLDER or stem in _FOLDER_STEMS
    return is_folder and [*folders, *names][-len(wanted) :] == wanted


def suggest(sql: Sql, ref: str) -> str:
    """A sentence with symbols whose name differs by a letter or two, or only in the path; empty if there are none."""
    wanted = (name_parts(ref.rpartition("#")[2]) or [""])[-1].lower()
    if not wanted:
        return ""
    names: list[str] = []
    for start in dict.fromkeys((wanted[:1], wanted[1:2], f"_{wanted[:1]}")):  # a first letter may be wrong or missing
        names += [
            name for (name,) in sql.execute(_NAMES_FROM, (start, f"{start}\U0010ffff", len(wanted), MAX_COMPARED))
        ]
    close = difflib.get_close_matches(wanted, names, SUGGESTED, _CLOSE)
    found = [row for name in close for row in find_named(sql, name, 1)]
    return f"Did you mean {' or '.join(short_ref(row.path, row.qualname) for row in found)}?" if found else ""


# -- links ---------------------------------------------------------------------------------------------------------


def find_links(sql: Sql, start: SymbolRow, types: Collection[str], depth: int, *, backwards: bool) -> list[SymbolLink]:
    """The symbols within some steps of a symbol, each once: nearest first, certain before guessed, and code before
    examples before tests. A symbol that uses itself is one of them. For a file, its symbols count as one."""
    reached = _reach(sql, start, types, depth, backwards=backwards)
    implementers, is_sure = find_implementers(sql, start) if backwards and "implements" in types else ([], True)
    for row in implementers:  # types that do not name the interface
        reached.setdefault(row.id, (1, [EdgeHop(start.id, row.id, "implements", row.line_start, not is_sure)]))
    where = "WHERE s.id IN (SELECT value FROM json_each(?))"
    rows = find_symbols(sql, where, (json.dumps(list(reached)[:MAX_LINKS]),))
    origin = node_id(start.path, start.qualname)
    ids = defaultdict(lambda: origin, {row.id: node_id(row.path, row.qualname) for row in rows})
    return sorted((_to_link(row, *reached[row.id], ids) for row in rows), key=_order)


def _reach(
    sql: Sql, start: SymbolRow, types: Collection[str], depth: int, *, backwards: bool
) -> dict[int, tuple[int, list[EdgeHop]]]:
    """The numbers of the symbols within some steps, each with the number of steps and the edges of the last step."""
    own = {row.id for row in (_definitions_of(sql, start) if start.qualname else find_in_file(sql, start.path))}
    near, seen = [*own], set() if start.qualname else own
    reached: dict[int, tuple[int, list[EdgeHop]]] = {}
    for step in range(1, depth + 1):
        fresh: dict[int, list[EdgeHop]] = {}
        for hop in find_hops(sql, near, types, backwards=backwards):
            far = start.id if hop.far in own else hop.far
            if far not in seen:
                fresh.setdefault(far, []).append(hop)
        seen = seen | own | fresh.keys()
        reached |= {far: (step, hops) for far, hops in fresh.items()}
        near = list(fresh)
        if not near or len(reached) >= MAX_LINKS:
            break
    return reached


def _to_link(row: SymbolRow, depth: int, hops: Sequence[EdgeHop], ids: Mapping[int, str]) -> SymbolLink:
    """The lines are those of the edges that are as certain as the first, and of its type."""
    first = hops[0]
    lines = {hop.line for hop in hops if (hop.is_guess, hop.type) == (first.is_guess, first.type)}
    return SymbolLink(
        node=to_node(row),
        edge_type=first.type,
        depth=depth,
        via=ids[first.near],
        line=first.line,
        is_guess=bool(first.is_guess),
        lines=tuple(sorted(lines)),
    )


def _order(link: SymbolLink) -> tuple[int, bool, int, str, int]:
    path = link.node.path or ""
    kind = kind_of(path, link.node.name)
    return link.depth, link.is_guess, 2 if kind & TEST else int(bool(kind & ASIDE)), path, link.line


def find_callers(sql: Sql, ref: str, depth: int) -> Callers:
    """The callers of each symbol that a reference may mean, within `depth` steps, and calls that only share the name.
    A constructor that has the name of its class is shown only if it has callers of its own.

    Raises NotFound, and InvalidInput if more than a few symbols have the name.
    """
    found = get_symbols(sql, ref)
    found = [row for row in found if row.kind in _CALLED] or found
    if len(found) > SHOWN:
        raise _too_many(ref, found)
    symbols = [CalledSymbol(node=to_node(row), callers=_callers_of(sql, row, depth)) for row in found]
    classes = {node_id(row.path, row.qualname) for row in found}
    symbols = [each for each in symbols if each.callers or each.node.id.rpartition(".")[0] not in classes]
    unresolved = find_unresolved(sql, found) if found[0].qualname else []
    is_certain = any(not link.is_guess for symbol in symbols for link in symbol.callers)
    return Callers(
        certain=is_certain or not (unresolved or any(symbol.callers for symbol in symbols)),
        symbols=symbols,
        untold=len(unresolved),
        places=unresolved[:MAX_PLACES],
        owners=dict(Counter(call.owner for call in unresolved).most_common()),
    )


def _callers_of(sql: Sql, row: SymbolRow, depth: int) -> list[SymbolLink]:
    """The callers of a symbol; of a constructor without any, those of its class."""
    found = find_links(sql, row, ("calls",), depth, backwards=True)
    owner = find_place(sql, row.path, row.qualname.rpartition(".")[0]) if row.name in _CONSTRUCTORS else None
    return found or (_callers_of(sql, owner, depth) if owner is not None and owner.qualname else [])


# -- files ---------------------------------------------------------------------------------------------------------


def list_left_out(sql: Sql) -> list[LeftOutFile]:
    """The text files that are not indexed, or only in part because they are too large, by path."""
    query = (
        "SELECT path, left_out FROM files WHERE left_out NOT IN ('', ?) UNION ALL SELECT f.path, ? FROM files f"
        " JOIN blobs b ON b.blob = f.blob AND b.language = f.language WHERE f.left_out = '' AND instr(b.facts, ?) > 0"
        " ORDER BY 1"
    )
    rows = sql.execute(query, (BINARY, CUT, CUT.encode()))
    return [LeftOutFile(path=path, reason=reason) for path, reason in rows]


def list_files(sql: Sql) -> list[FileInfo]:
    """All indexed files by path."""
    return sorted((file for file in read_files(sql).values() if not file.left_out), key=lambda file: file.path)
