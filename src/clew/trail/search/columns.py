"""Search columns in memory, one slot for each record.

Everything here is derived. A slot keeps its number while the process lives; that of a deleted record stays empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.trail.search.ranking import Floats, Ints, Words, ranges, rarity_of
from clew.trail.search.text import HEADER
from clew.trail.search.unique import unique
from clew.trail.search.vectors import cosines, nearest, sign_codes

FOREVER = np.iinfo(np.int64).max
NONE = -1
SPARSE_FROM = 4_096
"""With fewer slots, the columns never count as sparse."""
RARITY_BITS = 22
RARITY_BUCKETS = 1 << RARITY_BITS
RECORD_BYTES, WORD_BYTES = 80, 6
"""The memory of a record beside its terms and its vector, and that of each word of its terms, with the postings."""
COLUMNS = (
    ("rid", np.int64),
    ("audience", np.int32),
    ("expires", np.int64),
    ("at", np.int64),
    ("name", np.uint32),
    ("vector_row", np.int32),
)

Bools = npt.NDArray[np.bool_]
IndexRow = tuple[int, int, int | None, bytes, bytes | None]
"""A record as the columns take it: row id, audience, expiry, packed terms, vector."""


class Columns:
    """Row id, audience, expiry and packed terms of every record, by slot; vectors of the records that have one."""

    def __init__(self) -> None:
        self.size = 0
        self.spent = 0
        """The number of calls of `expire`: a cache of live records is outdated when it changes."""
        self.rid: Ints = np.zeros(0, np.int64)
        self.audience: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.expires: Ints = np.zeros(0, np.int64)
        self.at: Ints = np.zeros(0, np.int64)
        self.name: Words = np.zeros(0, np.uint32)
        self.vector_row: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        """The row of each slot in `vectors`. Row 0 marks a slot without a vector."""
        self.heap: Words = np.zeros(HEADER, np.uint32)
        self.heap_size = HEADER
        self.vectors: Floats = np.zeros((0, 0), np.float32)
        self.signs: npt.NDArray[np.uint64] = np.zeros((0, 0), np.uint64)
        self.vector_count = 1
        self._vector_room = 0
        self._slot_of_row: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._slot_of: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._totals: dict[int, tuple[int, float]] = {}

    @cached_property
    def _document_frequency(self) -> npt.NDArray[np.int32]:
        return np.zeros(RARITY_BUCKETS, np.int32)  # 16 MB, for columns that hold something

    # -- filling ------------------------------------------------------------------------------------------

    def reserve(self, records: int, words: int) -> None:
        """Reserve memory for this many records and this many 32-bit words of terms, to avoid repeated resizing."""
        self._reserve(records + records // 16 + 1_024)
        self._vector_room = records + records // 16
        self._reserve_heap(self.heap_size + words + words // 16)

    def put(self, rows: Sequence[IndexRow]) -> Ints:
        """Add or replace records. Returns their slots."""
        if not rows:
            return np.zeros(0, np.int64)
        rids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        self.drop(rids)
        first, last = self.size, self.size + len(rows)
        self._reserve(last)
        slots = np.arange(first, last)
        self.rid[first:last] = rids
        self.audience[first:last] = [row[1] for row in rows]
        self.expires[first:last] = [FOREVER if row[2] is None else row[2] for row in rows]
        self._put_terms(slots, [row[3] for row in rows])
        self._put_vectors(slots, [row[4] for row in rows])
        self._place(rids, slots)
        self.size = last
        self._count(slots, 1)
        return slots

    def drop(self, rids: Any) -> None:
        """Empty the slots of those records that have one."""
        slots = self.slots(rids)
        if not len(slots):
            return
        self._slot_of[self.rid[slots]] = NONE
        self._count(slots, -1)
        for column, nothing in ((self.rid, -1), (self.audience, -1), (self.expires, 0), (self.name, 0), (self.at, 0)):
            column[slots] = nothing
        self.vector_row[slots] = 0

    def expire(self, rids: Any) -> None:
        """Note that records have used up their reads. They still exist, but can no longer be read."""
        self.expires[self.slots(rids)] = 0
        self.spent += 1

    def _reserve(self, needed: int) -> None:
        room = len(self.rid)
        if needed > room:
            room = max(needed, int(room * 1.25), 1_024)
            for name, kind in COLUMNS:
                setattr(self, name, _grown(getattr(self, name), room, kind))

    def _reserve_vectors(self, needed: int) -> None:
        if needed <= len(self.vectors):
            return
        room, used = max(needed, int(len(self.vectors) * 1.25), 256), self.vector_count
        vectors = np.zeros((room, self.vectors.shape[1]), np.float32)
        vectors[:used] = self.vectors[:used]
        signs = np.zeros((len(self.signs), room), np.uint64)
        signs[:, :used] = self.signs[:, :used]
        self.vectors, self.signs = vectors, signs
        self._slot_of_row = _grown(self._slot_of_row, room, np.int32)

    def _reserve_heap(self, needed: int) -> None:
        if needed > len(self.heap):
            self.heap = _grown(self.heap, max(needed, int(len(self.heap) * 1.25), 65_536), np.uint32)

    def _place(self, rids: Ints, slots: Ints) -> None:
        newest = int(rids.max())
        if newest >= len(self._slot_of):
            grown = np.full(max(newest + 1, int(len(self._slot_of) * 1.25), 1_024), NONE, np.int32)
            grown[: len(self._slot_of)] = self._slot_of
            self._slot_of = grown
        self._slot_of[rids] = slots

    def _put_terms(self, slots: Ints, blobs: Sequence[bytes]) -> None:
        sizes = np.fromiter((len(blob) // 4 for blob in blobs), np.int64, len(blobs))
        start, total = self.heap_size, int(sizes.sum())
        self._reserve_heap(start + total)
        self.heap[start : start + total] = np.frombuffer(b"".join(blobs), "<u4")
        self.heap_size = start + total
        self.at[slots] = start + np.cumsum(sizes) - sizes
        self.name[slots] = self.heap[self.at[slots] + 4]

    def _put_vectors(self, slots: Ints, blobs: Sequence[bytes | None]) -> None:
        size = len(next((blob for blob in blobs if blob), b"")) // 4
        if not size:
            return
        if not self.vectors.shape[1]:
            self.vectors = np.zeros((1, size), np.float32)
            self.signs = np.zeros((-(-size // 64), 1), np.uint64)
            self._reserve_vectors(self._vector_room)
        width = self.vectors.shape[1]
        fits = [blob is not None and len(blob) == 4 * width for blob in blobs]
        placed = slots[np.array(fits, np.bool_)]
        packed = b"".join(blob for blob, is_fit in zip(blobs, fits, strict=True) if blob is not None and is_fit)
        vectors = np.frombuffer(packed, "<f4").reshape(-1, width)
        first, last = self.vector_count, self.vector_count + len(placed)
        self._reserve_vectors(last)
        self.vectors[first:last] = vectors
        self.signs[:, first:last] = sign_codes(vectors).T
        self._slot_of_row[first:last] = placed
        self.vector_row[placed] = np.arange(first, last)
        self.vector_count = last

    def _count(self, slots: Ints, sign: int) -> None:
        """Update the document frequencies and the totals of each audience."""
        start = self.at[slots]
        lengths = self.heap[start + 3] / 10.0
        for audience in unique(self.audience[slots]):
            mine = self.audience[slots] == audience
            number, words = self._totals.get(int(audience), (0, 0.0))
            self._totals[int(audience)] = (
                number + sign * int(np.count_nonzero(mine)),
                words + sign * float(lengths[mine].sum()),
            )
        count = self.heap[start].astype(np.int64)
        position, _ = ranges(start + HEADER, count)
        buckets = bucket_of(self.heap[position], np.repeat(self.audience[slots], count))
        np.add.at(self._document_frequency, buckets.astype(np.intp), np.int32(sign))

    # -- asking -------------------------------------------------------------------------------------------

    def find(self, rid: int) -> int | None:
        """The slot of a record, if it has one."""
        slot = int(self._slot_of[rid]) if 0 <= rid < len(self._slot_of) else NONE
        return None if slot == NONE else slot

    def slots(self, rids: Any) -> Ints:
        """The slots of those records that have one, in the order given."""
        wanted = np.asarray(rids, np.int64)
        found = self._slot_of[wanted[wanted < len(self._slot_of)]].astype(np.int64)
        placed: Ints = found[found != NONE]
        return placed

    def rids(self) -> list[int]:
        """The row ids of all records."""
        found: list[int] = self.rid[: self.size][self.rid[: self.size] >= 0].tolist()
        return found

    @property
    def is_sparse(self) -> bool:
        """Whether most slots belong to records that were changed or deleted. Loading all records again frees these
        slots."""
        live = sum(number for number, _ in self._totals.values())
        return self.size > SPARSE_FROM and self.size > 2 * live

    @property
    def nbytes(self) -> int:
        """About the memory that all slots take, in bytes."""
        return estimate_bytes(self.size, self.heap_size, self.vectors.shape[1])

    def has_vector(self, slots: Ints) -> Bools:
        """For each slot whether its record has a vector."""
        found: Bools = self.vector_row[slots] > 0
        return found

    def cosines(self, query: Floats, slots: Ints) -> Floats:
        """The cosines of a query with the vectors of these slots; 0 if there is none."""
        return cosines(query, self.vectors, self.vector_row[slots].astype(np.int64))

    def nearest(self, query: Floats, slots: Ints, k: int, *, more: int, roughly: bool) -> Ints:
        """The nearest of these slots to a query. All of them must have vectors. See `vectors.nearest`."""
        used, rows = self.vector_count, self.vector_row[slots].astype(np.int64)
        found, _ = nearest(query, self.vectors[:used], self.signs[:, :used], rows, k, more=more, roughly=roughly)
        places: Ints = self._slot_of_row[found].astype(np.int64)
        return places

    def totals(self, audiences: Sequence[int]) -> tuple[int, float]:
        """The number of records of these audiences, and their mean length in words."""
        found = [self._totals.get(audience, (0, 0.0)) for audience in audiences]
        number = sum(count for count, _ in found)
        return number, sum(words for _, words in found) / number if number else 1.0

    def rarity(self, ids: Words, audiences: Sequence[int], number: int) -> Floats:
        """The weight of each term among the `number` records of these audiences. It is higher for terms that fewer
        records have, and 0 if none has the term."""
        buckets = bucket_of(ids[:, None], np.asarray(audiences, np.int32)[None, :])
        return rarity_of(self._document_frequency[buckets].sum(axis=1), number)

    def term_texts(self, slots: Ints) -> Iterator[str]:
        """For each record its term ids as one text for the inverted index, repeated up to four times. Another thread
        may consume the iterator while this one adds records, because the data that it reads is never overwritten."""
        return _texts(self.heap, self.at[slots])


def estimate_bytes(records: int, words: int, dimension: int) -> int:
    """Estimate the memory of `records` records with vectors of this dimension and with this many 32-bit words of
    terms."""
    return records * (RECORD_BYTES + 4 * dimension + dimension // 8) + words * WORD_BYTES


def bucket_of(ids: Any, audiences: Any) -> Any:
    """The bucket that counts a term in an audience: records that a caller may not see must not affect its ranking."""
    mixed = ids.astype(np.uint32) ^ audiences.astype(np.uint32) * np.uint32(0x9E3779B1)
    return (mixed * np.uint32(0x85EBCA6B)) >> np.uint32(32 - RARITY_BITS)


def _texts(heap: Words, starts: Ints) -> Iterator[str]:
    for start in starts.tolist():
        count = int(heap[start])
        first = start + HEADER
        packed = heap[first + count : first + 2 * count]
        times = np.minimum((packed & 255) * 2 + (packed >> 8 & 255) + (packed >> 16 & 255), 4)
        yield " ".join(map(str, np.repeat(heap[first : first + count], times).tolist()))


def _grown(column: Any, room: int, kind: Any) -> Any:
    grown = np.zeros(room, kind)
    grown[: len(column)] = column
    return grown
