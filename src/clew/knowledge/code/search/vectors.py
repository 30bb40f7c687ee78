"""Vectors in a quarter of the room: eight bits a number and one scale a vector."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
_BLOCK = 512
"""Vectors that are unpacked at a time. A block fits into the processor's cache."""


class CompactVectors(msgspec.Struct, frozen=True):
    """Vectors of one length: `codes` from -127 to 127, times their scale."""

    codes: npt.NDArray[np.int8]
    scales: Floats

    @property
    def size(self) -> int:
        """Bytes that they take."""
        return int(self.codes.nbytes + self.scales.nbytes)


def compact(vectors: Floats) -> CompactVectors:
    """The vectors, a row each, with the numbers of each rounded to 1/127 of its largest."""
    scales = (np.abs(vectors).max(axis=1, initial=0.0) / 127).astype(np.float32)
    steps = np.where(scales > 0, scales, 1).astype(np.float32)
    return CompactVectors(np.rint(vectors / steps[:, None]).astype(np.int8), scales)


def products(query: Floats, vectors: CompactVectors) -> Floats:
    """The product of a query with each vector: their cosines, where all are of length 1."""
    found = np.empty(len(vectors.codes), np.float32)
    for first in range(0, len(found), _BLOCK):
        block = vectors.codes[first : first + _BLOCK].astype(np.float32)
        found[first : first + len(block)] = np.vecdot(block, query)
    return found * vectors.scales
