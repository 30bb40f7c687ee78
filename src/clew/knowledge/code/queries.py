"""Queries that need no text search: the symbols that a name means, and files.

Definitions of one qualname in one file, such as overloads, are one symbol; so are a declaration in a C header and its
definition. A name may be re-exported (`package.name` for a symbol that the package imports from one of its files) or
inherited (`Class.method` for a method of a base class): the edges of imports have the names that they give.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.file_content import BINARY
from clew.knowledge.code.files import kind_of
from clew.knowledge.code.linking.imports import HEADER_SUFFIXES, family
from clew.knowledge.code.models import (
    CUT,
    FILE_KIND,
    CodeRef,
    FileInfo,
    LeftOutFile,
    LocatedFile,
    SymbolRow,
    check_ref,
    name_parts,
    readings,
    short_ref,
)
from clew.knowledge.code.rows import find_symbols, read_files
from clew.knowledge.code.search.search_index import FileHit
from clew.lazy_pattern import lazy_pattern
from clew.sqlite_file import Sql

SHOWN = 5
"""Definitions that one answer shows, or an error names."""
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
"""The order of definitions of one name: stubs and overloads come after the implementation."""
_FOLDER_STEMS = frozenset(("__init__", "mod", "lib", "main", "index"))
_BY_FOLDER = frozenset(("go", "java"))
"""Languages whose packages are folders: the name of the file is not part of a qualified name."""
_FRAME = lazy_pattern(r'File "([^"\n]{1,300})", line (\d{1,7}), in (\w{1,200})')
_MAX_TRACE, _MAX_FRAMES = 20_000, 100


# -- symbols -------------------------------------------------------------------------------------------------------
DEEPEST = 8
"""The limit for chains of re-exports, and for levels of base classes."""
MOST_FILES = 20
_MODULES = (
    "/__init__.py", ".py", "/__init__.pyi", ".pyi", "/index.ts", ".ts", "/index.js", ".js", "/src/lib.rs", "/mod.rs",
    ".rs",
)  # fmt: skip
_CLASSES = ("class", "interface")
_IMPORTED = "WHERE s.id IN (SELECT target FROM edges WHERE source = ? AND type IN ('imports', 'exports') AND name = ?)"
_NAMED_SO = "WHERE s.qualname != '' AND s.id IN (SELECT target FROM edges WHERE name = ? AND name != '')"
_Seen = set[tuple[int, tuple[str, ...]]]
"""The symbols already searched for a name. This ends cycles of classes or files that refer to each other."""


def get_symbol(sql: Sql, ref: str) -> SymbolRow:
    """The symbol or file of a reference, or the innermost symbol around its line. Raises NotFound, and InvalidInput for
    a name that several symbols have."""
    found = get_symbols(sql, ref)
    exact = [row for row in found if row.qualname == ref] if len(found) > 1 else found
    if len(exact) != 1:
        raise too_many(ref, found)
    return exact[0]


def get_symbols(sql: Sql, ref: str) -> list[SymbolRow]:
    """The symbols that a reference or a name may mean: exact spelling first, and tests and examples last. Raises
    NotFound, with similar names, and InvalidInput for a text that cannot be a name."""
    check_ref(ref)
    name = ref.strip()
    found = _find_placed(sql, name) or _find_by_name(sql, name)
    if not found and name.startswith("#"):
        found = _find_by_name(sql, name.lstrip("#"))
    if not found:
        raise NotFound("code", ref[:200], hint=suggest(sql, name))
    return found


def too_many(ref: str, found: Sequence[SymbolRow]) -> InvalidInput:
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
    """The file and its symbols in their order. Raises NotFound, and InvalidInput for a text that cannot be a path."""
    check_ref(path)
    where = "WHERE f.path = ? ORDER BY s.qualname != '', s.line_start, s.id"
    rows = find_symbols(sql, where, (path.removeprefix("code:").removeprefix("./"),))
    if not rows:
        raise NotFound("file", path[:200])
    return rows


def locate_hit(sql: Sql, text: str, hit: FileHit) -> LocatedFile | None:
    """A file that matches a text, with the function that a traceback in the text names, or the best matching symbol;
    None if the file is gone."""
    row = _find_traced(sql, text, hit.path) or find_place(sql, hit.path, hit.name) or find_place(sql, hit.path, "")
    if row is None:
        return None
    return LocatedFile(
        path=row.path, score=hit.score, blob=row.blob, line=row.line_start, symbol=row.qualname, why=hit.why
    )


def _find_traced(sql: Sql, text: str, path: str) -> SymbolRow | None:
    """The function of the innermost frame. If several functions have its name, the one around the line, or else the
    first, because the line may belong to another version."""
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
            return definitions_of(sql, found)[:1]
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
    """Find symbols by the end of a qualified name in exact spelling, then by reexports, then in any case."""
    parts = name_parts(name)
    if not parts:
        return []
    rows = find_named(sql, name, _MAX_NAMED)
    same = [row for row in rows if row.name == parts[-1]]
    if not same:
        passed = [find_reexported(sql, None, parts)] if len(parts) > 1 else find_renamed(sql, parts[0])
        if any(passed):
            return [definitions_of(sql, row)[0] for row in passed if row is not None]
    found = [group[0] for group in _grouped(same or rows)]
    return sorted(found, key=lambda row: (row.qualname != name, kind_of(row.path, row.qualname)))


def definitions_of(sql: Sql, row: SymbolRow) -> list[SymbolRow]:
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
