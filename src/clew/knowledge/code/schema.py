"""The file `code.db`: its tables, and opening it. All in it is derived: a file of another format, of another program or
with damage is deleted, and built again."""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from clew.errors import Corrupted
from clew.knowledge.code import facts, python_summary, text_units
from clew.trail.sqlite.file import SMALLEST, connect, make_private, translated

FORMAT = 2
"""Changes whenever the tables do."""

_APPLICATION = 0x636F6465
_VERSION = ((FORMAT * 100 + facts.FORMAT) * 100 + python_summary.FORMAT) * 100 + text_units.FORMAT
_CACHE_KIB = 16_000

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE blobs (
    blob BLOB NOT NULL, language TEXT NOT NULL, facts BLOB NOT NULL, summary BLOB NOT NULL, seen INTEGER NOT NULL,
    PRIMARY KEY (blob, language)
);
CREATE INDEX blobs_seen ON blobs (seen);
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, blob BLOB NOT NULL, language TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, ino INTEGER NOT NULL,
    looked_ns INTEGER NOT NULL, lines INTEGER NOT NULL, left_out TEXT NOT NULL
);
CREATE INDEX files_blob ON files (blob);
CREATE TABLE symbols (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, lower TEXT NOT NULL,
    qualname TEXT NOT NULL, line_start INTEGER NOT NULL, line_end INTEGER NOT NULL, signature TEXT NOT NULL,
    doc TEXT NOT NULL
);
CREATE INDEX symbols_lower ON symbols (lower);
CREATE INDEX symbols_qualname ON symbols (qualname);
CREATE INDEX symbols_file ON symbols (file, qualname);
CREATE TABLE edges (
    source INTEGER NOT NULL, type TEXT NOT NULL, target INTEGER NOT NULL, line INTEGER NOT NULL, guess INTEGER NOT NULL,
    PRIMARY KEY (source, type, target)
) WITHOUT ROWID;
CREATE INDEX edges_target ON edges (target, type, source, line, guess);
CREATE TABLE linked (file INTEGER PRIMARY KEY, digest BLOB NOT NULL);
"""


def open_database(path: Path) -> tuple[apsw.Connection, str]:
    """A connection to the file, made where there is none, and why an earlier one was deleted, or nothing. Raises
    ReadOnly, Busy and StorageError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    reason = ""
    try:
        connection = _open(path)
    except (Corrupted, apsw.CorruptError, apsw.NotADBError):
        reason = "it was damaged"
    else:
        if connection is not None:
            return connection, ""
        reason = "it was of another version"
    delete_database(path)
    with translated(path):
        connection = _open(path)
    if connection is None:
        raise Corrupted(f"{path} changes while it is opened", hint="Try again")
    return connection, reason


def delete_database(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def open_reader(path: Path) -> apsw.Connection:
    """One more connection to a file that is open."""
    connection = connect(path)
    _set_up(connection)
    return connection


def _open(path: Path) -> apsw.Connection | None:
    """A connection to a file of this format; None when it is of another."""
    make_private(path)
    if 0 < os.stat(path).st_size < SMALLEST:
        raise Corrupted(f"{path} is not a SQLite file")
    connection = connect(path)
    try:
        is_ours = _prepare(connection)
    except BaseException:
        connection.close()
        raise
    if not is_ours:
        connection.close()
        return None
    return connection


def _prepare(connection: apsw.Connection) -> bool:
    """Make the tables in an empty file. Whether the file has the tables of this format."""
    connection.execute("PRAGMA journal_mode=WAL")
    _set_up(connection)
    if _version_of(connection) == (0, 0) and not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        _create(connection)
    return _version_of(connection) == (_APPLICATION, _VERSION)


def _create(connection: apsw.Connection) -> None:
    """Make the tables, unless another process was quicker."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
            connection.execute(_TABLES)
            connection.execute(f"PRAGMA application_id={_APPLICATION}; PRAGMA user_version={_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version_of(connection: apsw.Connection) -> tuple[int, int]:
    return int(connection.execute("PRAGMA application_id").get), int(connection.execute("PRAGMA user_version").get)


def _set_up(connection: apsw.Connection) -> None:
    connection.execute(f"PRAGMA synchronous=NORMAL; PRAGMA cache_size=-{_CACHE_KIB}")
