"""A trail as a set of tables that can be read and filled in batches. Every backend has a replica for moves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from clew.errors import StorageError

if TYPE_CHECKING:  # every command that opens a trail loads this module for the progress alone
    from clew.trail.move.tables import MovedTable, OwnedRow, Row

Access = Literal["locked", "snapshot", "target", "look"]
"""The ways to open a replica. `locked`: no other process may have it open, and none can write until it is closed.
`snapshot`: as of this moment, while others go on. `target`: to be filled, alone. `look`: as a target, unchanged."""

IDENTITY = "SELECT value FROM meta WHERE key IN ('identity', 'trail') ORDER BY key LIMIT 1"
FOREIGN = "foreign"
"""The key of `meta` that marks a trail which its mover had not made: see `Upkeep.is_foreign`."""
PROGRESS = "move"
"""The key of `meta` that holds the progress of a move which is not finished."""


class MoveProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a move: the trail and its head, the tables that are complete, and the key of the last copied row
    of the next table."""

    trail_id: str
    head: int
    place: str
    done: tuple[str, ...] = ()
    after: tuple[str | int, ...] = ()
    rows: int = 0


class Replica(Protocol):
    """A trail that is moved, or the place that it is moved to. Every call blocks; one thread at a time makes them."""

    @property
    def place(self) -> str:
        """Its address for messages, without a password."""
        ...

    def trail_id(self) -> str:
        """The id that was made with the trail."""
        ...

    def identity(self) -> str:
        """The id that consent to the trail is given for: see `Upkeep.identity`."""
        ...

    def head(self) -> int:
        """The number of the newest event."""
        ...

    def count(self, table: MovedTable) -> int: ...

    def read(self, table: MovedTable, after: Row) -> list[OwnedRow]:
        """The next rows in the order of the key, from the beginning if `after` is empty. Empty at the end."""
        ...

    def progress(self) -> MoveProgress | None:
        """The progress of a move to this place that is not finished."""
        ...

    def load(self, table: MovedTable, rows: Sequence[Row], progress: MoveProgress) -> None:
        """Add rows and note the progress, in one transaction."""
        ...

    def clear(self, progress: MoveProgress) -> None:
        """Remove all rows of the replica and note the beginning of a move, in one transaction."""
        ...

    def is_foreign(self) -> bool:
        """See `Upkeep.is_foreign`."""
        ...

    def adopt(self) -> None:
        """Remove the mark of a foreign trail, because its user made it."""
        ...

    def finish(self, *, foreign: bool) -> None:
        """Make all that is derived from the tables, forget the progress, and mark a foreign trail as such, in one
        transaction. Durable when it returns."""
        ...

    def key_file(self, trail_id: str) -> Path:
        """The file with the key of the secrets of a trail that is kept here."""
        ...

    def close(self) -> None: ...


def decode_progress(stored: str | None) -> MoveProgress | None:
    return None if stored is None else msgspec.json.decode(stored, type=MoveProgress)


def encode_progress(progress: MoveProgress) -> str:
    return msgspec.json.encode(progress).decode()


def refuse_unfinished(progress: MoveProgress | None, place: str) -> None:
    """Raise StorageError if a move to this place is not finished: a part of a trail must not be used."""
    if progress is not None:
        raise StorageError(
            f"the move to {place} is not finished", hint=f"Finish it: clew trail move {progress.place} {place}"
        )
