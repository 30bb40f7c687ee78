"""The symbols around a symbol: those that it uses, those that use it, and calls by its name whose target is unknown.

There are no edges for unknown targets: such calls are read from the facts of the files. The receiver's name and the
imports of the file show which symbol of the name a call likely means. Go types implement an interface without a
declaration: they have all its methods.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from posixpath import basename, dirname, splitext

import msgspec

from clew.knowledge.code.files import ASIDE, TEST, kind_of
from clew.knowledge.code.linking.imports import FileNames, family, with_dots
from clew.knowledge.code.linking.names import COMMON, IMPLICIT
from clew.knowledge.code.models import (
    FILE_KIND,
    CalledSymbol,
    Callers,
    FileFacts,
    NamedCall,
    ReferenceFact,
    SymbolLink,
    SymbolRow,
    node_id,
    to_node,
)
from clew.knowledge.code.python_calls.summary import FlowSummary
from clew.knowledge.code.queries import SHOWN, definitions_of, find_in_file, find_place, get_symbols, too_many
from clew.knowledge.code.rows import EdgeHop, decode_facts, find_hops, find_summary, find_symbols
from clew.knowledge.code.search.passages import MAX_TEXT
from clew.sqlite_file import Sql
from clew.trail.search.text import split_word

EDGE_TYPES = {
    "imports": ("imports",),
    "calls": ("calls",),
    "references": ("references",),
    "extends": ("inherits",),
    "implements": ("implements",),
    "all": ("imports", "calls", "references", "inherits", "implements"),
}
MAX_LINKS = 2_000
MAX_PLACES = 50
"""Unresolved calls that are listed."""
MAX_OWNERS = 200
LONGEST_ABBREVIATION = 4
INITIAL, WORD, PLURAL, NEAR = 0.5, 1.0, 1.0, 0.25
"""How strongly the receiver's name indicates an owner: by an initial, or by a word of the owner's name; additional
scores if both are plural, and if the file imports the owner."""
MIN_METHODS = 2
"""An implementation is certain if the interface has at least this many methods."""
MAX_METHODS = 100

_CALLED = frozenset(("function", "method", "class", "interface"))
_CONSTRUCTORS = frozenset(("constructor", "initialize"))
"""Methods of JavaScript and Ruby that run when their class is called."""
_FILES = (
    "SELECT f.path, f.id, b.facts FROM files f JOIN blobs b ON b.blob = f.blob AND b.language = f.language"
    " WHERE f.left_out = '' AND (f.size > ? OR f.path NOT IN (SELECT value FROM json_each(?)))"
    " AND instr(b.facts, ?) > 0 ORDER BY f.path"
)
_RESOLVED = (
    "SELECT f.path, e.line FROM symbols t JOIN edges e ON e.target = t.id AND e.type = 'calls'"
    " JOIN symbols s ON s.id = e.source JOIN files f ON f.id = s.file WHERE t.lower = ? AND t.name = ?"
    " AND (NOT e.guess OR t.id IN (SELECT value FROM json_each(?)))"
)
_IMPORTED = (
    "SELECT e.line, f.path FROM symbols s JOIN edges e ON e.source = s.id JOIN symbols t ON t.id = e.target"
    " JOIN files f ON f.id = t.file"
    f" WHERE s.file = ? AND s.qualname = '' AND s.kind = '{FILE_KIND}' AND e.type = 'imports'"
)
_CALLABLE = "s.kind IN ('function', 'method', 'class', 'interface')"
_ROOTS = frozenset(("crate", "super", "self"))
"""First parts of a path to a function of Rust."""
_OWN = frozenset(("self", "cls", "super"))


class _References(msgspec.Struct, frozen=True, array_like=True):
    """The language and the references of FileFacts; decoding the rest takes longer."""

    language: str
    symbols: msgspec.Raw
    imports: msgspec.Raw
    references: Sequence[ReferenceFact]


_decode_references = msgspec.msgpack.Decoder(_References).decode
_decode_summary = msgspec.msgpack.Decoder(FlowSummary).decode


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
    own = {row.id for row in (definitions_of(sql, start) if start.qualname else find_in_file(sql, start.path))}
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
    """Build the link to a reached symbol. Its lines come from the edges with the type and certainty of the first
    edge."""
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


def find_callers(sql: Sql, ref: str, depth: int, lacking: Callable[[str], Collection[str]]) -> Callers:
    """The callers of each symbol that a reference may mean, within `depth` steps, and calls that only share the name.
    A constructor that has the name of its class is shown only if it has callers of its own. `lacking` returns files
    whose first MAX_TEXT letters do not have a name.

    Raises NotFound, and InvalidInput if more than a few symbols have the name.
    """
    found = _called(sql, ref)
    symbols = [CalledSymbol(node=to_node(row), callers=_callers_of(sql, row, depth)) for row in found]
    classes = {node_id(row.path, row.qualname) for row in found}
    symbols = [each for each in symbols if each.callers or each.node.id.rpartition(".")[0] not in classes]
    unresolved = _calls_by_name(sql, found, lacking)
    is_certain = any(not link.is_guess for symbol in symbols for link in symbol.callers)
    return Callers(
        certain=is_certain or not (unresolved or any(symbol.callers for symbol in symbols)),
        symbols=symbols,
        untold=len(unresolved),
        places=unresolved[:MAX_PLACES],
        owners=dict(Counter(call.owner for call in unresolved).most_common()),
    )


def find_unresolved(sql: Sql, ref: str, lacking: Callable[[str], Collection[str]]) -> list[NamedCall]:
    """The calls that only share the name: the `places` of `find_callers`, without a search for callers."""
    return _calls_by_name(sql, _called(sql, ref), lacking)[:MAX_PLACES]


def _called(sql: Sql, ref: str) -> list[SymbolRow]:
    found = get_symbols(sql, ref)
    found = [row for row in found if row.kind in _CALLED] or found
    if len(found) > SHOWN:
        raise too_many(ref, found)
    return found


def _callers_of(sql: Sql, row: SymbolRow, depth: int) -> list[SymbolLink]:
    """The callers of a symbol. If a constructor has none, those of its class."""
    found = find_links(sql, row, ("calls",), depth, backwards=True)
    owner = find_place(sql, row.path, row.qualname.rpartition(".")[0]) if row.name in _CONSTRUCTORS else None
    return found or (_callers_of(sql, owner, depth) if owner is not None and owner.qualname else [])


def _calls_by_name(sql: Sql, rows: Sequence[SymbolRow], lacking: Callable[[str], Collection[str]]) -> list[NamedCall]:
    """The calls that may be of one of these symbols of one name: likely ones first, the rest grouped by likely owner.

    Reading a property is a call. Calls with a known target and calls of names from outside the project are left out.
    """
    if not rows[0].qualname:
        return []
    name, is_property = rows[0].name, any(_is_property(sql, row) for row in rows)
    resolved = set(sql.execute(_RESOLVED, (name.lower(), name, json.dumps([row.id for row in rows]))))
    families = {family(row.language) for row in rows}
    owners = _Owners(sql, name, rows)
    found: dict[tuple[str, int, str], NamedCall] = {}
    having = sql.execute(_FILES, (MAX_TEXT, json.dumps(list(lacking(name))), name.encode())).fetchall()
    for path, file, encoded in having:
        used = _decode_references(encoded)
        calls = [each for each in _calls_named(used, name, is_property) if (path, each[0].line) not in resolved]
        if not calls or family(used.language) not in families:
            continue
        imports = _Imports(sql, file, path, decode_facts(encoded))
        for call, receiver in calls:
            if any(_may_be(row, call, used.language, imports) for row in rows):
                likely = owners.find(receiver, imports)
                owner = node_id(likely.path, likely.qualname).removeprefix("code:") if likely else ""
                is_likely = likely is not None and likely.id in owners.asked
                named = NamedCall(path=path, line=call.line, caller=call.inside, owner=owner, is_likely=is_likely)
                found.setdefault((path, call.line, call.inside), named)
    return sorted(
        found.values(), key=lambda call: (not call.is_likely, not call.owner, call.owner, call.path, call.line)
    )


class _Imports:
    """The imports of one file: the names from outside the project, and the files that it imports."""

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
        """Whether this file imports the file at `path` or its package. In languages other than Python a file in the
        same folder counts too."""
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
        """The likeliest owner. If several are equally likely, a requested one. None without evidence."""
        scores = {row.id: self._score(receiver, row, imports) for row in self._rows}
        best = max(scores.values(), default=0.0)
        if not best:
            return self._rows[0] if self._only and not self._is_common and not receiver else None
        likeliest = [row for row in self._rows if scores[row.id] == best]
        return next((row for row in likeliest if row.id in self.asked), likeliest[0])

    def _score(self, receiver: str, owner: SymbolRow, imports: _Imports) -> float:
        """How strongly the receiver's name indicates an owner. If built-in types have a method of that name too, the
        receiver must match the owner's whole name."""
        words, parts = _words(receiver), self._words[owner.id]
        if not words or not parts:
            return 0.0
        near = NEAR if imports.is_near(owner.path) else 0.0
        if len(words[-1]) == 1:
            is_initial = words[-1] in (parts[0][0], parts[-1][0])
            return INITIAL + near if is_initial and near and not self._is_common else 0.0
        if not any(_is_abbreviation_of(words[-1], part) for part in parts):
            return 0.0
        if self._is_common and not all(any(_is_abbreviation_of(word, part) for word in words) for part in parts):
            return 0.0
        is_plural = _is_plural(receiver) and _is_plural(owner.qualname.rpartition(".")[0])
        return WORD + PLURAL * is_plural + near


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


def _is_abbreviation_of(word: str, part: str) -> bool:
    """Whether a word is another one or abbreviates it: `req` and `ctx` for `request` and `context`."""
    if word == part:
        return True
    if not 2 <= len(word) <= LONGEST_ABBREVIATION or word[0] != part[0] or len(word) >= len(part):
        return False
    letters = iter(part)
    return all(letter in letters for letter in word)


def _calls_named(used: _References, name: str, is_property: bool) -> Iterator[tuple[ReferenceFact, str]]:
    """The calls by a name, or the reads of a property, each with the name of its receiver."""
    kinds = ("call", "decorate") if used.language == "python" else ("call",)
    for reference in used.references:
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


def _may_be(row: SymbolRow, call: ReferenceFact, language: str, imports: _Imports) -> bool:
    """Whether a call can mean a symbol of this kind: a method needs a receiver, a function only modules before it.

    In Python, calls on the same object are known as far as its classes are in the project.
    """
    target = call.target.replace("::", ".")
    first, _, rest = with_dots(target).partition(".")
    if imports.is_outside(first) or (language == "python" and first in _OWN and "." in call.inside and "." not in rest):
        return False
    is_member = "." in row.qualname
    if "." not in target:
        return not is_member or language in IMPLICIT
    return is_member or imports.has(first) or first in _ROOTS


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
