"""Transactions on a connection in pipeline mode, as a unit of work sees them.

A statement is sent at once, and waited for only when its result is asked for. `send` is for statements without a
result. The next statement that is waited for raises their errors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from psycopg import ProgrammingError
from psycopg.rows import TupleRow

from clew.access import Principal
from clew.trail.postgres.connection.server import Connection
from clew.trail.work.recent_events import Envelope

Values = Sequence[Any] | dict[str, Any]
CALLER = "set_config('clew.owner', %s, true), set_config('clew.scopes', %s, true), set_config('clew.system', %s, true)"
"""Names the caller of a transaction to row-level security. Its values are those of `caller_values`."""
NAME_CALLER = f"SELECT {CALLER}".encode()
NAME_CALLER_UNFLUSHED = (
    f"SELECT {CALLER}, set_config('synchronous_commit', 'off', true),"
    " set_config('plan_cache_mode', 'force_generic_plan', true)"
).encode()
"""Names the caller of a transaction whose commit does not wait for a flush, such as a claim. It uses generic plans,
because planning a claim takes longer than running it."""
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
REMEMBER = "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class ReadTransaction:
    """Statements within a transaction that is under way."""

    __slots__ = ("_connection", "_unread")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._unread = False

    def rows(self, sql: str, values: Values = ()) -> list[TupleRow]:
        found = self._connection.execute(sql.encode(), values).fetchall()
        self._unread = False
        return found

    def packed_rows(self, sql: str, values: Values = ()) -> list[TupleRow]:
        """As `rows`, in binary form: for much data."""
        found = self._connection.execute(sql.encode(), values, binary=True).fetchall()
        self._unread = False
        return found

    def row(self, sql: str, values: Values = ()) -> TupleRow | None:
        found = self._connection.execute(sql.encode(), values).fetchone()
        self._unread = False
        return found

    def ask(self, sql: str, values: Values = ()) -> Callable[[], TupleRow | None]:
        """Send a query without waiting for it. The returned function waits for the first row. It returns at once if a
        later query has already been waited for."""
        self._unread = True
        return self._connection.execute(sql.encode(), values).fetchone

    def value(self, sql: str, values: Values = ()) -> Any:
        """The first column of the first row, None if there is no row."""
        found = self.row(sql, values)
        return None if found is None else found[0]

    def act_for(self, by: Principal | None, *, flush: bool = True) -> None:
        """Set the caller of the following statements for row-level security. None means upkeep, which sees everything.
        Without `flush` the commit does not wait for the disk."""
        self._connection.execute(NAME_CALLER if flush else NAME_CALLER_UNFLUSHED, caller_values(by))
        self._unread = True


class WriteTransaction(ReadTransaction):
    """The view of a unit of work inside its transaction."""

    __slots__ = ("by", "careful", "changed", "is_dirty", "log", "memo", "now", "wall")

    def __init__(
        self,
        connection: Connection,
        by: Principal | None,
        *,
        now: int,
        wall: int,
        log: LogEnd | None,
        memo: dict[Any, Any],
        careful: bool,
    ) -> None:
        super().__init__(connection)
        self.by = by
        self.now = now
        self.wall = wall
        self.log = log
        """The end of the log if the unit of work may append to it, else None."""
        self.memo = memo
        """Lookups that cannot change before the end of this transaction."""
        self.careful = careful
        self.changed: list[int] = []
        self.is_dirty = False

    def send(self, sql: str, values: Values = ()) -> None:
        """Change something, without waiting for it."""
        self.is_dirty = self._unread = True
        self._connection.execute(sql.encode(), values)

    def send_many(self, sql: str, rows: Sequence[Values]) -> None:
        """As `send`, once for each of the rows."""
        if len(rows) == 1:
            self.send(sql, rows[0])
        elif rows:
            self.is_dirty = self._unread = True
            self._connection.cursor().executemany(sql.encode(), rows)

    def run(self, sql: str, values: Values = ()) -> int:
        """Change something, and return how many rows it changed."""
        self.is_dirty = True
        cursor = self._connection.execute(sql.encode(), values)
        try:
            cursor.fetchone()
        except ProgrammingError as error:
            if error.sqlstate is not None:
                raise
            # it brings no rows
        self._unread = False
        return cursor.rowcount

    def change(self, sql: str, values: Values = ()) -> Any:
        """Change something, and return the first column of the row that it returns."""
        self.is_dirty = True
        return self.value(sql, values)

    def begin_again(self) -> None:
        """Commit the writes so far, without waiting for the commit, and go on in a new transaction. Do not use it for
        writes that must be durable or atomic."""
        assert self.log is None
        self._connection.execute("COMMIT")
        self._connection.execute(BEGIN)
        self.act_for(self.by, flush=False)
        self.memo.clear()

    def remember(self, key: str, value: str) -> None:
        """Write a value of the table `meta`, replacing the old one."""
        self.send(REMEMBER, (key, value))

    def settle(self) -> None:
        """Wait for the statements that were sent, and raise their error here: the unit of work can interpret it.
        Only careful mode waits. Without it, an error undoes the transaction, which is then run again in careful
        mode."""
        if self.careful and self._unread:
            self.rows("SELECT 1")

    @contextlib.contextmanager
    def acting_for(self, by: Principal | None) -> Iterator[None]:
        """Within the block, row-level security uses another caller."""
        self.act_for(by)
        yield
        self.act_for(self.by)


class Ending(Protocol):
    """The last statements of a transaction, for several units of work."""

    def send(self, writing: WriteTransaction) -> None:
        """Send the statements without waiting. If one fails, the transaction is undone and run again in careful
        mode."""
        ...


class LogEnd:
    """The end of the log in a transaction that holds its lock: `head` is the newest event, `after` the newest one
    before the transaction, and `events` are those in between. `id` is the record of the newest event, if the
    transaction wrote it."""

    __slots__ = ("after", "at", "endings", "events", "head", "id")

    def __init__(self, head: int, at: int) -> None:
        self.after = self.head = head
        self.at = at
        self.id = ""
        self.events: list[Envelope] = []
        self.endings: dict[object, Ending] = {}
        """Final statements that several units of work share. Each runs once, before the commit."""

    def move_back(self, head: int, at: int, id: str) -> None:
        """Forget the events of a unit of work that was undone."""
        self.head, self.at, self.id = head, at, id
        self.events = [event for event in self.events if event.seq <= head]


def caller_values(by: Principal | None) -> tuple[str, str, str]:
    return ("", "{}", "on") if by is None else (by.owner_id, pack_texts(by.scopes), "off")


def pack_texts(texts: Iterator[str] | Sequence[str] | frozenset[str]) -> str:
    """Texts as PostgreSQL writes an array."""
    return "{" + ",".join('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in sorted(texts)) + "}"
