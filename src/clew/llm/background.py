"""Vectors of general topics. A question is out of scope if it is closer to them than to the content of the folder.

The topics are data (`topics.txt`): short phrases from all fields of life and from software, not tuned to any catalogue.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from threading import Lock
from typing import TYPE_CHECKING

from clew.trail.store import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEAREST = 3
_MAX_TEXT = 4_000


class Background:
    """The topics in the space of one embedder. May be used from several threads; they are embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._lock = Lock()
        self._topics: NDArray[np.float32] | None = None

    def nearness(self, text: str) -> float:
        """The mean cosine similarity of a text to the three nearest topics; 0 for a text without a vector."""
        # numpy is loaded with the first question, not with this module
        import numpy as np

        topics = self._loaded()
        vector = np.frombuffer(self._embedder.embed([text[:_MAX_TEXT]])[0], "<f4")
        near = np.partition(topics @ vector, -NEAREST)[-NEAREST:]
        return float(near.mean())

    def _loaded(self) -> NDArray[np.float32]:
        if self._topics is None:
            import numpy as np

            with self._lock:
                if self._topics is None:
                    vectors = self._embedder.embed(read_topics())
                    self._topics = np.stack([np.frombuffer(vector, "<f4") for vector in vectors])
        return self._topics


@lru_cache(maxsize=1)
def read_topics() -> tuple[str, ...]:
    """The phrases in the order of the file."""
    text = files("clew.llm").joinpath("topics.txt").read_text(encoding="utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
