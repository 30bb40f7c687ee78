"""Nearest vectors by cosine, with any filter: sign bits rule most of them out, exact products decide.

Two unit vectors at an angle of θ differ in about θ/π of their sign bits. A few hundred vectors with the fewest
differing bits are compared exactly; from the k-th best cosine follows how many differing bits a better one would
have, and everything up to that bound is compared as well. Where nothing is near, as among random vectors, the bound
rules out little: then all are compared in one pass over memory.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from clew.trail.ranking import Floats, Ints

EXACT = 4_000
"""Up to so many vectors nothing is ruled out."""
PROBE = 800
MARGIN = 2.0
"""Standard deviations by which the bound is widened: 98 % of the better ones are within."""
DENSE = 0.2
"""A share of all vectors from which reading them in order is faster than picking."""

Codes = npt.NDArray[np.uint64]


def nearest(
    query: Floats, vectors: Floats, signs: Codes, allowed: Ints, k: int, *, more: int = 0
) -> tuple[Ints, Floats]:
    """Of the allowed slots the k nearest and their cosines, best first, ties by slot; then up to `more` further
    ones that were met on the way. `signs` holds the sign codes of the vectors, a row for each 64 dimensions."""
    if not len(allowed) or not vectors.shape[1]:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    if len(allowed) > EXACT:
        allowed = _plausible(query, vectors, signs, allowed, k)
    cosine = (vectors @ query)[allowed] if len(allowed) > DENSE * len(vectors) else vectors[allowed] @ query
    best = top(cosine, k + more)
    return allowed[best], cosine[best]


def _plausible(query: Floats, vectors: Floats, signs: Codes, allowed: Ints, k: int) -> Ints:
    """The allowed slots that may be among the k nearest."""
    differing = np.zeros(len(vectors), np.uint16)
    for word, wanted in zip(signs, sign_codes(query)[0], strict=True):
        differing += np.bitwise_count(word ^ wanted)
    if len(allowed) < len(vectors):
        differing = differing[allowed]
    within = np.cumsum(np.bincount(differing))
    probe = allowed[differing <= np.searchsorted(within, max(PROBE, 8 * k))]
    cosine = vectors[probe] @ query
    kth = float(np.partition(cosine, -min(k, len(cosine)))[-min(k, len(cosine))])
    bits = vectors.shape[1]
    share = math.acos(max(-1.0, min(1.0, kth))) / math.pi
    bound = bits * share + MARGIN * math.sqrt(bits * share * (1 - share))
    plausible: Ints = allowed[differing <= bound]
    return plausible


def sign_codes(vectors: Floats) -> Codes:
    """One bit a dimension: whether the number is positive. Rows of 64-bit words."""
    bits = np.packbits(np.atleast_2d(vectors) > 0, axis=1)
    return np.ascontiguousarray(np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))).view(np.uint64)


def top(scores: Floats, k: int) -> Ints:
    """Places of the k highest scores, best first, equal ones by place."""
    if k < len(scores):
        floor = np.partition(scores, -k)[-k]
        places: Ints = np.flatnonzero(scores >= floor)
    else:
        places = np.arange(len(scores))
    best: Ints = places[np.argsort(-scores[places], kind="stable")][:k]
    return best
