"""The engine: one thread that writes, connections that read, time that never goes backwards.

Writes that wait together share one commit and one flush to disk, but each still succeeds or fails alone. A write
returns only after a commit with `synchronous=FULL`, so its result survives a power cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from clew.clock import Clock, SteadyClock
from clew.errors import Busy, Corrupted, StorageError
from clew.sqlite_file import Sql, connect, make_private, translate, translated
from clew.trail.move.replica import PROGRESS, decode_progress, refuse_unfinished
from clew.trail.sqlite.file import FATAL, check_file, free_companions, lay_out_log, migrate
from clew.trail.work.loop_calls import LoopCalls

T = TypeVar("T")
AudienceIds = dict[tuple[str, tuple[str, ...]], tuple[int, int]]
GROUP = 256
MAX_KEPT = 10_000
CHECKPOINT_IDLE, CHECKPOINT_BUSY = 1_000, 4_000
"""Pages in the log that start a checkpoint: when no write is pending, and in any case."""
IDLE_SECONDS = 0.05
STEPS, MOST_STEPS = 1_000, 8
"""A read of unknown length gets STEPS times MOST_STEPS steps of SQLite's virtual machine, about a millisecond, in the
calling thread. After that it restarts in another thread."""
FIRST_LAYOUT, LONGEST_LAYOUT = 64, 5_000


class Writing:
    """The view of a unit of work inside its transaction."""

    __slots__ = ("audiences", "changed", "connection", "execute", "executemany", "known", "memo", "now", "wall")

    def __init__(self, engine: Engine, connection: Sql) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.now = engine.now()
        self.wall = engine.wall()
        self.changed: list[int] = []
        self.memo = engine.memo
        """Lookups that cannot change before the end of this transaction."""
        self.known = engine.known
        """Rows that this process has read or written. They stay valid until another process writes to the file, or a
        unit of work is undone; who changes such a row otherwise must change it here too."""
        self.audiences = engine.audiences
        """The ids of owner-and-scopes pairs. They never change, unless the transaction that created them is undone."""


class WriteJob(NamedTuple):
    work: Callable[[Writing], Any]
    done: asyncio.Future[Any] | None
    durable: bool

    @property
    def is_unwanted(self) -> bool:
        return self.done is not None and self.done.cancelled()


Answer = tuple[asyncio.Future[Any] | None, Any, BaseException | None]


class Engine:
    """One SQLite file. `on_commit` is called from the writing thread after every commit that changed records,
    `on_rollback` after a unit of work was undone: caches of its reads must then be dropped. `before_commit` returns
    a last unit of work, or None, to run at the end of a transaction that changed records."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        on_connect: Callable[[apsw.Connection], None],
        queue_limit: int = 10_000,
        durable: bool = True,
    ) -> None:
        self.path = path
        self._time = SteadyClock(clock)
        self._on_connect = on_connect
        self._durable = durable
        self._queue: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._queue_limit = queue_limit
        self._log_begins = 0
        self._laid_out = FIRST_LAYOUT
        self._full_sync: bool | None = None
        self._must_reopen = False
        self._version: int | None = None
        self.own_commits = 0
        self.foreign_commits = 0
        """The number of transactions that found that another process had written to the file since the previous
        transaction."""
        self.memo: dict[Any, Any] = {}
        self.known: dict[Any, Any] = {}
        self.audiences: AudienceIds = {}
        self._local = threading.local()
        self._readers: list[apsw.Connection] = []
        self._generation = 0
        self._lock = threading.Lock()
        self.damage: str | None = None
        self.calls = LoopCalls()
        self.on_commit: Callable[[list[int]], None] = lambda changed: None
        self.on_rollback: Callable[[], None] = lambda: None
        self.before_commit: Callable[[], Callable[[Writing], None] | None] = lambda: None
        with translated(self.path):
            make_private(path)
            free_companions(path)
            check_file(path)
            self._writer = self._open_writer()
            self.secret = str(self._writer.execute("SELECT value FROM meta WHERE key = 'trail'").get)
            self._time.observe(int(self._writer.execute("SELECT coalesce(max(at), 0) FROM events").get))
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="clew-read")
        self._thread = threading.Thread(target=self._write_loop, name="clew-write", daemon=True)
        self._thread.start()
        self._closed = False

    # -- time ---------------------------------------------------------------------------------------------

    def now(self) -> int:
        """Microseconds that never go backwards: see `SteadyClock`."""
        return self._time.now()

    def wall(self) -> int:
        """Wall-clock time in microseconds. Expiry uses it, because it refers to the time of day."""
        return self._time.wall()

    # -- reading ------------------------------------------------------------------------------------------

    def reader(self) -> apsw.Connection:
        """This thread's own connection for reading."""
        found: apsw.Connection | None = getattr(self._local, "connection", None)
        if found is None or self._local.generation != self._generation:
            found = connect(self.path)
            for setting in ("query_only=1", "cache_size=-8000"):
                found.execute(f"PRAGMA {setting}").fetchall()
            self._on_connect(found)
            self._local.connection, self._local.generation = found, self._generation
            with self._lock:
                self._readers.append(found)
        return found

    def read(self, work: Callable[[Sql], T]) -> T:
        """Run a short read in the calling thread, because a point lookup costs less than a change of threads."""
        if self._closed or self.damage is not None:
            self._refuse()
        try:
            return work(self.reader())
        except apsw.Error as error:
            raise self._failure(error) from error

    async def read_aside(self, work: Callable[[Sql], T]) -> T:
        """Run a longer read in a thread of its own, in one snapshot."""
        self._refuse()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.read_snapshot, work)

    async def read_either(self, work: Callable[[Sql], T]) -> T:
        """As `read_aside`, but try the calling thread first: most reads of few records take less time than a change of
        threads. If the read turns out to be long, it starts again in another thread."""
        self._refuse()
        reader, left = self.reader(), iter(range(MOST_STEPS))

        def bounded(connection: Sql) -> T:
            reader.set_progress_handler(lambda: next(left, None) is None, STEPS)
            try:
                return work(connection)
            finally:
                reader.set_progress_handler(None)

        try:
            return self.read_snapshot(bounded)
        except StorageError as error:
            if not isinstance(error.__cause__, apsw.InterruptError):
                raise
        return await self.read_aside(work)

    def read_snapshot(self, work: Callable[[Sql], T]) -> T:
        """As `read`, in one snapshot."""

        def whole(connection: Sql) -> T:
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")

        return self.read(whole)

    # -- writing ------------------------------------------------------------------------------------------

    async def write(self, work: Callable[[Writing], T], *, durable: bool = True) -> T:
        """Run a unit of work in a transaction and return when it is committed. Raises Busy when too many wait.

        `durable=False` is for changes that a power cut may undo without harm, such as a claim.
        """
        return await self.submit(work, durable=durable)

    def submit(self, work: Callable[[Writing], T], *, durable: bool = True) -> asyncio.Future[T]:
        """As `write`, but return a future without waiting."""
        self._refuse()
        if self._queue.qsize() >= self._queue_limit:
            raise Busy(f"{self._queue_limit:,} writes are waiting")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put(WriteJob(work, done, durable))
        return done

    def post(self, work: Callable[[Writing], Any]) -> None:
        """Queue a unit of work, from any thread. Its result and errors are discarded, and a power cut may undo it, so
        use it only for data that can be computed again."""
        if not self._closed:
            self._queue.put(WriteJob(work, None, durable=False))

    def _write_loop(self) -> None:
        while (job := self._next()) is not None:
            jobs = [job, *self._waiting(GROUP - 1)]
            stop = None in jobs
            self._run_group([each for each in jobs if each is not None])
            if stop:
                return
            if self._log_pages() > CHECKPOINT_BUSY:
                self._checkpoint()

    def _next(self) -> WriteJob | None:
        """The next job. If the queue is idle and the WAL is long, run a checkpoint first."""
        if self._log_pages() > CHECKPOINT_IDLE:
            try:
                return self._queue.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._checkpoint()
        return self._queue.get()

    def _waiting(self, limit: int) -> Iterator[WriteJob | None]:
        for _ in range(limit):
            try:
                yield self._queue.get_nowait()
            except queue.Empty:
                return

    def _run_group(self, jobs: list[WriteJob]) -> None:
        """Run jobs in one transaction and then answer them all. A job that fails is undone alone. A job whose caller
        was cancelled before it began is left out."""
        jobs = [job for job in jobs if not job.is_unwanted]
        if not jobs:
            return
        answers: list[Answer] = []
        changed: list[int] = []
        try:
            with translated(self.path):
                self._begin(durable=any(job.durable for job in jobs))
                run = self._run_alone if len(jobs) == 1 else self._run_job
                answers = [(job.done, *run(job, changed)) for job in jobs]
                answers += self._run_latecomers(jobs, changed)
                if changed and (last := self.before_commit()) is not None:
                    self._run_job(WriteJob(last, None, durable=False), changed)
                if self._writer.in_transaction:
                    self.own_commits += 1
                    self._writer.execute("COMMIT")
        except BaseException as error:
            self._abandon(error)
            answers = [(job.done, None, error) for job in jobs]
            changed = []
        if changed:
            self.on_commit(changed)
        for done, value, failure in answers:
            if done is not None:
                self.calls.settle(done, value, failure)
        self.calls.send()

    def _run_latecomers(self, jobs: list[WriteJob], changed: list[int]) -> list[Answer]:
        """In a durable transaction, also run the jobs that were queued since it began, and add them to `jobs`, so that
        they share the flush."""
        answers: list[Answer] = []
        late = self._waiting(GROUP) if self._full_sync and self._writer.in_transaction else iter(())
        for job in late:
            if job is None:
                self._queue.put(None)  # to end comes after this transaction
                break
            if not job.is_unwanted:
                jobs.append(job)
                answers.append((job.done, *self._run_job(job, changed)))
        return answers

    def _begin(self, *, durable: bool) -> None:
        if self._must_reopen:
            self._reopen()
        full = durable and self._durable
        if full != self._full_sync:
            self._writer.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
            self._full_sync = full
        self.memo.clear()
        self._writer.execute("BEGIN IMMEDIATE")
        version = self._writer.execute("PRAGMA data_version").get  # commits of this connection do not change it
        if version != self._version:
            self._version = version
            self.foreign_commits += 1
            self.known.clear()
        if full and self._laid_out < LONGEST_LAYOUT and self._laid_out < self._log_pages():
            self._laid_out = min(4 * self._log_pages(), LONGEST_LAYOUT)
            lay_out_log(self.path, self._laid_out)

    def _run_job(self, job: WriteJob, changed: list[int]) -> tuple[Any, BaseException | None]:
        self._writer.execute("SAVEPOINT job")
        answer = self._work(job, changed)
        if answer[1] is not None:
            self._writer.execute("ROLLBACK TO job")
            self._forget()
        self._writer.execute("RELEASE job")
        return answer

    def _run_alone(self, job: WriteJob, changed: list[int]) -> tuple[Any, BaseException | None]:
        """As `_run_job`, for the only job of a transaction, which needs no savepoint."""
        answer = self._work(job, changed)
        if answer[1] is not None:
            self._writer.execute("ROLLBACK")
            self._forget()
        return answer

    def _work(self, job: WriteJob, changed: list[int]) -> tuple[Any, BaseException | None]:
        for kept in (self.audiences, self.known):
            if len(kept) > MAX_KEPT:
                kept.clear()
        writing = Writing(self, self._writer)
        try:
            value = job.work(writing)
        except apsw.Error as error:
            if isinstance(error, FATAL):
                raise
            return None, StorageError(f"SQLite: {error}")
        except Exception as error:
            return None, error
        changed.extend(writing.changed)
        return value, None

    def _forget(self) -> None:
        self.memo.clear()
        self.known.clear()
        self.audiences.clear()
        self.on_rollback()

    def _abandon(self, error: BaseException) -> None:
        """Leave the failed transaction. After an error of the storage, the next one opens the file again, because it
        may be writable by then."""
        self._note_damage(error)
        with contextlib.suppress(apsw.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        self._forget()
        self._must_reopen |= isinstance(error, StorageError)

    def _reopen(self) -> None:
        """Close the connections of all threads, and open the file again. SQLite keeps a WAL that was created read-only
        as long as any connection of this process is open."""
        with self._lock:
            old, self._readers = self._readers, []
            self._generation += 1
        for connection in (self._writer, *old):
            with contextlib.suppress(apsw.Error):
                connection.close()
        free_companions(self.path)
        self._writer = self._open_writer()
        self._must_reopen = False

    def _checkpoint(self) -> None:
        """Run a checkpoint: move the WAL into the file. Later writes overwrite the WAL from its beginning."""
        with contextlib.suppress(apsw.Error):
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._log_begins += self._log_pages()

    def _open_writer(self) -> apsw.Connection:
        connection = connect(self.path)
        for setting in ("journal_mode=WAL", "foreign_keys=ON", "cache_size=-32000", "wal_autocheckpoint=0"):
            connection.execute(f"PRAGMA {setting}").fetchall()
        self._log_begins = 0
        self._full_sync, self._version, self._laid_out = None, None, FIRST_LAYOUT
        self._on_connect(connection)
        try:
            migrate(connection)
            progress = connection.execute("SELECT value FROM meta WHERE key = ?", (PROGRESS,)).get
            refuse_unfinished(decode_progress(progress), str(self.path))
        except BaseException:
            connection.close()
            raise
        return connection

    def _log_pages(self) -> int:
        """The number of WAL pages that this process has written since the last checkpoint; 0 while the connection must
        be reopened."""
        return 0 if self._must_reopen else self._writer.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0] - self._log_begins

    # -- ending -------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish the accepted writes, move the log into the file, and close every connection."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        self._threads.shutdown(wait=True)
        with contextlib.suppress(apsw.Error):
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._writer.close()
        for connection in self._readers:
            with contextlib.suppress(apsw.Error):
                connection.close()
        # they belong to the trail, which holds this engine: without the cycle it leaves memory at once
        del self.on_commit, self.on_rollback, self.before_commit

    # -- damage -------------------------------------------------------------------------------------------

    def _refuse(self) -> None:
        """Serve nothing from a file that is closed or damaged."""
        if self._closed:
            raise StorageError("the trail is closed")
        if self.damage is not None:
            raise Corrupted(self.damage)

    def _failure(self, error: apsw.Error) -> StorageError:
        """Clew's error for one of the driver. A file that SQLite itself calls damaged is not read again."""
        failure = translate(error, self.path)
        if isinstance(failure, Corrupted):
            self.damage = failure.message
        return failure

    def _note_damage(self, error: BaseException) -> None:
        """Serve nothing more from a file that SQLite itself calls damaged. One bad record is only refused."""
        if isinstance(error, Corrupted) and isinstance(error.__cause__, apsw.Error):
            self.damage = error.message
