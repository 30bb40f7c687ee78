"""The records of this package: references to code (`path`, `path:line` or `path#qualname`, with or without `code:`),
facts of a content, edges, rows of symbols, and the results that callers see."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import Node
from clew.lazy_pattern import lazy_pattern

PREFIX = "code:"
MAX_REF, MAX_NAME = 5_000, 500
"""Characters of a reference with a path, and of a name alone."""
MAX_PARTS = 20
"""Parts of a name. Each may be a folder, a file or a class, so many of them cost many lookups."""

_LINE = lazy_pattern(r"(?s)(?P<path>.+?):(?P<line>[1-9]\d{0,8})(?:[-:]\d+)?")
_SEPARATOR = lazy_pattern(r"[./]|::|(?<=[^./:#])#")
"""Between the parts of a name. A leading `#` marks a private name in JavaScript."""

SymbolKind = Literal["class", "interface", "function", "method", "constant", "variable", "module"]
ReferenceKind = Literal["call", "inherit", "reference", "decorate"]
EdgeType = Literal["calls", "imports", "exports", "inherits", "references", "defines"]

FORMAT = 5
"""Increase it with every change of extraction: facts of another format are extracted again."""
CUT = "has more definitions, uses or statements than the limit, read in part"
FILE_KIND = "file"
COARSE_NS, FINE_NS = 2_000_000_000, 50_000_000
"""The time after a change during which a second change may leave the timestamps of a file the same: on file systems
with whole seconds, and on others."""

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


class CodeRef(NamedTuple):
    """A file, one of its lines (0: none), or one of its symbols."""

    path: str
    qualname: str = ""
    line: int = 0

    @property
    def key(self) -> str:
        """The id of its node. A line belongs to its file."""
        return node_id(self.path, self.qualname)


def node_id(path: str, qualname: str = "") -> str:
    return f"{PREFIX}{short_ref(path, qualname)}"


def short_ref(path: str, qualname: str = "") -> str:
    """A reference as people write it."""
    return f"{path}#{qualname}" if qualname else path


def parse_ref(ref: str) -> CodeRef:
    """Parse the reference of a note. Raises InvalidInput for a path that is empty, absolute, or leads out of the
    repository."""
    plain = ref.strip().removeprefix(PREFIX).replace("\\", "/")
    path, _, qualname = plain.partition("#")
    lined = _LINE.fullmatch(path) if not qualname else None
    path = (lined["path"] if lined else path).removeprefix("./").rstrip("/")
    if not path or not _is_inside(path):
        raise InvalidInput(
            "code reference",
            f"{ref[:200]!r} is not a place in the repository",
            hint="Write path, path:line or path#qualname, from the root of the repository",
        )
    return CodeRef(path, qualname.strip(), int(lined["line"]) if lined else 0)


def file_of(root: Path, ref: str) -> str:
    """The file that a reference means: the file with exactly this name if it exists, else the path before a line or
    symbol. Raises InvalidInput as `parse_ref`."""
    parsed, whole = parse_ref(ref), ref.strip().removeprefix("./")
    return whole if _is_inside(whole) and os.path.isfile(f"{root}/{whole}") else parsed.path


def readings(ref: str) -> list[CodeRef]:
    """The possible meanings of a reference to a symbol or file, the likeliest first: paths may contain `#` and `:`, and
    names `#`."""
    plain = ref.removeprefix(PREFIX).removeprefix("./")
    cuts = dict.fromkeys((plain.rpartition("#"), plain.partition("#")))
    found = [CodeRef(plain), *(CodeRef(path, qualname) for path, _, qualname in cuts if path and qualname)]
    lined = _LINE.fullmatch(plain)
    return [*found, CodeRef(lined["path"], line=int(lined["line"]))] if lined else found


def check_ref(ref: str) -> None:
    """Raises InvalidInput for a text that cannot name code."""
    if not ref.strip() or len(ref) > MAX_REF or not is_utf8(ref):
        reason = "is empty" if not ref.strip() else "is not text, or is longer than any name"
        raise InvalidInput("symbol", reason, hint="Name a function, a method or a class, or write path#name")


def name_parts(name: str) -> list[str]:
    """The parts of a qualified name in any language's notation; none for a text that cannot be a name."""
    if len(name) > MAX_NAME or not is_utf8(name):
        return []
    parts = [part for part in _SEPARATOR.split(name.removesuffix("()")) if part]
    return parts if len(parts) <= MAX_PARTS else []


def is_utf8(text: str) -> bool:
    """Whether a text can be stored. Arguments of a command line and names of files may have surrogates."""
    return text.isascii() or text == text.encode("utf-8", errors="replace").decode("utf-8")


def _is_inside(path: str) -> bool:
    return path.isprintable() and ".." not in path.split("/") and not path.startswith("/")


class Symbol(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A definition. `qualname` has the enclosing names before it (`Trail.close`); lines count from 1, the last one
    included. `signature` is one line, `doc` the first paragraph of the description."""

    kind: SymbolKind
    name: str
    qualname: str
    line_start: int
    line_end: int
    signature: str = ""
    doc: str = ""


class ImportFact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`from module import name as alias`. `name` is empty for a whole module, and `*` for all its names. `module` is as
    written, with its leading dots or slashes."""

    module: str
    name: str
    alias: str
    line: int


class ReferenceFact(msgspec.Struct, frozen=True, array_like=True, gc=False):
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
    target: `owners` counts them by likely owner, `places` lists the first of them, starting with likely calls of the
    requested symbols. `certain` is false if no call is certain though there may be some."""

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
        """Whether a file with this status is certain to have the content of this row."""
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
