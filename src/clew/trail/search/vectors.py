"""Nearest vectors by cosine, with any filter: sign bits rule most of them out, exact products decide.

If a vector differs from the query in the sign of a number, this matters more the larger the query's number is. So signs
are compared only at numbers of the query that are not small, and differences at large ones count twice. The relation of
this count to the cosine is estimated from a few hundred of the vectors. The vectors with the lowest counts are compared
exactly. The k-th best cosine then gives the highest count that a better vector may have, and all vectors up to this
count are compared exactly too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.trail.search.ranking import Floats, Ints

EXACT = 4_000
"""If there are at most this many vectors, all are compared."""
PROBE = 500
"""At least this many of the apparently nearest vectors are compared."""
SAMPLE = 384
THIN = 16_000
MARGIN = 1.75
"""The number of standard deviations by which the bound is widened. It then includes 96 % of the better vectors."""
SMALL, LARGE = 0.25, 0.65
"""Shares of the query's numbers that are small, and that are not large."""
DENSE = 0.2
"""From this share of all vectors on, reading all in order is faster than picking some."""
BLOCK = 1 << 15
"""The number of vectors whose signs are compared at a time, so that the data fits into the processor's cache."""

Codes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.uint16]


def nearest(
    query: Floats, vectors: Floats, signs: Codes, allowed: Ints, k: int, *, more: int = 0, roughly: bool = False
) -> tuple[Ints, Floats]:
    """The k nearest of the allowed slots and their cosines, best first, ties by slot; then up to `more` further slots
    from the same comparison. `signs` holds the sign codes of the vectors, a row for each 64 dimensions.

    On average 9.8 of ten results are correct. With `roughly` it is about 9, in less time, which is enough if the result
    is one of several votes."""
    if not len(allowed) or not vectors.shape[1]:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    if len(allowed) > EXACT:
        allowed = _plausible(query, vectors, signs, allowed, k, roughly=roughly)
    is_dense = len(allowed) > DENSE * len(vectors)
    # not `@`: it wakes other threads, and waits for them ten times as long as it counts if the cores are busy
    cosine = np.vecdot(vectors, query)[allowed] if is_dense else cosines(query, vectors, allowed)
    best = top(cosine, k + more)
    return allowed[best], cosine[best]


def cosines(query: Floats, vectors: Floats, slots: Ints) -> Floats:
    """The products of the query with some of the vectors. They are computed in this thread alone, because waking others
    for few vectors costs more than it saves."""
    found: Floats = np.vecdot(vectors.take(slots, axis=0), query)
    return found


def _plausible(query: Floats, vectors: Floats, signs: Codes, allowed: Ints, k: int, *, roughly: bool) -> Ints:
    """The allowed slots that may be among the k nearest."""
    counts = _differences(query, signs, len(vectors))
    if len(allowed) < len(vectors):
        counts = counts[allowed]
    nearby = allowed[counts <= _low_count(counts, max(PROBE, 4 * k))]
    if len(nearby) < k:
        return allowed
    if roughly:
        return nearby
    step = len(allowed) // SAMPLE
    cosine = cosines(query, vectors, np.concatenate((nearby, allowed[::step])))
    kth = float(np.partition(cosine[: len(nearby)], -k)[-k])
    bound = _highest_count(cosine[len(nearby) :], counts[::step], kth)
    plausible: Ints = allowed[counts <= bound]
    return plausible if len(plausible) > len(nearby) else nearby


def _low_count(counts: Counts, wanted: int) -> int:
    """The count that about `wanted` of the counts do not exceed, estimated from a sample."""
    thin = max(1, len(counts) // THIN)
    return int(np.searchsorted(np.cumsum(np.bincount(counts[::thin])), wanted / thin))


def _highest_count(cosine: Floats, counts: Counts, wanted: float) -> float:
    """The highest count with which a vector may still have the wanted cosine, by linear regression over a sample plus a
    margin for its scatter."""
    near, far = cosine - cosine.mean(), counts - counts.mean()
    spread = float(near @ near)
    slope = float(near @ far) / spread if spread > 1e-9 else 0.0
    scatter = float(np.std(far - slope * near))
    return float(counts.mean() + slope * (wanted - cosine.mean()) + MARGIN * scatter) + 0.5


def _differences(query: Floats, signs: Codes, size: int) -> Counts:
    """For each vector the number of positions at which its sign differs from the query's. A position counts 0, 1 or 2,
    depending on the size of the query's number."""
    amount = np.abs(query)
    ordered = np.sort(amount)
    medium, large = (amount >= ordered[int(share * len(ordered))] for share in (SMALL, LARGE))
    words = list(zip(signs, *sign_codes(np.stack((query, medium, large))), strict=True))
    counts = np.zeros(size, np.uint16)
    rooms: list[Any] = [np.empty(min(size, BLOCK), kind) for kind in (np.uint64, np.uint64, np.uint8, np.uint8)]
    for first in range(0, size, BLOCK):
        total = counts[first : first + BLOCK]
        differing, picked, once, twice = (room[: len(total)] for room in rooms)
        for word, wanted, in_medium, in_large in words:
            np.bitwise_xor(word[first : first + len(total)], wanted, out=differing)
            np.bitwise_count(np.bitwise_and(differing, in_medium, out=picked), out=once)
            np.bitwise_count(np.bitwise_and(differing, in_large, out=picked), out=twice)
            once += twice
            total += once
    return counts


def sign_codes(vectors: Floats) -> Codes:
    """One bit a dimension: whether the number is positive. Rows of 64-bit words."""
    bits = np.packbits(np.atleast_2d(vectors) > 0, axis=1)
    codes = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), np.uint8)
    codes[:, : bits.shape[1]] = bits
    return codes.view(np.uint64)


def top(scores: Floats, k: int) -> Ints:
    """Places of the k highest scores, best first, equal ones by place."""
    if k < len(scores):
        floor = np.partition(scores, -k)[-k]
        places: Ints = np.flatnonzero(scores >= floor)
    else:
        places = np.arange(len(scores))
    best: Ints = places[np.argsort(-scores[places], kind="stable")][:k]
    return best
