"""The names that a file defines and imports, and the files of a project that an import means: by relative path,
package, or end of a path, for each language."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from posixpath import basename, dirname, join, normpath, splitext
from types import MappingProxyType
from typing import NamedTuple

from clew.knowledge.code.models import FileFacts, ImportFact, Symbol
from clew.lazy_pattern import lazy_pattern

SCRIPT_SUFFIXES = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
SCRIPT_ROOTS = {"@/": ("", "src/"), "~/": ("", "src/")}
NATIVE_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".m", ".mm")
HEADER_SUFFIXES = (".h", ".hh", ".hpp", ".hxx")
FAMILIES = {"typescript": "javascript", "tsx": "javascript", "jsx": "javascript", "cpp": "c", "c++": "c"}
TYPES = frozenset(("class", "interface", "module"))
VALUES = frozenset(("constant", "variable"))
CALLABLE = frozenset(("function", "method", "class", "interface"))
_INNER_HASH = lazy_pattern(r"(?<=[^.#])#")
_TYPE_FIRST = lazy_pattern(r"(?<![\w.])(?P<type>[A-Z][\w.]*)(?:<[^()]*?>)?\s+(?P<name>\w+)\s*(?=[,)=;]|$)")
_NAME_FIRST = lazy_pattern(r"(?<![\w.])(?P<name>\w+)\s+\*?(?P<type>(?:\w+\.)?[A-Za-z]\w*)\s*(?=[,)]|$)")
_COLON = lazy_pattern(
    r"(?<![\w.])(?P<name>\w+)\??\s*:\s*&?\s*(?:'\w+\s+)?(?:mut\s+)?(?P<type>[A-Za-z_]\w*(?:(?:\.|::)\w+)*)"
)
_TYPE_PATTERNS = {"java": _TYPE_FIRST, "go": _NAME_FIRST, "typescript": _COLON, "tsx": _COLON, "rust": _COLON}
_TYPED_KINDS = frozenset(("function", "method", "variable", "constant"))
_MAX_SIGNATURES = 2_000


def family(language: str) -> str:
    """The group of languages whose files can use each other's names."""
    return FAMILIES.get(language, language)


class DeclaredFolders(NamedTuple):
    """Packages that manifests declare: the module path of each folder with a `go.mod`, and the source folder of each
    crate of Rust. Without them, the ends of paths and the names of folders decide."""

    go: Mapping[str, str] = MappingProxyType({})
    rust: Mapping[str, str] = MappingProxyType({})


NO_PACKAGES = DeclaredFolders()


class ImportResolver:
    """Finds the files of a project by the imports of them."""

    def __init__(self, languages: Mapping[str, str], packages: DeclaredFolders = NO_PACKAGES) -> None:
        self._languages: dict[str, str] = {}
        self._folders: defaultdict[str, set[str]] = defaultdict(set)
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._packages = packages
        self._found: dict[tuple[str, str, str], list[str]] = {}
        from clew.knowledge.code.python_calls.modules import Modules  # for linking alone

        self.modules = Modules()
        for path, language in languages.items():
            self.add(path, language)

    def add(self, path: str, language: str) -> None:
        self._found.clear()
        self._languages[path] = language
        self._folders[dirname(path)].add(path)
        self._names[basename(path)].add(path)
        if language == "python":
            self.modules.add(path)

    def remove(self, path: str) -> None:
        self._found.clear()
        if self._languages.pop(path, None) is not None:
            self._folders[dirname(path)].discard(path)
            self._names[basename(path)].discard(path)
            self.modules.remove(path)

    def resolve(self, importer: str, item: ImportFact) -> list[str]:
        """The files that an import means, in order; empty for an import from outside of the project."""
        if not item.module:  # an export under another name
            return [importer]
        key = (importer, item.module, item.name)
        if key not in self._found:
            finder = FINDERS.get(family(self._languages.get(importer, "")))
            self._found[key] = finder(self, importer, item) if finder is not None else []
        return self._found[key]

    def neighbours(self, path: str) -> list[str]:
        """The other files of the folder in the same language, in order."""
        language = self._languages.get(path, "")
        return sorted(
            other for other in self._folders[dirname(path)] if other != path and self._languages[other] == language
        )

    def implementations(self, path: str) -> list[str]:
        """The files with the definitions of a C header: those with its name."""
        stem, ending = splitext(basename(path))
        if ending not in HEADER_SUFFIXES:
            return []
        found = [other for suffix in NATIVE_SUFFIXES for other in sorted(self._names.get(stem + suffix, ()))]
        return [other for other in found if other != path]

    def _python(self, importer: str, item: ImportFact) -> list[str]:
        level = len(item.module) - len(item.module.lstrip("."))
        found = self.modules.resolve(item.module[level:], level, importer)
        submodule = self.modules.submodule(found, item.name) if found and item.name else ""
        return [path for path in (found, submodule) if path and not path.endswith("/")]

    def _script(self, importer: str, item: ImportFact) -> list[str]:
        module = item.module.strip("'\"")
        if module.startswith("."):
            return self._script_at(normpath(join(dirname(importer), module)))
        for prefix, roots in SCRIPT_ROOTS.items():
            if module.startswith(prefix):
                tried = [self._script_at(root + module[len(prefix) :]) for root in roots]
                return next((found for found in tried if found), [])
        return []

    def _script_at(self, stem: str) -> list[str]:
        bare = splitext(stem)[0] if splitext(stem)[1] in (".js", ".mjs", ".cjs", ".jsx") else stem
        stems = (stem, bare) if bare != stem else (stem,)
        candidates = [stem, *(name + suffix for name in stems for suffix in SCRIPT_SUFFIXES)]
        candidates += [normpath(f"{stem}/index{suffix}") for suffix in SCRIPT_SUFFIXES]
        return next(([path] for path in candidates if path in self._languages), [])

    def _go(self, importer: str, item: ImportFact) -> list[str]:
        module = item.module.strip('"')
        for folder, root in self._packages.go.items():
            if module == root or module.startswith(root + "/"):
                return self._package(normpath(join(folder, module[len(root) :].lstrip("/"))), "go")
        parts = module.split("/")
        shortest = len(parts) if "." not in parts[0] else 1
        for start in range(len(parts) - shortest + 1):
            found = self._package("/".join(parts[start:]), "go")
            if found:
                return found
        return []

    def _package(self, folder: str, language: str) -> list[str]:
        inside = self._folders.get("" if folder == "." else folder, ())
        return sorted(path for path in inside if self._languages[path] == language and not path.endswith("_test.go"))

    def _java(self, importer: str, item: ImportFact) -> list[str]:
        whole = item.module if item.name in ("", "*") else f"{item.module}.{item.name}"
        parts = whole.removesuffix(".*").split(".")
        for end in range(len(parts), 0, -1):
            found = self._ending(importer, "/".join(parts[:end]) + ".java")
            if found:
                return found
        folder = "/".join(parts)
        is_star = item.name == "*" or whole.endswith(".*")
        folders = [name for name in self._folders if name == folder or name.endswith("/" + folder)] if is_star else []
        return [path for name in sorted(folders) for path in self._package(name, "java")]

    def _native(self, importer: str, item: ImportFact) -> list[str]:
        included = item.module.strip('"<>')
        beside = normpath(join(dirname(importer), included))
        return [beside] if beside in self._languages else self._ending(importer, included)

    def _ruby(self, importer: str, item: ImportFact) -> list[str]:
        required = item.module.strip("'\"").removesuffix(".rb") + ".rb"
        beside = normpath(join(dirname(importer), required))
        if beside in self._languages or required.startswith("."):
            return [beside] if beside in self._languages else []
        return self._ending(importer, required)

    def _rust(self, importer: str, item: ImportFact) -> list[str]:
        parts = [part for part in item.module.replace("::", ".").split(".") if part]
        if item.name not in ("", "*"):
            parts.append(item.name)
        if not parts:
            return []
        folder, rest = self._rust_root(importer, parts)
        for end in range(len(rest), 0, -1):
            stem = normpath(join(folder, *rest[:end]))
            found = [path for path in (f"{stem}.rs", f"{stem}/mod.rs") if path in self._languages]
            if found:
                return found
        roots = [join(folder, name).lstrip("/") for name in ("lib.rs", "main.rs", "mod.rs")]
        is_rooted = parts[0] in ("crate", "self", "super") or folder != self._rust_folder(importer)
        return [path for path in roots if path in self._languages][:1] if is_rooted else []

    def _rust_root(self, importer: str, parts: list[str]) -> tuple[str, list[str]]:
        """The folder to search, and the rest of the path."""
        folder = self._rust_folder(importer)
        if parts[0] == "crate":
            return self._crate(importer), parts[1:]
        while parts and parts[0] in ("self", "super"):
            folder = dirname(folder) if parts[0] == "super" else folder
            parts = parts[1:]
        if parts and parts[0] in self._packages.rust:
            return self._packages.rust[parts[0]], parts[1:]
        for name in (parts[0], parts[0].replace("_", "-")) if parts else ():
            for source in (f"{name}/src", f"crates/{name}/src"):
                if f"{source}/lib.rs" in self._languages:
                    return source, parts[1:]
        return folder, parts

    @staticmethod
    def _rust_folder(path: str) -> str:
        """The folder of the submodules of a file."""
        stem = splitext(basename(path))[0]
        return dirname(path) if stem in ("mod", "lib", "main") else join(dirname(path), stem)

    def _crate(self, importer: str) -> str:
        folder = dirname(importer)
        while folder and not any(f"{folder}/{name}" in self._languages for name in ("lib.rs", "main.rs")):
            folder = dirname(folder)
        return folder

    def _ending(self, importer: str, ending: str) -> list[str]:
        """The file whose path has this end. If there are several, the file that shares most of the importer's path."""
        candidates = self._names.get(basename(ending), ())
        found = [path for path in candidates if path == ending or path.endswith("/" + ending)]
        return [max(sorted(found), key=lambda path: _shared(path, importer))] if found else []


def _shared(path: str, other: str) -> int:
    """The number of leading folders that two paths share."""
    count = 0
    for one, two in zip(path.split("/")[:-1], other.split("/")[:-1], strict=False):
        if one != two:
            break
        count += 1
    return count


def module_word(module: str, language: str) -> str:
    """The name by which a file uses a module that it imports as a whole."""
    parts = [part for part in module.strip("'\"<>").replace("::", "/").split("/") if part]
    last = parts[-1] if parts else ""
    if language == "go":
        is_version = len(parts) > 1 and last[:1] == "v" and last[1:].isdigit()
        return (parts[-2] if is_version else last).partition(".")[0]
    return last.rpartition(".")[2] if language in ("java", "rust") else splitext(last)[0]


def words_of(imports: Iterable[ImportFact]) -> set[str]:
    """The names of files and folders that imports may mean."""
    words: set[str] = set()
    for item in imports:
        last = item.module.strip("'\"<>").replace("::", "/").rstrip("/").rpartition("/")[2]
        words.update((item.name, splitext(last)[0], last.rpartition(".")[2]))
    return words - {""}


FINDERS: dict[str, Callable[[ImportResolver, str, ImportFact], list[str]]] = {
    "python": ImportResolver._python,
    "javascript": ImportResolver._script,
    "go": ImportResolver._go,
    "java": ImportResolver._java,
    "c": ImportResolver._native,
    "ruby": ImportResolver._ruby,
    "rust": ImportResolver._rust,
}


class SymbolPlace(NamedTuple):
    """A symbol by file and qualname; the qualname of a file is empty. A guess rests on the name alone."""

    path: str
    qualname: str
    is_guess: bool = False


class DeclaredTypes:
    """The types that the signatures of one file declare for parameters and fields, with dots."""

    __slots__ = ("_pattern", "_signatures", "_types")

    def __init__(self, language: str, symbols: Iterable[Symbol]) -> None:
        self._pattern = _TYPE_PATTERNS.get(language)
        self._signatures: dict[str, str] = {}
        self._types: dict[str, Mapping[str, str]] = {}
        for symbol in symbols if self._pattern is not None else ():
            if symbol.kind in _TYPED_KINDS and symbol.signature:
                before = self._signatures.get(symbol.qualname, "")
                self._signatures[symbol.qualname] = f"{before};{symbol.signature}"[:_MAX_SIGNATURES]

    def of(self, qualname: str, name: str) -> str:
        """The type of a parameter of a function, or of a field by its own qualname; empty if unknown."""
        if qualname not in self._types:
            signature = self._signatures.get(qualname, "")
            found = self._pattern.finditer(signature) if self._pattern is not None and signature else ()
            self._types[qualname] = {match["name"]: match["type"].replace("::", ".") for match in found}
        return self._types[qualname].get(name, "")


class FileNames:
    """The names that one file defines and imports."""

    __slots__ = ("aliases", "bases", "declared", "decorated", "defined", "kinds", "language", "whole")

    def __init__(self, facts: FileFacts) -> None:
        self.language = facts.language
        self.kinds = {symbol.qualname: symbol.kind for symbol in facts.symbols}
        self.defined = {qualname.rpartition(".")[2] for qualname in self.kinds}
        """The last parts of all qualnames."""
        self.declared = DeclaredTypes(facts.language, facts.symbols)
        self.aliases: defaultdict[str, list[ImportFact]] = defaultdict(list)
        self.whole: list[ImportFact] = []
        """Imports of all names of a file."""
        for item in facts.imports:
            is_whole = item.name == "*" or item.alias == "."
            if is_whole or (not item.alias and family(facts.language) in ("c", "ruby")):
                self.whole.append(item)
            else:
                self.aliases[_alias(item, facts.language)].append(item)
        self.bases: defaultdict[str, list[str]] = defaultdict(list)
        for reference in facts.references:
            if reference.kind == "inherit":
                self.bases[reference.inside].append(with_dots(reference.target))
        self.decorated = {item.inside for item in facts.references if item.kind == "decorate"}

    def knows(self, first: str) -> bool:
        """Whether other files may get a name that starts so from this file."""
        return first in self.kinds or first in self.aliases or bool(self.whole)

    def around(self, qualname: str) -> str:
        """The innermost symbol at or around a qualname; empty for the file."""
        while qualname and qualname not in self.kinds:
            qualname = qualname.rpartition(".")[0]
        return qualname

    def class_around(self, qualname: str) -> str:
        while qualname and self.kinds.get(qualname) not in TYPES:
            qualname = qualname.rpartition(".")[0]
        return qualname

    def callables(self, path: str) -> Iterator[tuple[tuple[str, str], SymbolPlace]]:
        """The callable symbols, by the family of the language and the last part of the name."""
        for qualname, kind in self.kinds.items():
            if kind in CALLABLE:
                yield (family(self.language), qualname.rpartition(".")[2]), SymbolPlace(path, qualname)

    def is_indirect(self, qualname: str) -> bool:
        """Whether a call by this name may run other code: it is a variable, or decorated."""
        return self.kinds.get(qualname) in VALUES or qualname in self.decorated

    def indirect(self) -> Iterator[str]:
        """The last parts of all such names, in Python."""
        for qualname in self.kinds if self.language == "python" else ():
            if self.is_indirect(qualname):
                yield qualname.rpartition(".")[2]


def _alias(item: ImportFact, language: str) -> str:
    if item.alias or (item.name and item.name != "*"):
        return item.alias or item.name
    return item.module.partition(".")[0] if language == "python" else module_word(item.module, language)


@lru_cache(1 << 16)
def with_dots(target: str) -> str:
    """A name with dots as its only separators. `f().b` becomes `f.b`: a method of a call is searched in the class that
    is called. A leading `#` marks a private name in JavaScript."""
    plain = target.replace("()", "").replace("::", ".").replace("->", ".").replace("?.", ".")
    return _INNER_HASH.sub(".", plain).strip(".") if "#" in plain else plain.strip(".")
