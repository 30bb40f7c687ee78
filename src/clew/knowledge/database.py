"""The SQLite file that holds the index of code and the log of git."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from clew.sqlite_file import Sql


class Database(Protocol):
    """An open file. `era` changes when the file is created again."""

    @property
    def era(self) -> int: ...

    def writing(self) -> AbstractContextManager[Sql]:
        """One transaction: all of it happens, or nothing."""
        ...

    def reading(self) -> AbstractContextManager[Sql]: ...
