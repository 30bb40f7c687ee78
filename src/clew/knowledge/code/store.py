"""What is known of the code of one folder, in one SQLite file: facts by content, and files, symbols and edges by place.

One transaction writes at a time; every thread reads by a connection of its own. Other parts of knowledge that are
derived from the same files keep their tables in this file too, by `writing` and `reading`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import apsw

from clew.errors import Corrupted, StorageError
from clew.knowledge.code.schema import delete_database, open_database, open_reader
from clew.trail.sqlite.file import translated

_log = logging.getLogger(__name__)


class Sql(Protocol):
    """A connection as this package uses it: rows are untyped here, and typed where they are read."""

    def execute(self, sql: str, values: Any = ()) -> Any: ...

    def executemany(self, sql: str, values: Iterable[Any]) -> Any: ...


class CodeStore:
    """The file, open. `notice` says why an earlier one was deleted, once; empty otherwise."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turn = threading.RLock()
        self._local = threading.local()
        self._readers: list[apsw.Connection] = []
        self._era = 0
        with translated(path):
            self._writer, reason = open_database(path)
        self.notice = self._tell(reason)

    @property
    def is_open(self) -> bool:
        return self._era >= 0

    @contextlib.contextmanager
    def writing(self) -> Iterator[Sql]:
        """One transaction, alone among all threads and processes; all of it happens, or nothing. One within another is
        a part of it. Raises StorageError."""
        with self._turn, self._told():
            connection = self._opened(self._writer)
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
        """One moment of the file: what others write meanwhile is not seen. Raises StorageError."""
        with self._told():
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

    @property
    def era(self) -> int:
        """Another number after each rebuild."""
        return self._era

    def rebuild(self, era: int) -> None:
        """Delete the file and begin with an empty one, after damage was found in an era; what was built again since
        then stays."""
        with self._turn:
            if era != self._era or not self.is_open:
                return
            self._close_all()
            self._era += 1
            delete_database(self.path)
            with translated(self.path):
                self._writer, _ = open_database(self.path)
            self.notice = self._tell("it was damaged")

    def close(self) -> None:
        """Closing twice is harmless."""
        with self._turn:
            if self.is_open:
                self._close_all()
                self._era = -1

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the driver in our words; a table that is gone is damage."""
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
        """The connection of this thread; after a rebuild, a new one."""
        era, connection = getattr(self._local, "reader", (None, None))
        if connection is None or era != self._era:
            with self._turn:
                self._opened(self._writer)
                connection = open_reader(self.path)
                self._readers.append(connection)
                self._local.reader = (self._era, connection)
        return connection

    def _opened(self, connection: apsw.Connection) -> apsw.Connection:
        if not self.is_open:
            raise StorageError("the store of code is closed")
        return connection

    def _tell(self, reason: str) -> str:
        if not reason:
            return ""
        notice = f"{self.path} is built again: {reason}"
        _log.warning(notice)
        return notice


def read_meta(sql: Sql, key: str, default: Any = None) -> Any:
    found = sql.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return found[0] if found else default


def write_meta(sql: Sql, key: str, value: Any) -> None:
    sql.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value))
