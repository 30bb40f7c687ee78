"""The SQLite file that holds the index of code and the log of git."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Sql(Protocol):
    """A connection. Rows are untyped here, and typed where they are read."""

    def execute(self, sql: str, values: Any = ()) -> Any: ...

    def executemany(self, sql: str, values: Iterable[Any]) -> Any: ...


class Database(Protocol):
    """An open file. `era` changes when the file is created again."""

    @property
    def era(self) -> int: ...

    def writing(self) -> AbstractContextManager[Sql]:
        """One transaction: all of it happens, or nothing."""
        ...

    def reading(self) -> AbstractContextManager[Sql]: ...
