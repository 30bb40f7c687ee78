"""The names that one file defines and imports, and the types that it declares."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from clew.knowledge.code.linking.imports import family, module_word
from clew.knowledge.code.models import FileFacts, ImportFact, Symbol

TYPES = frozenset(("class", "interface", "module"))
VALUES = frozenset(("constant", "variable"))
CALLABLE = frozenset(("function", "method", "class", "interface"))

_INNER_HASH = re.compile(r"(?<=[^.#])#")
_TYPE_FIRST = re.compile(r"(?<![\w.])(?P<type>[A-Z][\w.]*)(?:<[^()]*?>)?\s+(?P<name>\w+)\s*(?=[,)=;]|$)")
_NAME_FIRST = re.compile(r"(?<![\w.])(?P<name>\w+)\s+\*?(?P<type>(?:\w+\.)?[A-Za-z]\w*)\s*(?=[,)]|$)")
_COLON = re.compile(
    r"(?<![\w.])(?P<name>\w+)\??\s*:\s*&?\s*(?:'\w+\s+)?(?:mut\s+)?(?P<type>[A-Za-z_]\w*(?:(?:\.|::)\w+)*)"
)
_TYPE_PATTERNS = {"java": _TYPE_FIRST, "go": _NAME_FIRST, "typescript": _COLON, "tsx": _COLON, "rust": _COLON}
_TYPED_KINDS = frozenset(("function", "method", "variable", "constant"))
_MAX_SIGNATURES = 2_000


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
