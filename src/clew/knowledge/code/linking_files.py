"""The names of one file: what it defines and brings in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from clew.knowledge.code.imports import family, module_word
from clew.knowledge.code.linking_types import Declared
from clew.knowledge.code.models import FileFacts, Import

TYPES = frozenset(("class", "interface", "module"))
VALUES = frozenset(("constant", "variable"))
CALLABLE = frozenset(("function", "method", "class", "interface"))
_INNER_HASH = re.compile(r"(?<=[^.#])#")


class Place(NamedTuple):
    """A symbol by file and qualname; the file itself has an empty one."""

    path: str
    qualname: str
    is_guess: bool = False


class FileNames:
    """The names of one file."""

    __slots__ = ("aliases", "bases", "declared", "decorated", "defined", "kinds", "language", "whole")

    def __init__(self, facts: FileFacts) -> None:
        self.language = facts.language
        self.kinds = {symbol.qualname: symbol.kind for symbol in facts.symbols}
        self.defined = {qualname.rpartition(".")[2] for qualname in self.kinds}
        """The last names of all that it defines."""
        self.declared = Declared(facts.language, facts.symbols)
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
                self.bases[reference.inside].append(with_dots(reference.target))
        self.decorated = {item.inside for item in facts.references if item.kind == "decorate"}

    def knows(self, first: str) -> bool:
        """Whether what begins with this name may be known to those who use the file, if only from others."""
        return first in self.kinds or first in self.aliases or bool(self.whole)

    def around(self, qualname: str) -> str:
        """The innermost symbol at or around a qualname; empty where that is the file."""
        while qualname and qualname not in self.kinds:
            qualname = qualname.rpartition(".")[0]
        return qualname

    def class_around(self, qualname: str) -> str:
        while qualname and self.kinds.get(qualname) not in TYPES:
            qualname = qualname.rpartition(".")[0]
        return qualname

    def callables(self, path: str) -> Iterator[tuple[tuple[str, str], Place]]:
        """What can be called, by the family of the language and the last name."""
        for qualname, kind in self.kinds.items():
            if kind in CALLABLE:
                yield (family(self.language), qualname.rpartition(".")[2]), Place(path, qualname)

    def is_indirect(self, qualname: str) -> bool:
        """Whether what is called under a name may be something else than what is written there: the value of a
        variable, or what a decorator made of a definition."""
        return self.kinds.get(qualname) in VALUES or qualname in self.decorated

    def indirect(self) -> Iterator[str]:
        """The last names of all such, in Python."""
        for qualname in self.kinds if self.language == "python" else ():
            if self.is_indirect(qualname):
                yield qualname.rpartition(".")[2]


def _alias(item: Import, language: str) -> str:
    if item.alias or (item.name and item.name != "*"):
        return item.alias or item.name
    if language == "python":
        return item.module.partition(".")[0]
    return module_word(item.module, language)


@lru_cache(1 << 16)
def with_dots(target: str) -> str:
    """With dots alone; a method of what a call gives is looked for as one of the class that is called. What begins with
    `#` is a private name of JavaScript."""
    plain = target.replace("()", "").replace("::", ".").replace("->", ".").replace("?.", ".")
    return _INNER_HASH.sub(".", plain).strip(".") if "#" in plain else plain.strip(".")
