"""Schemas of the tables of a database: SQLite, PostgreSQL or Redshift. Rows of tables are never read."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from clew.catalog.formats.types import TABLE_SCHEMA
from clew.catalog.resource import DocumentListing, RawContent, RawDocument, Skipped
from clew.catalog.sources.dialects import SERVER_QUERIES, SQLITE_COLUMNS, SQLITE_TABLES, ColumnRow, as_columns
from clew.catalog.sources.ids import digest_of, source_id
from clew.errors import ConfigError, NotFound, SourceError
from clew.trail.work.claims import printable

DIALECTS = ("sqlite", *SERVER_QUERIES)
PORTS = {"postgresql": 5432, "postgres": 5432, "redshift": 5439}

_DRIVER = re.compile(r"^([a-z]+)\+[a-z0-9_]+://")


class WarehouseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A database by its URL, such as `postgresql://user@host/name`; `password` names a secret. `table_pattern` is a
    regular expression that a table's name must match somewhere."""

    url: str
    password: str = ""
    table_pattern: str = ""
    timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        dialect_of(self.url)
        try:
            re.compile(self.table_pattern)
        except re.error as error:
            raise ConfigError(f"warehouse: table_pattern: {error}") from None


class WarehouseSource:
    """A table's id is `schema.table`. Its version changes with its columns and its comments. A relative path in an
    SQLite URL starts at `base`. Listing queries the database once for all tables. Fetching returns the results of the
    last listing.
    """

    name = "warehouse"
    is_local = False

    def __init__(self, settings: WarehouseSettings, password: str = "", base: Path | None = None) -> None:
        self._settings = settings
        self._base = base or Path()
        self._password = password
        self._pattern = re.compile(settings.table_pattern)
        self._tables: dict[str, dict[str, Any]] | None = None

    @property
    def place(self) -> Path | None:
        """The file of an SQLite database, which need not be there; None for a server."""
        if dialect_of(self._settings.url) != "sqlite":
            return None
        return Path(os.path.abspath(self._base / os.path.expanduser(sqlite_path(self._settings.url))))

    @property
    def id(self) -> str:
        head = f"warehouse:{shown_url(self._settings.url)}"
        return source_id(head, {"table_pattern": self._settings.table_pattern})

    async def list_documents(self) -> DocumentListing:
        columns, skipped = await asyncio.to_thread(self._read)
        self._tables = {id: table for id, table in _tables(columns) if self._pattern.search(table["table"])}
        documents = [_document(id, self._tables[id]) for id in sorted(self._tables)]
        return DocumentListing(documents=documents, skipped=skipped)

    async def fetch_content(self, id: str) -> RawContent:
        if self._tables is None:
            await self.list_documents()
        table = (self._tables or {}).get(id)
        if table is None:
            raise NotFound("document", id[:200])
        return RawContent(id=id, name=table["table"], content_type=TABLE_SCHEMA, body=msgspec.json.encode(table))

    async def close(self) -> None:
        self._tables = None

    def _read(self) -> tuple[list[ColumnRow], list[Skipped]]:
        place = self.place
        return self._read_sqlite(place) if place is not None else (self._read_server(), [])

    def _read_sqlite(self, path: Path) -> tuple[list[ColumnRow], list[Skipped]]:
        """All columns, and the tables that cannot be opened."""
        if not os.path.isfile(path):
            hint = "sqlite:///a.db counts from the folder that holds .clew, sqlite:////a.db is absolute"
            raise SourceError(self.id, f"there is no such file: {path}", hint=hint)
        columns: list[ColumnRow] = []
        skipped: list[Skipped] = []
        try:
            with closing(_open_sqlite(path, self._settings.timeout_seconds)) as database:
                for (table,) in database.execute(SQLITE_TABLES).fetchall():
                    try:
                        columns += as_columns(database.execute(SQLITE_COLUMNS, (table,)).fetchall())
                    except sqlite3.OperationalError as error:
                        skipped.append(Skipped(document=f"main.{table}", reason=f"cannot be opened ({error})"))
        except sqlite3.Error as error:
            raise SourceError(self.id, f"cannot be read ({printable(str(error), 200)})") from None
        return columns, skipped

    def _read_server(self) -> list[ColumnRow]:
        psycopg = _import_psycopg(self.id)
        try:
            with psycopg.connect(**self._connection()) as connection:
                connection.read_only = True
                rows = connection.execute(SERVER_QUERIES[dialect_of(self._settings.url)]).fetchall()
        except psycopg.Error as error:
            reason = f"cannot be read ({printable(self._scrub(str(error)), 300)})"
            raise SourceError(self.id, reason, hint="Check the url, the password, and the rights of the user") from None
        return list(as_columns(rows))

    def _connection(self) -> dict[str, Any]:
        """Arguments of the connection. They name the encoding, since Redshift uses a name that Python does not know."""
        parts = urlsplit(self._settings.url)
        return {
            "host": unquote(parts.hostname or "localhost"),
            "port": parts.port or PORTS[dialect_of(self._settings.url)],
            "user": unquote(parts.username or "") or None,
            "password": self._password or unquote(parts.password or "") or None,
            "dbname": unquote(parts.path.lstrip("/")) or None,
            "connect_timeout": max(2, round(self._settings.timeout_seconds)),
            "client_encoding": "utf8",
            "prepare_threshold": None,
        }

    def _scrub(self, text: str) -> str:
        """The text of a driver's error without the password, either plain or URL-encoded."""
        given = urlsplit(self._settings.url).password or ""
        for secret in {self._password, given, unquote(given)} - {""}:
            text = text.replace(secret, "***")
        return text


RedshiftSource = WarehouseSource
"""This source under the name that it has if the warehouse is Redshift."""


def dialect_of(url: str) -> str:
    """The kind of database that a URL names, without a driver. Raises ConfigError, without any part of the URL."""
    dialect, mark, _ = _DRIVER.sub(r"\1://", url).partition("://")
    if not mark or dialect not in DIALECTS:
        raise ConfigError(
            "warehouse: url: not a database that can be read", choices=[f"{name}://" for name in DIALECTS]
        )
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ConfigError("warehouse: url: its host or port is malformed") from None
    return dialect


def sqlite_path(url: str) -> str:
    """The file of a `sqlite:///` URL; a fourth slash makes it absolute."""
    return unquote(url.partition("://")[2].partition("?")[0].removeprefix("/"))


def shown_url(url: str) -> str:
    """A URL without user, password and options."""
    dialect = dialect_of(url)
    if dialect == "sqlite":
        return f"sqlite:///{sqlite_path(url)}"
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{dialect}://{parts.hostname or 'localhost'}{port}{parts.path}"


def _open_sqlite(path: Path, timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=timeout)


def _import_psycopg(source: str) -> Any:
    """The driver, which is optional."""
    try:
        return importlib.import_module("psycopg")
    except ImportError:
        hint = "Install it: pip install 'psycopg[binary]'"
        raise SourceError(source, "reading this database needs the driver psycopg", hint=hint) from None


def _tables(columns: Iterable[ColumnRow]) -> Iterable[tuple[str, dict[str, Any]]]:
    """The id and the body of each table, from columns that are grouped by table."""
    for (schema, name), group in groupby(columns, key=lambda column: (column.schema, column.table)):
        rows = list(group)
        yield (
            _table_id(schema, name),
            {
                "table": name,
                "schema": schema,
                "description": rows[0].table_description or "",
                "columns": [_column(row) for row in rows if row.name is not None],
            },
        )


def _table_id(schema: str, name: str) -> str:
    """Both names with a dot between them, and no other dot."""
    return ".".join(part.replace("%", "%25").replace(".", "%2E").replace("/", "%2F") for part in (schema, name))


def _column(row: ColumnRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "type": row.type or "",
        "nullable": row.nullable is not False,
        "description": row.description or "",
    }


def _document(id: str, table: dict[str, Any]) -> RawDocument:
    return RawDocument(id=id, name=table["table"], content_type=TABLE_SCHEMA, version=digest_of(table))
