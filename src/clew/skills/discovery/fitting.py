"""Whether a skill fits a question at all. docs/decisions/0008 shows what the measure tells apart.

fit = relevance of the hit - 1.5 · nearness of the question to topics at large + 0.5 · share of its words known here
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from clew.llm.background import Background
from clew.trail.closeness import NEAR, below_exact, closeness
from clew.trail.query import Hit
from clew.trail.readable import find_words
from clew.trail.store import Embedder
from clew.trail.text import MAX_KNOWN_LENGTH, MAX_QUERY_CHARS, STOP, split_text, split_word, term_id

BACKGROUND, KNOWN, KNOWN_IN_HEADS = 1.5, 0.5, 0.5
FITS = 0.72
"""From here on a skill fits."""


class Vocabulary(msgspec.Struct, frozen=True):
    """The stems of all words that skills have, and of those in their names and descriptions."""

    words: frozenset[int] = frozenset()
    heads: frozenset[int] = frozenset()


class Fit:
    """The measure for one question. Without an embedder it is `closeness`, by words alone."""

    def __init__(self, question: str, vocabulary: Vocabulary, background: Background | None) -> None:
        self._bonus = 0.0
        if background is not None:
            known = KNOWN * known_share(question, vocabulary.words)
            known += KNOWN_IN_HEADS * known_share(question, vocabulary.heads)
            self._bonus = known - BACKGROUND * background.nearness(question)
        self._has_background = background is not None

    def closeness(self, hit: Hit) -> float:
        """How close a hit is, 1 being just close enough, never below 0. Nothing is as close as a name that was
        called."""
        if hit.exact or hit.vector_score is None or not self._has_background:
            return closeness(hit)
        return below_exact(max(1.0 + hit.relevance + self._bonus - FITS, 0.0))


def open_background(embedder: Embedder | None) -> Background | None:
    """What questions are compared with; None without an embedder."""
    return Background(embedder) if embedder is not None else None


def close_ones(hits: Sequence[Hit], measure: Callable[[Hit], float], limit: int) -> list[tuple[Hit, float]]:
    """The first hits with how close they are, those aside that are far off; none where no hit at all is close."""
    found = [(hit, measure(hit)) for hit in hits]
    if max((close for _, close in found), default=0.0) < 1.0:
        return []
    return [each for each in found if each[1] >= NEAR][:limit]


def read_vocabulary(heads: Iterable[str], bodies: Iterable[str]) -> Vocabulary:
    """The words of names and descriptions, and of all texts."""
    first = _stems(heads)
    return Vocabulary(first | _stems(bodies), first)


def known_share(question: str, stems: Collection[int]) -> float:
    """Which share of the words of a question, function words aside, is known; 1 where it has no others."""
    words = {word for word in split_text(question[:MAX_QUERY_CHARS]).parts if word not in STOP}
    return sum(term_id(word, 0) in stems for word in words) / len(words) if words else 1.0


def _stems(texts: Iterable[str]) -> frozenset[int]:
    words: set[str] = set()
    for text in texts:
        words.update(find_words(text))
    return frozenset(term_id(part, 0) for word in words for part in split_word(word[:MAX_KNOWN_LENGTH]))
