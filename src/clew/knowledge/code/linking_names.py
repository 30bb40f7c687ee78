"""The names of a project: what each file defines and brings in, and which symbol a name means where it is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from clew.knowledge.code.facts import FileFacts, Import
from clew.knowledge.code.linking_imports import ImportResolver, family, module_word

DEEPEST = 8
"""Files that a name is followed through, and classes that a method is looked for in."""
SHORTEST_GUESS = 3
OWN = frozenset(("self", "this", "cls", "@"))
ABOVE = frozenset(("super", "base"))
TYPES = frozenset(("class", "interface"))
CALLABLE = frozenset(("function", "method", "class", "interface"))
COMMON = frozenset(
    name for known in (str, bytes, list, dict, set, int, float, object, Exception) for name in dir(known)
) | frozenset(
    {
        "then", "catch", "push", "shift", "unshift", "slice", "forEach", "map", "filter", "reduce", "find", "next",
        "close", "open", "read", "write", "run",
    }
)  # fmt: skip
"""Methods that nearly everything has: their name says nothing of whose they are."""


class Place(NamedTuple):
    """A symbol by file and qualname; the file itself has an empty one."""

    path: str
    qualname: str
    is_guess: bool = False


class FileNames:
    """The names of one file."""

    __slots__ = ("aliases", "bases", "kinds", "language", "whole")

    def __init__(self, facts: FileFacts) -> None:
        self.language = facts.language
        self.kinds = {symbol.qualname: symbol.kind for symbol in facts.symbols}
        self.aliases: defaultdict[str, list[Import]] = defaultdict(list)
        self.whole: list[Import] = []
        for item in facts.imports:
            is_whole = item.name == "*" or item.alias == "."
            if is_whole or (not item.alias and family(facts.language) in ("c", "ruby")):
                self.whole.append(item)
            else:
                self.aliases[_alias(item, facts.language)].append(item)
        self.bases: defaultdict[str, list[str]] = defaultdict(list)
        for reference in facts.references:
            if reference.kind == "inherit":
                self.bases[reference.inside].append(_dotted(reference.target))

    def around(self, qualname: str) -> str:
        """The innermost symbol at or around a qualname; empty where that is the file."""
        while qualname and qualname not in self.kinds:
            qualname = qualname.rpartition(".")[0]
        return qualname

    def class_around(self, qualname: str) -> str:
        while qualname and self.kinds.get(qualname) not in TYPES:
            qualname = qualname.rpartition(".")[0]
        return qualname


class Names:
    """The names of all files, kept up to date file by file."""

    def __init__(self, resolver: ImportResolver) -> None:
        self.files: dict[str, FileNames] = {}
        self._resolver = resolver
        self._by_name: defaultdict[tuple[str, str], set[Place]] = defaultdict(set)

    def add(self, path: str, facts: FileFacts) -> None:
        self.remove(path)
        names = self.files[path] = FileNames(facts)
        for key, place in _indexed(path, names):
            self._by_name[key].add(place)

    def remove(self, path: str) -> None:
        names = self.files.pop(path, None)
        for key, place in _indexed(path, names) if names is not None else ():
            self._by_name[key].discard(place)

    def find(self, path: str, name: str, depth: int = DEEPEST) -> Place | None:
        """The symbol that a name of a file means to others: its own, or one that it passes on."""
        names = self.files.get(path)
        if names is None:
            return None
        if name in names.kinds:
            return Place(path, name)
        if not depth:
            return None
        first, _, rest = name.partition(".")
        if rest and first in names.kinds:
            return self.method(Place(path, first), rest, depth - 1)
        for item in names.aliases.get(first, ()):
            found = self._imported(path, item, first, rest, depth - 1)
            if found is not None:
                return found
        return self._through_whole(path, names, name, depth - 1)

    def resolve(self, path: str, inside: str, target: str) -> Place | None:
        """The symbol that is meant by what is written inside another: by scope, then by what is imported, then by what
        is beside the file; and by its name alone, as a guess, where only one symbol of the project has it."""
        names = self.files[path]
        target = _dotted(target)
        first, _, rest = target.partition(".")
        if first in OWN or first in ABOVE:
            return self._own(path, names, inside, rest, is_above=first in ABOVE)
        found = self._in_scope(path, names, inside, target) or self.find(path, target)
        if found is None:
            found = self._beside(path, target)
        if found is None and first not in names.aliases:
            found = self.guess(path, target.rpartition(".")[2], is_method=bool(rest))
        return found

    def guess(self, path: str, name: str, *, is_method: bool) -> Place | None:
        """The one symbol of this name among the files that this one may use; none where there are several."""
        if len(name) < SHORTEST_GUESS or (is_method and name in COMMON):
            return None
        places = self._by_name.get((family(self.files[path].language), name), ())
        if len(places) != 1:
            return None
        place = next(iter(places))
        return Place(place.path, place.qualname, is_guess=True)

    def method(self, of_class: Place, name: str, depth: int = DEEPEST) -> Place | None:
        """A method of a class or of those that it inherits from."""
        names = self.files.get(of_class.path)
        if names is None:
            return None
        qualname = f"{of_class.qualname}.{name}"
        if qualname in names.kinds:
            return Place(of_class.path, qualname)
        return self.inherited(of_class, name, depth) if depth else None

    def inherited(self, of_class: Place, name: str, depth: int = DEEPEST) -> Place | None:
        for base in self.bases(of_class):
            found = self.method(base, name, depth - 1) if base != of_class else None
            if found is not None:
                return found
        return None

    def bases(self, of_class: Place) -> Iterator[Place]:
        """The classes of the project that a class inherits from, as it names them."""
        names = self.files.get(of_class.path)
        for written in names.bases.get(of_class.qualname, ()) if names is not None else ():
            around = of_class.qualname.rpartition(".")[0]
            found = self._in_scope(of_class.path, names, around, written) if names is not None else None
            found = found or self.find(of_class.path, written) or self._beside(of_class.path, written)
            if found is not None:
                yield Place(found.path, found.qualname)

    def _own(self, path: str, names: FileNames, inside: str, name: str, *, is_above: bool) -> Place | None:
        of_class = names.class_around(inside)
        if not of_class or not name or "." in name:
            return None
        place = Place(path, of_class)
        return self.inherited(place, name) if is_above else self.method(place, name)

    def _in_scope(self, path: str, names: FileNames, inside: str, target: str) -> Place | None:
        """A symbol of the file itself, from the innermost scope outwards; bare names in a class mean its methods where
        the language has it so."""
        first, _, rest = target.partition(".")
        scope = inside
        while True:
            qualname = f"{scope}.{first}" if scope else first
            is_class = names.kinds.get(scope) in TYPES
            if qualname in names.kinds and not (is_class and names.language == "python"):
                return self.method(Place(path, qualname), rest) if rest else Place(path, qualname)
            if is_class and not rest and names.language in ("java", "ruby", "cpp", "c++"):
                found = self.inherited(Place(path, scope), first)
                if found is not None:
                    return found
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def _imported(self, path: str, item: Import, alias: str, rest: str, depth: int) -> Place | None:
        """What an import stands for, with what is taken from it."""
        wanted = ".".join(part for part in (item.name, rest) if part and part != "default")
        targets = [target for target in self._resolver.resolve(path, item) if target != path]
        for target in targets:
            choices = [wanted, f"{alias}.{rest}" if rest else alias] if item.name in ("", "default") else [wanted, rest]
            for choice in (choice for choice in choices if choice):
                found = self.find(target, choice, depth)
                if found is not None:
                    return found
        if len(targets) > 1 and rest:  # a module in a package: what is left is looked for in the module
            return self.find(targets[-1], rest, depth)
        return None

    def _through_whole(self, path: str, names: FileNames, name: str, depth: int) -> Place | None:
        for item in names.whole if depth >= 0 else ():
            for target in self._resolver.resolve(path, item):
                for file in (target, *self._declared_by(target)):
                    found = self.find(file, name, depth) if file != path else None
                    if found is not None:
                        return found
        return None

    def _declared_by(self, path: str) -> list[str]:
        is_header = path.endswith((".h", ".hh", ".hpp", ".hxx"))
        return self._resolver.implementations(path) if is_header else []

    def _beside(self, path: str, target: str) -> Place | None:
        first, _, rest = target.partition(".")
        for other in self._resolver.neighbours(path):
            if first in self.files[other].kinds if other in self.files else False:
                return self.method(Place(other, first), rest) if rest else Place(other, first)
        return None


def _alias(item: Import, language: str) -> str:
    if item.alias or (item.name and item.name != "*"):
        return item.alias or item.name
    if language == "python":
        return item.module.partition(".")[0]
    return module_word(item.module, language)


def _dotted(target: str) -> str:
    return target.replace("::", ".").replace("->", ".").replace("?.", ".").replace("#", ".").strip(".")


def _indexed(path: str, names: FileNames) -> Iterator[tuple[tuple[str, str], Place]]:
    for qualname, kind in names.kinds.items():
        if kind in CALLABLE:
            yield (family(names.language), qualname.rpartition(".")[2]), Place(path, qualname)
