"""The file `code.db`: its tables, and opening it. All in it is derived: a file of another format, of another program or
with damage is deleted, and built again; so is one that somebody else made."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import apsw

from clew.errors import Corrupted
from clew.knowledge.code import models, python_summary, text_units
from clew.knowledge.code.db_owner import is_marked, mark_of
from clew.trail.sqlite.file import SMALLEST, connect, make_private, translated

FORMAT = 3
"""Changes whenever the tables do."""

_APPLICATION = 0x636F6465
_VERSION = ((FORMAT * 100 + models.FORMAT) * 100 + python_summary.FORMAT) * 100 + text_units.FORMAT
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
    PRIMARY KEY (source, type, target, line)
) WITHOUT ROWID;
CREATE INDEX edges_target ON edges (target, type, source, line, guess);
CREATE TABLE linked (file INTEGER PRIMARY KEY, digest BLOB NOT NULL);
"""


def open_database(path: Path) -> tuple[apsw.Connection, str]:
    """A connection to the file, made where there is none, and why an earlier one was deleted, or nothing; one that was
    only made elsewhere goes without a word. Raises ReadOnly, Busy and StorageError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        connection = _open(path)
    except (Corrupted, apsw.CorruptError, apsw.NotADBError):
        connection = "it was damaged"
    if not isinstance(connection, str):
        return connection, ""
    reason = connection
    delete_database(path)
    with translated(path):
        connection = _open(path)
    if isinstance(connection, str):
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


def _open(path: Path) -> apsw.Connection | str:
    """A connection to a file of this format and of this user; otherwise what is to be said of it."""
    make_private(path)
    if 0 < os.stat(path).st_size < SMALLEST:
        raise Corrupted(f"{path} is not a SQLite file")
    connection = connect(path)
    try:
        if not _prepare(connection, path):
            connection.close()
            return "it was of another version"
        if not is_marked(_meta(connection, "id"), _meta(connection, "mark"), path):
            connection.close()
            return ""
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: apsw.Connection, path: Path) -> bool:
    """Make the tables in an empty file. Whether the file has the tables of this format."""
    connection.execute("PRAGMA journal_mode=WAL")
    _set_up(connection)
    if _version_of(connection) == (0, 0) and not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        _create(connection, path)
    return _version_of(connection) == (_APPLICATION, _VERSION)


def _create(connection: apsw.Connection, path: Path) -> None:
    """Make the tables, with our mark, unless another process was quicker."""
    id = secrets.token_hex(16)
    mark = mark_of(id, path)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
            connection.execute(_TABLES)
            connection.execute("INSERT INTO meta VALUES ('id', ?), ('mark', ?)", (id, mark))
            connection.execute(f"PRAGMA application_id={_APPLICATION}; PRAGMA user_version={_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _meta(connection: apsw.Connection, key: str) -> object:
    try:
        return connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    except apsw.SQLError:
        return None


def _version_of(connection: apsw.Connection) -> tuple[int, int]:
    return int(connection.execute("PRAGMA application_id").get), int(connection.execute("PRAGMA user_version").get)


def _set_up(connection: apsw.Connection) -> None:
    connection.execute(f"PRAGMA synchronous=NORMAL; PRAGMA cache_size=-{_CACHE_KIB}")
