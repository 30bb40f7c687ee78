"""Anchors: small nodes on the trail that stand for files and symbols of the code, so that history and references can
have edges to code that itself is kept elsewhere and built anew at any time."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from clew.access import Principal
from clew.errors import AlreadyExists, InvalidInput, NotFound
from clew.knowledge.history.keyed import keyed_id
from clew.trail.kinds import NodeDomain, NodeType, Trust
from clew.trail.nodes import Node, NodeGraph
from clew.trail.store import Trail

MAX_REFS = 500
_PREFIX = "code:"
_LINE = re.compile(r"(?P<path>.+?):(?P<line>[1-9]\d{0,8})(?:[-:]\d+)?")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class CodeRef(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the code: a file, one of its lines (0: none), or one of its symbols."""

    path: str
    qualname: str = ""
    line: int = 0

    @property
    def key(self) -> str:
        """The name of the node that stands for it: a line belongs to its file."""
        return f"{_PREFIX}{self.path}#{self.qualname}" if self.qualname else f"{_PREFIX}{self.path}"


def parse_ref(ref: str) -> CodeRef:
    """From `path`, `path:line` or `path#qualname`, with or without `code:` before it.

    Raises InvalidInput for what is empty, absolute, or leads out of the repository.
    """
    plain = ref.strip().removeprefix(_PREFIX).replace("\\", "/")
    path, _, qualname = plain.partition("#")
    lined = _LINE.fullmatch(path) if not qualname else None
    path = (lined["path"] if lined else path).removeprefix("./").rstrip("/")
    if not path or path.startswith("/") or ".." in path.split("/") or not path.isprintable():
        raise InvalidInput(
            "code reference",
            f"{ref[:200]!r} is not a place in the repository",
            hint="Write path, path:line or path#qualname, from the root of the repository",
        )
    return CodeRef(path=path, qualname=qualname.strip(), line=int(lined["line"]) if lined else 0)


def references_of(node: Node) -> list[CodeRef]:
    """The places that an entry was noted for; none where it was written without any."""
    given = node.metadata.get("code_references", ())
    return [parse_ref(ref) for ref in given if isinstance(ref, str)]


def anchor_id(owner_id: str, ref: str) -> str:
    """The id of the node that stands for a place, whether it is there yet or not."""
    return keyed_id(owner_id, parse_ref(ref).key)


def node_id_of(owner_id: str, id_or_ref: str) -> str:
    """The id of a node on the trail, given as it is, or as the code that it stands for."""
    return id_or_ref if _UUID.fullmatch(id_or_ref) else anchor_id(owner_id, id_or_ref)


async def ensure_anchors(trail: Trail, refs: Sequence[str], *, by: Principal) -> list[str]:
    """Make sure that each place has its node, and return their ids in the order given, each once.

    All references are checked before anything is written. Raises InvalidInput, TooLarge.
    """
    if len(refs) > MAX_REFS:
        raise InvalidInput("code_references", f"may hold {MAX_REFS} places")
    places = {keyed_id(by.owner_id, place.key): place for place in map(parse_ref, refs)}
    graph = NodeGraph(trail, by)
    for id, place in places.items():
        await _ensure(graph, id, place)
    return list(places)


async def _ensure(graph: NodeGraph, id: str, place: CodeRef) -> Node | None:
    try:
        return await graph.get_node(id)
    except NotFound:
        pass
    try:
        return await graph.add_node(
            place.qualname or place.path,
            NodeDomain.CODE,
            _type_of(place),
            place.key.removeprefix(_PREFIX),
            path=place.path,
            metadata={"anchor": True, "ref": place.key},
            trust=Trust.GROUND,
            id=id,
        )
    except AlreadyExists:
        return None  # another writer had the same thought


def _type_of(place: CodeRef) -> NodeType:
    """What a symbol most likely is, by how names are written; the code index knows for certain."""
    if not place.qualname:
        return NodeType.FILE
    if place.qualname.rpartition(".")[2][:1].isupper():
        return NodeType.STRUCT
    return NodeType.METHOD if "." in place.qualname else NodeType.FUNCTION
