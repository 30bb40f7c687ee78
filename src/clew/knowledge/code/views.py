"""What is shown of code: symbols and files as nodes, links between them, files and folders. Every one names the blob
that it is true of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.refs import node_id
from clew.knowledge.code.rows import FILE_KIND, SymbolRow
from clew.trail.kinds import NodeDomain, NodeType, Trust, Verification
from clew.trail.nodes import Node

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


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """What is reached from a symbol: over which kind of edge, after how many steps, from where (`via`, a node id), and
    the line of the use, in the file of whichever end uses the other, with all `lines` of it. `is_guess` where only a
    name speaks for it."""

    node: Node
    edge_type: str
    depth: int
    via: str
    line: int
    is_guess: bool = False
    lines: Sequence[int] = ()


class NamedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call in a line of a file, inside the symbol `caller`, whose target is unknown.

    `owner` is the symbol that it likely means, as `path#qualname`; `is_likely` if that is one of those asked for.
    """

    path: str
    line: int
    caller: str
    owner: str = ""
    is_likely: bool = False


class CalledSymbol(msgspec.Struct, frozen=True, kw_only=True):
    node: Node
    callers: Sequence[Link]


class Callers(msgspec.Struct, frozen=True, kw_only=True):
    """The callers of the symbols that a name may mean.

    `untold` further calls share the name and have an unknown target: `owners` counts them by likely owner, `places`
    lists the first, those likely of the symbols asked for before others. `certain` is false if no call is certain
    though there may be some.
    """

    certain: bool
    symbols: Sequence[CalledSymbol]
    untold: int = 0
    places: Sequence[NamedCall] = ()
    owners: Mapping[str, int] = {}


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a text is about: how surely, the best line and symbol in it, and why it was chosen."""

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
    """A file of which not all is known, and why."""

    path: str
    reason: str


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder: what is below it in all, and its own files and folders as deep as was asked."""

    path: str
    count: int
    lines: int
    languages: dict[str, int]
    files: Sequence[str] = ()
    folders: Sequence[Folder] = ()


def to_kind(symbol_type: str | None) -> str | None:
    """The kind that a caller means. Raises InvalidInput."""
    if symbol_type in (None, "", "all"):
        return None
    if symbol_type not in SYMBOL_TYPES:
        raise InvalidInput(
            "symbol_type", f"{symbol_type[:80]!r} is no kind", hint=f"Kinds are {', '.join(SYMBOL_TYPES)}"
        )
    return _ALIASES.get(symbol_type, symbol_type)


def to_node(row: SymbolRow) -> Node:
    """A symbol as a node: ground truth, as long as its blob is the one on the disk."""
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
    """The folder of a path, of the files that are below it."""
    start = len(path) + 1 if path else 0
    here: list[str] = []
    below: dict[str, list[FileInfo]] = {}
    languages: dict[str, int] = {}
    for file in files:
        name, mark, _ = file.path[start:].partition("/")
        if mark:
            below.setdefault(name, []).append(file)
        else:
            here.append(name)
        if file.language:
            languages[file.language] = languages.get(file.language, 0) + 1
    names = sorted(below) if depth > 0 else []
    inner = [build_folder(f"{path}/{name}" if path else name, below[name], depth - 1) for name in names]
    return Folder(
        path=path,
        count=len(files),
        lines=sum(file.lines for file in files),
        languages=dict(sorted(languages.items(), key=lambda item: (-item[1], item[0]))),
        files=sorted(here) if depth > 0 else (),
        folders=inner,
    )
