"""Evidence: what is believed of a source, which sources are worth their tokens, and how they are shown (SYL-86)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.context.scoring import MIN_QUALITY, Parts, quality
from clew.fences import clean, fenced
from clew.trail.kinds import Trust

BUDGET = 8_000
LETTERS_A_TOKEN = 4
EXCERPT = 500

LEVELS: tuple[tuple[Trust, str, str], ...] = (
    (Trust.GROUND, "Ground truth (code)", ""),
    (Trust.RECENT, "Recent, verified", "From recent history; it may have to be checked"),
    (Trust.STANDARD, "Authoritative", "From outside documents; check that it applies here"),
    (Trust.ACADEMIC, "Academic", "From literature; it may not apply directly"),
    (Trust.OLD_HISTORY, "Old history", "⚠️ Old: check that it still holds"),
    (Trust.BLOG, "Informal", "⚠️ Informal source: check it elsewhere"),
    (Trust.LLM, "Unverified inference", "⚠️ Unverified: a model inferred it, and it may be wrong"),
)
"""From which trust on a level holds, what it is called, and what a reader should know; highest first."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A source with what is known of it. `name` says where it is from."""

    name: str
    content: str
    parts: Parts

    @property
    def score(self) -> float:
        return quality(self.parts)

    @property
    def tokens(self) -> int:
        """What it takes, at four letters a token."""
        return -(-len(self.content) // LETTERS_A_TOKEN)


def level_of(trust: float) -> tuple[str, str]:
    """Name and warning of the level that a trust reaches; the lowest holds for all below it."""
    return next(((name, warning) for least, name, warning in LEVELS if trust >= least), LEVELS[-1][1:])


def select(found: Sequence[Evidence], *, budget: int = BUDGET) -> list[Evidence]:
    """The best that fit into the budget, best first, none below MIN_QUALITY. One that is too long for what is left is
    passed over."""
    chosen: list[Evidence] = []
    left = budget
    for each in sorted(found, key=lambda each: -each.score):
        if each.score >= MIN_QUALITY and each.tokens <= left:
            chosen.append(each)
            left -= each.tokens
    return chosen


def lines(chosen: Sequence[Evidence], *, excerpt: int = EXCERPT) -> str:
    """Numbered sources: where from, how far to trust it, its score, a warning where there is one, and an excerpt."""
    return "\n\n".join(_shown(number, each, excerpt) for number, each in enumerate(chosen, 1))


def _shown(number: int, each: Evidence, excerpt: int) -> str:
    level, warning = level_of(each.parts.trust)
    name = " ".join(clean(each.name).split())
    content = clean(each.content)
    cut = content if len(content) <= excerpt else f"{content[:excerpt]}…"
    head = f"[{number}] {name} (trust: {level}, score: {each.score:.2f})"
    return "\n".join(filter(None, (head, warning, fenced(cut, ""))))
