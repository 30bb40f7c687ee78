"""Chooses the records that one search ranks. If few records are allowed, all of them are candidates. Otherwise each arm
proposes its best: the postings propose records with the rarest terms, and the vectors propose the nearest ones. Records
whose name is the query are always included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np

from clew.trail.model.query import SearchRequest
from clew.trail.search.columns import Bools, Columns
from clew.trail.search.ranking import (
    Corpus,
    Floats,
    Ints,
    SearchQuestion,
    best_by_words,
    weigh,
)
from clew.trail.search.scores import FoundCandidates, Scores
from clew.trail.search.unique import unique

TEXT_CANDIDATES, ONE_MORE_FOR, MOST_TEXT_CANDIDATES = 120, 1_250, 200
"""The text arm proposes more candidates if there are more records. Half as many more candidates would change one hit in
two hundred."""
VECTOR_CANDIDATES = 50
SMALL = 2_000
"""If at most this many records pass a filter, all of them are candidates."""
STAGE_ONE_TERMS = 32
TELLING = math.log(2)
"""The rarity of a term that half of the records have. More frequent terms propose candidates only if rarer terms
propose too few."""
MOST_PENDING = 512
MAX_NAMES = 64


class Allowed(msgspec.Struct):
    """The slots that pass: as a mask, as a list, and those of them that have a vector."""

    mask: Bools
    slots: Ints
    with_vector: Ints

    def without(self, slots: Ints) -> Allowed:
        """Return these slots without the given ones."""
        if not len(slots):
            return self
        mask = self.mask.copy()
        mask[slots] = False
        return Allowed(mask, self.slots[mask[self.slots]], self.with_vector[mask[self.with_vector]])


class CandidateIndex(Protocol):
    """The index of a backend, as far as candidates need it."""

    columns: Columns

    def find(self, terms: Sequence[int], limit: int) -> tuple[Ints, bool]:
        """Slots of the records with most of these terms, best first, and whether these are all."""
        ...

    def pending(self) -> Ints:
        """Slots of the records whose current version `find` does not know yet."""
        ...


class Candidates:
    """The candidates of a search. `gather` chooses them, and `scores` returns the values that the ranking needs."""

    def __init__(
        self,
        index: CandidateIndex,
        allowed: Allowed,
        question: SearchQuestion,
        query: Floats | None,
        visible: Sequence[int],
        request: SearchRequest,
    ) -> None:
        self._index = index
        self._columns = columns = index.columns
        self._allowed = allowed
        self._request = request
        self._question = question
        self._query = query if columns.vectors.shape[1] else None
        number, mean = columns.totals(visible)
        self._corpus = Corpus(
            heap=columns.heap,
            at=columns.at,
            rarity=lambda ids: columns.rarity(ids, visible, number),
            mean_length=mean,
            number=number,
        )
        self._weighed = weigh(question, self._corpus)
        self._exact = self._find_exact()
        self.slots: Ints = np.zeros(0, np.int64)
        self.are_all = True
        """Whether the candidates include every record that matches."""

    # -- choosing -----------------------------------------------------------------------------------------

    def gather(self, effort: int = 1) -> None:
        """Take the best candidates by name, words and vector. `effort` multiplies the usual number by words."""
        allowed = self._allowed.slots
        if len(allowed) <= SMALL:
            self.slots = allowed
            return
        parts = [self._exact]
        if self._request.ranking != "vector":
            usual = min(TEXT_CANDIDATES + len(allowed) // ONE_MORE_FOR, MOST_TEXT_CANDIDATES)
            wanted = effort * max(usual, self._request.limit)
            parts += [self._by_terms(wanted), self._pending(max(wanted, MOST_PENDING))]
        if self._query is not None:
            parts.append(self._by_vector())
        self.slots = unique(np.concatenate(parts))

    def _by_terms(self, wanted: int) -> Ints:
        """Records with most of the rarest terms that pass the filter, fetching more until there are enough."""
        terms = self._weighed.rarest(STAGE_ONE_TERMS)
        telling = self._weighed.rarest(STAGE_ONE_TERMS, least=TELLING)
        if telling and len(telling) < len(terms):
            passing, _ = self._passing(telling, wanted)
            if len(passing) >= wanted:
                self.are_all = False
                return passing[:wanted]
        passing, are_all = self._passing(terms, wanted)
        self.are_all = are_all and len(passing) <= wanted
        return passing[:wanted]

    def _passing(self, terms: Sequence[int], wanted: int) -> tuple[Ints, bool]:
        """At least `wanted` records with these terms that pass the filter, best first, or all there are."""
        share = len(self._allowed.slots) / self._columns.size
        fetch = min(self._columns.size + 1, int(wanted / share * 1.2) + 50)
        while True:
            slots, are_all = self._index.find(terms, fetch)
            passing = slots[self._allowed.mask[slots]]
            if len(passing) >= wanted or are_all:
                return passing, are_all
            fetch *= 4

    def _pending(self, wanted: int) -> Ints:
        """Records that the postings lack: all if there are few, otherwise the best by their words."""
        slots = self._index.pending()
        slots = slots[self._allowed.mask[slots]]
        if len(slots) <= wanted:
            return slots
        self.are_all = False
        return best_by_words(self._weighed, self._corpus, slots, wanted)

    def _by_vector(self) -> Ints:
        assert self._query is not None
        return self._columns.nearest(
            self._query,
            self._allowed.with_vector,
            self._request.limit,
            more=VECTOR_CANDIDATES,
            roughly=self._request.ranking != "vector",
        )

    def _find_exact(self) -> Ints:
        """Records whose whole name is the query, or an identifier in it."""
        if self._request.ranking == "vector":
            return np.zeros(0, np.int64)
        names = self._columns.name[: self._columns.size]
        found = [np.flatnonzero(names == name) for name in self._question.names[:MAX_NAMES]]
        slots: Ints = np.concatenate([np.zeros(0, np.int64), *found])
        return slots[self._allowed.mask[slots]]

    def scores(self) -> Scores:
        """The values of these candidates that the ranking needs."""
        columns, slots = self._columns, self.slots
        found = FoundCandidates(
            slots=slots,
            rids=columns.rid[slots],
            is_exact=np.isin(slots, self._exact),
            has_vector=columns.has_vector(slots),
            cosine=columns.cosines(self._query, slots) if self._query is not None else None,
        )
        return Scores(self._request, self._question, self._weighed, self._corpus, found)
