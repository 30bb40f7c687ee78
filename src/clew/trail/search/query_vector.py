"""The vector of a search: the request's own, or that of its text."""

from __future__ import annotations

import numpy as np

from clew.errors import EmbedderMismatch, InvalidInput
from clew.trail.model.query import SearchRequest
from clew.trail.search.ranking import Floats
from clew.trail.store import Embedder


def find_query_vector(
    request: SearchRequest, embedder: Embedder | None, *, space: str | None, present: str | None, dimension: int
) -> Floats | None:
    """The vector at unit length, or None if the ranking needs none. `space` names the embedder in use, `present`
    that of the stored vectors, which have `dimension` numbers (0 when there are none).

    Raises EmbedderMismatch when they cannot be compared."""
    if request.ranking == "text":
        return None
    if request.vector is not None:
        query = np.array(request.vector, np.float32)
        if dimension not in (0, len(query)):
            raise EmbedderMismatch(str(present), f"{len(query)} dimensions")
    elif embedder is not None and request.text.strip():
        if present is not None and present != space:
            raise EmbedderMismatch(str(present), str(space))
        packed = embedder.embed([request.text])[0]
        query = np.frombuffer(packed, "<f4")
    elif request.ranking == "vector":
        raise InvalidInput("vector", "is needed: this trail has no embedder")
    else:
        return None
    length = float(np.sqrt(query @ query))
    return query / length if length > 0 and len(query) else None
