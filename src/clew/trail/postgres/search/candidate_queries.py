"""Chooses the records that one search ranks. If few records pass the filter, all of them are candidates; otherwise each
arm contributes its best. Words are looked up in the index of `terms`, the nearest vectors in the graph of pgvector. If
a filter leaves few records, their vectors are compared one by one, because a walk through the graph would take long to
find enough of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.access import Principal
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import EVERYTHING
from clew.trail.postgres.search.record_cache import Candidate
from clew.trail.postgres.search.source import is_meant
from clew.trail.postgres.search.words import words_for
from clew.trail.postgres.selector_sql import build_where, needs_content
from clew.trail.postgres.transactions import ReadTransaction
from clew.trail.search.ranking import Floats, Weighed, length_exponent

SMALL = 2_000
"""If at most this many records pass a filter, all of them are candidates."""
COMPARED = 20_000
"""If at most this many records pass a filter, their vectors are compared one by one."""
TEXT_CANDIDATES = 400
VECTOR_CANDIDATES = 50
MOST_TERMS = 16
MOST_POSTINGS = 40_000
"""Terms are looked up, the rarest first, up to this many postings in total. More frequent terms count only in the
ranking."""
MAX_NAMES = 64
NEAR_AT_LEAST = 400
"""The lowest `hnsw.ef_search`: the number of candidates that a walk through the graph keeps."""

WALK = (
    "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true),"
    " set_config('hnsw.max_scan_tuples', '200000', true), set_config('enable_seqscan', 'off', true),"
    " set_config('enable_sort', 'off', true)"
)
"""Settings for a walk through the graph. The walk continues until enough of the vectors that it meets pass the
filter."""


class CandidateQueries:
    """The parts of a search that the database answers."""

    def __init__(self, reading: ReadTransaction, request: SearchRequest, by: Principal, now: int) -> None:
        self._reading = reading
        self._request = request
        self._where, self._values = build_where(request.selector, by, now)
        if request.exclude:
            self._where += " AND b.id != ALL (%(exclude)s)"
            self._values["exclude"] = list(request.exclude)
        if needs_content(request.selector):
            self._read_passing()
        self._is_filtered = request.selector != EVERYTHING or len(request.exclude) > 0
        self._found: dict[int, int] = {}
        self.are_all = True
        """Whether every record that matches is among the candidates."""

    def _read_passing(self) -> None:
        """Read the content of all records that pass the SQL conditions, and restrict the filter to those that match."""
        rows = self._reading.rows(f"SELECT b.rid, b.context FROM breadcrumbs b WHERE {self._where}", self._values)
        passing = [rid for rid, context in rows if is_meant(self._request.selector, context)]
        self._where += " AND b.rid = ANY (%(passing)s)"
        self._values["passing"] = passing

    def gather(
        self,
        weighed: Weighed,
        names: Sequence[int],
        counts: dict[int, int],
        audiences: Sequence[int],
        query: Floats | None,
        *,
        number: int,
        effort: int,
    ) -> list[Candidate]:
        """The candidates by name, words and vector, each once. `counts` maps a term to the number of records that have
        it. `number` is the number of records that the caller sees. `effort` multiplies the usual number of candidates
        by words."""
        if self._is_filtered or number <= 2 * SMALL:
            passing = self._pass(SMALL)
            if len(passing) <= SMALL:
                return passing
        self._values["audiences"] = list(audiences)
        if self._request.ranking != "vector":
            self._add_names(names)
            self._add_by_terms(weighed, counts, effort * max(TEXT_CANDIDATES, 2 * self._request.limit))
        if query is not None:
            self._add_by_vector(query)
        return sorted(self._found.items())

    def _pass(self, limit: int) -> list[Candidate]:
        sql = f"SELECT b.rid, b.version FROM breadcrumbs b WHERE {self._where} LIMIT {limit + 1}"
        return [(rid, version) for rid, version in self._reading.rows(sql, self._values)]

    def _count_passing(self, limit: int) -> int:
        """The number of records that pass the filter, at most one more than the limit."""
        sql = f"SELECT 1 FROM breadcrumbs b WHERE {self._where} LIMIT {limit + 1}"
        return int(self._reading.value(f"SELECT count(*) FROM ({sql}) p", self._values))

    def _add(self, sql: str, **values: Any) -> int:
        rows = self._reading.rows(sql, {**self._values, **values})
        self._found.update((row[0], row[1]) for row in rows)
        return len(rows)

    def _add_names(self, names: Sequence[int]) -> None:
        """Records whose whole name is the query, or an identifier in it."""
        self._add(
            f"SELECT b.rid, b.version FROM terms t {self._passing('t')}"
            " WHERE t.name = ANY (%(names)s::bigint[]) AND t.audience = ANY (%(audiences)s) ORDER BY b.rid LIMIT 1000",
            names=list(names[:MAX_NAMES]),
        )

    def _add_by_terms(self, weighed: Weighed, counts: dict[int, int], wanted: int) -> None:
        """Add the records that pass the filter and have most of the rarest terms. If these are too few, use all
        terms."""
        terms = weighed.rarest(MOST_TERMS)
        chosen: list[int] = []
        postings = 0
        for term in terms:
            if chosen and postings + counts.get(term, 0) > MOST_POSTINGS:
                break
            chosen.append(term)
            postings += counts.get(term, 0)
        found = self._add_with(weighed, chosen, wanted)
        if found < wanted and len(chosen) < len(terms):
            found = self._add_with(weighed, terms, wanted)
        self.are_all = found < wanted

    def _add_with(self, weighed: Weighed, terms: Sequence[int], wanted: int) -> int:
        if not terms:
            return 0
        rarity = dict(zip(weighed.terms.tolist(), weighed.rarity.tolist(), strict=True))
        words, worth = words_for({term: rarity[term] for term in terms})
        matched = (
            "SELECT t.rid, sum(q.worth) / power(greatest(min(t.length), 10), %(exponent)s) AS score"
            " FROM unnest(%(words)s::text[], %(worth)s::real[]) AS q (word, worth)"
            " CROSS JOIN LATERAL (SELECT rid, audience, length FROM terms WHERE words @@ q.word::tsquery OFFSET 0) t"
            " WHERE t.audience = ANY (%(audiences)s) GROUP BY t.rid"
        )
        return self._add(
            f"SELECT b.rid, b.version FROM ({matched} ORDER BY score DESC, rid OFFSET 0) m {self._passing('m')}"
            f" ORDER BY m.score DESC, m.rid LIMIT {wanted}",
            words=words,
            worth=worth,
            exponent=length_exponent(len(weighed.terms)),
        )

    def _passing(self, source: str) -> str:
        """A join with the records that pass the filter. Records are looked up one by one, in the order of the source,
        and only until there are enough, regardless of the planner's estimate of their number."""
        return (
            f"CROSS JOIN LATERAL (SELECT b.rid, b.version FROM breadcrumbs b WHERE b.rid = {source}.rid"
            f" AND {self._where} OFFSET 0) b"
        )

    def _add_by_vector(self, query: Floats) -> None:
        wanted = self._request.limit + VECTOR_CANDIDATES
        self._values["query"] = "[" + ",".join(map(repr, np.asarray(query, np.float64).tolist())) + "]"
        shown = f"vector_dims(v.vector) = {len(query)}"  # as the index has it
        if self._is_filtered and self._count_passing(COMPARED) <= COMPARED:
            passing = f"ARRAY (SELECT b.rid FROM breadcrumbs b WHERE {self._where})"
            self._add(
                "SELECT b.rid, b.version FROM (SELECT v.rid FROM vectors v"
                f" WHERE v.rid = ANY ({passing}) AND {shown} ORDER BY v.vector <=> %(query)s::vector LIMIT {wanted}) n"
                " JOIN breadcrumbs b ON b.rid = n.rid"
            )
            return
        kind = f"halfvec({len(query)})"
        ahead = str(min(1_000, max(NEAR_AT_LEAST, 2 * wanted)))
        self._reading.rows(WALK, (ahead,))
        self._add(
            f"SELECT b.rid, b.version FROM vectors v {self._passing('v')} WHERE v.audience = ANY (%(audiences)s)"
            f" AND {shown} ORDER BY v.vector::{kind} <=> %(query)s::{kind} LIMIT {wanted}"
        )
