"""Vectors as pgvector has them. Clew's own form is little-endian float32 without a header."""

from __future__ import annotations

from array import array
from struct import pack

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

HEADER = 4
"""Bytes before the numbers: how many there are, and two that are unused."""


class StoredVector:
    """A vector on its way to the server."""

    __slots__ = ("packed",)

    def __init__(self, packed: bytes) -> None:
        self.packed = packed


class VectorDumper(Dumper):
    """Writes the binary form of pgvector. The server infers the type from the column."""

    format = Format.BINARY
    oid = 0

    def dump(self, obj: StoredVector) -> Buffer:
        return pack(">HH", len(obj.packed) // 4, 0) + _turn(obj.packed)


def read_vector(sent: bytes | None) -> bytes | None:
    """The bytes of a vector in Clew's form, from the output of `vector_send`."""
    return None if sent is None else _turn(sent[HEADER:])


def _turn(packed: bytes) -> bytes:
    """Big-endian numbers from little-endian ones, or the other way round."""
    numbers = array("f", packed)
    numbers.byteswap()
    return numbers.tobytes()


psycopg.adapters.register_dumper(StoredVector, VectorDumper)
