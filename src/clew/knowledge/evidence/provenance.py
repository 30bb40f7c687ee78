"""Provenance: the chain of sources behind a node, citations [n] in answers (SYL-82), and signatures
of nodes that were read from files."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.code.store import record_signer
from clew.knowledge.evidence.trust import name_of
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, SourceKind
from clew.knowledge.nodes.node_store import Node, to_node
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.edge import EdgeType
from clew.trail.store import Trail

# -- the chain of sources --------------------------------------------------------------------------------------

FIELD = "provenance"
"""The field of a node that holds its recorded sources."""
_REFERENCES, _INSPIRED_BY = EdgeType.REFERENCES.label, EdgeType.INSPIRED_BY.label
_SOURCES = (_REFERENCES, _INSPIRED_BY, EdgeType.BASED_ON.label, EdgeType.VALIDATED_BY.label)
"""Types of edges that connect a node with its sources; only INSPIRED_BY leads from the source to the node."""
_MOST_LINKS = 100


class NodeSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One source of a node: its kind, its place, and the confidence that it gives the node."""

    kind: SourceKind = msgspec.field(name="source_type")
    node_id: str | None = msgspec.field(default=None, name="source_node_id")
    path: str | None = msgspec.field(default=None, name="source_path")
    url: str | None = msgspec.field(default=None, name="source_url")
    timestamp: datetime | None = None
    confidence: float = 1.0
    verified: bool = False


async def sources_of(trail: Trail, node_id: str, *, by: Principal) -> list[NodeSource]:
    """The chain of a node, highest confidence first: its recorded sources and the nodes that it refers to, is based on
    or was inspired by. Raises NotFound."""
    found = await trail.records.get(node_id, by=by)
    to_node(found)
    chain = [*msgspec.convert(found.context.get(FIELD, []), list[NodeSource]), *await _linked(trail, node_id, by)]
    return sorted(chain, key=lambda source: -source.confidence)


async def _linked(trail: Trail, node_id: str, by: Principal) -> list[NodeSource]:
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
            found.append(_source_of(node, confidence))
    return found


def _source_of(node: Node, confidence: float) -> NodeSource:
    return NodeSource(
        kind=SourceKind(int(node.domain)),
        node_id=node.id,
        path=node.path,
        url=node.url,
        timestamp=node.at,
        confidence=confidence,
        verified=node.verified or node.domain is NodeDomain.CODE,
    )


# -- citations [n] in answers ----------------------------------------------------------------------------------

RECENT = timedelta(days=30)
KEY_TERMS, MIN_KEY = 5, 6
"""The number of words of a source that are searched in an answer, and their minimum length."""
_AUTHORITY = {NodeType.RFC: "authoritative", NodeType.DOCUMENTATION: "official docs"}
_CITATION = lazy_pattern(r"(?<![\w\]])\[(\d{1,4})\]")
"""A number in brackets that is not an index such as `a[1]`."""
_WORD = lazy_pattern(r"\w+")


def cited(text: str) -> list[int]:
    """The numbers that a text cites as [n], in order, with repeats."""
    return [int(number) for number in _CITATION.findall(text)]


def source_list(nodes: Sequence[Node], at: datetime) -> str:
    """A line for each node: number, domain, place, and its age or authority, or UNVERIFIED."""
    return "\n".join(f"[{number}] {name_of(node)} ({_status(node, at)})" for number, node in enumerate(nodes, 1))


def annotate(answer: str, nodes: Sequence[Node]) -> str:
    """Add a citation [n] at the first place that each uncited source supports, and write numbers without a source as
    [n?]."""
    present, ends = set(cited(answer)), dict[str, int]()
    for word in _WORD.finditer(answer):
        ends.setdefault(word.group().casefold(), word.end())
    added = []
    for number, node in enumerate(nodes, 1):
        places = [ends[term] for term in _key_terms(node) if term in ends]
        added += [(places[0], number)] if places and number not in present else []
    for end, number in sorted(added, reverse=True):
        answer = f"{answer[:end]} [{number}]{answer[end:]}"
    return _CITATION.sub(lambda found: found[0] if 1 <= int(found[1]) <= len(nodes) else f"[{found[1]}?]", answer)


def _status(node: Node, at: datetime) -> str:
    if node.domain is NodeDomain.CODE:
        return "current"
    if not node.verified:
        return "⚠️ UNVERIFIED"
    if node.domain is NodeDomain.ACADEMIC:
        return _AUTHORITY.get(node.node_type, "external")
    return f"{(at - node.at).days} days old" if at - node.at > RECENT else "recent"


def _key_terms(node: Node) -> list[str]:
    """The first long words of a node's name and content."""
    words = (word.group().casefold() for word in _WORD.finditer(f"{node.name} {node.content}"))
    long = dict.fromkeys(word for word in words if len(word) >= MIN_KEY and word != "unverified")
    return list(long)[:KEY_TERMS]


# -- signatures ------------------------------------------------------------------------------------------------

MARK = "mark"
"""The key of the signature in the metadata of a node. It shows that a program of this user wrote the node and that
nobody changed it since; a node that came with a repository has no valid signature."""


def with_marks(drafts: Iterable[Draft]) -> list[Draft]:
    """Sign the drafts of nodes that have their ids."""
    mark = record_signer()
    return [_signed(draft, mark) for draft in drafts]


def mark_check() -> Callable[[Breadcrumb], bool]:
    """A function that checks the signature of a breadcrumb. It reads the user's secret once."""
    mark = record_signer()

    def is_signed(found: Breadcrumb) -> bool:
        metadata = found.context.get("metadata")
        given = metadata.get(MARK) if isinstance(metadata, dict) else None
        wanted = mark(_payload(found.id, found.title, found.context))
        return isinstance(given, str) and hmac.compare_digest(given.encode(errors="replace"), wanted.encode())

    return is_signed


def _signed(draft: Draft, mark: Callable[[bytes], str]) -> Draft:
    metadata = {**draft.context["metadata"], MARK: mark(_payload(str(draft.id), draft.title, draft.context))}
    return msgspec.structs.replace(draft, context={**draft.context, "metadata": metadata})


def _payload(id: str, title: str, context: Mapping[str, Any]) -> bytes:
    """The signed content: all but the signature itself and the successor, which is written later."""
    signed = {key: value for key, value in context.items() if key != "superseded_by"}
    if isinstance(metadata := signed.get("metadata"), dict):
        signed["metadata"] = {key: value for key, value in metadata.items() if key != MARK}
    return msgspec.json.encode([id, title, signed], order="deterministic")
