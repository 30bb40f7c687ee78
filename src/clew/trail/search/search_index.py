"""The search index of a trail, kept up with it: columns in memory, postings beside them.

Both are derived. Call `sync` before a search: it reads the changes of all processes since the last call, as far as this
search may find them. A thread adds missing records to the postings.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import takewhile
from pathlib import Path
from typing import Protocol

from clew.trail.search.columns import Columns, IndexRow
from clew.trail.search.postings import TermPostings
from clew.trail.search.ranking import Ints

PENDING = 512
"""The number of changed records that are written to the postings together."""
CATCH_UP_BATCH = 500

log = logging.getLogger(__name__)


class IndexSource(Protocol):
    """The trail as an index reads it, within one read of the database."""

    def snapshot(self) -> AbstractContextManager[None]:
        """All that is read within the block is of one moment."""
        ...

    def position(self) -> int:
        """The newest event up to which records can be read with their terms."""
        ...

    def epoch(self) -> str:
        """A text that changes when all vectors are replaced."""
        ...

    def size(self) -> tuple[int, int]:
        """The number of records, and about the number of 32-bit words of their terms."""
        ...

    def all_rows(self) -> Iterable[Sequence[IndexRow]]:
        """All records, in batches and in the order of their row ids."""
        ...

    def rows_of(self, rids: Sequence[int]) -> Sequence[IndexRow]:
        """The subset of these records that exist."""
        ...

    def changes(self, after: int, upto: int) -> dict[int, int]:
        """The records that the events after one and up to another changed, each with its audience."""
        ...

    def mark_of(self, seq: int) -> str:
        """A mark that distinguishes an event from the one with the same number on a restored trail."""
        ...


class Index:
    """The index of all records as of the event `seq`, except records that no search so far could have found. Only one
    thread at a time may use it. `changes` counts the changes of the indexed records."""

    def __init__(self, trail_id: str, folder: Path | None, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """`folder` is where the postings are. With None they are in memory too. They are not finished when `is_wanted`
        returns False."""
        self._trail_id = trail_id
        self._folder = folder
        self._is_wanted = is_wanted
        self.columns = Columns()
        self.seq = -1
        self.changes = 0
        self.epoch = ""
        self._postings: TermPostings | None = None
        self._pending: dict[int, int] = {}
        self._gone: dict[int, int] = {}
        self._unread: dict[int, int] = {}
        self._indexer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clew-index")
        self._indexing: Future[None] | None = None

    def close(self) -> None:
        """Finish the current write, and close the postings: tantivy has a thread for as long as they exist."""
        self._indexer.shutdown(wait=True)
        self._postings = None

    # -- asking -------------------------------------------------------------------------------------------

    def find(self, terms: Sequence[int], limit: int) -> tuple[Ints, bool]:
        """Slots of the records with most of these terms, best first, and whether these are all."""
        rids = self._postings.find(terms, limit) if self._postings is not None and terms else []
        return self.columns.slots(rids), len(rids) < limit

    def pending(self) -> Ints:
        """Slots of the records whose current version the postings lack."""
        return self.columns.slots(list(self._pending))

    @property
    def lacks_records(self) -> bool:
        """Whether changes up to the event `seq` have not been read yet."""
        return bool(self._unread)

    # -- keeping up ---------------------------------------------------------------------------------------

    def sync(self, source: IndexSource, visible: Collection[int] | None = None) -> None:
        """Read the changes since the last time. With `visible`, the audiences of the search, records of other
        audiences are not read yet. They are read when a search needs them, or together when there are enough for the
        postings, which is faster."""
        self._settle()
        before = self.changes
        head, epoch = source.position(), source.epoch()
        if self.seq < 0 or epoch != self.epoch or self.columns.is_sparse:
            self._load(source)
        else:
            self._note_changes(source, head, visible)
            self._read(source, self._wanted(visible))
        self.epoch = epoch
        if self.changes != before and not self._unread:
            self._hand_over(source)

    def _load(self, source: IndexSource) -> None:
        """Read everything, in one snapshot."""
        with source.snapshot():
            head = source.position()
            columns = Columns()
            columns.reserve(*source.size())
            for rows in source.all_rows():
                columns.put(rows)
            postings = self._postings or self._find_postings(source)
            lacking = columns.rids() if postings is None else list(source.changes(postings.seq, head))
        self.columns, self._postings, self.seq = columns, postings, head
        self.changes += 1
        self._unread = {}
        self._pending = {rid: head for rid in lacking if columns.find(rid) is not None}
        self._gone = {rid: head for rid in lacking if columns.find(rid) is None}

    def _note_changes(self, source: IndexSource, head: int, visible: Collection[int] | None) -> None:
        """Read which records the events since the last call changed. Records that have left the visible audiences are
        dropped from the columns."""
        if head == self.seq:
            return
        changed = source.changes(self.seq, head)
        self._unread.update(changed)
        self.seq = head
        hidden = [rid for rid, audience in changed.items() if visible is not None and audience not in visible]
        known = [rid for rid in hidden if self.columns.find(rid) is not None]
        if known:
            self._drop(known)

    def _wanted(self, visible: Collection[int] | None) -> list[int]:
        if visible is None or len(self._unread) + len(self._pending) + len(self._gone) >= PENDING:
            return list(self._unread)
        return [rid for rid, audience in self._unread.items() if audience in visible]

    def _read(self, source: IndexSource, changed: Sequence[int]) -> None:
        """Read these records as they are now."""
        if not changed:
            return
        present: set[int] = set()
        for first in range(0, len(changed), CATCH_UP_BATCH):
            rows = source.rows_of(changed[first : first + CATCH_UP_BATCH])
            self.columns.put(rows)
            present.update(row[0] for row in rows)
        gone = [rid for rid in changed if rid not in present]
        self._drop(gone)
        self._pending.update(dict.fromkeys(present, self.seq))
        self._gone.update(dict.fromkeys(gone, self.seq))
        for rid in changed:
            del self._unread[rid]

    def _drop(self, rids: Sequence[int]) -> None:
        self.changes += 1
        self.columns.drop(rids)
        for rid in rids:
            self._pending.pop(rid, None)

    # -- postings -----------------------------------------------------------------------------------------

    def _find_postings(self, source: IndexSource) -> TermPostings | None:
        """The postings on disk, None if there are none yet. A search over few records does not need them."""
        is_there = self._folder is not None and os.path.lexists(self._folder)
        return self._open_postings(source) if is_there else None

    def _open_postings(self, source: IndexSource) -> TermPostings:
        return TermPostings(self._folder, self._trail_id, source.mark_of)

    def _hand_over(self, source: IndexSource) -> None:
        """If enough records are missing from the postings, pass them to the thread that writes the postings."""
        if self._indexing is not None or len(self._pending) + len(self._gone) < PENDING:
            return
        if self._postings is None:
            self._postings = self._open_postings(source)
        present, gone = sorted(self._pending), sorted(self._gone)
        texts = zip(present, self.columns.term_texts(self.columns.slots(present)), strict=True)
        work = takewhile(lambda _: self._is_wanted(), texts)
        self._indexing = self._indexer.submit(_update, self._postings, work, gone, self.seq, source.mark_of(self.seq))

    def wait(self) -> None:
        """Return when the postings have all that was passed to the thread that writes them."""
        if self._indexing is not None:
            self._indexing.result()
        self._settle()

    def _settle(self) -> None:
        """Remove records from the pending ones when the postings have them, unless they have changed again."""
        if self._indexing is None or not self._indexing.done() or self._postings is None:
            return
        self._indexing = None
        done = self._postings.seq
        self._pending = {rid: seq for rid, seq in self._pending.items() if seq > done}
        self._gone = {rid: seq for rid, seq in self._gone.items() if seq > done}


def _update(
    postings: TermPostings, present: Iterable[tuple[int, str]], gone: Sequence[int], seq: int, mark: str
) -> None:
    try:
        postings.update(present, gone, seq, mark)
    except Exception as error:  # a task boundary: the index is a help, not a need
        log.warning("the search index could not be written (searching goes on without): %s", error)
