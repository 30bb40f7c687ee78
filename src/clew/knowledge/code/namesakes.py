"""Calls of a name that could not be told apart: nothing but the name says whose they are. Read from the facts of the
files, as there are no edges for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from clew.knowledge.code.file_names import FileNames, with_dots
from clew.knowledge.code.imports import family
from clew.knowledge.code.models import FILE_KIND, FileFacts, NamedCall, Reference, SymbolRow
from clew.knowledge.code.names import IMPLICIT
from clew.knowledge.code.rows import decode_facts
from clew.knowledge.code.store import Sql

_FILES = (
    "SELECT f.path, s.id, b.facts FROM files f JOIN blobs b ON b.blob = f.blob AND b.language = f.language"
    f" JOIN symbols s ON s.file = f.id AND s.kind = '{FILE_KIND}'"
    " WHERE f.left_out = '' AND instr(b.facts, ?) > 0 ORDER BY f.path"
)
_TOLD = (
    "SELECT f.path, e.line FROM symbols t JOIN edges e ON e.target = t.id AND e.type = 'calls'"
    " JOIN symbols s ON s.id = e.source JOIN files f ON f.id = s.file WHERE t.name = ?"
    " AND (NOT e.guess OR t.id IN (SELECT value FROM json_each(?)))"
)
_ROOTS = frozenset(("crate", "super", "self"))
"""What the path to a function of Rust may begin with."""


def find_namesakes(sql: Sql, rows: Sequence[SymbolRow]) -> list[NamedCall]:
    """The calls that may be of one of these symbols, all of one name, and of which it is not known, by file and line.
    Left out are those of which it is known whom they call, and what comes from outside of the project."""
    name = rows[0].name
    told = set(sql.execute(_TOLD, (name, json.dumps([row.id for row in rows]))))
    families = {family(row.language) for row in rows}
    found: set[NamedCall] = set()
    for path, file, encoded in sql.execute(_FILES, (name.encode(),)).fetchall():
        facts = decode_facts(encoded)
        if family(facts.language) in families:
            outside = _Outside(sql, file, facts)
            calls = _calls_named(facts, name)
            found.update(
                NamedCall(path=path, line=call.line, caller=call.inside)
                for call in calls
                if (path, call.line) not in told and any(_may_be(row, call, facts, outside) for row in rows)
            )
    return sorted(found, key=lambda call: (call.path, call.line))


class _Outside:
    """Which names of a file come from outside of the project: their imports lead to no file of it."""

    def __init__(self, sql: Sql, file: int, facts: FileFacts) -> None:
        self._aliases = FileNames(facts).aliases
        known = sql.execute("SELECT line FROM edges WHERE source = ? AND type = 'imports'", (file,))
        self._lines = {line for (line,) in known}

    def has(self, name: str) -> bool:
        items = self._aliases.get(name, ())
        return bool(items) and not any(item.line in self._lines for item in items)

    def is_imported(self, name: str) -> bool:
        return name in self._aliases


def _calls_named(facts: FileFacts, name: str) -> Iterator[Reference]:
    kinds = ("call", "decorate") if facts.language == "python" else ("call",)
    for reference in facts.references:
        if reference.kind in kinds and with_dots(reference.target).rpartition(".")[2] == name:
            yield reference


def _may_be(row: SymbolRow, call: Reference, facts: FileFacts, outside: _Outside) -> bool:
    """Whether what is written can mean a symbol of this kind: a method has something before it, a function has only
    modules there."""
    target = call.target.replace("::", ".")
    first = with_dots(target).partition(".")[0]
    if outside.has(first):
        return False
    is_member = "." in row.qualname
    if "." not in target:
        return not is_member or facts.language in IMPLICIT
    return is_member or outside.is_imported(first) or first in _ROOTS
