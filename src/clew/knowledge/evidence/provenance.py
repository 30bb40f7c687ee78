"""Provenance: the chain of sources behind a node, and answers whose citations [n] lead to a source list (SYL-82)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import InvalidInput, NotFound
from clew.knowledge.evidence.citations import name_of
from clew.knowledge.evidence.signatures import MARK
from clew.knowledge.evidence.trust import days_between
from clew.trail.edge import EdgeType
from clew.trail.kinds import NodeDomain, NodeType, SourceKind
from clew.trail.nodes import Node, rewrite, to_node
from clew.trail.store import Trail

FIELD = "provenance"
"""The field of a node that holds its recorded sources."""
RECENT_DAYS = 30
KEY_TERMS, MIN_KEY = 5, 6
"""How many words of a source are looked for in an answer, and their least length."""

_AUTHORITY = {NodeType.RFC: "authoritative", NodeType.DOCUMENTATION: "official docs"}
_REFERENCES, _INSPIRED_BY = EdgeType.REFERENCES.label, EdgeType.INSPIRED_BY.label
_SOURCES = (_REFERENCES, _INSPIRED_BY, EdgeType.BASED_ON.label, EdgeType.VALIDATED_BY.label)
"""Types of edges that connect a node with its sources; only INSPIRED_BY leads from the source to the node."""
_MOST_LINKS = 100
CITATION = re.compile(r"(?<![\w\]])\[(\d{1,4})\]")
"""A number in brackets that is not an index such as `a[1]`."""
_WORD = re.compile(r"\w+")


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One source of a node: its kind, its place, and how sure it makes the node."""

    kind: SourceKind = msgspec.field(name="source_type")
    node_id: str | None = msgspec.field(default=None, name="source_node_id")
    path: str | None = msgspec.field(default=None, name="source_path")
    url: str | None = msgspec.field(default=None, name="source_url")
    timestamp: datetime | None = None
    confidence: float = 1.0
    verified: bool = False


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """`text[start:end]` of an answer that a source supports."""

    text: str
    start: int
    end: int
    ref: str
    node_id: str


class Annotated(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with citations [n], their segments, and a line for each source. `unknown` are cited numbers without a
    source; the text shows them as [n?]."""

    text: str
    segments: tuple[Segment, ...]
    sources: str
    unknown: tuple[int, ...] = ()


async def add_source(trail: Trail, node_id: str, source: Source, *, by: Principal) -> None:
    """Add a source to the chain of a node; a known one is not added twice. Raises NotFound, and InvalidInput for a node
    read from a document, whose sources are signed."""
    added = msgspec.to_builtins(source)

    def edit(context: dict[str, Any]) -> dict[str, Any]:
        kept = [each for each in context.get(FIELD, []) if each != added]
        return {**context, FIELD: [*kept, added]}

    if MARK in to_node(await trail.records.get(node_id, by=by)).metadata:
        raise InvalidInput("node_id", "is a part of a document, which has its sources already")
    await rewrite(trail, node_id, edit, by=by)


async def sources_of(trail: Trail, node_id: str, *, by: Principal) -> list[Source]:
    """The chain of a node, highest confidence first: its recorded sources and the nodes that it refers to, is based on
    or was inspired by. Raises NotFound."""
    found = await trail.records.get(node_id, by=by)
    to_node(found)
    chain = [*msgspec.convert(found.context.get(FIELD, []), list[Source]), *await _linked(trail, node_id, by)]
    return sorted(chain, key=lambda source: -source.confidence)


async def _linked(trail: Trail, node_id: str, by: Principal) -> list[Source]:
    """The sources that edges lead to, each node once. The trail stores `code referenced_in history` reversed, so code
    is a source in both directions."""
    strength: dict[str, float] = {}
    code_only: set[str] = set()
    for edge in await trail.edges.of(node_id, by=by, types=_SOURCES, limit=_MOST_LINKS):
        is_outgoing = edge.source == node_id
        if is_outgoing != (edge.type == _INSPIRED_BY) or edge.type == _REFERENCES:
            other = edge.target if is_outgoing else edge.source
            strength[other] = max(edge.weight, strength.get(other, 0.0))
            code_only |= {other} if edge.type == _REFERENCES and not is_outgoing else set()
    found = []
    for id, confidence in strength.items():
        try:
            node = to_node(await trail.records.get(id, by=by))
        except NotFound:  # no node, or gone
            continue
        if node.domain is NodeDomain.CODE or id not in code_only:
            found.append(source_of(node, confidence=confidence))
    return found


def source_of(node: Node, *, confidence: float = 1.0) -> Source:
    """A node as the source of another one."""
    return Source(
        kind=SourceKind(int(node.domain)),
        node_id=node.id,
        path=node.path,
        url=node.url,
        timestamp=node.at,
        confidence=confidence,
        verified=node.verified or node.domain is NodeDomain.CODE,
    )


def source_list(nodes: Sequence[Node], at: datetime) -> str:
    """A line for each node: number, domain, place, and its age or authority, or UNVERIFIED."""
    return "\n".join(f"[{number}] {name_of(node)} ({_status(node, at)})" for number, node in enumerate(nodes, 1))


def annotate(answer: str, nodes: Sequence[Node], at: datetime) -> Annotated:
    """Add a citation [n] at the first place that each uncited source supports, and the list of sources."""
    segments = tuple(sorted(_segments(answer, nodes), key=lambda one: (one.end, one.ref)))
    unknown = tuple(dict.fromkeys(number for number in cited(answer) if not 1 <= number <= len(nodes)))
    text, at_end = [], 0
    for segment in segments:
        text.append(_mark_unknown(answer[at_end : segment.end], len(nodes)) + f" {segment.ref}")
        at_end = segment.end
    text.append(_mark_unknown(answer[at_end:], len(nodes)))
    return Annotated(text="".join(text), segments=segments, sources=source_list(nodes, at), unknown=unknown)


def cited(text: str) -> list[int]:
    """The numbers that a text cites as [n], in order, with repeats."""
    return [int(number) for number in CITATION.findall(text)]


def _status(node: Node, at: datetime) -> str:
    if node.domain is NodeDomain.CODE:
        return "current"
    if not node.verified:
        return "⚠️ UNVERIFIED"
    if node.domain is NodeDomain.ACADEMIC:
        return _AUTHORITY.get(node.node_type, "external")
    age = days_between(node.at, at)
    return f"{int(age)} days old" if age > RECENT_DAYS else "recent"


def _segments(answer: str, nodes: Sequence[Node]) -> list[Segment]:
    """For each uncited node, the first of its key terms that the answer contains."""
    present = set(cited(answer))
    places: dict[str, tuple[int, int]] = {}
    for found in _WORD.finditer(answer):
        places.setdefault(found.group().casefold(), found.span())
    segments = []
    for number, node in enumerate(nodes, 1):
        terms = (term for term in _key_terms(node) if term in places)
        if number not in present and (term := next(terms, None)) is not None:
            start, end = places[term]
            segments.append(Segment(text=answer[start:end], start=start, end=end, ref=f"[{number}]", node_id=node.id))
    return segments


def _key_terms(node: Node) -> list[str]:
    """The first long words of a node's name and content."""
    words = (word.group().casefold() for word in _WORD.finditer(f"{node.name} {node.content}"))
    long = dict.fromkeys(word for word in words if len(word) >= MIN_KEY and word != "unverified")
    return list(long)[:KEY_TERMS]


def _mark_unknown(text: str, most: int) -> str:
    """The text with unknown citations written as [n?]."""
    return CITATION.sub(lambda found: found.group() if 1 <= int(found[1]) <= most else f"[{found[1]}?]", text)
