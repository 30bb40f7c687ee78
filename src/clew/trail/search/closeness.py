"""The closeness of a hit to the question, and the threshold below which nothing matches. See docs/decisions/0008."""

from __future__ import annotations

import math

from clew.trail.model.query import Hit

CLOSE, CLOSE_BY_SHARE, CLOSE_BY_RARITY = 0.6, 0.25, 1.0
"""From here on a hit answers the question: with vectors, and by words alone."""
EXACT = 4.0
NEAR = 0.5
"""Beside a close hit, one with this share of the measure is worth showing."""


def closeness(hit: Hit) -> float:
    """How close a hit is, 1 being just close enough for an answer. Nothing is as close as a name that was called."""
    if hit.exact:
        return EXACT
    if hit.vector_score is not None:
        return below_exact(hit.relevance / CLOSE)
    # by words alone: a large share of a short question, or much of what is rare in a long one
    rare = math.sqrt((hit.text_score or 0.0) * hit.relevance)
    return below_exact(max(hit.relevance / CLOSE_BY_SHARE, rare / CLOSE_BY_RARITY))


def below_exact(close: float) -> float:
    """The same up to 3; of more, something between that and EXACT, so that the closer of two close hits stays so."""
    return close if close <= EXACT - 1 else EXACT - 1 / (close - EXACT + 2)
