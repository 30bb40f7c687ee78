"""Records that were candidates of a search, as the ranking sees them, kept in memory by row id and version."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from clew.trail.postgres.transactions import ReadTransaction
from clew.trail.postgres.vectors import read_vector
from clew.trail.search.columns import Columns

MAX_WORDS = 64_000_000
"""32-bit words of terms that the cache may hold: 256 MB."""
MAX_RECORDS = 200_000
LOAD = (
    "SELECT t.rid, t.audience, t.terms, vector_send(v.vector), t.version FROM terms t"
    " LEFT JOIN vectors v ON v.rid = t.rid WHERE t.rid = ANY (%s) ORDER BY t.rid"
)

Candidate = tuple[int, int]
"""The row id of a record and its version."""


class RecordCache:
    """A cache for any number of threads. A thread must hold the lock while it uses the columns."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.columns = Columns()
        self._versions: dict[int, int] = {}
        self._epoch = ""

    def load(self, reading: ReadTransaction, wanted: Sequence[Candidate], epoch: str) -> None:
        """Make sure that these records are in the columns. `epoch` distinguishes the vectors of different embedders.
        The caller holds the lock."""
        if epoch != self._epoch or self.columns.heap_size > MAX_WORDS or len(self._versions) > MAX_RECORDS:
            self._forget()
            self._epoch = epoch
        elif self.columns.is_sparse:
            self._forget()
        lacking = [rid for rid, version in wanted if self._versions.get(rid) != version]
        if lacking:
            self._put(reading.rows(LOAD, (lacking,)))

    def _put(self, rows: Sequence[Any]) -> None:
        found = [
            (rid, audience, None, terms, read_vector(sent), version) for rid, audience, terms, sent, version in rows
        ]
        self.columns.put([row[:5] for row in found])
        self._versions.update((row[0], row[5]) for row in found)

    def _forget(self) -> None:
        self.columns = Columns()
        self._versions = {}
