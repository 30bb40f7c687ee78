"""The file itself: opening it, checking that it is whole, bringing it to the newest schema, and the driver's errors
in our words."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import apsw

from clew.errors import Busy, Corrupted, ReadOnly, StorageError, StorageFull

BUSY_SECONDS = 30.0
SMALLEST, QUICK_CHECK_BYTES = 512, 32_000_000
NEARLY_FULL = 1_000_000
"""With fewer bytes free, an error of the disk is taken for a full one: SQLite does not always say which."""
LOG_PAGE = 4_096 + 24
"""A page in the log, with what stands before it."""

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


def lay_out_log(path: Path, pages: int) -> None:
    """Make the log so many pages long, with zeros. A flush is about twice as fast where the file need not grow, and
    SQLite reads a log only as far as its frames belong together. The caller holds the lock for writing."""
    with contextlib.suppress(OSError), path.with_name(path.name + "-wal").open("r+b") as log:
        log.write(bytes(max(0, pages * LOG_PAGE - log.seek(0, os.SEEK_END))))


def check_file(path: Path) -> None:
    """Refuse a file that is another program's, cut short, or (when small) fails SQLite's quick check; leave it as is.

    Only through SQLite: were this process to open and close the file itself, all its locks on it would be gone.
    """
    if not path.exists() or path.stat().st_size == 0:
        return
    if path.stat().st_size < SMALLEST:
        raise Corrupted(f"{path} is not a SQLite file")
    if not os.access(path, os.R_OK):
        raise ReadOnly(f"{path} may not be read")
    connection = connect(path)
    try:
        _refuse_foreign(connection)
        small = path.stat().st_size <= QUICK_CHECK_BYTES
        found = connection.execute("PRAGMA quick_check(1)").get if small else "ok"
        if found != "ok":
            raise Corrupted(f"{path} is damaged: {found}")
    finally:
        connection.close()


def _refuse_foreign(connection: apsw.Connection) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if tables and not {"meta", "breadcrumbs", "events"} <= tables:
        raise StorageError("this SQLite file belongs to another program", hint="Name another file for the trail")


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
