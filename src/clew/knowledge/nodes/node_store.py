"""Nodes of code, history and literature: the record, its breadcrumb of schema node.v1, and filters over nodes. A node
that failed a check has a mark in its content; its vector is made from the text without the mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

import msgspec

from clew.errors import InvalidInput, NotFound
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, Verification, check_node_type
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.selector import ContextMatch, Selector

SCHEMA = "node.v1"
DEFAULT_TRUST = 50
UNVERIFIED = "[UNVERIFIED]"
"""The mark before the content of a node that failed a check."""


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of knowledge. `trust` is from 0 to 100, `confidence` from 0 to 1; `content` begins with UNVERIFIED if
    a check failed. Code has a place, history a time and a category, literature a url, a source and authors."""

    id: str
    name: str
    domain: NodeDomain
    node_type: NodeType
    content: str
    path: str | None = None
    package: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    signature: str | None = None
    session_id: str | None = None
    timestamp: datetime | None = None
    category: str | None = None
    url: str | None = None
    source: str | None = None
    authors: tuple[str, ...] = ()
    published_at: datetime | None = None
    content_hash: str | None = None
    metadata: dict[str, Any] = {}
    verified: bool = False
    verification: Verification = msgspec.field(default=Verification.NONE, name="verification_type")
    confidence: float = 1.0
    trust: int = msgspec.field(default=DEFAULT_TRUST, name="trust_level")
    created_at: datetime
    updated_at: datetime | None = None
    expires_at: datetime | None = None
    superseded_by: str | None = None

    @property
    def at(self) -> datetime:
        """The time of the event, or else the time of writing."""
        return self.timestamp or self.created_at


class NodeFields(TypedDict, total=False):
    """Optional fields of a node. `verified` follows from `verification` by default; `tags` are added to the tags of
    every node."""

    id: str | None
    path: str | None
    package: str | None
    line_start: int | None
    line_end: int | None
    signature: str | None
    session_id: str | None
    timestamp: datetime | None
    category: str | None
    url: str | None
    source: str | None
    authors: Sequence[str]
    published_at: datetime | None
    content_hash: str | None
    metadata: Mapping[str, Any] | None
    verified: bool
    verification: Verification
    confidence: float
    trust: int
    expires_at: datetime | None
    tags: Sequence[str]
    scopes: Sequence[str]


def build_node(name: str, domain: NodeDomain, node_type: NodeType, content: str, fields: NodeFields) -> Draft:
    """The draft of a node. Raises InvalidInput for a type of another domain, and for a trust, confidence, line or time
    that is out of range."""
    domain, node_type = check_node_type(domain, node_type)
    context = _context(domain, node_type, content, fields)
    session = fields.get("session_id")
    return Draft(
        id=fields.get("id"),
        title=name,
        context=context,
        tags=(
            domain_tag(domain),
            type_tag(node_type),
            *((f"session:{session}",) if session is not None else ()),
            *fields.get("tags", ()),
        ),
        schema_name=SCHEMA,
        scopes=fields.get("scopes", ()),
        llm_hints=_SHOWN_DOUBTED if is_doubted(context) else _SHOWN,
    )


def _context(domain: NodeDomain, node_type: NodeType, content: str, fields: NodeFields) -> dict[str, Any]:
    verification = fields.get("verification", Verification.NONE)
    given = {key: value for key, value in fields.items() if key not in _OF_BREADCRUMB and value not in (None, (), [])}
    context = {key: as_text(value, key) if isinstance(value, datetime) else value for key, value in given.items()} | {
        "content": content,
        "domain": int(domain),
        "node_type": int(node_type),
        "verified": bool(fields.get("verified", verification is not Verification.NONE)),
        "verification_type": int(verification),
        "trust_level": _in_range("trust", fields.get("trust", DEFAULT_TRUST), 100),
        "confidence": _in_range("confidence", fields.get("confidence", 1.0), 1),
        "metadata": dict(fields.get("metadata") or {}),
    }
    _check_lines(context)
    return context


_OF_BREADCRUMB = ("id", "session_id", "tags", "scopes", "verification", "trust")
"""Fields of a node that are stored in the breadcrumb itself, or in its context under another name."""
_SHOWN = {"include": ["content"]}
"""The hints of a node: models see only the content, and the vector is made from the content and the name."""
_SHOWN_DOUBTED = {**_SHOWN, "transform": {UNVERIFIED: {"type": "literal", "value": True}}}
"""Return the hints with a mark. The mark is the name of a field, because only text values go into the vector."""


def to_node(breadcrumb: Breadcrumb) -> Node:
    """Convert a breadcrumb to a node. Formats of earlier releases are supported. Only code has a place in a file:
    that of other nodes is a claim of their writers, and left out. Raises NotFound if it is not a node."""
    if breadcrumb.schema_name != SCHEMA:
        raise NotFound("node", breadcrumb.id)
    context = breadcrumb.context
    verification = context.get("verification_type", context.get("verification", 0))
    content = str(context.get("content", ""))
    given = {
        **context,
        "id": breadcrumb.id,
        "name": breadcrumb.title,
        "content": marked(content) if is_doubted(context) else content,
        "session_id": breadcrumb.session,
        "verified": context.get("verified", bool(verification)),
        "verification_type": verification,
        "trust_level": context.get("trust_level", context.get("trust", DEFAULT_TRUST)),
        "created_at": breadcrumb.created_at,
        "updated_at": breadcrumb.updated_at,
    }
    if context["domain"] != NodeDomain.CODE:
        given |= dict.fromkeys(("path", "line_start", "line_end"))
    return msgspec.convert(given, Node)


def is_doubted(context: Mapping[str, Any]) -> bool:
    """Whether the node failed a check and awaits a review."""
    return not context.get("verified") and bool(context.get("metadata", {}).get("needs_review"))


def marked(content: str) -> str:
    """A text with exactly one mark before it."""
    return content if content.startswith(UNVERIFIED) else f"{UNVERIFIED} {content}"


def domain_tag(domain: NodeDomain) -> str:
    return f"domain:{NodeDomain(domain).label}"


def type_tag(node_type: NodeType) -> str:
    return f"node:{NodeType(node_type).label}"


def as_text(moment: datetime, field: str) -> str:
    """A moment as stored text: in UTC and of fixed length, so that text order is time order."""
    if moment.tzinfo is None:
        raise InvalidInput(field, "must carry a time zone", hint="For example 2026-01-01T00:00:00Z")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _in_range(field: str, value: float, most: float) -> float:
    if not 0 <= value <= most:
        raise InvalidInput(field, f"must be between 0 and {most}")
    return value


def _check_lines(context: Mapping[str, Any]) -> None:
    first, last = context.get("line_start"), context.get("line_end")
    if first is not None and first < 1:
        raise InvalidInput("line_start", "must be 1 or more")
    if last is not None and (first is None or last < first):
        raise InvalidInput("line_end", "must not be before line_start")


# -- filters ---------------------------------------------------------------------------------------------------


class ScoredNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node with its similarity to a query: a cosine, or another measure of the search."""

    node: Node
    similarity: float


class NodeFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter over nodes: all given parts must match. `path` is a glob. Values of `metadata` must be equal. A dot in a
    key leads into a nested object."""

    domain: NodeDomain | None = None
    node_types: Sequence[NodeType] = ()
    session_id: str | None = None
    created_after: datetime | None = None
    path: str | None = None
    metadata: Mapping[str, Any] = {}


EVERY_NODE = NodeFilter()


def to_selector(filter: NodeFilter) -> Selector:
    """Convert the filter to a selector of the trail."""
    return Selector(
        schema_name=SCHEMA,
        all_tags=(domain_tag(filter.domain),) if filter.domain is not None else (),
        any_tags=tuple(type_tag(node_type) for node_type in filter.node_types),
        session=filter.session_id,
        created_after=filter.created_after,
        path=filter.path,
        context_match=tuple(
            ContextMatch(path=f"metadata.{key}", value=value) for key, value in filter.metadata.items()
        ),
    )
