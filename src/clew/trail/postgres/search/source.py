"""Reads a trail on PostgreSQL for searches in memory. The index reads everything, as upkeep. A search reads what its
caller may see, under row-level security."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
import numpy as np

from clew.access import Principal
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector, matches, matches_context
from clew.trail.postgres.rows import CURRENT, SEEN, seen_by, to_record
from clew.trail.postgres.selector_sql import build_where, needs_content
from clew.trail.postgres.transactions import ReadTransaction
from clew.trail.postgres.vectors import read_vector
from clew.trail.search.columns import IndexRow
from clew.trail.search.index_search import FoundRecords
from clew.trail.search.masks import PlainCondition, plain_conditions
from clew.trail.search.ranking import Ints

LOAD_BATCH, CONTENT_BATCH = 2_000, 500
ROW = (
    "SELECT b.rid, b.audience, CASE WHEN b.read_count >= b.max_reads THEN 0 ELSE b.expires_at END, t.terms,"
    " vector_send(v.vector) FROM breadcrumbs b JOIN terms t ON t.rid = b.rid LEFT JOIN vectors v ON v.rid = b.rid"
)
"""A record whose terms are not indexed yet is left out, or comes with those of its last version. The event that changed
it is then later than the position of the index, so that it is read again."""
NEXT = f"{ROW} AND v.rid > %(after)s WHERE b.rid > %(after)s AND t.rid > %(after)s ORDER BY b.rid LIMIT {LOAD_BATCH}"
"""The condition is repeated for each table. Otherwise the merge join of each batch would begin at the first rows."""
POSITION = "SELECT coalesce((SELECT value::bigint FROM meta WHERE key = 'indexed'), 0)"
EPOCH = "SELECT coalesce((SELECT value FROM meta WHERE key = 'vectors_epoch'), '')"
SIZE = "SELECT (SELECT count(*) FROM breadcrumbs), coalesce(sum(length(terms)), 0)::bigint / 4 FROM terms"
TIME = "SELECT coalesce((SELECT at FROM log WHERE head = %(seq)s), (SELECT at FROM events WHERE seq = %(seq)s), 0)"
CONTENTS = "SELECT rid, context FROM breadcrumbs WHERE rid = ANY (%(rids)s)"
FETCH = f"{CURRENT} WHERE b.rid = ANY (%(rids)s) AND {SEEN}"
EXPIRES_AT, MAX_READS, READ_COUNT = 12, 13, 14
"""Columns of FETCH."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_decode_texts = msgspec.json.Decoder(frozenset[str]).decode


class TrailSource:
    """See `clew.trail.search.search_index.IndexSource`. The transaction is one of upkeep: it reads the records of all
    owners, in one snapshot."""

    def __init__(self, reading: ReadTransaction, check: Callable[[], None] = lambda: None) -> None:
        """`check` is called before each batch of a load. It raises an error to end it."""
        self._reading = reading
        self._check = check

    def snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()  # as the whole transaction is

    def position(self) -> int:
        return int(self._reading.value(POSITION))

    def epoch(self) -> str:
        return str(self._reading.value(EPOCH))

    def size(self) -> tuple[int, int]:
        number, words = self._reading.row(SIZE) or (0, 0)
        return number, words

    def all_rows(self) -> Iterator[Sequence[IndexRow]]:
        after = 0
        while rows := self._read(NEXT, {"after": after}):
            self._check()
            after = rows[-1][0]
            yield rows

    def rows_of(self, rids: Sequence[int]) -> Sequence[IndexRow]:
        return self._read(f"{ROW} WHERE b.rid = ANY (%(rids)s) ORDER BY b.rid", {"rids": list(rids)})

    def _read(self, sql: str, values: dict[str, Any]) -> Sequence[IndexRow]:
        rows = self._reading.packed_rows(sql, values)
        return [(rid, audience, expires, terms, read_vector(sent)) for rid, audience, expires, terms, sent in rows]

    def changes(self, after: int, upto: int) -> dict[int, int]:
        sql = "SELECT DISTINCT rid, audience FROM events WHERE seq > %s AND seq <= %s"
        return dict(self._reading.packed_rows(sql, (after, upto)))

    def mark_of(self, seq: int) -> str:
        return str(self.time_of(seq))

    def time_of(self, seq: int) -> int:
        """The time of an event, 0 if there is no such event. For the newest one it is the time of the log, which each
        caller sees. On a trail that was moved here, that is the latest time of all events."""
        return int(self._reading.value(TIME, {"seq": seq}))


class CallerSource:
    """The trail as the caller of a search may see it: see `clew.trail.search.masks.MaskSource` and
    `clew.trail.search.index_search.RecordSource`. The transaction acts for the caller, so that row-level security
    decides behind each query. With `is_ahead`, the transaction sees events that the index does not have yet."""

    def __init__(
        self, reading: ReadTransaction, request: SearchRequest, by: Principal, now: int, *, is_ahead: bool
    ) -> None:
        self._reading = reading
        self._request = request
        self._by = by
        self._now = now
        self._is_ahead = is_ahead
        self.viewer = by.owner_id, tuple(sorted(by.scopes))

    # -- for the filters ----------------------------------------------------------------------------------

    def select(self, selector: Selector, among: Sequence[int] | None) -> Sequence[Ints]:
        only = "" if among is None else " AND b.rid = ANY (%(among)s)"
        values = {"among": list(among or ()), **seen_by(self._by)}
        if needs_content(selector):
            return [self._select_by_content(selector, only, values)]
        plain = plain_conditions(selector)
        if plain is None:
            where, more = build_where(selector, self._by, now=0)
            return [self._read_rids(f"breadcrumbs b WHERE {where}{only}", {**values, **more})]
        return [
            self._read_rids(_rows_with(condition) + only, {**values, "wanted": list(condition.wanted)})
            for condition in plain
        ]

    def _select_by_content(self, selector: Selector, only: str, values: dict[str, Any]) -> Ints:
        """The contents are read in batches, because those of all records may be larger than the memory."""
        where, more = build_where(selector, self._by, now=0)
        rids = self._read_rids(f"breadcrumbs b WHERE {where}{only}", {**values, **more})
        found: list[int] = []
        for first in range(0, len(rids), CONTENT_BATCH):
            rows = self._reading.rows(CONTENTS, {"rids": rids[first : first + CONTENT_BATCH].tolist()})
            found += [rid for rid, context in rows if is_meant(selector, context)]
        return np.array(found, np.int64)

    def _read_rids(self, source: str, values: dict[str, Any]) -> Ints:
        """The row ids come as one text of bytes, because a Python object for each would take longer."""
        sql = f"SELECT string_agg(int8send(b.rid), ''::bytea) FROM {source}"
        ((packed,),) = self._reading.packed_rows(sql, values)
        return np.frombuffer(packed or b"", ">i8").astype(np.int64)

    def changed(self, after: int, upto: int, limit: int) -> Sequence[int]:
        sql = f"SELECT DISTINCT rid FROM events WHERE seq > %s AND seq <= %s LIMIT {limit}"
        return [rid for (rid,) in self._reading.rows(sql, (after, upto))]

    # -- for the answer -----------------------------------------------------------------------------------

    def find_rids(self, ids: Sequence[str]) -> Sequence[int]:
        known = [id for id in ids if "\0" not in id]
        if not known:
            return []
        return [rid for (rid,) in self._reading.rows("SELECT rid FROM breadcrumbs WHERE id = ANY (%s)", (known,))]

    def read(self, rids: Sequence[int]) -> FoundRecords:
        """Only records without any reads left are spent. Other missing records may be hidden only from this caller."""
        found, spent = {}, []
        for row in self._reading.rows(FETCH, {"rids": list(rids), **seen_by(self._by)}):
            if row[MAX_READS] is not None and row[READ_COUNT] >= row[MAX_READS]:
                spent.append(row[0])
            elif row[EXPIRES_AT] is None or row[EXPIRES_AT] > self._now:
                record = to_record(row)
                if not self._is_ahead or matches(self._request.selector, record):
                    found[row[0]] = record, len(row[6])
        return FoundRecords(found, spent)

    def count_keywords(self, rids: list[int], wanted: set[str]) -> Ints:
        return count_keywords(self._reading, rids, wanted)


def count_keywords(reading: ReadTransaction, rids: list[int], wanted: set[str]) -> Ints:
    """The number of wanted keywords that each record has."""
    rows = reading.rows("SELECT rid, entity_keywords FROM breadcrumbs WHERE rid = ANY (%s)", (rids,))
    matched = {rid: len(wanted & _decode_texts(keywords)) for rid, keywords in rows}
    return np.array([matched.get(rid, 0) for rid in rids], np.int64)


def is_meant(selector: Selector, context: str) -> bool:
    """Whether a selector matches the content of a record."""
    try:
        return matches_context(selector, _decode(context))
    except msgspec.DecodeError:
        return False  # a damaged record


def _rows_with(condition: PlainCondition) -> str:
    """Rows of a table with an index that answers the condition."""
    match condition.kind:
        case "tag":
            return f"tags b WHERE {SEEN} AND b.tag = ANY (%(wanted)s)"
        case "schema":
            return f"breadcrumbs b WHERE {SEEN} AND b.schema_name = ANY (%(wanted)s)"
        case "other schema":
            others = "(b.schema_name IS NULL OR b.schema_name != ALL (%(wanted)s))"
            return f"breadcrumbs b WHERE {SEEN} AND {others}"
