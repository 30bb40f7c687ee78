"""The trail: one durable, searchable, observable store of breadcrumbs, edges and events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clew.clock import Clock, SystemClock
from clew.errors import ConfigError

if TYPE_CHECKING:
    from clew.trail.store import Embedder, Trail

__all__ = ["open_trail"]


async def open_trail(
    url: str, clock: Clock | None = None, embedder: Embedder | None = None, *, queue_limit: int = 10_000
) -> Trail:
    """Open a trail by its address: `sqlite://PATH`, or `sqlite://:memory:` for one that leaves nothing behind.

    Without an embedder breadcrumbs get no vectors unless the caller brings them. Raises ConfigError for an unknown
    address, Corrupted for a damaged file, ReadOnly where nothing can be written.
    """
    match url.split("://", 1):
        case ["sqlite", path]:
            # the engines are loaded when a trail is opened, not when a type is imported
            from clew.trail.sqlite import SqliteTrail

            place = None if path == ":memory:" else Path(path)
            return SqliteTrail(place, clock or SystemClock(), embedder, queue_limit=queue_limit)
        case _:
            raise ConfigError(f"unknown trail address {url!r}", choices=("sqlite://PATH", "sqlite://:memory:"))
