"""Counts and checksums of a table by owner. They do not depend on the order of the rows."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from clew.trail.move.tables import OwnedRow

BYTES = 16
_MODULUS = 1 << (8 * BYTES)
_encode = msgspec.msgpack.Encoder().encode


class TableDigest(msgspec.Struct):
    """The rows of one table: how many each owner has, and the sum of their checksums."""

    rows: dict[str, int] = {}
    sums: dict[str, int] = {}

    def add(self, rows: Iterable[OwnedRow]) -> None:
        for owner, row in rows:
            hashed = int.from_bytes(blake2b(_encode(row), digest_size=BYTES).digest(), "big")
            self.rows[owner] = self.rows.get(owner, 0) + 1
            self.sums[owner] = (self.sums.get(owner, 0) + hashed) % _MODULUS

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    @property
    def checksum(self) -> str:
        """The checksum over all owners."""
        return f"{sum(self.sums.values()) % _MODULUS:0{2 * BYTES}x}"

    def differing_owner(self, other: TableDigest) -> str | None:
        """The first owner whose rows are not the same in both, None if all rows are the same."""
        owners = sorted({*self.rows, *other.rows})
        return next((owner for owner in owners if self._of(owner) != other._of(owner)), None)

    def _of(self, owner: str) -> tuple[int, int]:
        return self.rows.get(owner, 0), self.sums.get(owner, 0)
