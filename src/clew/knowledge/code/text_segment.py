"""The units of many files as arrays in memory, by term: what a search runs over. Never changed once built."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from clew.knowledge.code.path_kinds import kind_of
from clew.knowledge.code.text_units import FIELDS, PackedText
from clew.knowledge.code.words import terms_of

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Terms = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

SCALE = 127
"""What a vector's numbers are multiplied with to be kept as bytes."""
_WORD = re.compile(r"\w+")
_PACKAGE = frozenset(("__init__", "index", "mod", "lib", "main"))
"""File names that stand for the folder they are in."""


class TextFile(msgspec.Struct, frozen=True):
    """A file of the index: its path, and the units of its content."""

    path: str
    blob: str
    language: str
    packed: PackedText
    vectors: bytes = b""


class Postings(msgspec.Struct):
    """Sorted by term: rows and counts side by side, and where each term begins."""

    terms: Terms
    starts: Ints
    rows: Rows
    counts: Counts

    def number_of(self, terms: Terms) -> Ints:
        """How many rows each term has."""
        return self._slices(terms)[1]

    def find(self, terms: Terms) -> tuple[Ints, Rows, Counts]:
        """All rows of these terms: for each which of the terms it is, the row, the counts."""
        start, number = self._slices(terms)
        which = np.repeat(np.arange(len(terms)), number)
        position = np.arange(len(which)) + (start - np.cumsum(number) + number)[which]
        return which, self.rows[position], self.counts[position]

    def _slices(self, terms: Terms) -> tuple[Ints, Ints]:
        if not len(self.terms):
            return np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
        place = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        number = np.where(self.terms[place] == terms, self.starts[place + 1] - self.starts[place], 0)
        return self.starts[place], number


class Segment(msgspec.Struct):
    """Files and their units, numbered from 0: which file each unit is of, how long they are, their vectors."""

    files: list[TextFile]
    body: Postings
    folders: Postings
    stems: Postings
    names: Postings
    unit_file: Rows
    unit_first: Ints
    unit_length: Floats
    file_length: Floats
    kinds: Counts
    by_name: dict[str, list[int]]
    vectors: npt.NDArray[np.int8] | None
    floats: Floats | None = None

    def unit_of(self, unit: int) -> tuple[str, int]:
        """The qualname and the line of a unit."""
        file = int(self.unit_file[unit])
        packed, at = self.files[file].packed, unit - int(self.unit_first[file])
        return packed.names[at], packed.lines[at]

    def cosines(self, vector: Floats) -> Floats:
        """How close each unit is to a vector of unit length; 0 for those without one."""
        if self.vectors is None:
            return np.zeros(len(self.unit_file), np.float32)
        if self.floats is None:
            self.floats = self.vectors.astype(np.float32) / np.float32(SCALE)
        return self.floats @ vector


def build_segment(files: Sequence[TextFile], dimension: int = 0) -> Segment:
    """The arrays of these files. Units without a vector of that dimension get one of zeros."""
    lengths = [np.frombuffer(file.packed.lengths, "<u4") for file in files]
    sizes = np.array([len(length) for length in lengths], np.int64)
    first = np.cumsum(sizes) - sizes
    unit_file = np.repeat(np.arange(len(files), dtype=np.int32), sizes)
    unit_length = np.concatenate([np.zeros(0, np.float32), *lengths]).astype(np.float32)
    return Segment(
        files=list(files),
        body=_body(files, first),
        folders=_paths([folder_of(file.path) for file in files]),
        stems=_paths([stem_of(file.path) for file in files]),
        names=_unit_names(files),
        unit_file=unit_file,
        unit_first=first,
        unit_length=unit_length,
        file_length=np.bincount(unit_file, unit_length, len(files)).astype(np.float32),
        kinds=np.array([kind_of(file.path) for file in files], np.uint8),
        by_name=_names(files),
        vectors=_vectors(files, sizes, dimension) if dimension else None,
    )


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def stem_of(path: str) -> str:
    """The name of a file without its ending; with its folder's where it stands for the folder."""
    folder, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0] or name
    return f"{folder.rpartition('/')[2]} {stem}" if stem in _PACKAGE else stem


def name_ids(names: Iterable[str]) -> Terms:
    """Names as they are spelled, as numbers; of a qualname the last part."""
    last = (name.rpartition(".")[2].encode("utf-8", "replace") for name in names)
    return np.array([zlib.crc32(name) for name in last], np.uint32)


def _unit_names(files: Sequence[TextFile]) -> Postings:
    """Units by the name that they define."""
    ids = name_ids(name for file in files for name in file.packed.names)
    return _sorted(ids, np.arange(len(ids), dtype=np.int32), np.ones((len(ids), 1), np.uint8))


def _names(files: Sequence[TextFile]) -> dict[str, list[int]]:
    """Files by the last part of their path, with its ending and without."""
    names: dict[str, list[int]] = {}
    for row, file in enumerate(files):
        name = file.path.rpartition("/")[2]
        for key in {name, name.partition(".")[0], stem_of(file.path).partition(" ")[0]}:
            names.setdefault(key, []).append(row)
    return names


def _body(files: Sequence[TextFile], first: Ints) -> Postings:
    terms = [np.frombuffer(file.packed.terms, "<u4") for file in files]
    units = [np.frombuffer(file.packed.units, "<u2") for file in files]
    sizes = [len(term) for term in terms]
    rows = np.concatenate([np.zeros(0, np.int32), *units]).astype(np.int32)
    rows += np.repeat(first, sizes).astype(np.int32)
    counts = np.frombuffer(b"".join(file.packed.counts for file in files), np.uint8).reshape(-1, FIELDS)
    return _sorted(np.concatenate([np.zeros(0, np.uint32), *terms]).astype(np.uint32), rows, counts)


def _paths(texts: Sequence[str]) -> Postings:
    found = [
        (term, row)
        for row, text in enumerate(texts)
        for term in {term for word in _WORD.findall(text) for term in terms_of(word)}
    ]
    terms, rows = (np.array([pair[at] for pair in found], np.int64) for at in (0, 1))
    return _sorted(terms.astype(np.uint32), rows.astype(np.int32), np.ones((len(found), 1), np.uint8))


def _sorted(terms: Terms, rows: Rows, counts: Counts) -> Postings:
    keys = np.sort(terms.astype(np.uint64) << np.uint64(32) | np.arange(len(terms), dtype=np.uint64))
    order, found = (keys & np.uint64(0xFFFF_FFFF)).astype(np.int64), (keys >> np.uint64(32)).astype(np.uint32)
    starts = np.flatnonzero(np.diff(found, prepend=found[:1] + np.uint32(1)))
    return Postings(found[starts], np.append(starts, len(terms)), rows[order], counts[order])


def _vectors(files: Sequence[TextFile], sizes: Ints, dimension: int) -> npt.NDArray[np.int8]:
    empty = bytes(dimension)
    packed = (
        file.vectors if len(file.vectors) == int(size) * dimension else empty * int(size)
        for file, size in zip(files, sizes, strict=True)
    )
    return np.frombuffer(b"".join(packed), np.int8).reshape(-1, dimension)
