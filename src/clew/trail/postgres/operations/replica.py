"""A trail on a PostgreSQL server as a replica: see `clew.trail.move.replica`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from clew.errors import StorageError
from clew.trail.model.definitions import DEFINITIONS
from clew.trail.move.replica import FOREIGN, IDENTITY, PROGRESS, Access, MoveProgress, decode_progress, encode_progress
from clew.trail.move.tables import META_KEYS, TABLES, MovedTable, OwnedRow, Row, select_sql
from clew.trail.postgres.connection.failures import translated
from clew.trail.postgres.connection.migration import is_current, migrate
from clew.trail.postgres.connection.server import Server
from clew.trail.postgres.consumers.lanes import pack_reason, unpack_reason
from clew.trail.postgres.secrets import key_file_of
from clew.trail.postgres.transactions import REMEMBER, WriteTransaction
from clew.trail.postgres.vectors import StoredVector, read_vector
from clew.trail.postgres.version_writes import find_keys, index_vectors

DERIVED: dict[str, tuple[str, ...]] = {
    "migrations": (),
    "log": (),
    "terms": (),
    "term_counts": (),
    "term_totals": (),
    "definition_marks": (),
    "breadcrumbs": ("request_id", "request_id_camel", "pattern"),
    "vectors": ("audience",),
    "vectors_next": ("audience",),
}
"""Tables and columns that are not moved, because they are derived from others. This backend derives them from the
others."""
KEPT = ("migrations", "log", "meta")
"""Tables that `clear` does not empty."""
MOVE_LOCK = 0x636C6577_6D6F7665  # "clewmove": the process that fills a database holds this advisory lock
PATIENCE_SECONDS = 2
OTHERS = (
    "SELECT count(*) FROM pg_stat_get_activity(NULL) WHERE datid ="
    " (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (application_name = 'clew' OR usesysid = current_user::regrole) AND pid != pg_backend_pid()"
)
"""Counts other connections of Clew, or of its role. It does not use the view `pg_stat_activity`, which does not change
within a transaction."""

_AUDIENCE = "(SELECT b.audience FROM breadcrumbs b WHERE b.rid = %(rid)s)"
_VECTOR = {"vector": "vector_send(t.vector)"}
SELECTED: dict[str, dict[str, str]] = {"vectors": _VECTOR, "vectors_next": _VECTOR}

Convert = Callable[[Any], Any]

READ: dict[tuple[str, str], Convert] = {
    ("audiences", "scopes"): tuple,
    ("consumers", "scopes"): tuple,
    ("vectors", "vector"): read_vector,
    ("vectors_next", "vector"): lambda sent: read_vector(sent) or b"",
    ("deliveries", "reason"): lambda reason: None if reason is None else unpack_reason(reason),
}
WRITE: dict[tuple[str, str], Convert] = {
    ("audiences", "scopes"): list,
    ("consumers", "scopes"): list,
    ("vectors", "vector"): StoredVector,
    ("vectors_next", "vector"): lambda packed: StoredVector(packed) if packed else None,
    ("deliveries", "reason"): lambda reason: None if reason is None else pack_reason(reason),
}
FINISH = (
    "SELECT setval(pg_get_serial_sequence('audiences', 'id'), max(id)) FROM audiences HAVING max(id) IS NOT NULL",
    "SELECT setval(pg_get_serial_sequence('consumers', 'cid'), max(cid)) FROM consumers HAVING max(cid) IS NOT NULL",
    "UPDATE log SET (head, at) = (SELECT coalesce(max(seq), 0), coalesce(max(at), 0) FROM events)",
    "INSERT INTO definition_marks SELECT a.owner_id, max(e.seq) FROM events e JOIN audiences a ON a.id = e.audience"
    f" WHERE e.schema_name IN ({', '.join(map(repr, sorted(DEFINITIONS)))}) GROUP BY 1",
)


class PostgresReplica:
    """See `clew.trail.move.replica.Replica`. It uses one connection that acts for upkeep, so that it reads the rows of
    all owners."""

    def __init__(self, url: str, access: Access) -> None:
        self._server = Server(url)
        self._stack = ExitStack()
        self._connection = self._server.connect()
        self._stack.callback(self._connection.close)
        try:
            with translated(self.place):
                self._open(access)
        except BaseException:
            self.close()
            raise

    def _open(self, access: Access) -> None:
        self._server.check(self._connection)
        is_undone = access == "look" or (access == "locked" and not is_current(self._connection, self.place))
        if is_undone:  # a source stays as it is
            self._stack.enter_context(self._connection.transaction(force_rollback=True))
        migrate(self._connection, self.place)
        for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
            self._connection.execute(f"SET {name} = 0".encode())
        self._connection.execute(f"SET lock_timeout = '{PATIENCE_SECONDS}s'".encode())
        self._connection.execute("SELECT set_config('clew.system', 'on', false)")
        if access != "snapshot":
            self._refuse_others()
        if access == "target" and not self._value("SELECT pg_try_advisory_lock(%s)", (MOVE_LOCK,)):
            raise StorageError(f"another move to {self.place} is under way", hint="Wait for it to end")
        if access == "snapshot":
            self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        elif access == "locked":
            names = ", ".join(table.name for table in TABLES)
            if not is_undone:
                self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            self._connection.execute(f"LOCK TABLE log, {names} IN SHARE MODE".encode())

    def _refuse_others(self) -> None:
        """Raise StorageError while other processes are connected. The server needs a moment to notice that one has
        died."""
        end = time.monotonic() + PATIENCE_SECONDS
        while self._value(OTHERS):
            if time.monotonic() > end:
                raise StorageError(
                    f"another process has {self.place} open",
                    hint="End `clew up`, `clew mcp` and the workers that use it, then run this again",
                )
            time.sleep(0.05)

    @property
    def place(self) -> str:
        return self._server.place

    def trail_id(self) -> str:
        return str(self._value("SELECT value FROM meta WHERE key = 'trail'"))

    def identity(self) -> str:
        return str(self._value(IDENTITY))

    def head(self) -> int:
        return int(self._value("SELECT head FROM log"))

    def count(self, table: MovedTable) -> int:
        where = f" WHERE key IN ({', '.join(map(repr, META_KEYS))})" if table.name == "meta" else ""
        return int(self._value(f"SELECT count(*) FROM {table.name}{where}"))

    def read(self, table: MovedTable, after: Row) -> list[OwnedRow]:
        sql = select_sql(table, SELECTED.get(table.name, {}), "%s", is_first=not after)
        converts = [READ.get((table.name, column)) for column in table.columns]
        with translated(self.place):
            rows = self._connection.execute(sql.encode(), after).fetchall()
        return [
            (
                owner or "",
                tuple(
                    value if convert is None else convert(value)
                    for value, convert in zip(values, converts, strict=True)
                ),
            )
            for owner, *values in rows
        ]

    def progress(self) -> MoveProgress | None:
        return decode_progress(self._value("SELECT value FROM meta WHERE key = %s", (PROGRESS,)))

    def load(self, table: MovedTable, rows: Sequence[Row], progress: MoveProgress) -> None:
        with translated(self.place), self._connection.transaction():
            self._connection.cursor().executemany(
                _insert_sql(table).encode(), [self._values(table, row) for row in rows]
            )
            self._remember(PROGRESS, encode_progress(progress))

    def _values(self, table: MovedTable, row: Row) -> dict[str, Any]:
        """The values of a row by column, with those that are derived from them."""
        for name, value in zip(table.columns, row, strict=True):
            if isinstance(value, str) and "\0" in value and (table.name, name) not in WRITE:
                raise StorageError(
                    f"{table.name}.{name} of {table.key_of(row)} holds a NUL character, which PostgreSQL cannot store",
                    hint="Remove or rename that record on the old trail, then run this again",
                )
        converts = (WRITE.get((table.name, name)) for name in table.columns)
        values = {
            name: value if convert is None else convert(value)
            for name, value, convert in zip(table.columns, row, converts, strict=True)
        }
        if table.name == "breadcrumbs":
            keys: tuple[str | None, ...] = (None, None, None)
            with suppress(msgspec.DecodeError):  # a damaged record is moved as it is: `clew doctor` reports it
                keys = find_keys(values["context"])
            values |= dict(zip(DERIVED["breadcrumbs"], keys, strict=True))
        return values

    def clear(self, progress: MoveProgress) -> None:
        names = [name for name in (*(table.name for table in TABLES), *DERIVED) if name not in KEPT]
        with translated(self.place), self._connection.transaction():
            self._connection.execute("DROP INDEX IF EXISTS vectors_near")
            self._connection.execute(f"TRUNCATE {', '.join(dict.fromkeys(names))}".encode())
            self._connection.execute("DELETE FROM meta WHERE key != 'trail'")
            self._connection.execute("UPDATE log SET head = 0, at = 0")
            self._remember(PROGRESS, encode_progress(progress))

    def is_foreign(self) -> bool:
        return self._value("SELECT 1 FROM meta WHERE key = %s", (FOREIGN,)) is not None

    def adopt(self) -> None:
        with translated(self.place), self._connection.transaction():
            self._connection.execute("DELETE FROM meta WHERE key = %s", (FOREIGN,))

    def finish(self, *, foreign: bool) -> None:
        with translated(self.place), self._connection.transaction():
            for statement in FINISH:
                self._connection.execute(statement.encode())
            dimension = self._value("SELECT vector_dims(vector) FROM vectors LIMIT 1")
            if dimension is not None:
                writing = WriteTransaction(self._connection, None, now=0, wall=0, log=None, memo={}, careful=False)
                index_vectors(writing, dimension)  # after the rows: the graph is then built at once
            self._connection.execute("DELETE FROM meta WHERE key = %s", (PROGRESS,))
            if foreign:
                self._remember(FOREIGN, "1")
        with translated(self.place):
            self._connection.execute("ANALYZE")

    def key_file(self, trail_id: str) -> Path:
        return key_file_of(trail_id)

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._stack.close()

    def _remember(self, key: str, value: str) -> None:
        self._connection.execute(REMEMBER, (key, value))

    def _value(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        with translated(self.place):
            row = self._connection.execute(sql.encode(), values).fetchone()
        return None if row is None else row[0]


def _insert_sql(table: MovedTable) -> str:
    columns = (*table.columns, *DERIVED.get(table.name, ()))
    values = {name: f"%({name})s" for name in columns}
    if "vector" in values:
        values |= {"vector": "%(vector)b::vector", "audience": _AUDIENCE}
    suffix = " ON CONFLICT (key) DO UPDATE SET value = excluded.value" if table.name == "meta" else ""
    return (
        f"INSERT INTO {table.name} ({', '.join(columns)}) OVERRIDING SYSTEM VALUE VALUES ({', '.join(values.values())})"
        f"{suffix}"
    )
