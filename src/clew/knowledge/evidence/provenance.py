"""Where a statement comes from: the chain of sources of a node, kept with it on the trail, and answers in which every
[n] leads to a line of a list of sources (SYL-82)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from clew.access import Principal
from clew.knowledge.evidence.freshness import days_between
from clew.knowledge.evidence.naming import name_of
from clew.trail.kinds import NodeDomain, NodeType, SourceKind
from clew.trail.nodes import Node, rewrite, to_node
from clew.trail.store import Trail

RECENT_DAYS = 30
KEY_TERMS, MIN_KEY = 5, 6
"""So many words of a source, each of so many letters at least, are looked for in an answer."""

_VIA = {
    SourceKind.CODE: "code analysis",
    SourceKind.HISTORY: "history lookup",
    SourceKind.ACADEMIC: "external reference",
    SourceKind.LLM_INFERENCE: "inference",
    SourceKind.USER: "user input",
}
_AUTHORITY = {NodeType.RFC: "authoritative", NodeType.DOCUMENTATION: "official docs"}
CITATION = re.compile(r"(?<![\w\]])\[(\d{1,4})\]")
"""A number in brackets that is not an index of code such as `a[1]`."""
_WORD = re.compile(r"\w+")


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One source of a node: who or what it was, where it is, and how sure it makes the node. `timestamp` is when it
    was looked at."""

    kind: SourceKind = msgspec.field(name="source_type")
    node_id: str | None = msgspec.field(default=None, name="source_node_id")
    path: str | None = msgspec.field(default=None, name="source_path")
    url: str | None = msgspec.field(default=None, name="source_url")
    timestamp: datetime | None = None
    confidence: float = 1.0
    verified: bool = False


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer that a source bears out: `text[start:end]` of the answer as it was given."""

    text: str
    start: int
    end: int
    ref: str
    node_id: str


class Annotated(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with citations [n], the segments that they belong to, and a line for each source. `unknown` are numbers
    that the answer cited and that no source has; in the text they stand as [n?]."""

    text: str
    segments: tuple[Segment, ...]
    sources: str
    unknown: tuple[int, ...] = ()


async def add_source(trail: Trail, node_id: str, source: Source, *, by: Principal) -> None:
    """Add a source to the chain of a node; the same one a second time changes nothing. Raises NotFound."""
    added = msgspec.to_builtins(source)

    def edit(context: dict[str, Any]) -> dict[str, Any]:
        kept = [each for each in context.get("provenance", []) if each != added]
        return {**context, "provenance": [*kept, added]}

    to_node(await trail.records.get(node_id, by=by))
    await rewrite(trail, node_id, edit, by=by)


async def sources_of(trail: Trail, node_id: str, *, by: Principal) -> list[Source]:
    """The chain of a node, the surest source first, equally sure ones in the order added. Raises NotFound."""
    found = await trail.records.get(node_id, by=by)
    to_node(found)
    chain = msgspec.convert(found.context.get("provenance", []), list[Source])
    return sorted(chain, key=lambda source: -source.confidence)


def source_list(nodes: Sequence[Node], at: datetime, chains: Mapping[str, Sequence[Source]] | None = None) -> str:
    """A line for each node: its number, domain and place, by what way it is known, and its age or authority, or that it
    is UNVERIFIED. `chains` are the sources of nodes, by id."""
    known = chains or {}
    return "\n".join(_line(number, node, at, known.get(node.id, ())) for number, node in enumerate(nodes, 1))


def annotate(
    answer: str, nodes: Sequence[Node], at: datetime, chains: Mapping[str, Sequence[Source]] | None = None
) -> Annotated:
    """The answer with a citation [n] at the first place that bears a source out, and the list of sources."""
    segments = tuple(sorted(_segments(answer, nodes), key=lambda one: (one.end, one.ref)))
    unknown = tuple(dict.fromkeys(number for number in cited(answer) if not 1 <= number <= len(nodes)))
    text, at_end = [], 0
    for segment in segments:
        text.append(_without(answer[at_end : segment.end], len(nodes)) + f" {segment.ref}")
        at_end = segment.end
    text.append(_without(answer[at_end:], len(nodes)))
    return Annotated(text="".join(text), segments=segments, sources=source_list(nodes, at, chains), unknown=unknown)


def cited(text: str) -> list[int]:
    """The numbers that a text cites as [n], in order, with repeats."""
    return [int(number) for number in CITATION.findall(text)]


def _line(number: int, node: Node, at: datetime, chain: Sequence[Source]) -> str:
    via = f" via {_VIA[max(chain, key=lambda each: each.confidence).kind]}" if chain else ""
    return f"[{number}] {name_of(node)}{via} ({_standing(node, at)})"


def _standing(node: Node, at: datetime) -> str:
    if node.domain is NodeDomain.CODE:
        return "current"
    if not node.verified:
        return "⚠️ UNVERIFIED"
    if node.domain is NodeDomain.ACADEMIC:
        return _AUTHORITY.get(node.node_type, "external")
    age = days_between(node.at, at)
    return f"{int(age)} days old" if age > RECENT_DAYS else "recent"


def _segments(answer: str, nodes: Sequence[Node]) -> list[Segment]:
    """For each node the first of its key terms that the answer has, unless the answer cites the node already."""
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
    """What a node is recognised by: its name, and the first long words of its content."""
    words = (word.group().casefold() for word in _WORD.finditer(f"{node.name} {node.content}"))
    long = dict.fromkeys(word for word in words if len(word) >= MIN_KEY and word != "unverified")
    return list(long)[:KEY_TERMS]


def _without(text: str, most: int) -> str:
    """The text with every citation that no source has marked as such."""
    return CITATION.sub(lambda found: found.group() if 1 <= int(found[1]) <= most else f"[{found[1]}?]", text)
