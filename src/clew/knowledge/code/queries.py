"""What a name stands for. Definitions of one qualname in one file, such as overloads, are one symbol; so are what a
header of C declares and the file that defines it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from posixpath import basename, splitext
from typing import NamedTuple

from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.imports import HEADER_SUFFIXES, family
from clew.knowledge.code.path_kinds import kind_of
from clew.knowledge.code.reexports import find_passed_on, find_renamed
from clew.knowledge.code.refs import CodeRef, check_name, check_ref, is_text, name_parts, readings, short_ref
from clew.knowledge.code.rows import SymbolRow, find_symbols
from clew.knowledge.code.store import Sql
from clew.knowledge.code.suggesting import suggest

SHOWN = 5
"""So many definitions are told apart in one answer, or named in an error."""

_MOST = 2_000
_LONGEST_FIRST = "ORDER BY s.line_end - s.line_start DESC, s.line_start"
_FOLDER_STEMS = frozenset(("__init__", "mod", "lib", "main", "index"))
_BY_FOLDER = frozenset(("go", "java"))
"""Languages whose packages are folders: the name of the file is no part of a name."""


class Definition(NamedTuple):
    """One symbol: `row` is the definition that is shown, `ids` the numbers of all that it has."""

    row: SymbolRow
    ids: tuple[int, ...]


def get_symbol(sql: Sql, ref: str) -> SymbolRow:
    """The symbol, the file, or the innermost symbol around the line that a reference names; a name alone will do where
    only one has it. Raises NotFound, and InvalidInput for a name that several have."""
    found = get_definitions(sql, ref)
    exact = [each for each in found if each.row.qualname == ref] if len(found) > 1 else found
    if len(exact) != 1:
        raise too_many(ref, found)
    return exact[0].row


def get_definitions(sql: Sql, ref: str) -> list[Definition]:
    """The symbols that a reference or a name may mean: the same spelling before others, and what belongs to the product
    before tests and examples. Raises NotFound, with names that are close, and InvalidInput for what can be no name."""
    check_ref(ref)
    found = _find_placed(sql, ref.strip()) or _find_by_name(sql, ref.strip())
    if not found:
        raise NotFound("code", ref[:200], hint=suggest(sql, ref.strip()))
    return found


def too_many(ref: str, found: Sequence[Definition]) -> InvalidInput:
    """Says how to name one of several."""
    shown = ", ".join(short_ref(each.row.path, each.row.qualname) for each in found[:SHOWN])
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return InvalidInput("symbol", f"{len(found):,} have the name {ref[:200]!r}", hint=f"Name one: {shown}{more}")


def find_definition(sql: Sql, row: SymbolRow) -> Definition:
    """All that a symbol is defined and declared by."""
    if not row.qualname:
        return Definition(row, (row.id,))
    also = " OR f.language IN ('c', 'cpp')" if family(row.language) == "c" else ""
    where = f"WHERE s.qualname = ? AND (f.path = ?{also}) {_LONGEST_FIRST}"
    found = find_symbols(sql, where, (row.qualname, row.path))
    return next((each for each in _grouped(found) if row.id in each.ids), Definition(row, (row.id,)))


def find_place(sql: Sql, path: str, qualname: str) -> SymbolRow | None:
    """The symbol of a path and a qualname, exactly; without a qualname, the file."""
    return _find(sql, CodeRef(path, qualname))


def find_named(sql: Sql, name: str, limit: int = 50) -> list[SymbolRow]:
    """Symbols of a name, without regard to case, the same spelling first. Of a dotted one, the parts before the last
    are enclosing names, or the end of a module's path or of a package's."""
    parts = name_parts(name) if is_text(name) else []
    if not parts:
        return []
    rows = find_symbols(sql, f"WHERE s.lower = ? ORDER BY f.path, s.line_start LIMIT {_MOST}", (parts[-1].lower(),))
    wanted = [part.lower() for part in parts]
    fitting = _longest([row for row in rows if row.qualname and _ends_with(row, wanted)])
    fitting.sort(key=lambda row: (row.qualname != name, row.name != parts[-1]))
    return fitting[:limit]


def _longest(rows: Sequence[SymbolRow]) -> list[SymbolRow]:
    """Of rows of one qualname in one file, such as overloads, the one that does the work: the longest, the last of
    several."""
    found: dict[tuple[str, str], SymbolRow] = {}
    for row in rows:
        known = found.setdefault((row.path, row.qualname), row)
        if _length(row)[0] >= _length(known)[0]:
            found[row.path, row.qualname] = row
    return list(found.values())


def spellings(path: str) -> list[str]:
    """A path as the tree has it: some systems write accents in two ways."""
    forms = dict.fromkeys((path, unicodedata.normalize("NFC", path), unicodedata.normalize("NFD", path)))
    return list(forms)


def _find_placed(sql: Sql, ref: str) -> list[Definition]:
    """What a path, a line of it, or a name in it means; the name may be without those around it, or passed on."""
    for reading in readings(ref):
        for path in spellings(reading.path):
            if found := _find(sql, reading._replace(path=path)):
                return [find_definition(sql, found)]
    for reading in readings(ref):
        for path in spellings(reading.path) if reading.qualname and reading.line is None else ():
            if inner := _find_within(sql, path, reading.qualname):
                return inner
    return []


def _find_within(sql: Sql, path: str, name: str) -> list[Definition]:
    file = _find(sql, CodeRef(path))
    if file is None:
        return []
    inner = find_symbols(sql, f"WHERE f.path = ? AND s.name = ? {_LONGEST_FIRST}", (path, name))
    passed = find_passed_on(sql, file, name_parts(name)) if not inner else None
    return _grouped(inner or ([passed] if passed is not None else []))


def _find_by_name(sql: Sql, name: str) -> list[Definition]:
    """By the end of a qualified name as it is spelt, then by what packages pass on or rename, then without regard to
    case."""
    check_name(name)
    parts = name_parts(name)
    if not parts:
        return []
    rows = find_named(sql, name, _MOST)
    same = [row for row in rows if row.name == parts[-1]]
    if not same and (passed := _passed_on(sql, parts)):
        return [find_definition(sql, row) for row in passed]
    if not rows and name.startswith("#"):
        return _find_by_name(sql, name.lstrip("#"))
    return sorted(_grouped(same or rows), key=lambda each: (each.row.qualname != name, kind_of(each.row.path)))


def _passed_on(sql: Sql, parts: Sequence[str]) -> list[SymbolRow]:
    if len(parts) == 1:
        return find_renamed(sql, parts[0])
    found = find_passed_on(sql, None, parts)
    return [] if found is None else [found]


def _grouped(rows: Sequence[SymbolRow]) -> list[Definition]:
    """Rows as symbols, in the order of the first of each."""
    places: dict[tuple[str, str], list[SymbolRow]] = {}
    for row in rows:
        places.setdefault((row.path, row.qualname), []).append(row)
    homes = {place: _home(place, places) for place in places}
    merged: dict[tuple[str, str], list[SymbolRow]] = {}
    for place in sorted(places, key=lambda place: homes[place] != place):  # definitions before declarations
        merged.setdefault(homes[place], []).extend(sorted(places[place], key=_length, reverse=True))
    return [Definition(found[0], tuple(row.id for row in found)) for found in merged.values()]


def _home(place: tuple[str, str], places: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Where what a header declares is defined: in the only file that does, or in the one that has its name."""
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
        return _first(find_symbols(sql, where, (ref.path, ref.qualname)))
    named = " AND s.qualname = ?" if ref.qualname else ""
    where = (
        f"WHERE f.path = ? AND s.line_start <= ? AND s.line_end >= ?{named}"
        " ORDER BY s.line_end - s.line_start, s.id LIMIT 1"
    )
    values = (ref.path, ref.line, ref.line, *([ref.qualname] if ref.qualname else []))
    return _first(find_symbols(sql, where, values))


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


def _first(rows: Iterable[SymbolRow]) -> SymbolRow | None:
    return next(iter(rows), None)
