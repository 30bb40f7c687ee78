"""How much a breadcrumb is worth in a context, from 0 to 1.

The quality of SYL-86 is 0.35 × similarity + 0.25 × trust / 100 + 0.25 × freshness + 0.15 where it was verified, at most
1. Similarity is what the search measured; where nothing did, it is 1 / (1 + cost) of the way that led there. Trust and
verification are what the record says of itself, 50 and no otherwise. Freshness falls with the age that the record had
when the trigger was written, so that the same trail gives the same score at any time.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from clew.trail.breadcrumb import Breadcrumb
from clew.trail.nodes import DEFAULT_TRUST

MIN_QUALITY = 0.3
"""Evidence that is worth less is left out."""
FADES_IN = 180.0
"""Days in which freshness falls from 1 to its least."""
LEAST_FRESH = 0.2


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What a score is made of."""

    similarity: float
    trust: float
    freshness: float
    verified: bool = False


def quality(parts: Parts) -> float:
    """The quality of SYL-86."""
    score = 0.35 * parts.similarity + 0.25 * parts.trust / 100 + 0.25 * parts.freshness
    return min(1.0, score + (0.15 if parts.verified else 0.0))


def parts_of(breadcrumb: Breadcrumb, similarity: float | None, cost: float, at: datetime) -> Parts:
    """The parts for a breadcrumb that was reached at a cost, as of a moment."""
    return Parts(
        similarity=1.0 / (1.0 + cost) if similarity is None else similarity,
        trust=_trust(breadcrumb.context),
        freshness=freshness(breadcrumb.updated_at, at),
        verified=bool(breadcrumb.context.get("verified") or breadcrumb.context.get("verification")),
    )


def freshness(updated: datetime, at: datetime) -> float:
    """1 for what is new at that moment, less each day, never below LEAST_FRESH."""
    days = max(0.0, (at - updated).total_seconds() / 86_400)
    return max(LEAST_FRESH, 1.0 - (1.0 - LEAST_FRESH) * days / FADES_IN)


def _trust(context: dict[str, Any]) -> float:
    found = context.get("trust")
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return min(100.0, max(0.0, float(found))) if is_number and found is not None else float(DEFAULT_TRUST)
