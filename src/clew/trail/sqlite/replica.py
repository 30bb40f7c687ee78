"""A trail in a SQLite file as a replica: see `clew.trail.move.replica`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from clew.errors import ClewError, StorageError
from clew.sqlite_file import connect, make_private, translated
from clew.trail.model.rows import to_id
from clew.trail.move.replica import FOREIGN, IDENTITY, PROGRESS, Access, MoveProgress, decode_progress, encode_progress
from clew.trail.move.tables import META_KEYS, TABLES, MovedTable, OwnedRow, Row, select_sql
from clew.trail.sqlite.file import check_file, free_companions, migrate

DERIVED: dict[str, tuple[str, ...]] = {"terms": ()}
"""Tables and columns that are not moved, because they are derived from others. This backend derives them from the
others."""
PATIENCE_MILLISECONDS = 2_000

_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode

Convert = Callable[[Any], Any]


def _read_checksum(stored: bytes | str) -> bytes:
    return stored if isinstance(stored, bytes) else bytes.fromhex(stored)


def _read_id(stored: bytes | str) -> str:
    return stored if isinstance(stored, str) else to_id(stored)


READ: dict[tuple[str, str], Convert] = {
    ("audiences", "scopes"): _decode_texts,
    ("breadcrumbs", "checksum"): _read_checksum,
    ("versions", "checksum"): _read_checksum,
    ("events", "id"): _read_id,
    ("consumers", "scopes"): _decode_texts,
}
WRITE: dict[tuple[str, str], Convert] = {
    ("audiences", "scopes"): lambda scopes: msgspec.json.encode(scopes).decode(),
    ("events", "id"): lambda id: bytes.fromhex(id.replace("-", "")),
    ("consumers", "scopes"): lambda scopes: msgspec.json.encode(scopes).decode(),
}


class SqliteReplica:
    """See `clew.trail.move.replica.Replica`. If `access` does not allow other processes, the whole file is locked."""

    def __init__(self, path: Path, access: Access) -> None:
        self._path = path
        is_there = path.exists() and path.stat().st_size > 0
        if not is_there and access in ("locked", "snapshot"):
            raise ClewError(f"there is no trail at {path}", hint="Name the file of a trail, such as .clew/trail.db")
        with translated(path):
            if access == "look" and not is_there:
                self._connection = apsw.Connection(":memory:")
                migrate(self._connection)
                return
            self._open(access)

    def _open(self, access: Access) -> None:
        if access == "target":
            self._path.parent.mkdir(parents=True, exist_ok=True)
            make_private(self._path)
        free_companions(self._path)
        check_file(self._path)
        self._connection = connect(self._path)
        try:
            if access != "snapshot":
                self._lock()
            for setting in ("journal_mode=WAL", "foreign_keys=ON", "synchronous=NORMAL"):
                self._connection.execute(f"PRAGMA {setting}").fetchall()
            migrate(self._connection, keep=access in ("target", "snapshot"))  # a source stays as it is
            if access != "target":
                if self._connection.get_autocommit():
                    self._connection.execute("BEGIN")
                self.trail_id()  # fixes the snapshot
        except BaseException:
            self._connection.close()
            raise

    def _lock(self) -> None:
        """Lock the whole file. SQLite refuses this while another connection is open, and refuses other connections
        until this one is closed."""
        self._connection.set_busy_timeout(PATIENCE_MILLISECONDS)
        try:
            self._connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
            self._connection.execute("BEGIN EXCLUSIVE")
            self._connection.execute("COMMIT")
        except apsw.BusyError as error:
            raise StorageError(
                f"another process has {self._path} open",
                hint="End `clew up`, `clew mcp` and the workers that use it, then run this again",
            ) from error

    @property
    def place(self) -> str:
        return str(self._path)

    def trail_id(self) -> str:
        return str(self._value("SELECT value FROM meta WHERE key = 'trail'"))

    def identity(self) -> str:
        return str(self._value(IDENTITY))

    def head(self) -> int:
        return int(self._value("SELECT coalesce(max(seq), 0) FROM events"))

    def count(self, table: MovedTable) -> int:
        where = f" WHERE key IN ({', '.join(map(repr, META_KEYS))})" if table.name == "meta" else ""
        return int(self._value(f"SELECT count(*) FROM {table.name}{where}"))

    def read(self, table: MovedTable, after: Row) -> list[OwnedRow]:
        sql = select_sql(table, {}, "?", is_first=not after)
        converts = [READ.get((table.name, column)) for column in table.columns]
        with translated(self._path):
            rows: list[Any] = self._connection.execute(sql, after).fetchall()
        return [(owner or "", _convert(values, converts)) for owner, *values in rows]

    def progress(self) -> MoveProgress | None:
        return decode_progress(self._value("SELECT value FROM meta WHERE key = ?", (PROGRESS,)))

    def load(self, table: MovedTable, rows: Sequence[Row], progress: MoveProgress) -> None:
        converts = [WRITE.get((table.name, column)) for column in table.columns]
        columns, marks = ", ".join(table.columns), ", ".join("?" for _ in table.columns)
        verb = "INSERT OR REPLACE" if table.name == "meta" else "INSERT"
        with translated(self._path), self._connection:
            self._connection.executemany(
                f"{verb} INTO {table.name} ({columns}) VALUES ({marks})", [_convert(row, converts) for row in rows]
            )
            self._remember(PROGRESS, encode_progress(progress))

    def clear(self, progress: MoveProgress) -> None:
        with translated(self._path), self._connection:
            for name in (*reversed([table.name for table in TABLES if table.name != "meta"]), *DERIVED):
                self._connection.execute(f"DELETE FROM {name}")
            self._connection.execute("DELETE FROM meta WHERE key != 'trail'")
            self._remember(PROGRESS, encode_progress(progress))

    def is_foreign(self) -> bool:
        return self._value("SELECT 1 FROM meta WHERE key = ?", (FOREIGN,)) is not None

    def adopt(self) -> None:
        with translated(self._path), self._connection:
            self._connection.execute("DELETE FROM meta WHERE key = ?", (FOREIGN,))

    def finish(self, *, foreign: bool) -> None:
        with translated(self._path):
            self._connection.execute("PRAGMA synchronous=FULL").fetchall()
            with self._connection:
                self._connection.execute("DELETE FROM meta WHERE key = ?", (PROGRESS,))
                if foreign:
                    self._remember(FOREIGN, "1")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def key_file(self, trail_id: str) -> Path:
        return self._path.with_name(self._path.name + ".key")

    def close(self) -> None:
        with translated(self._path):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._connection.close()

    def _remember(self, key: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _value(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        with translated(self._path):
            return self._connection.execute(sql, values).get


def _convert(values: Sequence[Any], converts: Sequence[Convert | None]) -> Row:
    return tuple(value if convert is None else convert(value) for value, convert in zip(values, converts, strict=True))
