"""Which sources are worth their tokens, and how they are shown (SYL-86).

quality = 0.35 × similarity + 0.25 × trust / 100 + 0.25 × freshness + 0.15 where it was verified, at most 1
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from clew.fences import clean, fenced
from clew.knowledge.evidence.freshness import freshness_of
from clew.knowledge.evidence.naming import name_of
from clew.knowledge.evidence.trust import level_of, trust_of
from clew.secrecy import mask_keys
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import ScoredNode

BUDGET = 8_000
LETTERS_A_TOKEN = 4
EXCERPT = 500
MIN_QUALITY = 0.3
"""Evidence that is worth less is left out."""
SIMILARITY, TRUST, FRESHNESS, VERIFIED = 0.35, 0.25, 0.25, 0.15


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What a score is made of."""

    similarity: float
    trust: float
    freshness: float
    verified: bool = False


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A source with what is known of it. `name` says where it is from, `id` leads to it; `warning` is what a reader
    should know beside what its level of trust says."""

    name: str
    content: str
    parts: Parts
    id: str = ""
    warning: str = ""

    @property
    def score(self) -> float:
        return quality(self.parts)

    @property
    def tokens(self) -> int:
        """What it takes, at four letters a token."""
        return -(-len(self.content) // LETTERS_A_TOKEN)


def quality(parts: Parts) -> float:
    """The quality of SYL-86."""
    score = SIMILARITY * parts.similarity + TRUST * parts.trust / 100 + FRESHNESS * parts.freshness
    return min(1.0, score + (VERIFIED if parts.verified else 0.0))


def evidence_of(found: ScoredNode, at: datetime) -> Evidence:
    """A node that was found as evidence, as of a moment, without keys. Code counts as verified: it is what is so."""
    node = found.node
    fresh = freshness_of(node, at)
    parts = Parts(
        similarity=min(1.0, max(0.0, found.similarity)),
        trust=trust_of(node, at),
        freshness=fresh.score,
        verified=node.verified or node.domain is NodeDomain.CODE,
    )
    shown = mask_keys(node.content)
    return Evidence(id=node.id, name=name_of(node), content=shown, parts=parts, warning=fresh.warning)


def select(found: Sequence[Evidence], *, budget: int = BUDGET) -> list[Evidence]:
    """The best that fit into the budget, best first, none below MIN_QUALITY. One that is too long for what is left is
    passed over."""
    return fitting(sorted(found, key=lambda each: -each.score), budget=budget)


def fitting(found: Sequence[Evidence], *, budget: int = BUDGET) -> list[Evidence]:
    """The same in the order given, which is that of how well they answer."""
    chosen: list[Evidence] = []
    left = budget
    for each in found:
        if each.score >= MIN_QUALITY and each.tokens <= left:
            chosen.append(each)
            left -= each.tokens
    return chosen


def lines(chosen: Sequence[Evidence], *, excerpt: int = EXCERPT) -> str:
    """Numbered sources: where from, how far to trust it, its score, warnings where there are any, and an excerpt."""
    return "\n\n".join(_shown(number, each, excerpt) for number, each in enumerate(chosen, 1))


def _shown(number: int, each: Evidence, excerpt: int) -> str:
    level, warning = level_of(each.parts.trust)
    name = " ".join(clean(each.name).split())
    content = clean(each.content)
    cut = content if len(content) <= excerpt else f"{content[:excerpt]}…"
    head = f"[{number}] {name} (trust: {level}, score: {each.score:.2f})"
    return "\n".join(filter(None, (head, warning, each.warning, fenced(cut, ""))))
