"""The records of this package: facts of a content, edges, rows of symbols, and the results that callers see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.refs import node_id
from clew.trail.kinds import NodeDomain, NodeType, Trust, Verification
from clew.trail.nodes import Node

SymbolKind = Literal["class", "interface", "function", "method", "constant", "variable", "module"]
ReferenceKind = Literal["call", "inherit", "reference", "decorate"]
EdgeType = Literal["calls", "imports", "inherits", "references", "defines"]

FORMAT = 4
"""Increase it with every change of extraction: facts of another format are extracted again."""
CUT = "defines or uses more than is kept of a file, read in part"
FILE_KIND = "file"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES: Mapping[str, NodeType] = {
    FILE_KIND: NodeType.FILE,
    "module": NodeType.PACKAGE,
    "class": NodeType.STRUCT,
    "interface": NodeType.INTERFACE,
    "function": NodeType.FUNCTION,
    "method": NodeType.METHOD,
    "constant": NodeType.CONSTANT,
    "variable": NodeType.VARIABLE,
}
_ALIASES = {"struct": "class", "package": "module"}
SYMBOL_TYPES = (*_TYPES, *_ALIASES)


class Symbol(msgspec.Struct, frozen=True, array_like=True):
    """A definition. `qualname` has the enclosing names before it (`Trail.close`); lines count from 1, the last one
    included. `signature` is one line, `doc` the first paragraph of the description."""

    kind: SymbolKind
    name: str
    qualname: str
    line_start: int
    line_end: int
    signature: str = ""
    doc: str = ""


class Import(msgspec.Struct, frozen=True, array_like=True):
    """`from module import name as alias`. `name` is empty for a whole module, and `*` for all its names. `module` is as
    written, with its leading dots or slashes."""

    module: str
    name: str
    alias: str
    line: int


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """A use of a name. `target` is the dotted name as written (`self.close`); `inside` is the qualname of the innermost
    symbol around it, empty at the top of the file."""

    kind: ReferenceKind
    target: str
    inside: str
    line: int


class FileFacts(msgspec.Struct, frozen=True, array_like=True):
    """The facts of one content; files with equal content share them. `doc` is the first paragraph of the description at
    the top, `error` says why some of the content could not be read."""

    language: str
    symbols: Sequence[Symbol] = ()
    imports: Sequence[Import] = ()
    references: Sequence[Reference] = ()
    doc: str = ""
    lines: int = 0
    error: str = ""


class CodeEdge(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """One symbol uses another. The qualname of a file is empty. A guess rests on the name alone."""

    source_path: str
    source_qualname: str
    target_path: str
    target_qualname: str
    type: EdgeType
    line: int
    is_guess: bool = False


class SymbolRow(NamedTuple):
    """A stored symbol with its file. The symbol of kind `file`, with an empty qualname, is the file itself."""

    id: int
    path: str
    blob: str
    kind: str
    name: str
    qualname: str
    line_start: int
    line_end: int
    signature: str
    doc: str
    language: str
    mtime_ns: int


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A symbol that was reached from another, in `depth` steps, the last one from the node id `via`. `lines` are the
    lines of the use, in the file of the using symbol; `line` is the first. A guess rests on the name alone."""

    node: Node
    edge_type: str
    depth: int
    via: str
    line: int
    is_guess: bool = False
    lines: Sequence[int] = ()


class NamedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call in a line of a file, inside the symbol `caller`, whose target is unknown. `owner` is the symbol that it
    likely means, as `path#qualname`; `is_likely` if that is one of those asked for."""

    path: str
    line: int
    caller: str
    owner: str = ""
    is_likely: bool = False


class CalledSymbol(msgspec.Struct, frozen=True, kw_only=True):
    node: Node
    callers: Sequence[Link]


class Callers(msgspec.Struct, frozen=True, kw_only=True):
    """The callers of the symbols that a name may mean. `untold` further calls share the name and have an unknown
    target: `owners` counts them by likely owner, `places` lists the first, those likely of the symbols asked for before
    others. `certain` is false if no call is certain though there may be some."""

    certain: bool
    symbols: Sequence[CalledSymbol]
    untold: int = 0
    places: Sequence[NamedCall] = ()
    owners: Mapping[str, int] = {}


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A file that matches a text, with its best line and symbol, and the reason."""

    path: str
    score: float
    blob: str
    line: int = 1
    symbol: str = ""
    why: str = ""


class FileInfo(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    blob: str
    language: str
    lines: int
    size: int
    symbols: int = 0


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not indexed, or only in part, and why."""

    path: str
    reason: str


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder with totals of all files below it, and its own files and folders down to the depth that was asked."""

    path: str
    count: int
    lines: int
    languages: dict[str, int]
    files: Sequence[str] = ()
    folders: Sequence[Folder] = ()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A symbol with its source in numbered lines, its users, and the symbols that it uses."""

    node: Node
    source: str
    dependents: Sequence[Link]
    dependencies: Sequence[Link]


def to_kind(symbol_type: str | None) -> str | None:
    """The kind that a caller means; None for all. Raises InvalidInput."""
    if symbol_type in (None, "", "all"):
        return None
    if symbol_type not in SYMBOL_TYPES:
        raise InvalidInput(
            "symbol_type", f"{symbol_type[:80]!r} is no kind", hint=f"Kinds are {', '.join(SYMBOL_TYPES)}"
        )
    return _ALIASES.get(symbol_type, symbol_type)


def to_node(row: SymbolRow) -> Node:
    """A symbol as a node: ground truth for as long as the file has this blob."""
    at = _EPOCH + timedelta(microseconds=row.mtime_ns // 1_000)
    return Node(
        id=node_id(row.path, row.qualname),
        name=row.qualname or row.path,
        domain=NodeDomain.CODE,
        node_type=_TYPES.get(row.kind, NodeType.VARIABLE),
        content="\n".join(part for part in (row.signature, row.doc) if part),
        path=row.path,
        package=str(PurePosixPath(row.path).parent),
        line_start=row.line_start,
        line_end=row.line_end,
        signature=row.signature or None,
        content_hash=row.blob,
        metadata={"kind": row.kind, "language": row.language},
        verified=True,
        verification=Verification.CODE,
        trust=Trust.GROUND,
        created_at=at,
        updated_at=at,
    )


def build_folder(path: str, files: Sequence[FileInfo], depth: int) -> Folder:
    """The folder of a path, from all files below it."""
    start = len(path) + 1 if path else 0
    here: list[str] = []
    below: dict[str, list[FileInfo]] = {}
    languages: dict[str, int] = {}
    for file in files:
        name, separator, _ = file.path[start:].partition("/")
        if separator:
            below.setdefault(name, []).append(file)
        else:
            here.append(name)
        if file.language:
            languages[file.language] = languages.get(file.language, 0) + 1
    names = sorted(below) if depth > 0 else []
    return Folder(
        path=path,
        count=len(files),
        lines=sum(file.lines for file in files),
        languages=dict(sorted(languages.items(), key=lambda item: (-item[1], item[0]))),
        files=sorted(here) if depth > 0 else (),
        folders=[build_folder(f"{path}/{name}" if path else name, below[name], depth - 1) for name in names],
    )
