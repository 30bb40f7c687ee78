"""The engine: a pool of connections, one thread that appends to the log, and a clock that never goes backwards.

Every transaction names its caller to row-level security. One thread of the process (`log_writer`) makes all writes that
append to the log, in the order of the log. Other transactions, such as a claim, run on any connection of the pool.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import psycopg
from psycopg_pool import PoolTimeout

from clew.access import Principal
from clew.clock import Clock, SteadyClock
from clew.errors import Busy, StorageError
from clew.trail.move.replica import PROGRESS, decode_progress, refuse_unfinished
from clew.trail.postgres.connection.failures import TRANSIENT, is_away, translated
from clew.trail.postgres.connection.log_writer import LogJob, LogWriter
from clew.trail.postgres.connection.migration import migrate
from clew.trail.postgres.connection.server import POOL_SIZE, Connection, Server
from clew.trail.postgres.transactions import BEGIN, LogEnd, ReadTransaction, WriteTransaction
from clew.trail.postgres.wakeups import Wakeups

T = TypeVar("T")
ATTEMPTS = 6
READ_HEAD = "SELECT head FROM log"
READ_END = "SELECT head, at FROM log"


class PostgresEngine:
    """One database: its pool of connections, the thread that appends to the log, and the wake-ups. `trail_id` is the
    public id of the trail."""

    def __init__(self, url: str, clock: Clock, *, queue_limit: int = 10_000, pool_size: int = POOL_SIZE) -> None:
        self.server = Server(url, pool_size=pool_size)
        self._queue_limit = queue_limit
        self._time = SteadyClock(clock)
        self._closed = False
        self.wakeups = Wakeups(self.read_head)
        self.on_close: list[Callable[[], None]] = []
        """Called before the connections are closed."""
        self.on_append: list[Callable[[LogEnd], None]] = []
        """Called with the end of the log when this process has appended to it, from another thread, before waiting
        callers are woken."""
        with contextlib.closing(self.server.connect()) as connection:
            self.server.check(connection)
            migrate(connection, self.server.place)
            with translated(self.server.place):
                row = connection.execute("SELECT head, at, (SELECT value FROM meta WHERE key = 'trail') FROM log")
                head, at, self.trail_id = row.fetchone() or (0, 0, "")
                row = connection.execute("SELECT value FROM meta WHERE key = %s", (PROGRESS,))
                refuse_unfinished(decode_progress((row.fetchone() or (None,))[0]), self.server.place)
        self._time.observe(at)
        self.wakeups.announce(head)
        self._pool = self.server.open_pool()
        self._threads = ThreadPoolExecutor(max_workers=pool_size, thread_name_prefix="clew-postgres")
        self._log = LogWriter(self.server, self._time, self._appended)

    # -- time ---------------------------------------------------------------------------------------------

    def now(self) -> int:
        """Microseconds that never go backwards: see `SteadyClock`."""
        return self._time.now()

    def wall(self) -> int:
        """Wall-clock time in microseconds. Expiry uses it, because it refers to the time of day."""
        return self._time.wall()

    # -- reading ------------------------------------------------------------------------------------------

    async def read(self, work: Callable[[ReadTransaction], T], *, by: Principal | None) -> T:
        """Run a read in one snapshot, for a caller or (None) for upkeep. Raises StorageError."""
        self._refuse_closed()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._retry, self._read, work, by)

    def read_now(self, work: Callable[[ReadTransaction], T], *, by: Principal | None) -> T:
        """As `read`, for a thread that may block."""
        found: T = self._retry(self._read, work, by)
        return found

    async def read_head(self) -> int:
        """The number of the newest event, 0 at the beginning."""
        self._refuse_closed()
        loop = asyncio.get_running_loop()
        head, at = await loop.run_in_executor(self._threads, self._retry, _read_end)
        self._time.observe(at)  # leases of other machines are compared with this clock
        return head

    def _read(self, connection: Connection, work: Callable[[ReadTransaction], T], by: Principal | None) -> T:
        with connection.pipeline():
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            reading = ReadTransaction(connection)
            reading.act_for(by)
            found = work(reading)
            connection.execute("COMMIT")
        return found

    # -- writing ------------------------------------------------------------------------------------------

    async def append(self, work: Callable[[WriteTransaction], T], *, by: Principal | None, durable: bool = True) -> T:
        """Run a unit of work that may append to the log, and return when it is committed. It holds the lock of the log
        and runs after all units that were submitted before it. It may be run more than once. Raises Busy if too many
        units are waiting."""
        self._refuse_closed()
        if self._log.waiting >= self._queue_limit:
            raise Busy(f"{self._queue_limit:,} writes are waiting")
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._log.put(LogJob(work, by, done, durable))
        return await done

    async def write(self, work: Callable[[WriteTransaction], T], *, by: Principal | None, durable: bool = True) -> T:
        """Run a unit of work that does not append to the log, in a transaction that runs concurrently with others. It
        locks rows in the order in which it changes them. It may be run more than once.

        `durable=False` is for changes that a power cut may undo without harm, such as a claim.
        """
        self._refuse_closed()
        attempt: Callable[[], tuple[T, list[int]]] = partial(self._retry, self._write, work, by, durable)
        value, changed = await asyncio.get_running_loop().run_in_executor(self._threads, attempt)
        if changed:
            self.wakeups.announce(0)
        return value

    def write_now(self, work: Callable[[WriteTransaction], T], *, by: Principal | None) -> T:
        """As `write` without durability, for a thread that may block."""
        attempt: tuple[T, list[int]] = self._retry(self._write, work, by, False)
        return attempt[0]

    def _write(
        self, connection: Connection, work: Callable[[WriteTransaction], T], by: Principal | None, durable: bool
    ) -> tuple[T, list[int]]:
        is_committing = False
        try:
            with connection.pipeline():
                connection.execute(BEGIN)
                writing = WriteTransaction(
                    connection, by, now=self.now(), wall=self.wall(), log=None, memo={}, careful=False
                )
                writing.act_for(by, flush=durable)
                value = work(writing)
                writing.settle()
                is_committing = True
                connection.execute("COMMIT")
        except psycopg.Error as error:
            if is_committing and is_away(error):  # the commit may have succeeded: running it again could do it twice
                raise self.server.failure(error) from error
            raise
        return value, writing.changed

    def _appended(self, log: LogEnd) -> None:
        for hear in self.on_append:
            hear(log)
        self.wakeups.announce(log.head)

    # -- connections --------------------------------------------------------------------------------------

    def _retry(self, run: Callable[..., T], *arguments: object) -> T:
        """Run a transaction on a connection of the pool, and retry it after a lost connection or a transient error."""
        with translated(self.server.place):
            for attempt in range(1, ATTEMPTS + 1):
                connection = self._borrow()
                try:
                    return run(connection, *arguments)
                except psycopg.Error as error:
                    if attempt == ATTEMPTS or not (is_away(error) or isinstance(error, TRANSIENT)):
                        raise
                    if is_away(error):
                        connection.close()
                        self._pool.check()
                finally:
                    self._give_back(connection)
                time.sleep(random.uniform(0, 0.01 * 2**attempt))
        raise AssertionError("the last attempt returns or raises")

    def _borrow(self) -> Connection:
        try:
            return self._pool.getconn()
        except PoolTimeout:
            self.server.connect().close()  # reports the reason if the server is away
            raise

    def _give_back(self, connection: Connection) -> None:
        with contextlib.suppress(psycopg.Error):
            if not connection.closed and connection.info.transaction_status:
                connection.rollback()
        self._pool.putconn(connection)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StorageError("the trail is closed")

    def close(self) -> None:
        """Finish the accepted writes, and close every connection."""
        if self._closed:
            return
        self._closed = True
        for close in self.on_close:
            close()
        self._log.close()
        self._threads.shutdown(wait=True)
        self._pool.close()


def _read_end(connection: Connection) -> tuple[int, int]:
    """The newest event and its time. The table has no policies, so one statement does."""
    head, at = connection.execute(READ_END).fetchone() or (0, 0)
    return int(head), int(at)
