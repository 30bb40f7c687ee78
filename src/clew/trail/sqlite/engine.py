"""The SQLite file: opening and migrating it, one thread that writes, connections that read, errors translated.

Writes that wait together share one commit, and so one flush to disk: each still succeeds or fails alone. An
answer is given only after the commit, with `synchronous=FULL`: it survives a power cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import apsw

from clew.clock import Clock
from clew.errors import Busy, Corrupted, ReadOnly, StorageError, StorageFull

T = TypeVar("T")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BUSY_SECONDS = 30.0
GROUP = 256
CHECKPOINT_IDLE, CHECKPOINT_BUSY = 1_000, 8_000
QUICK_CHECK_BYTES = 32_000_000
NEARLY_FULL = 1_000_000
"""With fewer bytes free, an error of the disk is taken for a full one: SQLite does not always say which."""


def to_micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


class Sql(Protocol):
    """A connection as the rest of this package uses it: rows are untyped here, and typed where they are read."""

    def execute(self, sql: str, values: Any = ()) -> Any: ...

    def executemany(self, sql: str, values: Any) -> Any: ...

    def changes(self) -> int: ...

    def last_insert_rowid(self) -> int: ...


class Writing:
    """What a unit of work sees inside its transaction."""

    __slots__ = ("changed", "connection", "execute", "executemany", "memo", "now", "wall")

    def __init__(self, connection: Sql, now: int, wall: int, memo: dict[Any, Any]) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.now = now
        self.wall = wall
        self.changed: list[int] = []
        self.memo = memo
        """What was looked up in this transaction and cannot change before its end."""


class Job(NamedTuple):
    work: Callable[[Writing], Any]
    done: asyncio.Future[Any]
    durable: bool


Answer = tuple[asyncio.Future[Any], Any, BaseException | None]


class Engine:
    """One SQLite file. `on_commit` is called from the writing thread after every commit that changed records,
    `on_rollback` after a unit of work was undone: whoever remembers what it saw must forget it."""

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
        self._clock = clock
        self._on_connect = on_connect
        self._durable = durable
        self._queue: queue.Queue[Job | None] = queue.Queue(queue_limit)
        self._last_now = 0
        self._ahead = 0
        self._wal_pages = 0
        self._full_sync: bool | None = None
        self._must_reopen = False
        self._memo: dict[Any, Any] = {}
        self._local = threading.local()
        self._readers: list[apsw.Connection] = []
        self._generation = 0
        self._lock = threading.Lock()
        self.damage: str | None = None
        self.on_commit: Callable[[list[int]], None] = lambda changed: None
        self.on_rollback: Callable[[], None] = lambda: None
        with translated(self.path):
            _make_private(path)
            free_companions(path)
            check_file(path)
            self._writer = self._open_writer()
            self.secret = str(self._writer.execute("SELECT value FROM meta WHERE key = 'trail'").get)
            self._last_now = int(self._writer.execute("SELECT coalesce(max(at), 0) FROM events").get)
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="clew-read")
        self._thread = threading.Thread(target=self._write_loop, name="clew-write", daemon=True)
        self._thread.start()
        self._closed = False

    # -- time ---------------------------------------------------------------------------------------------

    def now(self) -> int:
        """Microseconds that go on at the clock's pace and never backwards: for order, leases and retries.

        When the clock is set back, the difference is added from then on.
        """
        clock = to_micros(self._clock.now())
        self._ahead = max(self._ahead, self._last_now - clock)
        self._last_now = clock + self._ahead
        return self._last_now

    def wall(self) -> int:
        """Microseconds as the clock has them: expiry is a promise about the time of day."""
        return to_micros(self._clock.now())

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
        """Run a short read here and now: a point lookup costs less than a change of threads."""
        self._refuse_damaged()
        with self._watched():
            return work(self.reader())

    async def read_aside(self, work: Callable[[Sql], T]) -> T:
        """Run a longer read in a thread of its own, in one snapshot."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read_snapshot, work)

    def _read_snapshot(self, work: Callable[[Sql], T]) -> T:
        self._refuse_damaged()
        with self._watched():
            connection = self.reader()
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")

    # -- writing ------------------------------------------------------------------------------------------

    async def write(self, work: Callable[[Writing], T], *, durable: bool = True) -> T:
        """Run a unit of work in a transaction and return when it is committed. Raises Busy when too many wait.

        `durable=False` is for what may be lost by a power cut without harm, such as a claim.
        """
        return await self.submit(work, durable=durable)

    def submit(self, work: Callable[[Writing], T], *, durable: bool = True) -> asyncio.Future[T]:
        """As `write`, for a caller that has something to do meanwhile."""
        self._refuse_damaged()
        if self._closed:
            raise StorageError("the trail is closed")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            self._queue.put_nowait(Job(work, done, durable))
        except queue.Full:
            raise Busy(f"{self._queue.maxsize:,} writes are waiting") from None
        return done

    def _write_loop(self) -> None:
        while (job := self._queue.get()) is not None:
            jobs = [job, *self._waiting(GROUP - 1)]
            stop = None in jobs
            self._run_group([each for each in jobs if each is not None])
            if stop:
                return
            self._checkpoint()

    def _waiting(self, limit: int) -> Iterator[Job | None]:
        for _ in range(limit):
            try:
                yield self._queue.get_nowait()
            except queue.Empty:
                return

    def _run_group(self, jobs: list[Job]) -> None:
        """Run jobs in one transaction, each in a savepoint, then answer them all. A job whose caller has gone
        before it began is left out."""
        jobs = [job for job in jobs if not job.done.cancelled()]
        if not jobs:
            return
        answers: list[Answer] = []
        changed: list[int] = []
        try:
            with translated(self.path):
                self._begin(durable=any(job.durable for job in jobs))
                answers = [(job.done, *self._run_job(job, changed)) for job in jobs]
                self._writer.execute("COMMIT")
        except BaseException as error:
            self._abandon(error)
            answers = [(job.done, None, error) for job in jobs]
            changed = []
        if changed:
            self.on_commit(changed)
        _give(answers)

    def _begin(self, *, durable: bool) -> None:
        if self._must_reopen:
            self._reopen()
        full = durable and self._durable
        if full != self._full_sync:
            self._writer.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
            self._full_sync = full
        self._memo.clear()
        self._writer.execute("BEGIN IMMEDIATE")

    def _run_job(self, job: Job, changed: list[int]) -> tuple[Any, BaseException | None]:
        writing = Writing(self._writer, self.now(), self.wall(), self._memo)
        self._writer.execute("SAVEPOINT job")
        try:
            value = job.work(writing)
        except apsw.Error as error:
            if isinstance(error, FATAL):
                raise
            self._undo_job()
            return None, StorageError(f"SQLite: {error}")
        except Exception as error:
            self._undo_job()
            return None, error
        finally:
            if self._writer.in_transaction:
                self._writer.execute("RELEASE job")
        changed.extend(writing.changed)
        return value, None

    def _undo_job(self) -> None:
        self._writer.execute("ROLLBACK TO job")
        self._memo.clear()
        self.on_rollback()

    def _abandon(self, error: BaseException) -> None:
        """Leave the failed transaction. The next one opens the file anew: it may be writable by then."""
        self._note_damage(error)
        with contextlib.suppress(apsw.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        self.on_rollback()
        self._must_reopen = isinstance(error, StorageError)

    def _reopen(self) -> None:
        """Let go of the file in every thread, and open it anew. SQLite keeps a log that was made read-only for as
        long as any connection of this process is open."""
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
        """Move the log into the file while nobody waits, or when it has grown long."""
        if self._wal_pages > CHECKPOINT_BUSY or (self._wal_pages > CHECKPOINT_IDLE and self._queue.empty()):
            self._wal_pages = 0
            with contextlib.suppress(apsw.Error):
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _open_writer(self) -> apsw.Connection:
        connection = connect(self.path)
        for setting in ("journal_mode=WAL", "foreign_keys=ON", "cache_size=-32000", "wal_autocheckpoint=0"):
            connection.execute(f"PRAGMA {setting}").fetchall()
        connection.set_wal_hook(self._note_wal)
        self._full_sync = None
        self._on_connect(connection)
        migrate(connection)
        return connection

    def _note_wal(self, connection: apsw.Connection, name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    # -- ending -------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Finish what was accepted, move the log into the file, close every connection."""
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

    # -- damage -------------------------------------------------------------------------------------------

    def _refuse_damaged(self) -> None:
        if self.damage is not None:
            raise Corrupted(self.damage)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            with translated(self.path):
                yield
        except Corrupted as error:
            self._note_damage(error)
            raise

    def _note_damage(self, error: BaseException) -> None:
        """Serve nothing more from a file that SQLite itself calls damaged. One bad record is only refused."""
        if isinstance(error, Corrupted) and isinstance(error.__cause__, apsw.Error):
            self.damage = error.message


def _give(answers: list[Answer]) -> None:
    """Hand answers to the loops that wait for them, waking each loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
    for answer in answers:
        by_loop.setdefault(answer[0].get_loop(), []).append(answer)
    for loop, its in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed while we wrote
            loop.call_soon_threadsafe(_settle, its)


def _settle(answers: list[Answer]) -> None:
    for done, value, failure in answers:
        if done.done():
            continue
        if failure is None:
            done.set_result(value)
        else:
            done.set_exception(failure)


FATAL = (
    apsw.FullError,
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ReadOnlyError,
    apsw.BusyError,
    apsw.NoMemError,
    apsw.CantOpenError,
)
"""Errors that concern the file and not one unit of work."""


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except apsw.FullError as error:
        raise StorageFull(f"no space left for {path}") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise Corrupted(f"{path} is damaged: {error}") from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise ReadOnly(f"{path} cannot be written") from error
    except apsw.CantOpenError as error:
        raise ReadOnly(f"{path} cannot be opened") from error
    except apsw.IOError as error:
        if shutil.disk_usage(path.parent).free < NEARLY_FULL:
            raise StorageFull(f"no space left for {path}") from error
        raise StorageError(f"the disk refused: {error}", hint=f"Check the disk that holds {path}") from error
    except apsw.BusyError as error:
        raise Busy(f"another process has held {path} for {BUSY_SECONDS:.0f} s") from error
    except apsw.Error as error:
        raise StorageError(f"SQLite: {error}") from error


def connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), statementcachesize=300)
    connection.set_busy_handler(_Patience())
    return connection


class _Patience:
    """Waits for another process's transaction in short random steps, so that none is starved."""

    def __init__(self) -> None:
        self._since = 0.0

    def __call__(self, times: int) -> bool:
        if times == 0:
            self._since = time.monotonic()
        if time.monotonic() - self._since > BUSY_SECONDS:
            return False
        time.sleep(random.uniform(0.0002, 0.002))
        return True


def _make_private(path: Path) -> None:
    """Make a new file readable by its owner alone, before SQLite makes one that all may read."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def free_companions(path: Path) -> None:
    """Make log and shared memory writable where the file is: SQLite made them like the file when it was not."""
    with contextlib.suppress(OSError):
        mode = path.stat().st_mode & 0o777
        for suffix in ("-wal", "-shm"):
            companion = path.with_name(path.name + suffix)
            if mode & 0o200 and companion.exists() and not companion.stat().st_mode & 0o200:
                companion.chmod(mode)


def check_file(path: Path) -> None:
    """Refuse a file that is torn: shorter than its header says, or (when small) failing SQLite's quick check."""
    if not path.exists() or path.stat().st_size == 0:
        return
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except PermissionError as error:
        raise ReadOnly(f"{path} may not be read") from error
    if len(header) < 100 or header[:16] != b"SQLite format 3\x00":
        raise Corrupted(f"{path} is not a SQLite file")
    size = path.stat().st_size
    page = int.from_bytes(header[16:18], "big")
    page = 65_536 if page == 1 else page
    log = path.with_name(path.name + "-wal")
    if size < int.from_bytes(header[28:32], "big") * page and not (log.exists() and log.stat().st_size):
        raise Corrupted(f"{path} is cut short: {size:,} bytes of {int.from_bytes(header[28:32], 'big') * page:,}")
    if size <= QUICK_CHECK_BYTES:
        connection = connect(path)
        try:
            found = connection.execute("PRAGMA quick_check(1)").get
        finally:
            connection.close()
        if found != "ok":
            raise Corrupted(f"{path} is damaged: {found}")


def migrate(connection: apsw.Connection) -> None:
    """Bring the file to the newest schema, one numbered step after another, each in a transaction."""
    steps = sorted((files(__package__) / "migrations").iterdir(), key=lambda step: step.name)
    present = int(connection.execute("PRAGMA user_version").get)
    if present > len(steps):
        raise StorageError(
            f"this trail was written by a newer Clew (schema {present})",
            hint="Update Clew, or use another trail",
        )
    if present == len(steps):
        return
    if present == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StorageError("this SQLite file belongs to another program", hint="Name another file for the trail")
    connection.execute("BEGIN IMMEDIATE")
    try:
        present = int(connection.execute("PRAGMA user_version").get)
        for number, step in enumerate(steps[present:], present + 1):
            connection.execute(step.read_text(encoding="utf-8"))
            connection.execute(f"PRAGMA user_version={number}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
