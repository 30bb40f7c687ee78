"""The thread of a process that appends to the log. Writes that wait together share one transaction and one flush.

It locks the end of the log, runs the units of work, and commits. On the first try it does not wait for their
statements, so that the statements of a group cross the network together. If one fails, the transaction is undone and
run again in careful mode: each unit of work gets a savepoint and succeeds or fails alone. If the connection breaks
during a commit, the outcome is unknown. The thread then asks the server for it before it runs anything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import psycopg

from clew.access import Principal
from clew.clock import SteadyClock
from clew.errors import ClewError, StorageError
from clew.trail.postgres.connection.failures import TRANSIENT, is_away
from clew.trail.postgres.connection.server import Connection, Server
from clew.trail.postgres.transactions import BEGIN, CALLER, NAME_CALLER, LogEnd, WriteTransaction, caller_values
from clew.trail.work.loop_calls import LoopCalls

GROUP = 256
ATTEMPTS = 6
LOCK_LOG = f"SELECT head, at, pg_current_xact_id()::text, {CALLER} FROM log FOR UPDATE"
LOOK_UP = (
    "SELECT (SELECT value FROM meta WHERE key = 'embedder'),"
    " (SELECT json_object_agg(owner_id, seq) FROM definition_marks WHERE owner_id = ANY (%s))"
)
"""Reads values that most units of work need. It must not be part of LOCK_LOG, whose snapshot dates from before its wait
for the lock."""
USE_PLANS = "SET plan_cache_mode TO force_generic_plan"
"""Use generic plans: the statements here find rows by key, so planning one takes longer than running it."""
MOVE_LOG = "UPDATE log SET head = %s, at = %s"
OUTCOME = "SELECT pg_xact_status(%s::text::xid8), e.id, e.at FROM log LEFT JOIN events e ON e.seq = %s"


class LogJob(NamedTuple):
    """A unit of work, its caller, and the future that receives its result."""

    work: Callable[[WriteTransaction], Any]
    by: Principal | None
    done: asyncio.Future[Any]
    durable: bool


Outcome = tuple[Any, BaseException | None]


class WriteGroup:
    """A transaction of several jobs: an outcome for each job, the changes, and the end of the log."""

    def __init__(self, outcomes: Sequence[Outcome] = ()) -> None:
        self.outcomes = list(outcomes)
        self.changed: list[int] = []
        self.log = LogEnd(0, 0)


class _Undone(Exception):
    """A unit of work has failed after it wrote; the whole transaction is to be undone."""


class LogWriter:
    """Runs units of work in order. `on_commit` is called from its thread with the end of the log."""

    def __init__(self, server: Server, time: SteadyClock, on_commit: Callable[[LogEnd], None]) -> None:
        self._server = server
        self._time = time
        self._on_commit = on_commit
        self._queue: queue.SimpleQueue[LogJob | None] = queue.SimpleQueue()
        self._connection: Connection | None = None
        self._xid: str | None = None
        self._calls = LoopCalls()
        self._thread = threading.Thread(target=self._run, name="clew-log", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def put(self, job: LogJob) -> None:
        self._queue.put(job)

    def close(self) -> None:
        """Finish the accepted jobs, and end."""
        self._queue.put(None)
        self._thread.join()
        for job in self._take(self._queue.qsize()):
            if job is not None:
                self._calls.settle(job.done, None, StorageError("the trail is closed"))
        self._calls.send()
        self._disconnect()

    # -- groups -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            jobs = [first]
            stop = False
            for job in self._take(GROUP - 1):
                stop = job is None
                if job is None:
                    break
                jobs.append(job)
            self._run_group([job for job in jobs if not job.done.cancelled()])
            if stop:
                return

    def _take(self, limit: int) -> Iterator[LogJob | None]:
        for _ in range(limit):
            try:
                yield self._queue.get_nowait()
            except queue.Empty:
                return

    def _run_group(self, jobs: Sequence[LogJob]) -> None:
        if not jobs:
            return
        try:
            group = self._commit(jobs)
        except Exception as error:  # a task boundary: each caller gets the error
            group = WriteGroup([(None, error)] * len(jobs))
        if group.changed:
            self._on_commit(group.log)
        for job, (value, failure) in zip(jobs, group.outcomes, strict=True):
            self._calls.settle(job.done, value, failure)
        self._calls.send()

    def _commit(self, jobs: Sequence[LogJob]) -> WriteGroup:
        """Run jobs in one transaction, and retry it after a transient error. Raises StorageError."""
        careful, last = False, psycopg.Error()
        for attempt in range(ATTEMPTS):
            self._xid = None
            group = WriteGroup()
            try:
                self._transact(jobs, group, careful=careful)
                return group
            except _Undone:
                careful = True
            except psycopg.Error as error:
                if is_away(error):
                    self._disconnect()
                    if self._xid is not None and self._was_committed(self._xid, group):
                        return group
                elif not isinstance(error, TRANSIENT):
                    if careful:
                        raise self._server.failure(error) from error
                    careful = True
                    continue
                last = error
            if attempt:
                time.sleep(random.uniform(0, 0.01 * 2**attempt))
        raise self._server.failure(last) from last

    def _transact(self, jobs: Sequence[LogJob], group: WriteGroup, *, careful: bool) -> None:
        connection = self._connect()
        try:
            with connection.pipeline() as pipeline:
                connection.execute(BEGIN)
                if not any(job.durable for job in jobs):
                    connection.execute("SET LOCAL synchronous_commit TO off")
                log, memo, xid = self._lock(connection, jobs)
                group.log = log
                for job in jobs:
                    group.outcomes.append(self._work(connection, job, log, memo, group.changed, careful=careful))
                for ending in log.endings.values():
                    ending.send(self._write_in(connection, jobs[0].by, log, memo, careful=careful))
                if log.head > log.after:
                    connection.execute(MOVE_LOG, (log.head, log.at))
                if careful:
                    pipeline.sync()
                self._xid = xid
                connection.execute("COMMIT")  # the end of the block waits for it
        except BaseException:
            self._roll_back(connection)
            raise

    def _lock(self, connection: Connection, jobs: Sequence[LogJob]) -> tuple[LogEnd, dict[Any, Any], str]:
        """Lock the log, with the caller of the first job as the caller. Returns the end of the log, the values of
        LOOK_UP, and the id of the transaction."""
        owners = {job.by.owner_id for job in jobs if job.by is not None}
        locked = connection.execute(LOCK_LOG.encode(), caller_values(jobs[0].by))
        known = connection.execute(LOOK_UP, (sorted(owners),))
        head, at, xid, *_ = locked.fetchone() or (0, 0, "")
        embedder, marks = known.fetchone() or (None, None)
        memo: dict[Any, Any] = {("newest", owner): (marks or {}).get(owner) for owner in owners}
        memo |= {"embedder": embedder, "caller": jobs[0].by}
        self._time.observe(at)
        return LogEnd(head, at), memo, xid

    def _work(
        self,
        connection: Connection,
        job: LogJob,
        log: LogEnd,
        memo: dict[Any, Any],
        changed: list[int],
        *,
        careful: bool,
    ) -> Outcome:
        writing = self._write_in(connection, job.by, log, memo, careful=careful)
        head, at, id = log.head, log.at, log.id
        if careful:
            connection.execute("SAVEPOINT job")
        try:
            if careful or memo.get("caller", self) != job.by:
                writing.act_for(job.by)
                memo["caller"] = job.by
            value = job.work(writing)
            writing.settle()
        except psycopg.Error as error:
            if not careful or is_away(error) or isinstance(error, TRANSIENT):
                raise
            failure: BaseException = self._server.failure(error)
        except Exception as error:
            if not careful and writing.is_dirty:
                raise _Undone from error
            failure = error
        else:
            changed.extend(writing.changed)
            return value, None
        if careful:
            self._undo_job(connection)
            marks = {key: value for key, value in memo.items() if _is_new_audience(key)}
            memo.clear()
            memo |= {"caller": job.by, **marks}
        log.move_back(head, at, id)
        return None, failure

    def _write_in(
        self, connection: Connection, by: Principal | None, log: LogEnd, memo: dict[Any, Any], *, careful: bool
    ) -> WriteTransaction:
        now, wall = self._time.now(), self._time.wall()
        return WriteTransaction(connection, by, now=now, wall=wall, log=log, memo=memo, careful=careful)

    @staticmethod
    def _undo_job(connection: Connection) -> None:
        pipeline = connection._pipeline
        assert pipeline is not None
        with contextlib.suppress(psycopg.Error):
            pipeline.sync()
        connection.execute("ROLLBACK TO SAVEPOINT job")
        pipeline.sync()

    # -- connection ---------------------------------------------------------------------------------------

    def _connect(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._server.connect()
            self._connection.execute(USE_PLANS)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    def _roll_back(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except psycopg.Error:
            self._disconnect()

    def _was_committed(self, xid: str, group: WriteGroup) -> bool:
        """Ask the server for the outcome of a commit during which the connection broke. Raises StorageError when it
        does not say.

        After a crash, the server may reuse the id of a transaction that was not flushed. So a commit is confirmed only
        if the newest event of the group exists.
        """
        for attempt in range(ATTEMPTS):
            try:
                with self._connect().transaction():
                    self._connect().execute(NAME_CALLER, caller_values(None))
                    row = self._connect().execute(OUTCOME, (xid, group.log.head)).fetchone()
            except (psycopg.Error, ClewError):
                self._disconnect()
            else:
                status, *newest = row or (None,)
                own, has_events = (group.log.id, group.log.at), bool(group.log.id)
                if status == "aborted" or (status == "committed" and has_events and tuple(newest) != own):
                    return False
                if status == "committed" and has_events:
                    return True
                if status == "committed":  # the id may be that of another transaction, which cannot be detected
                    break
            time.sleep(0.05 * 2**attempt)
        raise StorageError(
            f"{self._server.place} went away during a commit, and it is not known whether that succeeded",
            hint="Repeat the write with the same idempotency key",
        )


def _is_new_audience(key: object) -> bool:
    """Whether a key of the memo marks an owner that has uncommitted audiences."""
    return isinstance(key, tuple) and key[0] == "new" and isinstance(key[1], str)
