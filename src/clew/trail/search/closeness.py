"""The closeness of a hit to the question, and the threshold below which nothing matches. See docs/decisions/0008."""

from __future__ import annotations

import math

from clew.trail.model.query import Hit

CLOSE, CLOSE_BY_SHARE, CLOSE_BY_RARITY = 0.6, 0.25, 1.0
"""Thresholds from which a hit answers the question: the first with vectors, the other two by words alone."""
EXACT = 4.0
NEAR = 0.5
"""If there is a close hit, hits with at least this share of its closeness are worth showing too."""


def closeness(hit: Hit) -> float:
    """The closeness of a hit. 1 is just close enough for an answer. A hit whose name is in the query has the highest
    value."""
    if hit.exact:
        return EXACT
    if hit.vector_score is not None:
        return below_exact(hit.relevance / CLOSE)
    # by words alone: a large share of a short question, or many of the rare words of a long one
    rare = math.sqrt((hit.text_score or 0.0) * hit.relevance)
    return below_exact(max(hit.relevance / CLOSE_BY_SHARE, rare / CLOSE_BY_RARITY))


def below_exact(close: float) -> float:
    """The value itself up to 3. Larger values are compressed into the range from 3 to EXACT and keep their order."""
    return close if close <= EXACT - 1 else EXACT - 1 / (close - EXACT + 2)
