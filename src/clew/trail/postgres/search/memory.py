"""The records of a trail on PostgreSQL in the memory of one process, as far as a search needs them to choose and rank
candidates. They follow the log. The server decides what a caller may see of them; every answer asks it.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import msgspec

from clew.errors import ClewError, StorageError
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.search.source import TrailSource
from clew.trail.postgres.search.state import TrailState
from clew.trail.postgres.search.term_indexer import TermIndexer
from clew.trail.postgres.transactions import ReadTransaction
from clew.trail.search.columns import estimate_bytes
from clew.trail.search.masks import MASK_BYTES, Masks
from clew.trail.search.search_index import PENDING, Index

AT_ONCE = 20_000
"""Up to this many records are read by the first search, which waits for them. More are read in the background."""
LOOK_AGAIN = 10_000
"""The number of events after which a process looks again whether the records fit into its memory."""
MASK_SHARE = 10
"""The memory of filters is limited to the memory for records divided by this number, in addition to it."""

log = logging.getLogger(__name__)


class MemorySize(NamedTuple):
    """The number of records of a trail, and the bytes that they take in memory."""

    records: int
    bytes: int


class LoadedIndex(msgspec.Struct, frozen=True):
    """An index with the filters that are known for it."""

    index: Index
    masks: Masks


class SearchMemory:
    """The columns and postings of a process, None while they are not loaded. Only one thread at a time may use it; it
    loads in another one."""

    def __init__(self, engine: PostgresEngine, indexer: TermIndexer, room: int) -> None:
        """`room` is the number of bytes that it may take. With 0, nothing is loaded."""
        self._engine = engine
        self._indexer = indexer
        self._room = room
        self._loaded: LoadedIndex | None = None
        self._mark = (0, 0)
        """The last event that was read, and its time. Another time says that the log was restored from a backup."""
        self._loading: Future[LoadedIndex] | None = None
        self._loader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clew-load")
        self._refused_at: int | None = None
        self._is_closed = threading.Event()

    def stop(self) -> None:
        """End a load that is under way, and the indexing before it. Any thread may call it."""
        self._is_closed.set()
        self._indexer.stop()

    def close(self) -> None:
        self.stop()
        try:
            self._take_loaded()
        except Exception as error:  # a task boundary: the rest of the trail must be closed too
            log.warning("the records could not be read: %s", error)
        self._loader.shutdown(wait=True)
        self.drop()

    def drop(self) -> None:
        """Forget all records. The next call of `find` reads them anew."""
        if self._loaded is not None:
            self._loaded.index.close()
        self._loaded = None

    # -- loading ------------------------------------------------------------------------------------------

    def find(self, *, may_begin: bool = True) -> LoadedIndex | None:
        """The index, if it is loaded. If not, few records are loaded now. With `may_begin`, more are loaded in the
        background, if there is room for them."""
        if self._loading is not None and self._loading.done():
            self._take_loaded()
        if self._room and self._loaded is None and self._loading is None and not self._is_refused():
            self._begin(may_begin)
        return self._loaded

    def _is_refused(self) -> bool:
        return self._refused_at is not None and self._engine.wakeups.head < self._refused_at + LOOK_AGAIN

    def _begin(self, may_begin: bool) -> None:
        self._refused_at = None
        are_few = self._engine.read_now(_are_few, by=None)
        if not (are_few or may_begin):
            return
        self._indexer.catch_up_now()  # records that are not indexed yet have no size
        size = self._engine.read_now(read_size, by=None)
        if size.bytes > self._room:
            self._refuse(size.bytes)
        elif are_few:
            self._loaded = self._load()
        else:
            self._loading = self._loader.submit(self._load)

    def _load(self) -> LoadedIndex:
        index = Index(self._engine.trail_id, None, is_wanted=lambda: not self._is_closed.is_set())
        self._mark = self._engine.read_now(partial(self._fill, index), by=None)
        index.wait()
        return LoadedIndex(index, Masks(index, min(MASK_BYTES, self._room // MASK_SHARE)))

    def _take_loaded(self) -> None:
        loading, self._loading = self._loading, None
        if loading is None:
            return
        try:
            self._loaded = loading.result()
        except ClewError as error:  # the next search begins again
            if not self._is_closed.is_set():
                log.warning("searches ask the server, as the records could not be read: %s", error)
        except MemoryError:
            self._refuse(self._room)

    def _refuse(self, needed: int) -> None:
        self._refused_at = self._engine.wakeups.head
        log.warning(
            "searches ask the server: the records take %s MB of memory, and search.memory_mb allows %s",
            f"{needed / 1e6:,.0f}",
            f"{self._room / 1e6:,.0f}",
        )

    def _fill(self, index: Index, reading: ReadTransaction) -> tuple[int, int]:
        """Bring the index up to the snapshot. Returns the mark of the last event."""
        source = TrailSource(reading, self._refuse_closed)
        index.sync(source)
        return index.seq, source.time_of(index.seq)

    def _refuse_closed(self) -> None:
        if self._is_closed.is_set():
            raise StorageError("the trail is closed")

    # -- following the log --------------------------------------------------------------------------------

    def is_at(self, state: TrailState, needed: int) -> bool:
        """Whether the index has all events up to `needed`, and is of this trail as it is now."""
        if self._loaded is None:
            return False
        index, (seq, at) = self._loaded.index, self._mark
        is_same = state.head > seq or (state.head, state.at) == (seq, at)
        return is_same and index.epoch == state.epoch and index.seq >= needed and not index.lacks_records

    def lags(self) -> bool:
        """Whether the next search would have much to read."""
        loaded = self._loaded
        return loaded is not None and self._engine.wakeups.head - loaded.index.seq > 4 * PENDING

    def catch_up(self) -> None:
        """Read what was committed before the call. Forget everything instead if that is not possible, such as after a
        restore from a backup, or if there is no room for it."""
        self._indexer.catch_up_now()
        if self._loaded is None:
            return
        index = self._loaded.index
        is_followed = self._engine.read_now(partial(self._follow, index), by=None)
        if not is_followed or index.columns.nbytes > self._room:  # with old versions, which `find` does not read again
            self.drop()

    def _follow(self, index: Index, reading: ReadTransaction) -> bool:
        """Read the changes. Returns False if all records must be read anew."""
        source, (seq, at) = TrailSource(reading), self._mark
        if source.position() < seq or source.time_of(seq) != at or source.epoch() != index.epoch:
            return False
        if index.columns.is_sparse:
            return False
        self._mark = self._fill(index, reading)
        return True


def _are_few(reading: ReadTransaction) -> bool:
    """Whether there are so few records that a search can wait for them."""
    sql = f"SELECT count(*) FROM (SELECT 1 FROM breadcrumbs LIMIT {AT_ONCE + 1}) b"
    return bool(reading.value(sql) <= AT_ONCE)


def read_size(reading: ReadTransaction) -> MemorySize:
    """The size of a trail in memory. The transaction is one of upkeep."""
    records, words = TrailSource(reading).size()
    dimension = reading.value("SELECT vector_dims(vector) FROM vectors LIMIT 1") or 0
    return MemorySize(records, estimate_bytes(records, words, dimension))
