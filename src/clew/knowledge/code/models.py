"""What one file says: its symbols, its imports and what it refers to. Facts hold for a content, not for a place: two
files with the same content share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

SymbolKind = Literal["class", "interface", "function", "method", "constant", "variable", "module"]
ReferenceKind = Literal["call", "inherit", "reference", "decorate"]

FORMAT = 3
"""Changes whenever extraction does: facts of another number are made anew."""
CUT = "defines or uses more than is kept of a file, read in part"


class Symbol(msgspec.Struct, frozen=True, array_like=True):
    """Something that a file defines. `qualname` has the enclosing names before it, with dots (`Trail.close`); lines
    count from 1, the last one included. `signature` is one line, `doc` the first paragraph of its description."""

    kind: SymbolKind
    name: str
    qualname: str
    line_start: int
    line_end: int
    signature: str = ""
    doc: str = ""


class Import(msgspec.Struct, frozen=True, array_like=True):
    """A name that a file brings in: `from module import name as alias`. `name` is empty where a whole module is
    imported, and `*` where all its names are. `module` is as it is written, with its leading dots or slashes."""

    module: str
    name: str
    alias: str
    line: int


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """A use of a name. `target` is as it is written, dotted (`self.close`, `os.path.join`); `inside` is the qualname of
    the innermost symbol around it, empty at the top of the file."""

    kind: ReferenceKind
    target: str
    inside: str
    line: int


class FileFacts(msgspec.Struct, frozen=True, array_like=True):
    """All that is kept of one content. `error` says why nothing or not all could be read."""

    language: str
    symbols: Sequence[Symbol] = ()
    imports: Sequence[Import] = ()
    references: Sequence[Reference] = ()
    doc: str = ""
    """What the file says of itself at its top, the first paragraph."""
    lines: int = 0
    error: str = ""
