"""The words of the PostgreSQL index: each is a term combined with a class of its weight in the record. The index only
says which records have a word, but the ranking weighs a term by field and frequency. So the class of the weight is part
of the word, and a query looks for a term in all classes.
"""

from __future__ import annotations

import numpy as np

from clew.trail.search.ranking import FIELD_WEIGHTS, weigh_counts
from clew.trail.search.text import HEADER

CLASSES = {"a": 0.35, "b": 1.0, "c": 1.5, "d": 1.85}
"""The name of each class of weights, with its weight."""
BOUNDS = (0.6, 1.2, 1.7)
"""The weights at which the next class begins."""


def words_of(packed: bytes) -> list[str]:
    """The words of a record, from its packed terms."""
    words = np.frombuffer(packed, "<u4")
    count = int(words[0])
    terms = words[HEADER : HEADER + count].tolist()
    weights = weigh_counts(words[HEADER + count : HEADER + 2 * count], FIELD_WEIGHTS)
    names = list(CLASSES)
    return [f"{term}{names[place]}" for term, place in zip(terms, np.searchsorted(BOUNDS, weights), strict=True)]


def words_for(terms: dict[int, float]) -> tuple[list[str], list[float]]:
    """The words to query for terms with these rarities, and the weight of each word."""
    words = [f"'{term}{name}'" for term in terms for name in CLASSES]
    return words, [rarity * weight for rarity in terms.values() for weight in CLASSES.values()]
