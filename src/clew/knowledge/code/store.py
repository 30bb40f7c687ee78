"""The database of one folder, `code.db`: facts by content, and files, symbols and edges by place.

One transaction writes at a time; each thread reads through its own connection. Other parts of knowledge keep tables
here too. Everything in it is derived: a file of another format, with damage, or from another user is deleted and built
again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import apsw

from clew.errors import Corrupted, StorageError
from clew.knowledge.code import models, passages
from clew.knowledge.code.db_owner import is_marked, mark_of
from clew.knowledge.code.python_calls import summary
from clew.trail.sqlite.file import SMALLEST, connect, make_private, translated

FORMAT = 3
"""Increase it with every change of the tables."""

_APPLICATION = 0x636F6465
_VERSION = ((FORMAT * 100 + models.FORMAT) * 100 + summary.FORMAT) * 100 + passages.FORMAT
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

_log = logging.getLogger(__name__)


class Sql(Protocol):
    """A connection as this package uses it. Rows are untyped here, and typed where they are read."""

    def execute(self, sql: str, values: Any = ()) -> Any: ...

    def executemany(self, sql: str, values: Iterable[Any]) -> Any: ...


class CodeStore:
    """The open database. `notice` says why an earlier file was deleted; else it is empty."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turn = threading.RLock()
        self._local = threading.local()
        self._readers: list[apsw.Connection] = []
        self._era = 0
        with translated(path):
            self._writer, reason = _open_database(path)
        self.notice = self._report(reason)

    @property
    def is_open(self) -> bool:
        return self._era >= 0

    @property
    def era(self) -> int:
        """A number that changes with each rebuild."""
        return self._era

    @contextlib.contextmanager
    def writing(self) -> Iterator[Sql]:
        """A write transaction, exclusive among threads and processes. A nested one joins it. Raises StorageError."""
        with self._turn, self._translated():
            connection = self._checked(self._writer)
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[Sql]:
        """A read transaction: a snapshot of the file. A nested one joins it. Raises StorageError."""
        with self._translated():
            connection = self._reader()
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def meta(self, key: str, default: Any = None) -> Any:
        with self.reading() as sql:
            return read_meta(sql, key, default)

    def rebuild(self, era: int) -> None:
        """Delete the file and start with an empty one, unless that happened since `era`."""
        with self._turn:
            if era != self._era or not self.is_open:
                return
            self._close_all()
            self._era += 1
            _delete_database(self.path)
            with translated(self.path):
                self._writer, _ = _open_database(self.path)
            self.notice = self._report("it was damaged")

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        with self._turn:
            if self.is_open:
                self._close_all()
                self._era = -1

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate errors of the driver. A missing table is damage."""
        with translated(self.path):
            try:
                yield
            except apsw.SQLError as error:
                if str(error).startswith("no such"):
                    raise Corrupted(f"{self.path} is damaged: {error}") from error
                raise

    def _close_all(self) -> None:
        for connection in (*self._readers, self._writer):
            connection.close()
        self._readers = []

    def _reader(self) -> apsw.Connection:
        """The connection of this thread; a new one after a rebuild."""
        era, connection = getattr(self._local, "reader", (None, None))
        if connection is None or era != self._era:
            with self._turn:
                self._checked(self._writer)
                connection = connect(self.path)
                _set_up(connection)
                self._readers.append(connection)
                self._local.reader = (self._era, connection)
        return connection

    def _checked(self, connection: apsw.Connection) -> apsw.Connection:
        if not self.is_open:
            raise StorageError("the store of code is closed")
        return connection

    def _report(self, reason: str) -> str:
        notice = f"{self.path} is built again: {reason}" if reason else ""
        if notice:
            _log.warning(notice)
        return notice


def read_meta(sql: Sql, key: str, default: Any = None) -> Any:
    found = sql.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else default


def write_meta(sql: Sql, key: str, value: Any) -> None:
    sql.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value))


def _open_database(path: Path) -> tuple[apsw.Connection, str]:
    """Open or create the file. Also returns why an earlier one was deleted; empty if only its mark was another user's.
    Raises ReadOnly, Busy and StorageError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        found = _try_open(path)
    except (Corrupted, apsw.CorruptError, apsw.NotADBError):
        found = "it was damaged"
    if not isinstance(found, str):
        return found, ""
    _delete_database(path)
    with translated(path):
        connection = _try_open(path)
    if isinstance(connection, str):
        raise Corrupted(f"{path} changes while it is opened", hint="Try again")
    return connection, found


def _delete_database(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _try_open(path: Path) -> apsw.Connection | str:
    """A connection to a file of this format and this user; otherwise the reason to delete it."""
    make_private(path)
    if 0 < os.stat(path).st_size < SMALLEST:
        raise Corrupted(f"{path} is not a SQLite file")
    connection = connect(path)
    try:
        is_current = _prepare(connection, path)
        if is_current and is_marked(_read_mark(connection, "id"), _read_mark(connection, "mark"), path):
            return connection
    except BaseException:
        connection.close()
        raise
    connection.close()
    return "" if is_current else "it was of another version"


def _prepare(connection: apsw.Connection, path: Path) -> bool:
    """Create the tables in an empty file. Returns whether the file has the tables of this format."""
    connection.execute("PRAGMA journal_mode=WAL")
    _set_up(connection)
    if _version_of(connection) == (0, 0) and _is_empty(connection):
        _create(connection, path)
    return _version_of(connection) == (_APPLICATION, _VERSION)


def _create(connection: apsw.Connection, path: Path) -> None:
    """Create the tables with this user's mark, unless another process did."""
    id = secrets.token_hex(16)
    mark = mark_of(id, path)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _is_empty(connection):
            connection.execute(_TABLES)
            connection.execute("INSERT INTO meta VALUES ('id', ?), ('mark', ?)", (id, mark))
            connection.execute(f"PRAGMA application_id={_APPLICATION}; PRAGMA user_version={_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _is_empty(connection: apsw.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_schema").get


def _read_mark(connection: apsw.Connection, key: str) -> object:
    try:
        return connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    except apsw.SQLError:
        return None


def _version_of(connection: apsw.Connection) -> tuple[int, int]:
    return int(connection.execute("PRAGMA application_id").get), int(connection.execute("PRAGMA user_version").get)


def _set_up(connection: apsw.Connection) -> None:
    connection.execute(f"PRAGMA synchronous=NORMAL; PRAGMA cache_size=-{_CACHE_KIB}")
