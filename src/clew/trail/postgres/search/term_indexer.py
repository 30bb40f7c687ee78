"""The terms of records on PostgreSQL. They are computed in batches after the records were written, so that a write does
not wait for them. `meta ('indexed')` is the event up to which they are complete. Only one transaction of all processes
indexes at a time, so that the counts of terms are exact. A process that has searched indexes in the background, soon
after each write. A search that comes before that indexes by itself.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from clew.errors import ClewError, StorageError
from clew.trail.postgres.definitions import PostgresDefinitions
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.search.words import words_of
from clew.trail.postgres.transactions import WriteTransaction
from clew.trail.search.packing import pack_all
from clew.trail.search.record_text import read_text
from clew.trail.search.text import HEADER, owner_salt

BATCH = 500
"""The number of events that one transaction indexes."""
PAUSE = 0.25
"""Seconds for which writes are collected before their terms are computed."""
LOCK = 7_310_583_162_204_501
"""The advisory lock of a transaction that indexes terms."""
TRY_LOCK = "SELECT pg_try_advisory_xact_lock(%s)"
STATE = "SELECT coalesce((SELECT value::bigint FROM meta WHERE key = 'indexed'), 0), head FROM log"
CHANGED = "SELECT seq, rid FROM events WHERE seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
TEXTS = (
    "SELECT b.rid, b.version, b.audience, a.owner_id, b.schema_name, b.title, b.context, b.llm_hints"
    " FROM breadcrumbs b JOIN audiences a ON a.id = b.audience WHERE b.rid = ANY (%s) ORDER BY b.rid"
)
PUT = (
    "INSERT INTO terms (rid, version, audience, name, length, terms, words)"
    " VALUES (%s, %s, %s, %s, %s, %s, array_to_tsvector(%s::text[]))"
    " ON CONFLICT (rid) DO UPDATE SET version = excluded.version, audience = excluded.audience, name = excluded.name,"
    " length = excluded.length, terms = excluded.terms, words = excluded.words"
)
COUNT = (
    "INSERT INTO term_counts AS c SELECT * FROM unnest(%s::integer[], %s::bigint[], %s::bigint[])"
    " ON CONFLICT (audience, term) DO UPDATE SET records = c.records + excluded.records"
)
TOTAL = (
    "INSERT INTO term_totals AS c VALUES (%s, %s, %s) ON CONFLICT (audience) DO UPDATE"
    " SET records = c.records + excluded.records, length = c.length + excluded.length"
)


class PackedTerms(NamedTuple):
    """The packed terms of a record, taken apart."""

    terms: list[int]
    name: int
    length: int


def unpack(packed: bytes) -> PackedTerms:
    words = np.frombuffer(packed, "<u4")
    return PackedTerms(words[HEADER : HEADER + int(words[0])].tolist(), int(words[4]), int(words[3]))


class TermIndexer:
    """Brings the terms of all records up to date. From the first `catch_up` on, it also does so in the background."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._definitions = PostgresDefinitions(engine)
        self._has_news = threading.Event()
        self._is_closed = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.on_indexed: list[Callable[[], None]] = []
        """Called from the background thread when it has indexed new events."""

    async def catch_up(self) -> None:
        """Return when all that was written before the call is indexed."""
        self._keep_up()
        while await self._engine.write(self._take_on, by=None, durable=False):
            pass

    def catch_up_now(self) -> None:
        """As `catch_up`, for a thread that may block. Raises StorageError if the trail is closed during the call."""
        self._keep_up()
        while self._engine.write_now(self._take_on, by=None):
            if self._is_closed.is_set():
                raise StorageError("the trail is closed")

    def stop(self) -> None:
        """End what is being indexed, after its batch. Any thread may call it."""
        self._is_closed.set()
        self._has_news.set()

    # -- in the background --------------------------------------------------------------------------------

    def _keep_up(self) -> None:
        """Start the thread that follows the log. The event loop and the thread of searches call this."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="clew-terms", daemon=True)
                self._engine.wakeups.on_announce.append(self._has_news.set)
                self._engine.on_close.append(self._close)
                self._thread.start()

    def _close(self) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        known = 0
        while self._has_news.wait() and not self._is_closed.wait(PAUSE):
            self._has_news.clear()
            head = self._engine.wakeups.head
            if head > known:
                with contextlib.suppress(ClewError):  # the next search meets it
                    while self._engine.write_now(self._try_take_on, by=None) and not self._is_closed.is_set():
                        pass
                    known = head
                for hear in self.on_indexed:
                    hear()

    def _try_take_on(self, writing: WriteTransaction) -> bool:
        """As `_take_on`, but return False if another process is indexing."""
        return bool(writing.value(TRY_LOCK, (LOCK,))) and self._take_on(writing)

    def _take_on(self, writing: WriteTransaction) -> bool:
        """Index the records of the next events. Returns whether there are more."""
        writing.send("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        indexed, head = writing.row(STATE) or (0, 0)
        if indexed >= head:
            return False
        events = writing.rows(CHANGED, (indexed, head, BATCH))
        rids = sorted({rid for _, rid in events})
        records = writing.rows(TEXTS, (rids,))
        counts = _Counts()
        for audience, packed in writing.rows("SELECT audience, terms FROM terms WHERE rid = ANY (%s)", (rids,)):
            counts.add(audience, unpack(packed), -1)
        self._put(writing, records, counts)
        gone = sorted(set(rids).difference(row[0] for row in records))
        writing.send("DELETE FROM terms WHERE rid = ANY (%s)", (gone,))
        counts.store(writing)
        upto = events[-1][0] if len(events) == BATCH else head
        writing.remember("indexed", str(upto))
        return bool(upto < head)

    def _put(self, writing: WriteTransaction, records: Sequence[Any], counts: _Counts) -> None:
        owners = {row[3] for row in records}
        definitions = {owner: self._definitions.of(writing, owner) for owner in owners}
        salts = {owner: owner_salt(owner, self._engine.trail_id) for owner in owners}
        packed = pack_all([(read_text(definitions[row[3]], *row[4:]), salts[row[3]]) for row in records])
        rows = []
        for row, blob in zip(records, packed, strict=True):
            apart = unpack(blob)
            counts.add(row[2], apart, 1)
            rows.append((row[0], row[1], row[2], apart.name, apart.length, blob, words_of(blob)))
        writing.send_many(PUT, rows)


class _Counts:
    """The changes of the term counts by one batch."""

    def __init__(self) -> None:
        self._records: Counter[tuple[int, int]] = Counter()
        self._totals: dict[int, tuple[int, int]] = {}

    def add(self, audience: int, packed: PackedTerms, sign: int) -> None:
        for term in packed.terms:
            self._records[audience, term] += sign
        records, length = self._totals.get(audience, (0, 0))
        self._totals[audience] = records + sign, length + sign * packed.length

    def store(self, writing: WriteTransaction) -> None:
        changed = sorted((audience, term, by) for (audience, term), by in self._records.items() if by)
        if changed:
            writing.send(COUNT, tuple(list(column) for column in zip(*changed, strict=True)))
        writing.send_many(TOTAL, [(audience, *total) for audience, total in sorted(self._totals.items())])
