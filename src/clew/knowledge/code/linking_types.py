"""The types that signatures declare: of parameters, and of fields. Enough to tell whose method is called on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from clew.knowledge.code.models import Symbol

_TYPE_FIRST = re.compile(r"(?<![\w.])(?P<type>[A-Z][\w.]*)(?:<[^()]*?>)?\s+(?P<name>\w+)\s*(?=[,)=;]|$)")
_NAME_FIRST = re.compile(r"(?<![\w.])(?P<name>\w+)\s+\*?(?P<type>(?:\w+\.)?[A-Za-z]\w*)\s*(?=[,)]|$)")
_COLON = re.compile(
    r"(?<![\w.])(?P<name>\w+)\??\s*:\s*&?\s*(?:'\w+\s+)?(?:mut\s+)?(?P<type>[A-Za-z_]\w*(?:(?:\.|::)\w+)*)"
)
_DECLARING = {"java": _TYPE_FIRST, "go": _NAME_FIRST, "typescript": _COLON, "tsx": _COLON, "rust": _COLON}
_KINDS = frozenset(("function", "method", "variable", "constant"))
_LONGEST = 2_000


class Declared:
    """The types that the symbols of one file declare, as they are written, with dots."""

    __slots__ = ("_pattern", "_signatures", "_types")

    def __init__(self, language: str, symbols: Iterable[Symbol]) -> None:
        self._pattern = _DECLARING.get(language)
        self._signatures: dict[str, str] = {}
        self._types: dict[str, Mapping[str, str]] = {}
        for symbol in symbols if self._pattern is not None else ():
            if symbol.kind in _KINDS and symbol.signature:
                before = self._signatures.get(symbol.qualname, "")
                self._signatures[symbol.qualname] = f"{before};{symbol.signature}"[:_LONGEST]

    def of(self, qualname: str, name: str) -> str:
        """The type of a parameter of a function, or of a field by its own qualname; empty where it is not known."""
        if qualname not in self._types:
            self._types[qualname] = self._read(self._signatures.get(qualname, ""))
        return self._types[qualname].get(name, "")

    def _read(self, signature: str) -> Mapping[str, str]:
        found = self._pattern.finditer(signature) if self._pattern is not None and signature else ()
        return {match["name"]: match["type"].replace("::", ".") for match in found}
