"""The names of a project: which symbol a name means at the place where it is written."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

from clew.knowledge.code.linking.imports import (
    HEADER_SUFFIXES,
    TYPES,
    FileNames,
    ImportResolver,
    SymbolPlace,
    family,
    module_word,
    with_dots,
)
from clew.knowledge.code.models import FileFacts, ImportFact

MAX_DEPTH = 8
"""Classes above one another that are searched for a method."""
MAX_FILES, MAX_STEPS = 50, 5_000
"""Files that one chain of reexports may have, and lookups in all chains of a name."""
SHORTEST_GUESS = 4
UNDECLARED = frozenset(("c", "ruby"))
"""Families of languages in which an unqualified name may come from a file that is not imported."""
OWN = frozenset(("self", "this", "cls", "@"))
ABOVE = frozenset(("super", "base"))
IMPLICIT = frozenset(("java", "ruby", "cpp"))
"""Languages in which a bare name in a class may be a method of it."""
BESIDE = frozenset(("go", "java"))
"""Languages in which a file uses the names of its folder without imports."""
UNTYPED = frozenset(("python",))
"""Languages whose declared types are not read, since their values are followed."""
COMMON = frozenset(
    name for known in (str, bytes, list, dict, set, int, float, object, Exception) for name in dir(known)
) | {
    "then", "catch", "push", "shift", "unshift", "slice", "forEach", "map", "filter", "reduce", "find", "next", "close",
    "open", "read", "write", "run",
}  # fmt: skip
"""Names of methods that so many types have that the name does not indicate the type."""


Asked = set[tuple[str, str]]
"""The files and names that were looked up for one name through reexports."""


class ProjectNames:
    """The names of all files of a project."""

    def __init__(self, resolver: ImportResolver) -> None:
        self.files: dict[str, FileNames] = {}
        self._resolver = resolver
        self._by_name: defaultdict[tuple[str, str], set[SymbolPlace]] = defaultdict(set)
        self.indirect: Counter[str] = Counter()
        """The number of variables and decorated symbols of Python with a name."""
        self._found: dict[tuple[str, str], SymbolPlace | None] = {}
        self._bases: dict[SymbolPlace, list[SymbolPlace]] = {}
        self._depth = 0

    def add(self, path: str, facts: FileFacts) -> None:
        self.remove(path)
        names = self.files[path] = FileNames(facts)
        self.indirect.update(names.indirect())
        for key, place in names.callables(path):
            self._by_name[key].add(place)

    def remove(self, path: str) -> None:
        self._found.clear()
        self._bases.clear()
        names = self.files.pop(path, None)
        if names is None:
            return
        self.indirect.subtract(names.indirect())
        for key, place in names.callables(path):
            self._by_name[key].discard(place)

    def find(self, path: str, name: str) -> SymbolPlace | None:
        """The symbol that a name of a file means to other files: its own, or one that it reexports."""
        names = self.files.get(path)
        if names is None or not (name in names.kinds or names.knows(name.partition(".")[0])):
            return None
        key = (path, name)
        if key not in self._found:
            self._found[key] = self._find(path, name, set(), 0)
        return self._found[key]

    def _find(self, path: str, name: str, asked: Asked, depth: int) -> SymbolPlace | None:
        """As `find`, at the end of a chain of `depth` files. Nothing is asked twice: reexports may be circular."""
        names = self.files.get(path)
        if names is None or (path, name) in asked or depth >= MAX_FILES or len(asked) >= MAX_STEPS:
            return None
        if name in names.kinds:
            return SymbolPlace(path, name)
        asked.add((path, name))
        first, _, rest = name.partition(".")
        found = self.method(SymbolPlace(path, first), rest) if rest and first in names.kinds else None
        for item in names.aliases.get(first, ()) if found is None else ():
            found = found or self._imported(path, item, first, rest, asked, depth + 1)
        return found or self._through_whole(path, names, name, asked, depth + 1)

    def resolve(self, path: str, inside: str, target: str) -> SymbolPlace | None:
        """The symbol that a name inside of another symbol means: by scope, then by imports, then by the files beside,
        and as a guess, if only one symbol of the project has the name."""
        names = self.files[path]
        if target.startswith("."):  # a method of the result of an index or a call
            return self.guess(path, with_dots(target), is_method=True)
        target = with_dots(target)
        first, _, rest = target.partition(".")
        if first in OWN or first in ABOVE:
            found = self._own_member(path, inside, rest, is_above=first in ABOVE)
            found = found or self._declared(path, inside, rest, "")
            return found or (self._rust_path(path, target) if names.language == "rust" else None)
        found = self._in_scope(path, names, inside, target) or self._from_outside(path, names, inside, target)
        if found is None and names.language == "rust" and first == "crate":
            found = self._rust_path(path, target)
        if found is None:
            found = self._declared(path, inside, target, inside)
        if found is None and first not in names.aliases:
            found = self._guess_at(path, names, inside, target)
        return found

    def _declared(self, path: str, inside: str, target: str, function: str) -> SymbolPlace | None:
        """A method of the declared type of a parameter of the function, or of a field of the class around it, or of the
        fields of that type."""
        if self.files[path].language in UNTYPED:
            return None
        parts = target.split(".")
        if not 2 <= len(parts) <= MAX_DEPTH:
            return None
        first, *between, name = parts
        of_class = self._type_at(path, inside, self.files[path].declared.of(function, first)) if function else None
        own = self._class_at(path, inside) if of_class is None else None
        of_class = of_class or (self._field(own, first) if own is not None else None)
        for field in between:
            of_class = self._field(of_class, field) if of_class is not None else None
        return self.method(of_class, name) if of_class is not None else None

    def _field(self, of_class: SymbolPlace, name: str) -> SymbolPlace | None:
        names = self.files.get(of_class.path)
        written = names.declared.of(f"{of_class.qualname}.{name}", name) if names is not None else ""
        return self._type_at(of_class.path, of_class.qualname, written)

    def _type_at(self, path: str, inside: str, written: str) -> SymbolPlace | None:
        """The class of the project that a type means at a place."""
        if not written:
            return None
        names = self.files[path]
        found = self._in_scope(path, names, inside, written) or self._imported_at(path, names, inside, written)
        is_type = found is not None and self.files[found.path].kinds.get(found.qualname) in TYPES
        return found if is_type else None

    def _from_outside(self, path: str, names: FileNames, inside: str, target: str) -> SymbolPlace | None:
        """A symbol of another file: a method of the class around the place in some languages, or an imported name."""
        if names.language in IMPLICIT and "." not in target:
            of_class = self._class_at(path, inside)
            found = self.method(of_class, target) if of_class is not None else None
            if found is not None:
                return found
        return self._imported_at(path, names, inside, target)

    def _imported_at(self, path: str, names: FileNames, inside: str, target: str) -> SymbolPlace | None:
        """An imported name, in each of the namespaces around the place, or a name of the files beside."""
        scope = inside if names.whole and family(names.language) in UNDECLARED else ""
        while scope:
            found = self.find(path, f"{scope}.{target}")
            if found is not None:
                return found
            scope = scope.rpartition(".")[0]
        return self.find(path, target) or (self._beside(path, target) if names.language in BESIDE else None)

    def _guess_at(self, path: str, names: FileNames, inside: str, target: str) -> SymbolPlace | None:
        """The likely meaning of a name: in Go a method of the receiver's class, else the only symbol of the name."""
        rest = target.partition(".")[2]
        of_class = self._class_at(path, inside) if names.language == "go" and rest and "." not in rest else None
        found = self.method(of_class, rest) if of_class is not None else None
        if found is not None:
            return SymbolPlace(found.path, found.qualname, is_guess=True)
        return self.guess(path, target.rpartition(".")[2], is_method=bool(rest))

    def _rust_path(self, path: str, target: str) -> SymbolPlace | None:
        module, _, name = target.rpartition(".")
        found = self._resolver.resolve(path, ImportFact(module.replace(".", "::"), name, "", 0)) if module else []
        return next((place for file in found if (place := self.find(file, name)) is not None), None)

    def guess(self, path: str, name: str, *, is_method: bool) -> SymbolPlace | None:
        """The only symbol of this name among the files that this one may use; None if there are several."""
        of_family = family(self.files[path].language)
        if len(name) < SHORTEST_GUESS or (name in COMMON if is_method else of_family not in UNDECLARED):
            return None
        places: Collection[SymbolPlace] = self._by_name.get((of_family, name), ())
        if len(places) > 1 and of_family == "c":  # a header only declares
            places = [place for place in places if not place.path.endswith(HEADER_SUFFIXES)]
        if len(places) != 1:
            return None
        place = next(iter(places))
        return SymbolPlace(place.path, place.qualname, is_guess=True)

    def method(self, of_class: SymbolPlace, name: str) -> SymbolPlace | None:
        """A method of a class or of its bases."""
        return self._method_of(of_class, name) or self.inherited(of_class, name)

    def _method_of(self, of_class: SymbolPlace, name: str) -> SymbolPlace | None:
        names = self.files.get(of_class.path)
        qualname = f"{of_class.qualname}.{name}"
        return SymbolPlace(of_class.path, qualname) if names is not None and qualname in names.kinds else None

    def inherited(self, of_class: SymbolPlace, name: str) -> SymbolPlace | None:
        """A method of the bases of a class."""
        waiting, seen = [(of_class, MAX_DEPTH)], set[SymbolPlace]()
        while waiting:
            above, depth = waiting.pop()
            if above in seen:
                continue
            seen.add(above)
            found = self._method_of(above, name) if above != of_class else None
            if found is not None:
                return found
            waiting.extend((base, depth - 1) for base in reversed(self.bases(above) if depth else ()))
        return None

    def bases(self, of_class: SymbolPlace) -> list[SymbolPlace]:
        """The bases of a class that the project defines, in order. The search for a base may need the bases of another
        class. It stops after MAX_DEPTH such steps."""
        if of_class not in self._bases:
            if self._depth > MAX_DEPTH:
                return []
            self._bases[of_class] = []  # for circular bases
            self._depth += 1
            self._bases[of_class] = list(self._find_bases(of_class))
            self._depth -= 1
        return self._bases[of_class]

    def _find_bases(self, of_class: SymbolPlace) -> Iterator[SymbolPlace]:
        names = self.files.get(of_class.path)
        if names is None:
            return
        around = of_class.qualname.rpartition(".")[0]
        for written in names.bases.get(of_class.qualname, ()):
            found = self._in_scope(of_class.path, names, around, written)
            found = found or self._imported_at(of_class.path, names, around, written)
            if found is not None:
                yield SymbolPlace(found.path, found.qualname)

    def _own_member(self, path: str, inside: str, name: str, *, is_above: bool) -> SymbolPlace | None:
        of_class = self._class_at(path, inside)
        if of_class is None or not name or "." in name:
            return None
        return self.inherited(of_class, name) if is_above else self.method(of_class, name)

    def _class_at(self, path: str, inside: str) -> SymbolPlace | None:
        """The class around a place. The class of a method that is defined outside of it may be in another file."""
        names = self.files[path]
        of_class = names.class_around(inside)
        around = inside.rpartition(".")[0]
        if around and names.kinds.get(inside) == "method" and of_class != around:
            return self.find(path, around) or SymbolPlace(path, around)
        return SymbolPlace(path, of_class) if of_class else None

    def _in_scope(self, path: str, names: FileNames, inside: str, target: str) -> SymbolPlace | None:
        """A symbol of the file itself, from the innermost scope outwards. In some languages a bare name in a class may
        be a method of it."""
        first, _, rest = target.partition(".")
        if first not in names.defined and names.language not in IMPLICIT:
            return None
        scope = inside
        while True:
            qualname = f"{scope}.{first}" if scope else first
            is_class = names.kinds.get(scope) in TYPES
            if qualname in names.kinds and not (is_class and _is_hidden(names, scope, first)):
                return self.method(SymbolPlace(path, qualname), rest) if rest else SymbolPlace(path, qualname)
            if is_class and not rest and names.language in IMPLICIT:
                found = self.inherited(SymbolPlace(path, scope), first)
                if found is not None:
                    return found
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def _imported(
        self, path: str, item: ImportFact, alias: str, rest: str, asked: Asked, depth: int
    ) -> SymbolPlace | None:
        """The symbol that an imported name means, followed by the attributes `rest`."""
        targets = [target for target in self._resolver.resolve(path, item) if target != path or not item.module]
        for target in targets:
            for name in _imported_names(item, alias, rest, self.files[path].language):
                found = self._find(target, name, asked, depth)
                if found is not None:
                    return found
        if len(targets) > 1 and rest:  # a module in a package: the rest is a name of the module
            return self._find(targets[-1], rest, asked, depth)
        return None

    def _through_whole(self, path: str, names: FileNames, name: str, asked: Asked, depth: int) -> SymbolPlace | None:
        """A name from a file that is imported whole; for a name that a header declares, its definition."""
        for item in names.whole:
            for target in self._resolver.resolve(path, item):
                for file in (*self._resolver.implementations(target), target):
                    is_defined = file == target or name in self.files[file].kinds if file in self.files else False
                    found = self._find(file, name, asked, depth) if file != path and is_defined else None
                    if found is not None:
                        return found
        return None

    def _beside(self, path: str, target: str) -> SymbolPlace | None:
        first, _, rest = target.partition(".")
        for other in self._resolver.neighbours(path):
            if first in self.files[other].kinds if other in self.files else False:
                return self.method(SymbolPlace(other, first), rest) if rest else SymbolPlace(other, first)
        return None


def _is_hidden(names: FileNames, of_class: str, name: str) -> bool:
    """Whether a bare name in a class cannot be its member of that name: the name of the class itself means the class,
    and in most languages a method is called on an object."""
    if names.language == "python" or of_class.rpartition(".")[2] == name:
        return True
    return names.language not in IMPLICIT and names.kinds.get(f"{of_class}.{name}") == "method"


def _imported_names(item: ImportFact, alias: str, rest: str, language: str) -> list[str]:
    """The names to search in the file that is imported."""
    wanted = ".".join(part for part in (item.name, rest) if part)
    names = [wanted, rest if item.name else f"{alias}.{rest}" if rest else alias]
    if item.name == "default":
        names.append(f"{alias}.{rest}" if rest else alias)
    if language == "java":  # a static import names a member of a class
        names.append(f"{module_word(item.module, language)}.{wanted}")
    return [name for name in names if name]
