"""The interface of a contender that finds files."""

from __future__ import annotations

from typing import Protocol

FOUND = 10
"""So many files are asked for."""


class Contender(Protocol):
    """Files are put and dropped, then `settle` is called before the next search."""

    def put(self, path: str, body: bytes) -> None: ...

    def drop(self, path: str) -> None: ...

    def settle(self) -> None:
        """Do what is done once for many changes."""
        ...

    def search(self, question: str) -> list[str]:
        """Up to ten paths, best first."""
        ...

    def close(self) -> None: ...
