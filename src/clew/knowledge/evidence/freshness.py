"""How current a source is, from 0 to 1 (SYL-80). Code is current while its file has the content that the node was made
from; history fades within half a year, literature within a year; what was superseded hardly counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from clew.trail.kinds import NodeDomain
from clew.trail.nodes import Node, ScoredNode

SUPERSEDED = 0.1
UNKNOWN = 0.5
"""Of a node that is not there any more."""
EXPIRED = 0.5
"""What is left of the freshness of a node whose end has passed."""


class Fading(msgspec.Struct, frozen=True, kw_only=True):
    """How freshness falls: to `least` in `days`, with a warning after `warns_after` days."""

    days: float
    least: float
    warns_after: float
    advice: str

    def score(self, age: float) -> float:
        """The freshness of what is so many days old; 1 for what is still to come."""
        return max(self.least, 1.0 - (1.0 - self.least) * max(0.0, age) / self.days)


HISTORY = Fading(days=180, least=0.2, warns_after=30, advice="it may be out of date")
LITERATURE = Fading(days=365, least=0.3, warns_after=180, advice="check that it is still current")
_FADING = {NodeDomain.HISTORY: HISTORY, NodeDomain.ACADEMIC: LITERATURE}


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """How current a node is, its age in days, and what a reader should know."""

    score: float
    age: float = 0.0
    warning: str = ""
    superseded_by: str | None = None


class RankedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node by similarity × freshness."""

    node: Node
    similarity: float
    freshness: Freshness
    score: float


def freshness_of(node: Node | None, at: datetime, *, content_hash: str | None = None) -> Freshness:
    """How current a node is at a moment. For code, `content_hash` is what its file has now, where that is known: with
    another one the node is as good as superseded."""
    if node is None:
        return Freshness(score=UNKNOWN, warning="⚠️ The source is gone")
    age = days_between(node.at, at)
    if node.superseded_by is not None:
        warning = "⚠️ Superseded: there is something newer"
        return Freshness(score=SUPERSEDED, age=age, warning=warning, superseded_by=node.superseded_by)
    if node.domain is NodeDomain.CODE and content_hash is not None and content_hash != node.content_hash:
        return Freshness(score=SUPERSEDED, age=age, warning="⚠️ The file has changed since")
    fading = _FADING.get(node.domain)
    score = fading.score(age) if fading else 1.0
    if node.expires_at is not None and at > node.expires_at:
        return Freshness(score=score * EXPIRED, age=age, warning="⚠️ Expired: it should be looked up again")
    return Freshness(score=score, age=age, warning=_aged(fading, age))


def rank_by_freshness(
    found: Sequence[ScoredNode], at: datetime, *, hashes: Mapping[str, str] | None = None
) -> list[RankedNode]:
    """What was found by similarity × freshness, best first; equal ones in the order given. `hashes` are the present
    contents of files of code, by the id of the node."""
    known = hashes or {}
    ranked = []
    for each in found:
        fresh = freshness_of(each.node, at, content_hash=known.get(each.node.id))
        ranked.append(
            RankedNode(node=each.node, similarity=each.similarity, freshness=fresh, score=each.similarity * fresh.score)
        )
    return sorted(ranked, key=lambda one: -one.score)


def days_between(first: datetime, last: datetime) -> float:
    return (last - first).total_seconds() / 86_400


def _aged(fading: Fading | None, age: float) -> str:
    if fading is None or age <= fading.warns_after:
        return ""
    return f"⚠️ {int(age)} days old: {fading.advice}"
