"""Search on PostgreSQL: the `Search` interface. Candidates come from its indexes, the ranking is the one of every
backend, and the records are read with the rights of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from clew.access import Principal
from clew.trail.model.query import SearchRequest, SearchResult, check_request
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.rows import ALIVE, CURRENT, SEEN, seen_by, to_record
from clew.trail.postgres.search_cache import Candidate, RecordCache
from clew.trail.postgres.search_candidates import CandidateQueries
from clew.trail.postgres.search_terms import TermIndexer
from clew.trail.postgres.transactions import ReadTransaction, pack_texts
from clew.trail.search.columns import Columns
from clew.trail.search.query_vector import find_query_vector
from clew.trail.search.ranking import Corpus, Floats, Ints, SearchQuestion, Words, parse_question, rarity_of, weigh
from clew.trail.search.scores import FoundCandidates, FoundHits, Scores, literal_first
from clew.trail.search.text import owner_salt
from clew.trail.store import Embedder

MORE = 4
"""The factor by which the number of candidates grows when they do not fill the answer."""
STATE = (
    "SELECT audiences_of(%(owner)s, %(scopes)s), l.head,"
    " coalesce((SELECT value::bigint FROM meta WHERE key = 'indexed'), 0),"
    " (SELECT value FROM meta WHERE key = 'embedder'),"
    " coalesce((SELECT value FROM meta WHERE key = 'vectors_epoch'), '') FROM log l"
)
TOTALS = "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(length), 0)::bigint FROM term_totals"
COUNTS = (
    "SELECT term, sum(records)::bigint FROM term_counts WHERE term = ANY (%s) AND audience = ANY (%s) GROUP BY term"
)
FETCH = f"{CURRENT} WHERE b.rid = ANY (%(rids)s) AND {SEEN} AND {ALIVE}"

_decode_texts = msgspec.json.Decoder(frozenset[str]).decode


class TrailState(NamedTuple):
    """The state of the trail for a search: the audiences of its caller, the head of the log, the last event that is
    indexed, and the vectors that exist."""

    audiences: list[int]
    head: int
    indexed: int
    embedder: str | None
    epoch: str

    @property
    def dimension(self) -> int:
        return int(self.embedder.rpartition(":")[2]) if self.embedder is not None else 0


class PostgresSearch:
    """See `clew.trail.store.Search`."""

    def __init__(self, engine: PostgresEngine, embedder: Embedder | None, space: str | None) -> None:
        self._engine = engine
        self._embedder = embedder
        self._space = space
        self._indexer = TermIndexer(engine)
        self._cache = RecordCache()

    async def warm(self) -> None:
        await self._indexer.catch_up()

    async def search(self, request: SearchRequest, *, by: Principal) -> SearchResult:
        by.require("read")
        check_request(request)
        needed: int | None = None
        while True:
            answer = await self._engine.read(partial(self._answer, request=request, by=by, needed=needed), by=by)
            if isinstance(answer, SearchResult):
                return answer
            needed = answer if needed is None else needed
            await self._indexer.catch_up()

    def _answer(
        self, reading: ReadTransaction, request: SearchRequest, by: Principal, needed: int | None
    ) -> SearchResult | int:
        """The answer, or the event up to which the terms must be indexed first."""
        state = TrailState(*(reading.row(STATE, {"owner": by.owner_id, "scopes": pack_texts(by.scopes)}) or ()))
        if state.indexed < (state.head if needed is None else needed):
            return state.head
        query = find_query_vector(
            request, self._embedder, space=self._space, present=state.embedder, dimension=state.dimension
        )
        question = parse_question(request.text, owner_salt(by.owner_id, self._engine.trail_id))
        found = _Search(self._engine, self._cache, reading, request, by, state, question, query)
        effort = 1
        while True:
            answer = found.answer(effort)
            if answer is not None:
                return SearchResult(hits=literal_first(answer.hits, request.text.strip()), ranking=request.ranking)
            effort *= MORE


class _Search:
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

    def answer(self, effort: int) -> FoundHits | None:
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
            order = scores.rank(self._count_keywords)
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

    def _count_keywords(self, rids: list[int], wanted: set[str]) -> Ints:
        """The number of wanted keywords that each record has."""
        rows = self._reading.rows("SELECT rid, entity_keywords FROM breadcrumbs WHERE rid = ANY (%s)", (rids,))
        matched = {rid: len(wanted & _decode_texts(keywords)) for rid, keywords in rows}
        return np.array([matched.get(rid, 0) for rid in rids], np.int64)

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
