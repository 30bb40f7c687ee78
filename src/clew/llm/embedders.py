"""The registry of embedders. All modules share one instance of each embedder, so that the same text has the same vector
everywhere."""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from zlib import crc32

from clew.errors import ConfigError
from clew.lazy_pattern import lazy_pattern
from clew.llm.wordllama import WordLlamaEmbedder, find_weights
from clew.trail.store import Embedder

_log = logging.getLogger(__name__)
_lock = Lock()
_open: dict[str, Embedder] = {}


def open_embedder(name: str) -> Embedder | None:
    """The embedder of that name, with one instance per process; None for `none`, which turns vectors off.

    If the weights of `wordllama` are missing, falls back to `hash` with a warning. Raises ConfigError for an unknown
    name, and for `minilm` if its extra is not installed.
    """
    if name == "none":
        return None
    if name not in _BUILDERS:
        raise ConfigError(f"unknown embedder {name!r}", choices=(*_BUILDERS, "none"))
    with _lock:
        if name not in _open:
            _open[name] = _BUILDERS[name]()
        return _open[name]


class HashEmbedder:
    """Unit vectors of 256 numbers, computed from spelling alone: words and their trigrams are hashed into the
    dimensions. It needs no weights, and finds shared words and spellings, not meanings.

    A text without words gets a zero vector, which means that it has no vector.
    """

    name = "hash-256"
    dimension = 256

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of each text as little-endian float32."""
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> bytes:
        totals = [0.0] * self.dimension
        for word in _WORD.findall(text[:_MAX_TEXT].lower()):
            for place, sign in _features(word):
                totals[place] += sign
        length = math.sqrt(sum(total * total for total in totals)) or 1.0
        return struct.pack(f"<{self.dimension}f", *(total / length for total in totals))


_MAX_TEXT = 40_000
_WORD = lazy_pattern(r"[^\W_]{1,50}")
_PART_WEIGHT = 0.5


@lru_cache(maxsize=20_000)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """The dimensions of a word and its trigrams, each with a signed weight. The signs let words that share a dimension
    cancel out on average."""
    padded = f"<{word}>"
    parts = [padded[at : at + 3] for at in range(len(padded) - 2)] if len(word) > 1 else []
    weighted = [(word, 1.0), *((part, _PART_WEIGHT) for part in parts)]
    hashed = [(crc32(feature.encode("utf-8", "replace")), weight) for feature, weight in weighted]
    return tuple((mark % HashEmbedder.dimension, weight if mark & 0x10000 else -weight) for mark, weight in hashed)


def _open_wordllama() -> Embedder:
    try:
        find_weights()
    except ConfigError as error:
        _log.warning("%s. Until then search compares spellings instead of meanings (embedder hash)", error)
        return HashEmbedder()
    return WordLlamaEmbedder()


def _open_minilm() -> Embedder:
    # numpy is loaded when this embedder is opened, not when this module is imported
    from clew.llm import minilm

    minilm.find_weights()
    return minilm.MiniLMEmbedder()


_BUILDERS: dict[str, Callable[[], Embedder]] = {
    "wordllama": _open_wordllama,
    "minilm": _open_minilm,
    "hash": HashEmbedder,
}
