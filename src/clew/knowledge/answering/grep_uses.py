"""Lines that import something, inherit from it or assign it, by how they are written: for what the edges of the code do
not tell, such as a package of others. Numbered lines go in, those that fit come out, each with its number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MAX_LINE = 500

Line = tuple[int, str]
"""Its number, and what stands on it."""

_OPENS = re.compile(
    r"(?:import\s*\(|(?:pub(?:\([^)]*\))?\s+)?use\b[^;]*\{|from\s+\S+\s+import\s*\(|import\s+(?:type\s+)?\{)[^)};]*$"
)
_CLOSES = re.compile(r"[)}]\s*;?\s*(?://.*)?$|;|\bfrom\b")


def find_import_lines(source: Iterable[str], name: str) -> Iterator[Line]:
    """The lines that import a name, also those within a list of imports."""
    said = rf"(?<![\w.:@/-]){re.escape(name)}(?![\w-])"
    quoted = rf"['\"](?:[^'\"\s]*/)?{re.escape(name)}(?:/[^'\"\s]*|\.\w{{1,3}})?['\"]"
    begins = r"(?:import|from|using|#include|extern crate|(?:pub(?:\([^)]*\))?\s+)?use)"
    statement = re.compile(
        rf"{begins}\b.*(?:{said}|{quoted})|.*\b(?:require(?:_relative)?|import)\s*\(?\s*{quoted}|.*\bfrom\s+{quoted}"
    )
    listed = re.compile(rf"(?:[\w.]+\s+)?{quoted}|{said}(?:::|,|$|\s+as\b)")
    is_open = False
    for number, line in _lines(source):
        if statement.match(line) or (is_open and listed.match(line)):
            yield number, line
        is_open = _OPENS.match(line) is not None or (is_open and _CLOSES.search(line) is None)


def find_heir_lines(source: Iterable[str], name: str) -> Iterator[Line]:
    """The lines by which something inherits from a name, or implements it."""
    said = rf"(?<!\w){re.escape(name)}(?!\w)"
    pattern = re.compile(
        rf"(?:unsafe\s+)?impl\b(?:<[^{{]*?>)?\s+(?:[\w:]+::)?{said}(?:<[^{{]*>)?\s+for\b"
        rf"|(?:[a-z]+\s+)*(?:class|interface|struct|enum|record)\s+[^({{]*\b(?:extends|implements)\b[^{{]*{said}"
        rf"|(?:include|extend|prepend)\s+(?:[\w:]+::)?{said}\s*$"
        rf"|class\s+\w+\s*\([^)]*{said}|class\s+\w+\s*<\s*(?:[\w:]+::)?{said}|class\s+\w+[^{{]*:[^{{]*{said}"
    )
    return ((number, line) for number, line in _lines(source) if pattern.match(line))


def _lines(source: Iterable[str]) -> Iterator[Line]:
    return ((number, line[:MAX_LINE].strip()) for number, line in enumerate(source, 1))
