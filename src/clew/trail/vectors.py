"""Nearest vectors by cosine, with any filter: sign bits rule most of them out, exact products decide.

Two unit vectors at an angle of θ differ in about θ/π of their sign bits. A few hundred vectors with the fewest
differing bits are compared exactly; from the k-th best cosine follows how many differing bits a better one could
have, and everything up to that bound is compared as well. Up to EXACT candidates nothing is ruled out at all.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from clew.trail.ranking import Floats, Ints

EXACT = 4_000
PROBE = 800
MARGIN = 2.5
"""Standard deviations by which the bound is widened."""


def nearest(
    query: Floats,
    vectors: Floats,
    signs: npt.NDArray[np.uint64],
    code: npt.NDArray[np.uint64],
    allowed: Ints,
    k: int,
) -> tuple[Ints, Floats]:
    """Of the allowed slots the k nearest and their cosines, best first, ties by slot."""
    if not len(allowed) or not vectors.shape[1]:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    if len(allowed) > EXACT:
        allowed = _plausible(query, vectors, signs, code, allowed, k)
    cosine = vectors[allowed] @ query
    best = top(cosine, k)
    return allowed[best], cosine[best]


def _plausible(
    query: Floats,
    vectors: Floats,
    signs: npt.NDArray[np.uint64],
    code: npt.NDArray[np.uint64],
    allowed: Ints,
    k: int,
) -> Ints:
    """The allowed slots that may be among the k nearest."""
    everything = len(allowed) == signs.shape[1]
    differing = np.zeros(len(allowed), np.uint16)
    for word, wanted in zip(signs, code, strict=True):
        differing += np.bitwise_count((word if everything else word[allowed]) ^ wanted)
    within = np.cumsum(np.bincount(differing))
    probe = allowed[differing <= np.searchsorted(within, max(PROBE, 4 * k))]
    cosine = vectors[probe] @ query
    kth = float(np.partition(cosine, -min(k, len(cosine)))[-min(k, len(cosine))])
    bits = vectors.shape[1]
    share = math.acos(max(-1.0, min(1.0, kth))) / math.pi
    bound = bits * share + MARGIN * math.sqrt(bits * share * (1 - share))
    plausible: Ints = allowed[differing <= bound]
    return plausible


def top(scores: Floats, k: int) -> Ints:
    """Places of the k highest scores, best first, equal ones by place."""
    if k < len(scores):
        floor = np.partition(scores, -k)[-k]
        places: Ints = np.flatnonzero(scores >= floor)
    else:
        places = np.arange(len(scores))
    best: Ints = places[np.argsort(-scores[places], kind="stable")][:k]
    return best
