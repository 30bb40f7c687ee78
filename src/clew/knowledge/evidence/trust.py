"""A source of an answer: its citation, trust, freshness and quality.

Trust (0 to 100) follows from the kind of source and, for history, its age (SYL-83). Freshness (0 to 1) falls with age
(SYL-80). Quality combines both with the similarity to a question (SYL-86):

quality = 0.35 × similarity + 0.25 × trust / 100 + 0.25 × freshness + 0.15 if verified, at most 1
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from clew.catalog.operations.text import inline
from clew.fences import clean, fenced, is_unseen
from clew.knowledge.git.log import COMMIT_PREFIX
from clew.knowledge.lines import cut
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_keys

# -- citations -------------------------------------------------------------------------------------------------

MAX_ADDRESS = 5_000
"""Longer paths and urls are cut: no machine resolves them."""
_SHORT_HASH = 10
_MARKUP = lazy_pattern(
    r"\A(?:[#+-](?=#*\s)|\d(?=\d*[.)]\s)|\[(?=(?s:.*)\](?::|\Z)))|[`<>*\\]|[^\S ]|\A | \Z|(?<= ) |(?<=\])\("
)


def name_of(node: Node) -> str:
    """Domain and place of a node on one line without markup, such as `Code: src/a.py:3-9`."""
    match node.domain:
        case NodeDomain.CODE:
            return f"Code: {place_of(node)}"
        case NodeDomain.HISTORY:
            return f"History: {inline(node.name)} ({node.at:%Y-%m-%d})"
        case _:
            return f"Academic: {inline(node.name)}" + (f" ({on_one_line(node.url)})" if node.url else "")


def place_of(node: Node) -> str:
    """Path, lines and content hash, such as `src/a.py:3-9@0f3a9c2b11`, as far as they are known."""
    place = on_one_line(node.path) if node.path else inline(node.name)
    if node.line_start is not None:
        last = node.line_end if node.line_end is not None else node.line_start
        place += f":{node.line_start}" + (f"-{last}" if last > node.line_start else "")
    return f"{place}@{node.content_hash[:_SHORT_HASH]}" if node.content_hash else place


def citation_of(node: Node) -> str:
    """The shortest text that leads back to a source: a place in a file, a commit with its date, a url, or else the id
    of the node."""
    if node.path:
        return place_of(node)
    if node.id.startswith(COMMIT_PREFIX):
        return f"commit {node.id.removeprefix(COMMIT_PREFIX)[:_SHORT_HASH]} {node.at:%Y-%m-%d}"
    return on_one_line(node.url) if node.url else node.id


def on_one_line(address: str) -> str:
    """A path or url with invisible characters and markup escaped as `\\x1b`, and backslashes doubled. Two different
    addresses never look the same."""
    marked = {found.start() for found in _MARKUP.finditer(address)}
    if not marked and len(address) <= MAX_ADDRESS and address.isascii() and address.isprintable():
        return address
    shown = (_escape(each) if at in marked or is_unseen(each) else each for at, each in enumerate(address))
    return cut("".join(shown), MAX_ADDRESS)


def _escape(character: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65_536 else f"\\U{code:08x}"


# -- trust -----------------------------------------------------------------------------------------------------

RECENT, OLD = timedelta(days=7), timedelta(days=30)
BETWEEN = 60
"""Trust of verified history that is neither recent nor old."""

LEVELS: tuple[tuple[TrustLevel, str, str], ...] = (
    (TrustLevel.GROUND, "Ground truth (code)", ""),
    (TrustLevel.RECENT, "Recent, verified", "From recent history: check it if it matters"),
    (TrustLevel.STANDARD, "Authoritative", "From documents; check that it still applies here"),
    (TrustLevel.ACADEMIC, "Academic", "From literature; it may not apply directly"),
    (TrustLevel.OLD_HISTORY, "Old history", "⚠️ Old: check that it still holds"),
    (TrustLevel.BLOG, "Informal", "⚠️ Informal source: check it elsewhere"),
    (TrustLevel.LLM, "Unverified inference", "⚠️ Unverified: a model inferred it, and it may be wrong"),
)
"""The lowest trust of each level, its name and its warning; highest first."""

_LITERATURE = {
    NodeType.RFC: TrustLevel.STANDARD,
    NodeType.DOCUMENTATION: TrustLevel.STANDARD,
    NodeType.STACK_OVERFLOW: TrustLevel.BLOG,
    NodeType.BLOG_POST: TrustLevel.BLOG,
}


def trust_of(node: Node, at: datetime) -> int:
    """The trust of a node at a moment, from 0 to 100."""
    if node.domain is NodeDomain.CODE:
        return TrustLevel.GROUND
    if not node.verified:
        return TrustLevel.LLM
    if node.domain is NodeDomain.ACADEMIC:
        return _LITERATURE.get(node.node_type, TrustLevel.ACADEMIC)
    age = at - node.at
    return TrustLevel.RECENT if age < RECENT else BETWEEN if age < OLD else TrustLevel.OLD_HISTORY


def level_of(trust: float) -> tuple[str, str]:
    """Name and warning of the level that a trust reaches. The lowest level covers everything below it."""
    return next(((name, warning) for least, name, warning in LEVELS if trust >= least), LEVELS[-1][1:])


# -- freshness -------------------------------------------------------------------------------------------------

SUPERSEDED, UNKNOWN, EXPIRED = 0.1, 0.5, 0.5
"""Freshness of a superseded node, of a node that no longer exists, and the factor for an expired one."""


class Decay(msgspec.Struct, frozen=True, kw_only=True):
    """Linear decay of freshness to `least` within `days`, with a warning after `warns_after` days."""

    days: float
    least: float
    warns_after: float
    advice: str

    def score(self, age: float) -> float:
        """The freshness at an age in days; 1 for a date in the future."""
        return max(self.least, 1.0 - (1.0 - self.least) * max(0.0, age) / self.days)


HISTORY = Decay(days=180, least=0.2, warns_after=30, advice="it may be out of date")
LITERATURE = Decay(days=365, least=0.3, warns_after=180, advice="check that it is still current")


class NodeFreshness(NamedTuple):
    """Freshness from 0 to 1, and a warning for the reader if one is needed."""

    score: float
    warning: str = ""


def freshness_of(node: Node | None, at: datetime) -> NodeFreshness:
    """The freshness of a node at a moment. Code and sections of documents are fresh: they are read from the files as
    they are now."""
    if node is None:
        return NodeFreshness(UNKNOWN, "⚠️ The source is gone")
    if node.superseded_by is not None:
        return NodeFreshness(SUPERSEDED, "⚠️ Superseded: there is something newer")
    score, warning = 1.0, ""
    is_section = node.path is not None and node.source is None and node.timestamp is None
    if node.domain is not NodeDomain.CODE and not is_section:
        decay, age = HISTORY if node.domain is NodeDomain.HISTORY else LITERATURE, days_between(node.at, at)
        score = decay.score(age)
        warning = f"⚠️ {int(age)} days old: {decay.advice}" if age > decay.warns_after else ""
    if node.expires_at is not None and at > node.expires_at:
        return NodeFreshness(score * EXPIRED, "⚠️ Expired: it should be looked up again")
    return NodeFreshness(score, warning)


def rank_by_freshness(found: Sequence[ScoredNode], at: datetime) -> list[ScoredNode]:
    """The nodes with similarity × freshness as their similarity, best first; equal ones keep their order."""
    ranked = [
        ScoredNode(node=each.node, similarity=each.similarity * freshness_of(each.node, at).score) for each in found
    ]
    return sorted(ranked, key=lambda each: -each.similarity)


def days_between(first: datetime, last: datetime) -> float:
    return (last - first).total_seconds() / 86_400


# -- quality ---------------------------------------------------------------------------------------------------

BUDGET, LETTERS_A_TOKEN = 8_000, 4
EXCERPT = 500
MIN_QUALITY = 0.3
SIMILARITY, TRUST, FRESHNESS, VERIFIED = 0.35, 0.25, 0.25, 0.15


class EvidenceParts(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of the quality score."""

    similarity: float
    trust: float
    freshness: float
    verified: bool = False


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A source for a prompt. `name` gives its domain and place, `id` its node; `warning` adds to that of its level."""

    name: str
    content: str
    parts: EvidenceParts
    id: str = ""
    warning: str = ""

    @property
    def score(self) -> float:
        return quality(self.parts)

    @property
    def tokens(self) -> int:
        """An estimate at four letters a token."""
        return -(-len(self.content) // LETTERS_A_TOKEN)


def quality(parts: EvidenceParts) -> float:
    score = SIMILARITY * parts.similarity + TRUST * parts.trust / 100 + FRESHNESS * parts.freshness
    return min(1.0, score + (VERIFIED if parts.verified else 0.0))


def evidence_of(found: ScoredNode, at: datetime) -> Evidence:
    """A search result as evidence at a moment, with keys masked. Code is always verified."""
    node, fresh = found.node, freshness_of(found.node, at)
    parts = EvidenceParts(
        similarity=min(1.0, max(0.0, found.similarity)),
        trust=trust_of(node, at),
        freshness=fresh.score,
        verified=node.verified or node.domain is NodeDomain.CODE,
    )
    return Evidence(id=node.id, name=name_of(node), content=mask_keys(node.content), parts=parts, warning=fresh.warning)


def fitting(found: Sequence[Evidence]) -> list[Evidence]:
    """The evidence that fits the budget, in the order given. Skips evidence below MIN_QUALITY, and evidence that is too
    long for the rest of the budget."""
    chosen: list[Evidence] = []
    left = BUDGET
    for each in found:
        if each.score >= MIN_QUALITY and each.tokens <= left:
            chosen.append(each)
            left -= each.tokens
    return chosen


def render_evidence(chosen: Sequence[Evidence], *, excerpt: int = EXCERPT) -> str:
    """Numbered sources: place, trust level, score, warnings and a fenced excerpt of each."""
    return "\n\n".join(_render(number, each, excerpt) for number, each in enumerate(chosen, 1))


def _render(number: int, each: Evidence, excerpt: int) -> str:
    level, warning = level_of(each.parts.trust)
    content = clean(each.content)
    cut = content if len(content) <= excerpt else f"{content[:excerpt]}…"
    head = f"[{number}] {' '.join(clean(each.name).split())} (trust: {level}, score: {each.score:.2f})"
    return "\n".join(filter(None, (head, warning, each.warning, fenced(cut, ""))))
