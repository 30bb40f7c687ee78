"""The PostgreSQL server: its address, its pool of connections, and whether it can hold a trail."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from clew.errors import ConfigError, ReadOnly, StorageError
from clew.lazy_pattern import lazy_pattern
from clew.trail.postgres.connection.failures import translate, translated

Connection = psycopg.Connection[TupleRow]

OLDEST = 160_000
"""PostgreSQL 16: the first with IS JSON."""
OLDEST_VECTOR = (0, 7)
"""The first pgvector with halfvec."""
CONNECT_SECONDS = 5
STATEMENT_SECONDS = 60
IDLE_SECONDS = 60
"""The server ends a transaction that was idle for this many seconds."""
CLIENT: dict[str, Any] = {"autocommit": True, "prepare_threshold": 1}
"""A statement is prepared when it runs for the second time on a connection."""
POOL_SIZE = 8
POOL_SECONDS = 30.0
"""How long a reader or a writer waits for a free connection."""

SESSION = {
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
    "lock_timeout": f"{STATEMENT_SECONDS // 2}s",
    "timezone": "UTC",
    "client_min_messages": "warning",
    "synchronous_commit": "on",
}


_MISREAD = lazy_pattern(r"[^:]*://[^/?]*(?:@[^/?]*@|/[^?]*@)")
"""An address with a sign of a password that is not escaped: an `@` that belongs to the host or the database."""


class Server:
    """A database on a server. `place` names it in messages, without the password."""

    def __init__(self, url: str, *, pool_size: int = POOL_SIZE) -> None:
        parts = _read_address(url)
        options = " ".join(f"-c {name}={value}" for name, value in SESSION.items())
        self._options: dict[str, Any] = {
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "clew",
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            **parts,
            "options": f"{options} {parts.get('options') or ''}".strip(),
        }
        host, port = parts.get("host") or "localhost", parts.get("port") or 5432
        self.place = f"postgresql://{host}:{port}/{parts.get('dbname') or ''}"
        self._pool_size = pool_size

    def connect(self) -> Connection:
        """Open a connection outside of the pool. Raises StorageError."""
        with translated(self.place):
            return psycopg.connect(**self._options, **CLIENT)

    def open_pool(self) -> ConnectionPool[Connection]:
        """A pool that opens connections when they are wanted, and closes those that are not."""
        return ConnectionPool(
            kwargs={**self._options, **CLIENT},
            min_size=1,
            max_size=self._pool_size,
            timeout=POOL_SECONDS,
            max_idle=300,
            max_waiting=1_000,
            reconnect_timeout=CONNECT_SECONDS,
            open=True,
            name="clew",
        )

    def check(self, connection: Connection) -> None:
        """Refuse a server that is too old, is read-only or lacks pgvector, and a role that bypasses row-level
        security."""
        if connection.info.server_version < OLDEST:
            raise StorageError(
                f"{self.place} is PostgreSQL {connection.info.parameter_status('server_version')}",
                hint=f"Clew needs PostgreSQL {OLDEST // 10_000} or newer",
            )
        with translated(self.place):
            row = connection.execute(
                "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',"
                " rolsuper OR rolbypassrls, rolname, getdatabaseencoding(),"
                " (SELECT coalesce(installed_version, default_version) FROM pg_available_extensions"
                " WHERE name = 'vector') FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
        assert row is not None
        read_only, is_above, role, encoding, vector = row
        if read_only:
            raise ReadOnly(f"{self.place} is read-only", hint="Connect to the primary server")
        if encoding != "UTF8":
            raise StorageError(f"the encoding of {self.place} is {encoding}", hint="Create the database with UTF8")
        if is_above:
            raise StorageError(
                f"the role {role} bypasses row-level security",
                hint="Connect as an ordinary role that owns the database: CREATE ROLE clew LOGIN NOBYPASSRLS",
            )
        if vector is None or _parse(vector) < OLDEST_VECTOR:
            raise StorageError(
                f"{self.place} has {'no pgvector' if vector is None else f'pgvector {vector}'}",
                hint=f"Install pgvector {'.'.join(map(str, OLDEST_VECTOR))} or newer on the server",
            )

        self._add_vector(connection)

    def _add_vector(self, connection: Connection) -> None:
        """Add pgvector to the database, if this role has the right to do so."""
        with translated(self.place):
            try:
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            except psycopg.errors.InsufficientPrivilege as error:
                raise StorageError(
                    f"{self.place} lacks the extension vector",
                    hint="Let an administrator of the server run CREATE EXTENSION vector in this database",
                ) from error

    def failure(self, error: Exception) -> StorageError:
        return translate(error, self.place)


def _parse(version: str) -> tuple[float, ...]:
    return tuple(int(part) if part.isdigit() else math.inf for part in version.split(".")[:2])


def _read_address(url: str) -> dict[str, Any]:
    """The parts of an address. Raises ConfigError, whose message does not name the address: if a sign in a password is
    not escaped, a part of the password would be taken for the host or the database, and messages name those."""
    with suppress(psycopg.ProgrammingError):  # its text quotes the address
        if not _MISREAD.match(url):
            return dict(conninfo_to_dict(url))
    refusal = ConfigError("the address of the trail cannot be read")
    refusal.hint = "Write % in a password or name as %25, @ as %40 and / as %2F"
    raise refusal
