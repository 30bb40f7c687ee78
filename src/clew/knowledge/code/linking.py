"""Edges between the symbols of a project, over files and languages: what defines, imports, inherits, calls and refers
to what. Python's calls come from following its values; those of other languages from scopes and imports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from posixpath import basename, dirname, splitext
from typing import Literal

import msgspec

from clew.knowledge.code.imports import NO_PACKAGES, ImportResolver, Packages, words_of
from clew.knowledge.code.linking_files import Place
from clew.knowledge.code.models import FileFacts, Import, Reference
from clew.knowledge.code.names import COMMON, Names
from clew.knowledge.code.python_flow import PythonFlow, Summary, Unresolved, uncollected

EdgeType = Literal["calls", "imports", "inherits", "references", "defines"]
TYPES: dict[str, EdgeType] = {
    "call": "calls",
    "inherit": "inherits",
    "reference": "references",
    "decorate": "references",
}
Resolved = dict[tuple[str, str], Place | None]
"""What names of a file mean, by where they stand and how they are written."""
MOST_OVERRIDES = 8
"""Methods of subclasses that a call on `self` is guessed to mean."""


class CodeEdge(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """One symbol uses another. A file itself has an empty qualname. `is_guess` where only the name speaks for it."""

    source_path: str
    source_qualname: str
    target_path: str
    target_qualname: str
    type: EdgeType
    line: int
    is_guess: bool = False


class EdgeChange(msgspec.Struct, frozen=True):
    """What became of the edges of one file."""

    deleted: tuple[CodeEdge, ...] = ()
    inserted: tuple[CodeEdge, ...] = ()


def link(
    files: Mapping[str, FileFacts],
    summaries: Mapping[str, Summary] | None = None,
    *,
    packages: Packages = NO_PACKAGES,
) -> Iterator[CodeEdge]:
    """All edges between symbols of these files, file by file in the order of paths. Paths have forward slashes, from
    the project's folder. Python files with a summary have their calls followed, others by name."""
    yield from Linker(files, summaries, packages=packages).all_edges()


class Linker:
    """The edges of a project, brought up to date file by file."""

    def __init__(
        self,
        files: Mapping[str, FileFacts],
        summaries: Mapping[str, Summary] | None = None,
        *,
        packages: Packages = NO_PACKAGES,
    ) -> None:
        self._facts = dict(files)
        self._resolver = ImportResolver({path: facts.language for path, facts in files.items()}, packages)
        self._names = Names(self._resolver)
        for path, facts in self._facts.items():
            self._names.add(path, facts)
        self._flow = PythonFlow(_readable(summaries or {}, self._facts))
        self._importers: defaultdict[str, set[str]] = defaultdict(set)
        self._subclasses: defaultdict[Place, set[Place]] = defaultdict(set)
        self._edges: dict[str, tuple[CodeEdge, ...]] = {}
        self._unfollowed = self._find_unfollowed()
        with uncollected():
            for path in self._facts:
                self._note_classes(path)
            for path in sorted(self._facts):
                self._edges[path] = self._find_edges(path)

    def edges(self, path: str) -> tuple[CodeEdge, ...]:
        """The edges that begin in a file, in order; none for a file that is not known."""
        return self._edges.get(path, ())

    def all_edges(self) -> Iterator[CodeEdge]:
        for path in sorted(self._edges):
            yield from self._edges[path]

    def update(
        self,
        changed: Mapping[str, FileFacts],
        summaries: Mapping[str, Summary] | None = None,
        removed: Collection[str] = (),
    ) -> dict[str, EdgeChange]:
        """Bring the edges up to date after files came, changed or went: those of the files themselves, of the files
        that import them, and calls elsewhere that this changes. Gives what changed by file, in the order of paths."""
        touched = self._affected(changed, removed)
        for path in removed:
            self._facts.pop(path, None)
            self._resolver.remove(path)
            self._names.remove(path)
        for path, facts in changed.items():
            if path not in self._facts:
                self._resolver.add(path, facts.language)
            self._facts[path] = facts
            self._names.add(path, facts)
        touched |= self._affected(changed, removed)
        touched |= self._follow(changed, summaries or {}, removed)
        self._unfollowed = self._find_unfollowed()
        for path in changed:
            self._note_classes(path)
        return {path: change for path in sorted(touched) if (change := self._relink(path)) is not None}

    def _follow(
        self, changed: Mapping[str, FileFacts], summaries: Mapping[str, Summary], removed: Collection[str]
    ) -> set[str]:
        readable = _readable(summaries, changed)
        lost = [path for path in (*removed, *changed) if path not in readable]
        return self._flow.update(readable, lost)

    def _affected(self, changed: Iterable[str], removed: Iterable[str]) -> set[str]:
        """The files whose edges may be others now: the changed ones, their importers, and those with an import that may
        be about a file that came or went."""
        paths = {*changed, *removed}
        new = {_stem(path) for path in paths if path not in self._facts or path in set(removed)}
        affected = paths.union(*(self._importers[path] for path in paths))
        if new:
            affected.update(path for path, facts in self._facts.items() if not new.isdisjoint(words_of(facts.imports)))
        return affected

    def _relink(self, path: str) -> EdgeChange | None:
        before = self._edges.pop(path, ())
        after = self._find_edges(path) if path in self._facts else ()
        if path in self._facts:
            self._edges[path] = after
        if before == after:
            return None
        old, new = set(before), set(after)
        deleted = tuple(edge for edge in before if edge not in new)
        return EdgeChange(deleted, tuple(edge for edge in after if edge not in old))

    def _note_classes(self, path: str) -> None:
        names = self._names.files[path]
        for qualname in names.bases:
            place = Place(path, qualname)
            for base in self._names.bases(place):
                self._subclasses[base].add(place)

    def _find_edges(self, path: str) -> tuple[CodeEdge, ...]:
        facts = self._facts[path]
        is_followed = self._flow.has(path)
        found = {*self._definitions(path, facts), *self._imports(path, facts.imports)}
        cache: Resolved = {}
        for reference in facts.references:
            is_told = is_followed and reference.kind in ("call", "inherit")
            if is_told and not (self._unfollowed and self._leads_aside(path, reference, cache)):
                continue
            edge = self._reference(path, reference, cache)
            if edge is not None:
                found.add(edge)
        if is_followed:
            found.update(self._followed(path))
            found.update(self._written(path, facts, cache))
            found.update(self._guessed(path))
        return tuple(sorted(found))

    def _find_unfollowed(self) -> set[str]:
        """The files whose values cannot be followed, as they are in no Python that can be read here."""
        python = (path for path, facts in self._facts.items() if facts.language == "python")
        return {path for path in python if not self._flow.has(path)}

    def _leads_aside(self, path: str, reference: Reference, cache: Resolved) -> bool:
        """Whether a name leads to a file that values are not followed into: then names say what they can."""
        place = self._resolved(path, _scope_of(reference), reference.target, cache)
        return place is not None and not place.is_guess and place.path in self._unfollowed

    def _resolved(self, path: str, inside: str, target: str, cache: Resolved) -> Place | None:
        """What a name means inside of a symbol of a file; `cache` is that of the file."""
        key = (inside, target)
        if key not in cache:
            cache[key] = self._names.resolve(path, inside, target)
        return cache[key]

    def _definitions(self, path: str, facts: FileFacts) -> Iterator[CodeEdge]:
        names = self._names.files[path]
        for symbol in facts.symbols:
            around = names.around(symbol.qualname.rpartition(".")[0])
            yield CodeEdge(path, around, path, symbol.qualname, "defines", symbol.line_start)

    def _imports(self, path: str, imports: Iterable[Import]) -> Iterator[CodeEdge]:
        for item in imports:
            targets = self._resolver.resolve(path, item)
            for target in targets:
                self._importers[target].add(path)
            named = self._imported_symbol(path, item, targets)
            for place in [named] if named is not None else [Place(target, "") for target in targets]:
                if place.path != path:
                    yield CodeEdge(path, "", place.path, place.qualname, "imports", item.line)

    def _imported_symbol(self, path: str, item: Import, targets: list[str]) -> Place | None:
        if item.name in ("", "*"):
            return None
        for target in targets:
            found = self._names.find(target, item.name) if target != path else None
            if found is not None:
                return found
        return Place(targets[-1], "") if len(targets) > 1 else None

    def _reference(self, path: str, reference: Reference, cache: Resolved) -> CodeEdge | None:
        place = self._resolved(path, _scope_of(reference), reference.target, cache)
        if place is None or (place.is_guess and reference.kind not in ("call", "inherit")):
            return None
        source = self._names.files[path].around(reference.inside)
        is_itself = (place.path, place.qualname) == (path, source)
        if is_itself and (reference.kind != "call" or place.is_guess):
            return None
        kind = self._edge_type(path, reference, place)
        return CodeEdge(path, source, place.path, place.qualname, kind, reference.line, place.is_guess)

    def _edge_type(self, path: str, reference: Reference, place: Place) -> EdgeType:
        """In Ruby a bare name that is a method calls it."""
        kind = self._names.files[place.path].kinds.get(place.qualname)
        if reference.kind == "reference" and self._facts[path].language == "ruby" and kind in ("method", "function"):
            return "calls"
        return TYPES[reference.kind]

    def _followed(self, path: str) -> Iterator[CodeEdge]:
        """Calls and bases that following values found, as far as both ends are symbols."""
        names = self._names.files[path]
        for call in (*self._flow.calls(path), *self._flow.wrapped(path)):
            if self._is_symbol(call.target_path, call.target):
                source = names.around(call.caller)
                yield CodeEdge(path, source, call.target_path, call.target, "calls", call.line)
        for base in self._flow.bases(path):
            if self._is_symbol(base.target_path, base.target):
                yield CodeEdge(path, base.caller, base.target_path, base.target, "inherits", base.line)

    def _written(self, path: str, facts: FileFacts, cache: Resolved) -> Iterator[CodeEdge]:
        """Calls under a name of which following values leads elsewhere: to what a variable holds, or to what a
        decorator made of a definition. They are calls of what has the name, too."""
        names = self._names.files[path]
        for reference in facts.references:
            is_called = reference.kind in ("call", "decorate")
            if not is_called or not self._names.indirect[reference.target.rpartition(".")[2]]:
                continue
            inside = reference.inside.rpartition(".")[0] if reference.kind == "decorate" else reference.inside
            place = self._resolved(path, inside, reference.target, cache)
            if place is not None and not place.is_guess and self._names.files[place.path].is_indirect(place.qualname):
                yield CodeEdge(path, names.around(inside), place.path, place.qualname, "calls", reference.line)

    def _guessed(self, path: str) -> Iterator[CodeEdge]:
        names = self._names.files[path]
        for call in self._flow.unresolved(path):
            for place in self._overrides(path, call) if call.of_class else self._by_name(path, call):
                source = names.around(call.caller)
                yield CodeEdge(path, source, place.path, place.qualname, "calls", call.line, is_guess=True)

    def _by_name(self, path: str, call: Unresolved) -> list[Place]:
        found = self._names.guess(path, call.name, is_method=True) if call.name not in COMMON else None
        return [found] if found is not None else []

    def _overrides(self, path: str, call: Unresolved) -> list[Place]:
        """What a method calls on its own object and only classes below it have."""
        waiting = [Place(path, call.of_class)]
        found: list[Place] = []
        seen = set(waiting)
        while waiting and len(found) <= MOST_OVERRIDES:
            for below in self._subclasses.get(waiting.pop(), set()) - seen:
                seen.add(below)
                waiting.append(below)
                if self._is_symbol(below.path, f"{below.qualname}.{call.name}"):
                    found.append(Place(below.path, f"{below.qualname}.{call.name}"))
        return found if len(found) <= MOST_OVERRIDES else []

    def _is_symbol(self, path: str, qualname: str) -> bool:
        names = self._names.files.get(path)
        return names is not None and qualname in names.kinds


def _scope_of(reference: Reference) -> str:
    """Where the name of a reference is looked for: a class may inherit from another of its own name."""
    return reference.inside.rpartition(".")[0] if reference.kind == "inherit" else reference.inside


def _stem(path: str) -> str:
    """What an import calls a file: its name, or that of its folder where it stands for that."""
    stem = splitext(basename(path))[0]
    return basename(dirname(path)) if stem in ("__init__", "index", "mod") else stem


def _readable(summaries: Mapping[str, Summary], files: Mapping[str, FileFacts]) -> dict[str, Summary]:
    """The summaries of these files that say something."""
    return {path: summary for path, summary in summaries.items() if path in files and not summary.error}
