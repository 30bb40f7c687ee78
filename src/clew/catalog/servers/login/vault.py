"""Storage for values that only code may read."""

from __future__ import annotations

from typing import Protocol

from clew.access import Principal
from clew.errors import NotFound
from clew.trail.store import Trail


class Vault(Protocol):
    """Secrets by name."""

    async def reveal(self, name: str) -> str:
        """Raises NotFound."""
        ...

    async def keep(self, name: str, value: str) -> None: ...

    async def drop(self, name: str) -> None:
        """Raises NotFound."""
        ...


class TrailVault:
    """The secrets of a trail, as one principal may use them."""

    def __init__(self, trail: Trail, by: Principal) -> None:
        self._trail = trail
        self._by = by

    async def reveal(self, name: str) -> str:
        return await self._trail.secrets.reveal(name, by=self._by)

    async def keep(self, name: str, value: str) -> None:
        await self._trail.secrets.put(name, value, by=self._by)

    async def drop(self, name: str) -> None:
        await self._trail.secrets.drop(name, by=self._by)


class MemoryVault:
    """A vault in memory. It reads missing values from the vault `below` and never writes to it."""

    def __init__(self, below: Vault | None = None) -> None:
        self._values: dict[str, str] = {}
        self._below = below

    def __repr__(self) -> str:
        return "MemoryVault(…)"

    async def reveal(self, name: str) -> str:
        if name in self._values:
            return self._values[name]
        if self._below is None:
            raise NotFound("secret", name)
        return await self._below.reveal(name)

    async def keep(self, name: str, value: str) -> None:
        self._values[name] = value

    async def drop(self, name: str) -> None:
        if self._values.pop(name, None) is None:
            raise NotFound("secret", name)
