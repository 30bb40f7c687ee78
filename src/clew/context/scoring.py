"""The score of a breadcrumb in a context, from 0 to 1 (see clew.knowledge.evidence.trust).

Similarity is what the search measured; where nothing did, it is 1 / (1 + cost) of the way that led there. Trust and
verification are what the record says of itself, 50 and no otherwise. Freshness falls as that of history does, with the
age that the record had when the trigger was written, so that the same trail gives the same score at any time.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from clew.knowledge.evidence.trust import HISTORY, EvidenceParts, days_between
from clew.knowledge.nodes.node_store import DEFAULT_TRUST
from clew.trail.model.breadcrumb import Breadcrumb


def parts_of(breadcrumb: Breadcrumb, similarity: float | None, cost: float, at: datetime) -> EvidenceParts:
    """The parts for a breadcrumb that was reached at a cost, as of a moment."""
    context = breadcrumb.context
    return EvidenceParts(
        similarity=1.0 / (1.0 + cost) if similarity is None else similarity,
        trust=_trust(context),
        freshness=HISTORY.score(days_between(breadcrumb.updated_at, at)),
        verified=bool(context.get("verified") or context.get("verification_type") or context.get("verification")),
    )


def _trust(context: dict[str, Any]) -> float:
    found = context.get("trust_level", context.get("trust"))
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return min(100.0, max(0.0, float(found))) if is_number and found is not None else float(DEFAULT_TRUST)
