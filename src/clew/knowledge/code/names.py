"""The names of a project: which symbol a name means where it is written."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

from clew.knowledge.code.imports import HEADER_SUFFIXES, ImportResolver, family, module_word
from clew.knowledge.code.linking_files import TYPES, FileNames, Place, with_dots
from clew.knowledge.code.models import FileFacts, Import

DEEPEST = 8
"""Classes that a method is looked for in, one above the other."""
MOST_PASSED, MOST_ASKED = 50, 5_000
"""Files that a name is passed on through, and names of files that are asked for it in all."""
SHORTEST_GUESS = 4
UNDECLARED = frozenset(("c", "ruby"))
"""Families of languages in which a bare name may come from a file that this one does not name."""
OWN = frozenset(("self", "this", "cls", "@"))
ABOVE = frozenset(("super", "base"))
IMPLICIT = frozenset(("java", "ruby", "cpp"))
"""Languages in which a bare name in a class means a method of it."""
BESIDE = frozenset(("go", "java"))
"""Languages in which a file can use the names of those beside it without importing them."""
UNTYPED = frozenset(("python",))
"""Languages whose declared types are not read: values tell more."""
COMMON = frozenset(
    name for known in (str, bytes, list, dict, set, int, float, object, Exception) for name in dir(known)
) | frozenset(
    {
        "then", "catch", "push", "shift", "unshift", "slice", "forEach", "map", "filter", "reduce", "find", "next",
        "close", "open", "read", "write", "run",
    }
)  # fmt: skip
"""Methods that nearly everything has: their name says nothing of whose they are."""


class _Way:
    """What was asked already on the way to a name, and how many files lie behind it."""

    __slots__ = ("asked", "length")

    def __init__(self) -> None:
        self.asked: set[tuple[str, str]] = set()
        self.length = 0

    def leads_on(self, path: str, name: str) -> bool:
        is_new = (path, name) not in self.asked
        return is_new and self.length < MOST_PASSED and len(self.asked) < MOST_ASKED


class Names:
    """The names of all files, kept up to date file by file."""

    def __init__(self, resolver: ImportResolver) -> None:
        self.files: dict[str, FileNames] = {}
        self._resolver = resolver
        self._by_name: defaultdict[tuple[str, str], set[Place]] = defaultdict(set)
        self.indirect: Counter[str] = Counter()
        """How often a name is that of a variable or of something decorated, in Python."""
        self._found: dict[tuple[str, str], Place | None] = {}
        self._bases: dict[Place, list[Place]] = {}
        self._inherited: dict[tuple[Place, str], Place | None] = {}
        self._finding = 0

    def add(self, path: str, facts: FileFacts) -> None:
        self.remove(path)
        names = self.files[path] = FileNames(facts)
        self.indirect.update(names.indirect())
        for key, place in names.callables(path):
            self._by_name[key].add(place)

    def remove(self, path: str) -> None:
        self._found.clear()
        self._bases.clear()
        self._inherited.clear()
        names = self.files.pop(path, None)
        if names is None:
            return
        self.indirect.subtract(names.indirect())
        for key, place in names.callables(path):
            self._by_name[key].discard(place)

    def find(self, path: str, name: str) -> Place | None:
        """The symbol that a name of a file means to others: its own, or one that it passes on."""
        names = self.files.get(path)
        if names is None or not (name in names.kinds or names.knows(name.partition(".")[0])):
            return None
        key = (path, name)
        if key not in self._found:
            self._found[key] = self._look(path, name, _Way())
        return self._found[key]

    def _look(self, path: str, name: str, way: _Way) -> Place | None:
        """As `find`, through each file once: files may pass names on in a circle."""
        names = self.files.get(path)
        if names is None or not way.leads_on(path, name):
            return None
        if name in names.kinds:
            return Place(path, name)
        way.asked.add((path, name))
        way.length += 1
        first, _, rest = name.partition(".")
        found = self.method(Place(path, first), rest) if rest and first in names.kinds else None
        for item in names.aliases.get(first, ()) if found is None else ():
            found = found or self._imported(path, item, first, rest, way)
        found = found or self._through_whole(path, names, name, way)
        way.length -= 1
        return found

    def resolve(self, path: str, inside: str, target: str) -> Place | None:
        """The symbol that is meant by what is written inside another: by scope, then by what is imported, then by what
        is beside the file; and by its name alone, as a guess, where only one symbol of the project has it."""
        names = self.files[path]
        target = with_dots(target)
        first, _, rest = target.partition(".")
        if first in OWN or first in ABOVE:
            found = self._own(path, inside, rest, is_above=first in ABOVE)
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

    def _declared(self, path: str, inside: str, target: str, function: str) -> Place | None:
        """A method of what a parameter of the function, or a field of the class around it, is declared to be; and of
        the fields of that."""
        if self.files[path].language in UNTYPED:
            return None
        parts = target.split(".")
        if not 2 <= len(parts) <= DEEPEST:
            return None
        first, *between, name = parts
        of_class = self._type_at(path, inside, self.files[path].declared.of(function, first)) if function else None
        own = self._class_at(path, inside) if of_class is None else None
        of_class = of_class or (self._field(own, first) if own is not None else None)
        for field in between:
            of_class = self._field(of_class, field) if of_class is not None else None
        return self.method(of_class, name) if of_class is not None else None

    def _field(self, of_class: Place, name: str) -> Place | None:
        names = self.files.get(of_class.path)
        written = names.declared.of(f"{of_class.qualname}.{name}", name) if names is not None else ""
        return self._type_at(of_class.path, of_class.qualname, written)

    def _type_at(self, path: str, inside: str, written: str) -> Place | None:
        """The class of the project that a type means where it is written."""
        if not written:
            return None
        names = self.files[path]
        found = self._in_scope(path, names, inside, written) or self._imported_at(path, names, inside, written)
        is_type = found is not None and self.files[found.path].kinds.get(found.qualname) in TYPES
        return found if is_type else None

    def _from_outside(self, path: str, names: FileNames, inside: str, target: str) -> Place | None:
        """What a name means that its own file does not define: a method of the class around it where the language has
        it so, or what is imported."""
        if names.language in IMPLICIT and "." not in target:
            of_class = self._class_at(path, inside)
            found = self.method(of_class, target) if of_class is not None else None
            if found is not None:
                return found
        return self._imported_at(path, names, inside, target)

    def _imported_at(self, path: str, names: FileNames, inside: str, target: str) -> Place | None:
        """What a name means by imports, in each of the namespaces around it, or by the files beside."""
        scope = inside if names.whole and family(names.language) in UNDECLARED else ""
        while scope:
            found = self.find(path, f"{scope}.{target}")
            if found is not None:
                return found
            scope = scope.rpartition(".")[0]
        return self.find(path, target) or (self._beside(path, target) if names.language in BESIDE else None)

    def _guess_at(self, path: str, names: FileNames, inside: str, target: str) -> Place | None:
        """In Go the receiver of a method has a name of its own: its class is guessed at first."""
        rest = target.partition(".")[2]
        of_class = self._class_at(path, inside) if names.language == "go" and rest and "." not in rest else None
        found = self.method(of_class, rest) if of_class is not None else None
        if found is not None:
            return Place(found.path, found.qualname, is_guess=True)
        return self.guess(path, target.rpartition(".")[2], is_method=bool(rest))

    def _rust_path(self, path: str, target: str) -> Place | None:
        module, _, name = target.rpartition(".")
        found = self._resolver.resolve(path, Import(module.replace(".", "::"), name, "", 0)) if module else []
        return next((place for file in found if (place := self.find(file, name)) is not None), None)

    def guess(self, path: str, name: str, *, is_method: bool) -> Place | None:
        """The one symbol of this name among the files that this one may use; none where there are several."""
        of_family = family(self.files[path].language)
        if len(name) < SHORTEST_GUESS or (name in COMMON if is_method else of_family not in UNDECLARED):
            return None
        places: Collection[Place] = self._by_name.get((of_family, name), ())
        if len(places) > 1 and of_family == "c":  # what a header only declares is defined elsewhere
            places = [place for place in places if not place.path.endswith(HEADER_SUFFIXES)]
        if len(places) != 1:
            return None
        place = next(iter(places))
        return Place(place.path, place.qualname, is_guess=True)

    def method(self, of_class: Place, name: str) -> Place | None:
        """A method of a class or of those that it inherits from."""
        return self._method_of(of_class, name) or self.inherited(of_class, name)

    def _method_of(self, of_class: Place, name: str) -> Place | None:
        names = self.files.get(of_class.path)
        qualname = f"{of_class.qualname}.{name}"
        return Place(of_class.path, qualname) if names is not None and qualname in names.kinds else None

    def inherited(self, of_class: Place, name: str) -> Place | None:
        """A method of the classes above one."""
        key = (of_class, name)
        if key in self._inherited:
            return self._inherited[key]
        found = self._find_inherited(of_class, name)
        if not self._finding:  # while classes are being found, those above one may not all be known
            self._inherited[key] = found
        return found

    def _find_inherited(self, of_class: Place, name: str) -> Place | None:
        """As `inherited`; each class is asked once."""
        waiting, seen = [(of_class, DEEPEST)], set[Place]()
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

    def bases(self, of_class: Place) -> list[Place]:
        """The classes of the project that a class inherits from, as it names them. To find one, those of another may
        have to be known: beyond some, nothing is."""
        if of_class not in self._bases:
            if self._finding > DEEPEST:
                return []
            self._bases[of_class] = []  # what a circle of classes sees
            self._finding += 1
            self._bases[of_class] = list(self._find_bases(of_class))
            self._finding -= 1
        return self._bases[of_class]

    def _find_bases(self, of_class: Place) -> Iterator[Place]:
        names = self.files.get(of_class.path)
        if names is None:
            return
        around = of_class.qualname.rpartition(".")[0]
        for written in names.bases.get(of_class.qualname, ()):
            found = self._in_scope(of_class.path, names, around, written)
            found = found or self._imported_at(of_class.path, names, around, written)
            if found is not None:
                yield Place(found.path, found.qualname)

    def _own(self, path: str, inside: str, name: str, *, is_above: bool) -> Place | None:
        of_class = self._class_at(path, inside)
        if of_class is None or not name or "." in name:
            return None
        return self.inherited(of_class, name) if is_above else self.method(of_class, name)

    def _class_at(self, path: str, inside: str) -> Place | None:
        """The class around a place; that of a method which is defined apart from it may be in another file."""
        names = self.files[path]
        of_class = names.class_around(inside)
        around = inside.rpartition(".")[0]
        if around and names.kinds.get(inside) == "method" and of_class != around:
            return self.find(path, around) or Place(path, around)
        return Place(path, of_class) if of_class else None

    def _in_scope(self, path: str, names: FileNames, inside: str, target: str) -> Place | None:
        """A symbol of the file itself, from the innermost scope outwards; bare names in a class mean its methods where
        the language has it so."""
        first, _, rest = target.partition(".")
        if first not in names.defined and names.language not in IMPLICIT:
            return None
        scope = inside
        while True:
            qualname = f"{scope}.{first}" if scope else first
            is_class = names.kinds.get(scope) in TYPES
            if qualname in names.kinds and not (is_class and _is_hidden(names, scope, first)):
                return self.method(Place(path, qualname), rest) if rest else Place(path, qualname)
            if is_class and not rest and names.language in IMPLICIT:
                found = self.inherited(Place(path, scope), first)
                if found is not None:
                    return found
            if not scope:
                return None
            scope = scope.rpartition(".")[0]

    def _imported(self, path: str, item: Import, alias: str, rest: str, way: _Way) -> Place | None:
        """What an import stands for, with what is taken from it."""
        targets = [target for target in self._resolver.resolve(path, item) if target != path or not item.module]
        for target in targets:
            for name in _taken(item, alias, rest, self.files[path].language):
                found = self._look(target, name, way)
                if found is not None:
                    return found
        if len(targets) > 1 and rest:  # a module in a package: what is left is looked for in the module
            return self._look(targets[-1], rest, way)
        return None

    def _through_whole(self, path: str, names: FileNames, name: str, way: _Way) -> Place | None:
        """What a file has by taking in all of others; of what a header declares, the definition."""
        for item in names.whole:
            for target in self._resolver.resolve(path, item):
                for file in (*self._resolver.implementations(target), target):
                    is_defined = file == target or name in self.files[file].kinds if file in self.files else False
                    found = self._look(file, name, way) if file != path and is_defined else None
                    if found is not None:
                        return found
        return None

    def _beside(self, path: str, target: str) -> Place | None:
        first, _, rest = target.partition(".")
        for other in self._resolver.neighbours(path):
            if first in self.files[other].kinds if other in self.files else False:
                return self.method(Place(other, first), rest) if rest else Place(other, first)
        return None


def _is_hidden(names: FileNames, of_class: str, name: str) -> bool:
    """Whether a bare name means something else than the member of a class that has it: what is called by the name of
    its class is the class, and most languages want methods to be called on something."""
    if names.language == "python" or of_class.rpartition(".")[2] == name:
        return True
    return names.language not in IMPLICIT and names.kinds.get(f"{of_class}.{name}") == "method"


def _taken(item: Import, alias: str, rest: str, language: str) -> list[str]:
    """The names to look for in the file that an import means."""
    wanted = ".".join(part for part in (item.name, rest) if part)
    names = [wanted, rest if item.name else f"{alias}.{rest}" if rest else alias]
    if item.name == "default":
        names.append(f"{alias}.{rest}" if rest else alias)
    if language == "java":  # a static import brings in a member of a class
        names.append(f"{module_word(item.module, language)}.{wanted}")
    return [name for name in names if name]
