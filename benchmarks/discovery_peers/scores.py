"""The scores of a ranking, by the measures of the data's own script."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discovery_peers.data import Asked

Scores = dict[str, float]
MEASURES = ("ndcg", "r1", "r5", "r10", "mrr")


def score(ranked: Sequence[str], question: Asked) -> Scores:
    """nDCG@10, recall at 1, 5 and 10, and MRR@10 over units: a relevant id, or a group of which any one will do."""
    units = question.units
    places: dict[int, int] = {}
    for place, id in enumerate(ranked[:10]):
        unit = next((at for at, members in enumerate(units) if at not in places and id in members), None)
        if unit is not None:
            places[unit] = place
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(units), 10)))
    found = places.values()
    return {
        "ndcg": sum(1 / math.log2(place + 2) for place in found) / ideal,
        "r1": sum(place < 1 for place in found) / len(units),
        "r5": sum(place < 5 for place in found) / len(units),
        "r10": len(places) / len(units),
        "mrr": max((1 / (place + 1) for place in found), default=0.0),
    }


def mean(scores: Sequence[Scores]) -> Scores:
    return {name: sum(each[name] for each in scores) / len(scores) for name in scores[0]}
