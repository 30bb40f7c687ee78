"""The search index of a SQLite trail, kept up with it: columns in memory, postings beside the file.

Both are derived. Call `sync` before a search: it reads the changes of all processes since the last call, as far as this
search may find them. A thread adds missing records to the postings.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from clew.sqlite_file import Sql
from clew.trail.search.columns import Columns
from clew.trail.search.ranking import Ints
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.index.postings import TermPostings
from clew.trail.sqlite.index.terms import TermStore
from clew.trail.sqlite.log import read_head
from clew.trail.sqlite.rows import Audiences, in_list

PENDING = 512
"""The number of changed records that are written to the postings together."""
LOAD_BATCH, CATCH_UP_BATCH = 1_000, 500
LOAD = (
    "SELECT b.rid, b.audience, iif(b.read_count >= b.max_reads, 0, b.expires_at), t.terms, v.vector FROM breadcrumbs b"
    " LEFT JOIN terms t ON t.rid = b.rid LEFT JOIN vectors v ON v.rid = b.rid"
)

log = logging.getLogger(__name__)


class Index:
    """The index of all records as of the event `seq`, except records that no search so far could have found. Only one
    thread at a time may use it. `changes` counts the changes of the indexed records."""

    def __init__(self, engine: Engine, audiences: Audiences) -> None:
        self._engine = engine
        self._folder = engine.path.with_name(engine.path.name + "-index")
        self._terms = TermStore(engine, audiences)
        self.columns = Columns()
        self.seq = -1
        self.changes = 0
        self._epoch = ""
        self._postings: TermPostings | None = None
        self._pending: dict[int, int] = {}
        self._gone: dict[int, int] = {}
        self._unread: dict[int, int] = {}
        self._indexer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clew-index")
        self._indexing: Future[None] | None = None

    def close(self) -> None:
        """Finish the current write, and close the postings: tantivy has a thread for as long as they exist."""
        self._indexer.shutdown(wait=True)
        self._terms.store()
        self._postings = None

    # -- asking -------------------------------------------------------------------------------------------

    def find(self, terms: Sequence[int], limit: int) -> tuple[Ints, bool]:
        """Slots of the records with most of these terms, best first, and whether these are all."""
        rids = self._postings.find(terms, limit) if self._postings is not None and terms else []
        return self.columns.slots(rids), len(rids) < limit

    def pending(self) -> Ints:
        """Slots of the records whose current version the postings lack."""
        return self.columns.slots(list(self._pending))

    # -- keeping up ---------------------------------------------------------------------------------------

    def sync(self, connection: Sql, visible: Collection[int] | None = None) -> None:
        """Read the changes since the last time. With `visible`, the audiences of the search, records of other
        audiences are not read yet. They are read when a search needs them, or together when there are enough for the
        postings, which is faster."""
        self._settle()
        before = self.changes
        head = read_head(connection)
        epoch = str(connection.execute("SELECT value FROM meta WHERE key = 'vectors_epoch'").get)
        if self.seq < 0 or epoch != self._epoch or self.columns.is_sparse:
            self._load(connection)
        else:
            self._note_changes(connection, head, visible)
            self._read(connection, self._wanted(visible))
        self._epoch = epoch
        if self.changes != before and not self._unread:
            self._hand_over(connection)

    def _load(self, connection: Sql) -> None:
        """Read everything, in one snapshot."""
        connection.execute("BEGIN")
        try:
            head = read_head(connection)
            columns = self._read_columns(connection)
            postings = self._postings or self._find_postings(connection)
            done = 0 if postings is None else postings.seq
            changed = connection.execute("SELECT DISTINCT rid FROM events WHERE seq > ?", (done,)).fetchall()
        finally:
            connection.execute("ROLLBACK")
        self.columns, self._postings, self.seq = columns, postings, head
        self.changes += 1
        self._unread = {}
        self._pending = {rid: head for (rid,) in changed if columns.find(rid) is not None}
        self._gone = {rid: head for (rid,) in changed if columns.find(rid) is None}

    def _read_columns(self, connection: Sql) -> Columns:
        columns = Columns()
        words = connection.execute("SELECT coalesce(sum(length(terms)), 0) / 4 FROM terms").get
        columns.reserve(connection.execute("SELECT count(*) FROM breadcrumbs").get, words)
        rows = connection.execute(f"{LOAD} ORDER BY b.rid")
        while some := list(islice(rows, LOAD_BATCH)):
            columns.put(self._terms.complete(connection, some))
        return columns

    def _note_changes(self, connection: Sql, head: int, visible: Collection[int] | None) -> None:
        """Read which records the events since the last call changed. Records that have left the visible audiences are
        dropped from the columns."""
        if head == self.seq:
            return
        sql = "SELECT DISTINCT rid, audience FROM events WHERE seq > ? AND seq <= ?"
        changed = dict[int, int](connection.execute(sql, (self.seq, head)))
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

    def _read(self, connection: Sql, changed: Sequence[int]) -> None:
        """Read these records as they are now."""
        if not changed:
            return
        present: set[int] = set()
        for first in range(0, len(changed), CATCH_UP_BATCH):
            some = in_list(changed[first : first + CATCH_UP_BATCH])
            rows = connection.execute(f"{LOAD} WHERE b.rid IN {some} ORDER BY b.rid").fetchall()
            self.columns.put(self._terms.complete(connection, rows))
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

    def _find_postings(self, connection: Sql) -> TermPostings | None:
        """The postings beside the file, None if there are none yet: a search over few records does without."""
        return self._open_postings(connection) if os.path.lexists(self._folder) else None

    def _open_postings(self, connection: Sql) -> TermPostings:
        return TermPostings(self._folder, self._engine.secret, lambda seq: _mark_of(connection, seq))

    def _hand_over(self, connection: Sql) -> None:
        """If enough records are missing from the postings, pass them to the thread that writes the postings."""
        if self._indexing is not None or len(self._pending) + len(self._gone) < PENDING:
            return
        if self._postings is None:
            self._postings = self._open_postings(connection)
        present, gone = sorted(self._pending), sorted(self._gone)
        work = zip(present, self.columns.term_texts(self.columns.slots(present)), strict=True)
        mark = _mark_of(connection, self.seq)
        self._indexing = self._indexer.submit(_update, self._postings, work, gone, self.seq, mark)

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


def _mark_of(connection: Sql, seq: int) -> str:
    """A mark that distinguishes an event from the event with the same number on a restored trail."""
    found = connection.execute("SELECT hex(id) || ':' || version || ':' || at FROM events WHERE seq = ?", (seq,)).get
    return str(found)
