"""The file of a trail: checked for damage, migrated to the newest schema, and its write-ahead log."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import apsw

from clew.errors import Corrupted, ReadOnly, StorageError
from clew.sqlite_file import connect

SMALLEST, QUICK_CHECK_BYTES = 512, 32_000_000
LOG_PAGE = 4_096 + 24
"""The bytes of a page in the log, with its frame header."""

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
"""Errors that concern the file, not a single unit of work."""


def free_companions(path: Path) -> None:
    """If the file is writable, make WAL and shared memory writable too. SQLite creates them with the permissions of the
    file, so they are read-only if the file was."""
    with contextlib.suppress(OSError):
        mode = path.stat().st_mode & 0o777
        for suffix in ("-wal", "-shm"):
            companion = path.with_name(path.name + suffix)
            if mode & 0o200 and companion.exists() and not companion.stat().st_mode & 0o200:
                companion.chmod(mode)


def lay_out_log(path: Path, pages: int) -> None:
    """Extend the WAL with zeros to this many pages. A flush is about twice as fast if the file need not grow, and
    SQLite ignores bytes after the last valid frame. The caller must hold the write lock."""
    with contextlib.suppress(OSError), path.with_name(path.name + "-wal").open("r+b") as log:
        log.write(bytes(max(0, pages * LOG_PAGE - log.seek(0, os.SEEK_END))))


def check_file(path: Path) -> None:
    """Refuse a file that is another program's, cut short, or (when small) fails SQLite's quick check; leave it as is.

    This uses only SQLite: if the process opened and closed the file itself, it would lose all its locks on it.
    """
    if not path.exists() or path.stat().st_size == 0:
        return
    if path.stat().st_size < SMALLEST:
        raise Corrupted(f"{path} is not a SQLite file")
    if not os.access(path, os.R_OK):
        raise ReadOnly(f"{path} cannot be read: permission denied")
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


def migrate(connection: apsw.Connection, *, keep: bool = True) -> None:
    """Bring the file to the newest schema, by the numbered steps that it lacks, in one transaction. Without `keep` that
    is left open, for the caller to roll back."""
    steps = sorted((Path(__file__).parent / "migrations").iterdir(), key=lambda step: step.name)
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
        if keep:
            connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
