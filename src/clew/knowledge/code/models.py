"""The records of this package: facts of a content, edges, rows of symbols, and the results that callers see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import msgspec

from clew.knowledge.code.refs import node_id
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import Node

SymbolKind = Literal["class", "interface", "function", "method", "constant", "variable", "module"]
ReferenceKind = Literal["call", "inherit", "reference", "decorate"]
EdgeType = Literal["calls", "imports", "exports", "inherits", "references", "defines"]

FORMAT = 5
"""Increase it with every change of extraction: facts of another format are extracted again."""
CUT = "has more definitions, uses or statements than the limit, read in part"
FILE_KIND = "file"
COARSE_NS, FINE_NS = 2_000_000_000, 50_000_000
"""How long after a change a second one may leave the times of a file as they are: on file systems with whole seconds,
and on others."""

_SECOND_NS = 1_000_000_000
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


class ImportFact(msgspec.Struct, frozen=True, array_like=True):
    """`from module import name as alias`. `name` is empty for a whole module, and `*` for all its names. `module` is as
    written, with its leading dots or slashes."""

    module: str
    name: str
    alias: str
    line: int


class ReferenceFact(msgspec.Struct, frozen=True, array_like=True):
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
    imports: Sequence[ImportFact] = ()
    references: Sequence[ReferenceFact] = ()
    doc: str = ""
    lines: int = 0
    error: str = ""


class CodeEdge(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """One symbol uses another. The qualname of a file is empty. A guess rests on the name alone. `name` is the name
    that an import or export gives to its target, `*` if it takes all names."""

    source_path: str
    source_qualname: str
    target_path: str
    target_qualname: str
    type: EdgeType
    line: int
    is_guess: bool = False
    name: str = ""


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


class SymbolLink(msgspec.Struct, frozen=True, kw_only=True):
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
    callers: Sequence[SymbolLink]


class Callers(msgspec.Struct, frozen=True, kw_only=True):
    """The callers of the symbols that a name may mean. `untold` further calls share the name and have an unknown
    target: `owners` counts them by likely owner, `places` lists the first, those likely of the symbols asked for before
    others. `certain` is false if no call is certain though there may be some."""

    certain: bool
    symbols: Sequence[CalledSymbol]
    untold: int = 0
    places: Sequence[NamedCall] = ()
    owners: Mapping[str, int] = {}


class LocatedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that matches a text, with its best line and symbol, and the reason."""

    path: str
    score: float
    blob: str
    line: int = 1
    symbol: str = ""
    why: str = ""


class FileStatus(NamedTuple):
    """The status of a file. An equal status means equal content if it is `settled`."""

    size: int
    mtime_ns: int
    ctime_ns: int
    ino: int

    def settled(self, looked_ns: int) -> bool:
        """Whether a change of the file after that time shows in its status."""
        newest = max(self.mtime_ns, self.ctime_ns)
        grain = FINE_NS if self.ctime_ns % _SECOND_NS else COARSE_NS
        return newest < looked_ns - grain


class FileInfo(NamedTuple):
    """An indexed file with the status that it had when it was last read. `left_out` says why it has no symbols."""

    id: int
    path: str
    blob: str
    language: str
    status: FileStatus
    looked_ns: int
    lines: int
    left_out: str

    def is_as(self, status: FileStatus) -> bool:
        """Whether a file with this status certainly has the content of this row."""
        return self.status == status and status.settled(self.looked_ns)


class LeftOutFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not indexed, or only in part, and why."""

    path: str
    reason: str


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
        package=row.path.rpartition("/")[0] or ".",
        line_start=row.line_start,
        line_end=row.line_end,
        signature=row.signature or None,
        content_hash=row.blob,
        metadata={"kind": row.kind, "language": row.language},
        verified=True,
        verification=Verification.CODE,
        trust=TrustLevel.GROUND,
        created_at=at,
        updated_at=at,
    )
