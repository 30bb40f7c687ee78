"""A search by queries of the server, for a process that does not have the records in memory. Candidates come from the
indexes of the server, the ranking is the one of every backend, and the records are read with the rights of the
caller."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from clew.access import Principal
from clew.trail.model.query import Hit, SearchRequest
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.rows import ALIVE, CURRENT, SEEN, seen_by, to_record
from clew.trail.postgres.search.candidate_queries import CandidateQueries
from clew.trail.postgres.search.record_cache import Candidate, RecordCache
from clew.trail.postgres.search.source import count_keywords
from clew.trail.postgres.search.state import TrailState
from clew.trail.postgres.transactions import ReadTransaction
from clew.trail.search.columns import Columns
from clew.trail.search.index_search import MORE
from clew.trail.search.ranking import Corpus, Floats, Ints, SearchQuestion, Words, rarity_of, weigh
from clew.trail.search.scores import FoundCandidates, FoundHits, Scores, literal_first

TOTALS = "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(length), 0)::bigint FROM term_totals"
COUNTS = (
    "SELECT term, sum(records)::bigint FROM term_counts WHERE term = ANY (%s) AND audience = ANY (%s) GROUP BY term"
)
FETCH = f"{CURRENT} WHERE b.rid = ANY (%(rids)s) AND {SEEN} AND {ALIVE}"


class ServerSearch:
    """One search in one snapshot."""

    def __init__(
        self,
        engine: PostgresEngine,
        cache: RecordCache,
        reading: ReadTransaction,
        request: SearchRequest,
        by: Principal,
        state: TrailState,
        question: SearchQuestion,
        query: Floats | None,
    ) -> None:
        self._engine = engine
        self._cache = cache
        self._reading = reading
        self._request = request
        self._by = by
        self._state = state
        self._question = question
        self._query = query if state.dimension else None
        self._counts: dict[int, int] = {}
        sql = f"{TOTALS} WHERE audience = ANY (%s)"
        self._number, length = reading.row(sql, (state.audiences,)) or (0, 0)
        self._mean = length / 10 / self._number if self._number else 1.0

    def find_hits(self) -> tuple[Hit, ...]:
        effort = 1
        while True:
            answer = self._answer(effort)
            if answer is not None:
                return literal_first(answer.hits, self._request.text.strip())
            effort *= MORE

    def _answer(self, effort: int) -> FoundHits | None:
        """The hits, or None when more candidates are needed to fill the answer."""
        request, corpus = self._request, self._corpus(np.zeros(0, np.uint32), np.zeros(0, np.int64))
        weighed = weigh(self._question, corpus)
        queries = CandidateQueries(self._reading, request, self._by, self._engine.wall())
        candidates = queries.gather(
            weighed,
            self._question.names,
            self._counts,
            self._state.audiences,
            self._query,
            number=self._number,
            effort=effort,
        )
        with self._cache.lock:
            self._cache.load(self._reading, candidates, self._state.epoch)
            columns = self._cache.columns
            corpus = self._corpus(columns.heap, columns.at)
            scores = Scores(request, self._question, weighed, corpus, self._find(candidates))
            order = scores.rank(partial(count_keywords, self._reading))
        answer = self._fetch(scores, order)
        return answer if answer.is_full or queries.are_all else None

    def _find(self, candidates: Sequence[Candidate]) -> FoundCandidates:
        """The candidates as they are in the columns. The caller holds the lock of the cache."""
        columns = self._cache.columns
        slots = columns.slots([rid for rid, _ in candidates])
        names = np.array(self._question.names if self._request.ranking != "vector" else (), np.uint32)
        return FoundCandidates(
            slots=slots,
            rids=columns.rid[slots],
            is_exact=np.isin(columns.name[slots], names),
            has_vector=columns.has_vector(slots),
            cosine=self._cosines(columns, slots),
        )

    def _cosines(self, columns: Columns, slots: Ints) -> Floats | None:
        if self._query is None:
            return None
        if not columns.vectors.shape[1]:  # none of them has a vector
            return np.zeros(len(slots), np.float32)
        return columns.cosines(self._query, slots)

    def _corpus(self, heap: Words, at: Ints) -> Corpus:
        return Corpus(heap=heap, at=at, rarity=self._rarity, mean_length=self._mean, number=self._number)

    def _rarity(self, ids: Words) -> Floats:
        wanted = ids.tolist()
        lacking = list({term for term in wanted if term not in self._counts})
        if lacking:
            self._counts.update(dict.fromkeys(lacking, 0))
            self._counts.update(
                (term, count) for term, count in self._reading.rows(COUNTS, (lacking, self._state.audiences))
            )
        return rarity_of(np.array([self._counts[term] for term in wanted], np.int64), self._number)

    def _fetch(self, scores: Scores, order: Ints) -> FoundHits:
        """The best records as they are stored, as far as the caller may see them."""
        limit = self._request.limit
        answer, values = FoundHits(limit), {"now": self._engine.wall(), **seen_by(self._by)}
        for first in range(0, len(order), limit):
            places = order[first : first + limit].tolist()
            rids = scores.rids[places].tolist()
            by_rid = {row[0]: row for row in self._reading.rows(FETCH, {**values, "rids": rids})}
            for place, rid in zip(places, rids, strict=True):
                if rid in by_rid and not answer.is_full:
                    row = by_rid[rid]
                    answer.add(scores.hit(place, to_record(row)), len(row[6]))
            if answer.is_full:
                break
        return answer
