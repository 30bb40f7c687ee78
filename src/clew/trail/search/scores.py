"""The scores of the candidates of one search under the requested ranking. The same in every backend; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.query import Hit, SearchRequest
from clew.trail.search.columns import Bools
from clew.trail.search.ranking import (
    Corpus,
    Floats,
    Ints,
    SearchQuestion,
    Weighed,
    fuse,
    fuse_ranks,
    relevance,
    score_lexical,
    score_rcrt,
)

MAX_RESULT_BYTES = 32_000_000
"""An answer ends early when its contexts reach this size."""

CountKeywords = Callable[[list[int], set[str]], Ints]
"""For each of these records the number of wanted keywords that it has."""


class FoundCandidates(msgspec.Struct):
    """The candidates: their slots in the corpus, their row ids, whether each has the query as its name and whether it
    has a vector, and their cosines, or None for a search without a vector."""

    slots: Ints
    rids: Ints
    is_exact: Bools
    has_vector: Bools
    cosine: Floats | None


class Scores:
    """The scores of candidates. `rank` orders the candidates and drops those that no arm of the ranking found. `hit`
    returns one of the rest."""

    def __init__(
        self,
        request: SearchRequest,
        question: SearchQuestion,
        weighed: Weighed,
        corpus: Corpus,
        found: FoundCandidates,
    ) -> None:
        self._request = request
        self._question = question
        self._weighed = weighed
        self._corpus = corpus
        self._found = found

    def rank(self, count_keywords: CountKeywords) -> Ints:
        """The indexes of the candidates that are kept, best first: exact names, then by score, then by creation."""
        found = self._found
        lexical, titles = self._score_text()
        cosine = np.zeros(len(found.slots), np.float32) if found.cosine is None else found.cosine
        score = self._combine(lexical, titles, cosine, count_keywords)
        is_found = found.has_vector & (found.cosine is not None)
        if self._request.ranking != "vector":
            is_found |= found.is_exact | (lexical > 0)
        kept = np.flatnonzero(is_found)
        self.rids, self._is_exact = found.rids[kept], found.is_exact[kept]
        self._score, self._lexical, self._cosine = score[kept], lexical[kept], cosine[kept]
        order: Ints = np.lexsort((self.rids, -self._score, ~self._is_exact))
        return order

    def _score_text(self) -> tuple[Floats, Floats]:
        """Lexical scores and shares of titles; nothing for a ranking that does not look at words."""
        ranking, slots = self._request.ranking, self._found.slots
        if ranking == "vector":
            return np.zeros(len(slots), np.float32), np.zeros(len(slots), np.float32)
        titles = ranking in ("default", "text")
        return score_lexical(self._weighed, self._corpus, slots, self._request.weights, with_titles=titles)

    def _combine(self, lexical: Floats, titles: Floats, cosine: Floats, count_keywords: CountKeywords) -> Floats:
        match self._request.ranking:
            case "vector":
                return cosine
            case "text":
                return np.asarray(lexical + 1e-3 * titles)
            case "rrf":
                return fuse_ranks(lexical, np.maximum(cosine, 0))
            case "rcrt":
                wanted = {word.lower() for word in (self._request.keywords or self._question.words)}
                return score_rcrt(cosine, count_keywords(self._found.rids.tolist(), wanted), len(wanted))
            case _:
                return fuse(lexical, titles, cosine)

    def hit(self, place: int, breadcrumb: Breadcrumb) -> Hit:
        lexical, cosine = float(self._lexical[place]), float(self._cosine[place])
        return Hit(
            breadcrumb=breadcrumb,
            score=round(float(self._score[place]), 6),
            text_score=round(lexical, 6) if lexical > 0 else None,
            vector_score=round(cosine, 6) if self._found.cosine is not None else None,
            exact=bool(self._is_exact[place]),
            relevance=round(relevance(lexical, cosine, self._weighed.whole), 6),
        )


class FoundHits:
    """The hits of one answer while they are read, and candidates that are gone or hidden by now."""

    def __init__(self, limit: int) -> None:
        self.hits: list[Hit] = []
        self.gone: list[int] = []
        self._limit = limit
        self._room = MAX_RESULT_BYTES

    @property
    def is_full(self) -> bool:
        return len(self.hits) >= self._limit or self._room <= 0

    def add(self, hit: Hit, size: int) -> None:
        """Add a hit. `size` is the number of characters of its context."""
        self.hits.append(hit)
        self._room -= size


def literal_first(hits: Sequence[Hit], text: str) -> tuple[Hit, ...]:
    """Put hits first whose title equals the text exactly. Exact hits may differ from it in spelling, such as `math.gcd`
    and `math_gcd`."""
    return tuple(sorted(hits, key=lambda hit: not (hit.exact and hit.breadcrumb.title == text)))
