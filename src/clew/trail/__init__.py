"""The trail: one durable, searchable, observable store of breadcrumbs, edges and events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clew.clock import Clock, SystemClock
from clew.errors import ConfigError
from clew.secrecy import mask_secrets

if TYPE_CHECKING:
    from clew.trail.move.replica import Access, Replica
    from clew.trail.store import Embedder, Trail

__all__ = ["open_replica", "open_trail"]

SEARCH_MEMORY = 3_000_000_000
"""Bytes of records that a process may hold in memory to search a trail on a server."""


async def open_trail(
    url: str,
    clock: Clock | None = None,
    embedder: Embedder | None = None,
    *,
    queue_limit: int = 10_000,
    search_memory: int = SEARCH_MEMORY,
) -> Trail:
    """Open a trail by its address: `sqlite://PATH`, `sqlite://:memory:` for one that leaves nothing behind, or
    `postgresql://ROLE@HOST/DATABASE`, which needs the extra `postgres`.

    A trail on a server is searched by queries if its records take more than `search_memory` bytes of this process.
    Without an embedder breadcrumbs get no vectors unless the caller brings them. Raises ConfigError for an unknown
    address, Corrupted for a damaged file, ReadOnly if the trail cannot be written, and StorageError if the server
    cannot be reached or used.
    """
    match url.split("://", 1):
        case ["sqlite", path]:
            # the engines are loaded when a trail is opened, not when a type is imported
            from clew.trail.sqlite import SqliteTrail

            place = None if path == ":memory:" else Path(path)
            return SqliteTrail(place, clock or SystemClock(), embedder, queue_limit=queue_limit)
        case ["postgresql" | "postgres", _]:
            return await asyncio.to_thread(
                _open_postgres, url, clock or SystemClock(), embedder, queue_limit, search_memory
            )
        case _:
            raise _unknown(url)


def open_replica(url: str, access: Access) -> Replica:
    """Open a trail as the source or target of a move. It accepts the addresses of `open_trail`, except a trail in
    memory. Blocks until the trail is open.

    Raises as `open_trail`, ClewError if the source does not exist, and StorageError if another process has the trail
    open and `access` does not allow that.
    """
    match url.split("://", 1):
        case ["sqlite", path] if path != ":memory:":
            from clew.trail.sqlite.replica import SqliteReplica

            return SqliteReplica(Path(path), access)
        case ["postgresql" | "postgres", _]:
            with _needing_psycopg():
                from clew.trail.postgres.operations.replica import PostgresReplica
            return PostgresReplica(url, access)
        case _:
            raise _unknown(url)


def _open_postgres(url: str, clock: Clock, embedder: Embedder | None, queue_limit: int, search_memory: int) -> Trail:
    with _needing_psycopg():
        from clew.trail.postgres import PostgresTrail
    return PostgresTrail(url, clock, embedder, queue_limit=queue_limit, search_memory=search_memory)


@contextmanager
def _needing_psycopg() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("psycopg", "psycopg_pool"):
            raise
        raise ConfigError("a trail on PostgreSQL needs psycopg: pip install 'clew[postgres]'") from error


def _unknown(url: str) -> ConfigError:
    choices = ("sqlite://PATH", "sqlite://:memory:", "postgresql://ROLE@HOST/DATABASE")
    kind, colon, _ = url.partition("://")
    # the rest may hold a password
    shown = f"{kind}://…" if colon else repr(mask_secrets(url))
    return ConfigError(f"unknown trail address {shown}", choices=choices)
