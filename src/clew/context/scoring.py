"""The score of a breadcrumb in a context, from 0 to 1 (see clew.knowledge.evidence.trust).

Similarity comes from the search, else it is 1 / (1 + cost) of the path. Trust and verification come from the record;
the defaults are 50 and unverified. Freshness decays as for history, with the age of the record at the time of the
trigger, so that the same trail always gives the same score.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from clew.knowledge.evidence.trust import HISTORY, EvidenceParts, days_between
from clew.knowledge.nodes.node_store import DEFAULT_TRUST
from clew.trail.model.breadcrumb import Breadcrumb


def parts_of(breadcrumb: Breadcrumb, similarity: float | None, cost: float, at: datetime) -> EvidenceParts:
    """Return the parts of the score of a breadcrumb, from its similarity or the cost of its path, and its age at the
    time `at`."""
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
