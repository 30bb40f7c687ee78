"""Calls by a name whose target is unknown, grouped by their likely owner.

There are no edges for these calls: they are read from the facts of the files. The receiver's name and the imports of
the file tell which symbol of the name a call likely means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from posixpath import basename, dirname, splitext

import msgspec

from clew.knowledge.code.linking.file_names import FileNames, with_dots
from clew.knowledge.code.linking.imports import family
from clew.knowledge.code.linking.names import COMMON, IMPLICIT
from clew.knowledge.code.models import FILE_KIND, FileFacts, NamedCall, ReferenceFact, SymbolRow
from clew.knowledge.code.python_calls.summary import FlowSummary
from clew.knowledge.code.refs import node_id
from clew.knowledge.code.rows import decode_facts, find_summary, find_symbols
from clew.sqlite_file import Sql
from clew.trail.search.text import split_word

MAX_OWNERS = 200
LONGEST_ABBREVIATION = 4
INITIAL, PART, HEAD, WHOLE, PLURAL, NEAR = 0.5, 1.0, 2.0, 1.0, 2.5, 0.25
"""How much the receiver's name says for an owner: an initial, a word of the owner's name, its last word; in addition if
it covers the whole name, if both are plural, and if the file imports the owner."""

_FILES = (
    "SELECT f.path, s.id, b.facts FROM files f JOIN blobs b ON b.blob = f.blob AND b.language = f.language"
    f" JOIN symbols s ON s.file = f.id AND s.kind = '{FILE_KIND}'"
    " WHERE f.left_out = '' AND instr(b.facts, ?) > 0 ORDER BY f.path"
)
_RESOLVED = (
    "SELECT f.path, e.line FROM symbols t JOIN edges e ON e.target = t.id AND e.type = 'calls'"
    " JOIN symbols s ON s.id = e.source JOIN files f ON f.id = s.file WHERE t.name = ?"
    " AND (NOT e.guess OR t.id IN (SELECT value FROM json_each(?)))"
)
_IMPORTED = (
    "SELECT e.line, f.path FROM edges e JOIN symbols t ON t.id = e.target JOIN files f ON f.id = t.file"
    " WHERE e.source = ? AND e.type = 'imports'"
)
_CALLABLE = "s.kind IN ('function', 'method', 'class', 'interface')"
_ROOTS = frozenset(("crate", "super", "self"))
"""First parts of a path to a function of Rust."""
_OWN = frozenset(("self", "cls", "super"))
_decode_summary = msgspec.msgpack.Decoder(FlowSummary).decode


def find_unresolved(sql: Sql, rows: Sequence[SymbolRow]) -> list[NamedCall]:
    """The calls that may be of one of these symbols of one name: likely ones first, the rest grouped by likely owner.

    Reading a property is a call. Calls with a known target and calls of names from outside the project are left out.
    """
    name, is_property = rows[0].name, any(_is_property(sql, row) for row in rows)
    resolved = set(sql.execute(_RESOLVED, (name, json.dumps([row.id for row in rows]))))
    families = {family(row.language) for row in rows}
    owners = _Owners(sql, name, rows)
    found: dict[tuple[str, int, str], NamedCall] = {}
    for path, file, encoded in sql.execute(_FILES, (name.encode(),)).fetchall():
        facts = decode_facts(encoded)
        if family(facts.language) not in families:
            continue
        imports = _Imports(sql, file, path, facts)
        for call, receiver in _calls_named(facts, name, is_property):
            is_open = (path, call.line) not in resolved and any(_may_be(row, call, facts, imports) for row in rows)
            if is_open:
                likely = owners.find(receiver, imports)
                owner = node_id(likely.path, likely.qualname).removeprefix("code:") if likely else ""
                is_likely = likely is not None and likely.id in owners.asked
                named = NamedCall(path=path, line=call.line, caller=call.inside, owner=owner, is_likely=is_likely)
                found.setdefault((path, call.line, call.inside), named)
    return sorted(
        found.values(), key=lambda call: (not call.is_likely, not call.owner, call.owner, call.path, call.line)
    )


class _Imports:
    """The imports of one file: which names come from outside the project, and which files it knows."""

    def __init__(self, sql: Sql, file: int, path: str, facts: FileFacts) -> None:
        self._aliases = FileNames(facts).aliases
        found = sql.execute(_IMPORTED, (file,)).fetchall()
        self._lines = {line for line, _ in found}
        self._folder = None if facts.language == "python" else dirname(path)
        self._paths = {path, *(target for _, target in found)}

    def has(self, name: str) -> bool:
        return name in self._aliases

    def is_outside(self, name: str) -> bool:
        items = self._aliases.get(name, ())
        return bool(items) and not any(item.line in self._lines for item in items)

    def is_near(self, path: str) -> bool:
        """Whether the file imports a file or its package, or is next to it where that is enough."""
        packages = (dirname(known) for known in self._paths if basename(known).startswith("__init__."))
        return (
            path in self._paths
            or dirname(path) == self._folder
            or any(path.startswith(f"{folder}/") for folder in packages)
        )


class _Owners:
    """The symbols of one name, and the one that a call likely means."""

    def __init__(self, sql: Sql, name: str, rows: Sequence[SymbolRow]) -> None:
        self.asked = {row.id for row in rows}
        where = f"WHERE s.lower = ? AND {_CALLABLE} ORDER BY f.path LIMIT {MAX_OWNERS}"
        families = {family(row.language) for row in rows}
        found = {row.id: row for row in (*rows, *find_symbols(sql, where, (name.lower(),)))}
        self._rows = [row for row in found.values() if row.name == name and family(row.language) in families]
        self._is_common = name in COMMON
        self._words = {row.id: _owner_words(row) for row in self._rows}
        self._only = len({tuple(words) for words in self._words.values()}) == 1

    def find(self, receiver: str, imports: _Imports) -> SymbolRow | None:
        """The likeliest owner, one of those asked for if several are equal; None without evidence."""
        scores = {row.id: self._score(receiver, row, imports) for row in self._rows}
        best = max(scores.values(), default=0.0)
        if not best:
            return self._rows[0] if self._only and not self._is_common and not receiver else None
        likeliest = [row for row in self._rows if scores[row.id] == best]
        return next((row for row in likeliest if row.id in self.asked), likeliest[0])

    def _score(self, receiver: str, owner: SymbolRow, imports: _Imports) -> float:
        """How much the receiver's name says for an owner; for a name that built-in types have, all of it must match."""
        words, parts = _words(receiver), self._words[owner.id]
        if not words or not parts:
            return 0.0
        near = NEAR if imports.is_near(owner.path) else 0.0
        if len(words[-1]) == 1:
            is_initial = words[-1] in (parts[0][0], parts[-1][0])
            return INITIAL + near if is_initial and near and not self._is_common else 0.0
        if not any(_stands_for(words[-1], part) for part in parts):
            return 0.0
        score = HEAD if _stands_for(words[-1], parts[-1]) else PART
        is_whole = all(any(_stands_for(word, part) for word in words) for part in parts)
        if self._is_common and not is_whole:
            return 0.0
        is_plural = _is_plural(receiver) and _is_plural(owner.qualname.rpartition(".")[0])
        return score + near + WHOLE * is_whole + PLURAL * is_plural


def _owner_words(row: SymbolRow) -> list[str]:
    """The words of the class around a method, or of a function's module."""
    owner = row.qualname.rpartition(".")[0].rpartition(".")[2]
    return _words(owner or splitext(basename(row.path))[0])


def _words(name: str) -> list[str]:
    return [_singular(part) for part in split_word(name.strip("_@$#"))]


def _singular(word: str) -> str:
    return word[:-1] if _is_plural(word) else word


def _is_plural(name: str) -> bool:
    return len(name) > 3 and name.endswith("s") and not name.endswith("ss")


def _stands_for(word: str, part: str) -> bool:
    """Whether a word is another one or abbreviates it: `req` and `ctx` for `request` and `context`."""
    if word == part:
        return True
    if not 2 <= len(word) <= LONGEST_ABBREVIATION or word[0] != part[0] or len(word) >= len(part):
        return False
    letters = iter(part)
    return all(letter in letters for letter in word)


def _calls_named(facts: FileFacts, name: str, is_property: bool) -> Iterator[tuple[ReferenceFact, str]]:
    """The calls by a name, or the reads of a property, each with the name of its receiver."""
    kinds = ("call", "decorate") if facts.language == "python" else ("call",)
    for reference in facts.references:
        if name not in reference.target:
            continue
        parts = with_dots(reference.target).split(".")
        if is_property and name in parts[1:]:
            yield reference, parts[parts.index(name, 1) - 1]
        elif not is_property and reference.kind in kinds and parts[-1] == name:
            yield reference, parts[-2] if len(parts) > 1 else ""


def _is_property(sql: Sql, row: SymbolRow) -> bool:
    encoded = find_summary(sql, row.blob, row.language) if row.language == "python" else None
    functions = _decode_summary(encoded).functions if encoded else ()
    return any(function.qualname == row.qualname and function.kind == "property" for function in functions)


def _may_be(row: SymbolRow, call: ReferenceFact, facts: FileFacts, imports: _Imports) -> bool:
    """Whether a call can mean a symbol of this kind: a method needs a receiver, a function only modules before it.

    In Python, calls on the same object are known as far as its classes are in the project.
    """
    target = call.target.replace("::", ".")
    first, _, rest = with_dots(target).partition(".")
    if imports.is_outside(first) or (
        facts.language == "python" and first in _OWN and "." in call.inside and "." not in rest
    ):
        return False
    is_member = "." in row.qualname
    if "." not in target:
        return not is_member or facts.language in IMPLICIT
    return is_member or imports.has(first) or first in _ROOTS
