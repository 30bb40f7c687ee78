"""A search over the index in memory: candidates, ranking, and the records as the database has them. The same in every
backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.query import Hit, SearchRequest
from clew.trail.search.candidates import Allowed, Candidates
from clew.trail.search.ranking import Floats, Ints, SearchQuestion
from clew.trail.search.scores import FoundHits, Scores, literal_first
from clew.trail.search.search_index import Index

MORE = 4
"""The factor by which the number of candidates grows when they do not fill the answer."""


class FoundRecords(NamedTuple):
    """Records by row id, each with the number of characters of its context; and the row ids of records that are
    gone."""

    records: dict[int, tuple[Breadcrumb, int]]
    spent: Sequence[int]


class RecordSource(Protocol):
    """The records of the trail as the caller of a search may read them."""

    def find_rids(self, ids: Sequence[str]) -> Sequence[int]:
        """The row ids of those of these records that exist."""
        ...

    def read(self, rids: Sequence[int]) -> FoundRecords:
        """The subset of these records that the caller may read now."""
        ...

    def count_keywords(self, rids: list[int], wanted: set[str]) -> Ints:
        """The number of wanted keywords that each record has."""
        ...


def find_hits(
    index: Index,
    allowed: Allowed,
    question: SearchQuestion,
    query: Floats | None,
    visible: Sequence[int],
    request: SearchRequest,
    source: RecordSource,
) -> tuple[Hit, ...]:
    """The hits of a search among the allowed slots. `visible` are the audiences of the caller. A record that has
    expired in the meantime, or that the database does not show to the caller, is replaced by the next one."""
    allowed = allowed.without(index.columns.slots(source.find_rids(request.exclude)))
    effort = 1
    while True:
        found = Candidates(index, allowed, question, query, visible, request)
        found.gather(effort)
        scores = found.scores()
        answer = _read_best(scores, scores.rank(source.count_keywords), source, request.limit)
        if answer.spent:
            index.columns.expire(answer.spent)
        if answer.hits.is_full or (found.are_all and not answer.hits.gone):
            return literal_first(answer.hits.hits, request.text.strip())
        allowed = allowed.without(index.columns.slots(answer.hits.gone))
        effort *= MORE


class _Answer(NamedTuple):
    hits: FoundHits
    spent: list[int]


def _read_best(scores: Scores, order: Ints, source: RecordSource, limit: int) -> _Answer:
    answer = _Answer(FoundHits(limit), [])
    for first in range(0, len(order), limit):
        places = order[first : first + limit].tolist()
        rids = scores.rids[places].tolist()
        found = source.read(rids)
        answer.spent.extend(found.spent)
        answer.hits.gone += [rid for rid in rids if rid not in found.records]
        for place, rid in zip(places, rids, strict=True):
            if rid in found.records and not answer.hits.is_full:
                breadcrumb, size = found.records[rid]
                answer.hits.add(scores.hit(place, breadcrumb), size)
        if answer.hits.is_full:
            break
    return answer
