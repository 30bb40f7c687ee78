"""Turns of a conversation answer each other: what was said right before or after a turn helps to find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

TO_NEXT, TO_PREVIOUS = 0.2, 0.1
"""The share of its score that a turn lends to the one after it, which may answer it, and to the one before."""
CANDIDATES = 60
"""How many hits of a search to take, so that the neighbours of the best are scored too."""


def lend_scores(scores: Mapping[str, float], conversations: Sequence[Sequence[str]]) -> dict[str, float]:
    """The scores of a search, best first, after every turn has lent to its neighbours. A conversation is the ids of
    its turns in order; a neighbour that the search did not find may come in, and ids in no conversation stay."""
    total = dict(scores)
    for turns in conversations:
        for before, after in pairwise(turns):
            if before in scores:
                total[after] = total.get(after, 0.0) + TO_NEXT * scores[before]
            if after in scores:
                total[before] = total.get(before, 0.0) + TO_PREVIOUS * scores[after]
    return dict(sorted(total.items(), key=lambda found: -found[1]))
