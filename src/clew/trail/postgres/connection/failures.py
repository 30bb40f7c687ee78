"""Errors of the driver as errors of Clew. No exception of psycopg leaves this package."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from clew.errors import Busy, Corrupted, ReadOnly, StorageError, StorageFull, Unreachable

TRANSIENT = (errors.SerializationFailure, errors.DeadlockDetected)
"""The server undid the transaction because of others, such as a deadlock, so it is run again."""

FULL = (errors.DiskFull, errors.OutOfMemory, errors.InsufficientResources)
READ_ONLY = (errors.ReadOnlySqlTransaction,)
ENDED = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
    errors.DatabaseDropped,
    errors.ConnectionException,
)
"""The server has ended the connection."""
DAMAGED = (errors.DataCorrupted, errors.IndexCorrupted)
BUSY = (errors.TooManyConnections, errors.LockNotAvailable, errors.QueryCanceled, errors.CannotConnectNow)


def translate(error: Exception, place: str) -> StorageError:
    """Return Clew's error for one of the driver; `place` names the server and database."""
    text = _first_line(error)
    match error:
        case PoolTimeout() | TooManyRequests():
            return Busy(f"no connection to {place} became free in time")
        case PoolClosed():
            return StorageError("the trail is closed")
        case _ if isinstance(error, DAMAGED):
            return Corrupted(f"{place} is damaged: {text}")
        case _ if isinstance(error, READ_ONLY):
            return ReadOnly(f"{place} is read-only", hint="Connect to the primary server")
        case _ if isinstance(error, FULL):
            return StorageFull(f"{place} has no room: {text}")
        case _ if isinstance(error, BUSY):
            return Busy(f"{place} is busy: {text}")
        case _ if is_away(error):
            return Unreachable(f"{place} cannot be reached: {text}", hint="Is the PostgreSQL server running?")
        case _:
            return StorageError(f"PostgreSQL: {text}")


def is_away(error: BaseException) -> bool:
    """Whether the connection is gone, so that another one may succeed."""
    return isinstance(error, ENDED) or (
        isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
        and not isinstance(error, errors.PipelineAborted)
        and getattr(error, "sqlstate", None) is None
    )


@contextlib.contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise Clew's error for any of the driver within the block."""
    try:
        yield
    except (psycopg.Error, PoolTimeout, PoolClosed, TooManyRequests) as error:
        raise translate(error, place) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
