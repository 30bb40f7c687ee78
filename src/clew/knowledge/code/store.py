"""The database of one folder, `code.db`: facts by content, and files, symbols and edges by place.

One transaction writes at a time; each thread reads through its own connection. Other parts of knowledge have tables
here too. All of it is derived: a file of another format, with damage, or from another user is deleted and built again.
A file that came with a repository lacks this user's signature. The secret for it is outside of every project.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from clew.errors import ConfigError, Corrupted, StorageError
from clew.files import locked, read_file, replace_file
from clew.knowledge.code import models
from clew.knowledge.code.python_calls import summary
from clew.knowledge.code.search import passages
from clew.sqlite_file import Sql, connect, make_private, translated
from clew.trust import user_file

FORMAT = 6
"""Increase it with every change of the tables."""

_APPLICATION = 0x636F6465
_VERSION = ((FORMAT * 100 + models.FORMAT) * 100 + summary.FORMAT) * 100 + passages.FORMAT
_SETTINGS = "PRAGMA synchronous=NORMAL; PRAGMA cache_size=-16000"
_SECRET_BYTES = 32

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE blobs (
    blob BLOB NOT NULL, language TEXT NOT NULL, facts BLOB NOT NULL, summary BLOB NOT NULL, seen INTEGER NOT NULL,
    PRIMARY KEY (blob, language)
);
CREATE INDEX blobs_seen ON blobs (seen);
CREATE TABLE passages (
    blob BLOB NOT NULL, language TEXT NOT NULL, packed BLOB NOT NULL, texts BLOB NOT NULL,
    model TEXT NOT NULL DEFAULT '', vectors BLOB, PRIMARY KEY (blob, language)
);
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
    source INTEGER NOT NULL, type TEXT NOT NULL, target INTEGER NOT NULL, line INTEGER NOT NULL, name TEXT NOT NULL,
    guess INTEGER NOT NULL, PRIMARY KEY (source, type, target, line, name)
) WITHOUT ROWID;
CREATE INDEX edges_name ON edges (name) WHERE name != '';
CREATE INDEX edges_target ON edges (target, type, source, line, guess);
CREATE TABLE linked (file INTEGER PRIMARY KEY, digest BLOB NOT NULL);
"""

_log = logging.getLogger(__name__)


class CodeStore:
    """The open database. `era` changes with each rebuild, and is negative after `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.era = 0
        self._turn = threading.RLock()
        self._local = threading.local()
        self._readers: list[apsw.Connection] = []
        with translated(path):
            self._writer = _open_database(path)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Sql]:
        """A write transaction, exclusive among threads and processes. A nested one joins it. Raises StorageError."""
        with self._turn, self._translated():
            self._check_open()
            with _transaction(self._writer, "IMMEDIATE"):
                yield self._writer

    @contextlib.contextmanager
    def reading(self) -> Iterator[Sql]:
        """A read transaction: a snapshot of the file. A nested one joins it. Raises StorageError."""
        with self._translated():
            connection = self._reader()
            with _transaction(connection, "DEFERRED"):
                yield connection

    def meta(self, key: str, default: Any = None) -> Any:
        with self.reading() as sql:
            return read_meta(sql, key, default)

    def rebuild(self, era: int) -> None:
        """Delete the file and start with an empty one, unless that happened since `era`."""
        with self._turn:
            if era != self.era or self.era < 0:
                return
            self._close_all()
            self.era += 1
            _delete_database(self.path)
            _log.warning("%s is built again: it was damaged", self.path)
            with translated(self.path):
                self._writer = _open_database(self.path)

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        with self._turn:
            if self.era >= 0:
                self._close_all()
                self.era = -1

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
        if connection is None or era != self.era:
            with self._turn:
                self._check_open()
                connection = connect(self.path)
                connection.execute(_SETTINGS)
                self._readers.append(connection)
                self._local.reader = (self.era, connection)
        return connection

    def _check_open(self) -> None:
        if self.era < 0:
            raise StorageError("the store of code is closed")


def read_meta(sql: Sql, key: str, default: Any = None) -> Any:
    found = sql.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else default


def write_meta(sql: Sql, key: str, value: Any) -> None:
    sql.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value))


@contextlib.contextmanager
def process_lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock beside a file. Calls `waiting` first if another process has it. Raises OSError."""
    if is_locked(path):
        waiting()
    with locked(path):
        yield


def is_locked(path: Path) -> bool:
    """Whether any process holds the lock beside a file."""
    try:
        with locked(path, waits=False):
            return False
    except OSError:
        return True


@contextlib.contextmanager
def _transaction(connection: apsw.Connection, mode: str) -> Iterator[None]:
    if connection.in_transaction:
        yield
        return
    connection.execute(f"BEGIN {mode}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _open_database(path: Path) -> apsw.Connection:
    """Open or create the file. An unusable database is deleted first. This is logged, unless only its signature is
    wrong. Raises ReadOnly, Busy and StorageError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():  # the link may lead to the index of another folder, or to any other database
        _log.warning("%s was a link, and is replaced", path)
        path.unlink()
    for _ in range(2):
        make_private(path)
        connection = connect(path)
        try:
            reason = _prepare(connection, path)
        except (apsw.CorruptError, apsw.NotADBError):
            reason = "it was damaged"
        except BaseException:
            connection.close()
            raise
        if reason is None:
            return connection
        connection.close()
        _delete_database(path)
        if reason:
            _log.warning("%s is built again: %s", path, reason)
    raise Corrupted(f"{path} changes while it is opened", hint="Try again")


def _delete_database(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _prepare(connection: apsw.Connection, path: Path) -> str | None:
    """Create the tables in an empty file. Returns the reason to delete the file; None if it is this user's and of this
    format."""
    connection.execute(f"PRAGMA journal_mode=WAL; {_SETTINGS}")
    if _is_empty(connection):
        with _transaction(connection, "IMMEDIATE"):
            if _is_empty(connection):  # else another process was quicker
                _create(connection, path)
    version = (connection.execute("PRAGMA application_id").get, connection.execute("PRAGMA user_version").get)
    if version != (_APPLICATION, _VERSION):
        return "it was of another version"
    try:
        id, mark = (str(read_meta(connection, key)) for key in ("id", "mark"))
    except apsw.SQLError:
        return "it was damaged"
    return None if hmac.compare_digest(mark.encode(), _sign_file(id, path).encode()) else ""


def _is_empty(connection: apsw.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_schema").get


def _create(connection: apsw.Connection, path: Path) -> None:
    id = secrets.token_hex(16)
    connection.execute(_TABLES)
    connection.execute("INSERT INTO meta VALUES ('id', ?), ('mark', ?)", (id, _sign_file(id, path)))
    connection.execute(f"PRAGMA application_id={_APPLICATION}; PRAGMA user_version={_VERSION}")


def _sign_file(id: str, path: Path) -> str:
    place = f"{id}\0{os.path.realpath(path)}".encode("utf-8", "surrogateescape")
    return hmac.new(_user_secret(), place, hashlib.sha256).hexdigest()


def record_signer() -> Callable[[bytes], str]:
    """A function that signs records as this user. It reads the secret once. Its signatures are never those of files."""
    secret = _user_secret()
    return lambda record: hmac.new(secret, b"record\0\0" + record, hashlib.sha256).hexdigest()


def _user_secret() -> bytes:
    """The user's secret, created if missing. If it cannot be stored, a value that a stranger has to guess."""
    try:
        place = user_file()
        place = place.with_name(f"{place.name}.secret")
        return _read_secret(place) or _create_secret(place)
    except (ConfigError, OSError):
        return "\0".join((socket.gethostname(), os.path.expanduser("~"))).encode("utf-8", "surrogateescape")


def _create_secret(place: Path) -> bytes:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(place):
        if known := _read_secret(place):  # another process was quicker
            return known
        replace_file(place, made := secrets.token_bytes(_SECRET_BYTES), 0o600)
        return made


def _read_secret(place: Path) -> bytes:
    """The secret, or empty if there is none or it is incomplete."""
    try:
        found = read_file(place)
    except FileNotFoundError:
        return b""
    return found if len(found) == _SECRET_BYTES else b""
