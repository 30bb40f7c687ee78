"""SQLite files: open a connection, create a private file, and translate the driver's errors."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import apsw

from clew.errors import Busy, Corrupted, ReadOnly, StorageError, StorageFull

BUSY_SECONDS = 30.0
NEARLY_FULL = 1_000_000
"""If fewer bytes are free, a disk error is reported as a full disk, because SQLite does not always distinguish the
two."""


class Sql(Protocol):
    """A connection. Rows are untyped here, and typed where they are read."""

    def execute(self, sql: str, values: Any = ()) -> Any: ...

    def executemany(self, sql: str, values: Any) -> Any: ...

    def changes(self) -> int: ...


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except apsw.Error as error:
        raise translate(error, path) from error


def translate(error: apsw.Error, path: Path) -> StorageError:
    """Our error for one of the driver's."""
    match error:
        case apsw.FullError():
            return StorageFull(f"no space left for {path}")
        case apsw.CorruptError() | apsw.NotADBError():
            return Corrupted(f"{path} is damaged: {error}")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return ReadOnly(f"{path} cannot be written")
        case apsw.CantOpenError():
            return ReadOnly(f"{path} cannot be opened")
        case apsw.IOError():
            if shutil.disk_usage(path.parent).free < NEARLY_FULL:
                return StorageFull(f"no space left for {path}")
            return StorageError(f"the disk refused: {error}", hint=f"Check the disk that holds {path}")
        case apsw.BusyError():
            return Busy(f"another process has held {path} for {BUSY_SECONDS:.0f} s")
        case _:
            return StorageError(f"SQLite: {error}")


def connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), statementcachesize=300)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
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


def make_private(path: Path) -> None:
    """Create a file that only its owner can read, before SQLite creates one that everybody can read."""
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
