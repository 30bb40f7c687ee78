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
from clew.knowledge.compact_vectors import CompactVectors, products

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Terms = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

SCALE_BYTES = 4
_WORD = re.compile(r"\w+")
_PACKAGE = frozenset(("__init__", "index", "mod", "lib", "main"))
"""File names that stand for the folder they are in."""


class TextContent(msgspec.Struct, frozen=True):
    """What a segment is built from: a file, the units of its content, and their vectors as `compact` has them, if any:
    a byte for each number, then a scale for each vector."""

    path: str
    blob: str
    language: str
    packed: PackedText
    vectors: bytes = b""


class TextFile(msgspec.Struct, frozen=True):
    """A file of a segment, with the names and lines of its units."""

    path: str
    blob: str
    language: str
    names: list[str]
    lines: list[int]
    has_vectors: bool


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
    vectors: CompactVectors | None

    def unit_of(self, unit: int) -> tuple[str, int]:
        """The qualname and the line of a unit."""
        file = int(self.unit_file[unit])
        at = unit - int(self.unit_first[file])
        return self.files[file].names[at], self.files[file].lines[at]

    def cosines(self, vector: Floats) -> Floats:
        """How close each unit is to a vector of unit length; 0 for those without one."""
        if self.vectors is None:
            return np.zeros(len(self.unit_file), np.float32)
        return products(vector, self.vectors)


def build_segment(contents: Sequence[TextContent], dimension: int = 0) -> Segment:
    """The arrays of these files. Units without a vector of that dimension get one of zeros."""
    lengths = [np.frombuffer(each.packed.lengths, "<u4") for each in contents]
    sizes = np.array([len(length) for length in lengths], np.int64)
    first = np.cumsum(sizes) - sizes
    unit_file = np.repeat(np.arange(len(contents), dtype=np.int32), sizes)
    unit_length = np.concatenate([np.zeros(0, np.float32), *lengths]).astype(np.float32)
    files = [_file_of(each) for each in contents]
    return Segment(
        files=files,
        body=_body([each.packed for each in contents], first),
        folders=_paths([folder_of(file.path) for file in files]),
        stems=_paths([stem_of(file.path) for file in files]),
        names=_unit_names(files),
        unit_file=unit_file,
        unit_first=first,
        unit_length=unit_length,
        file_length=np.bincount(unit_file, unit_length, len(files)).astype(np.float32),
        kinds=np.array([kind_of(file.path) for file in files], np.uint8),
        by_name=_names(files),
        vectors=_vectors(contents, sizes, dimension) if dimension else None,
    )


def _file_of(content: TextContent) -> TextFile:
    packed = content.packed
    return TextFile(content.path, content.blob, content.language, packed.names, packed.lines, bool(content.vectors))


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
    ids = name_ids(name for file in files for name in file.names)
    return _sorted(ids, np.arange(len(ids), dtype=np.int32), np.ones((len(ids), 1), np.uint8))


def _names(files: Sequence[TextFile]) -> dict[str, list[int]]:
    """Files by the last part of their path, with its ending and without."""
    names: dict[str, list[int]] = {}
    for row, file in enumerate(files):
        name = file.path.rpartition("/")[2]
        for key in {name, name.partition(".")[0], stem_of(file.path).partition(" ")[0]}:
            names.setdefault(key, []).append(row)
    return names


def _body(texts: Sequence[PackedText], first: Ints) -> Postings:
    terms = [np.frombuffer(text.terms, "<u4") for text in texts]
    units = [np.frombuffer(text.units, "<u2") for text in texts]
    rows = np.concatenate([np.zeros(0, np.int32), *units], dtype=np.int32)
    rows += np.repeat(first.astype(np.int32), [len(term) for term in terms])
    counts = np.frombuffer(b"".join(text.counts for text in texts), np.uint8).reshape(-1, FIELDS)
    return _sorted(np.concatenate([np.zeros(0, np.uint32), *terms], dtype=np.uint32), rows, counts)


def _paths(texts: Sequence[str]) -> Postings:
    found = [
        (term, row)
        for row, text in enumerate(texts)
        for term in {term for word in _WORD.findall(text) for term in terms_of(word)}
    ]
    terms, rows = (np.array([pair[at] for pair in found], np.int64) for at in (0, 1))
    return _sorted(terms.astype(np.uint32), rows.astype(np.int32), np.ones((len(found), 1), np.uint8))


def _sorted(terms: Terms, rows: Rows, counts: Counts) -> Postings:
    """In place where it can be: what a large folder has here is most of what building takes."""
    keys = terms.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(len(terms), dtype=np.uint64)
    keys.sort()
    order = keys.astype(np.uint32)
    keys >>= np.uint64(32)
    found = keys.astype(np.uint32)
    starts = np.flatnonzero(np.diff(found, prepend=found[:1] + np.uint32(1)))
    return Postings(found[starts], np.append(starts, len(terms)), rows[order], counts[order])


def _vectors(contents: Sequence[TextContent], sizes: Ints, dimension: int) -> CompactVectors:
    total = int(sizes.sum())
    found = CompactVectors(np.zeros((total, dimension), np.int8), np.zeros(total, np.float32))
    first = 0
    for content, size in zip(contents, sizes.tolist(), strict=True):
        if len(content.vectors) == size * (dimension + SCALE_BYTES):
            codes, scales = content.vectors[: size * dimension], content.vectors[size * dimension :]
            found.codes[first : first + size] = np.frombuffer(codes, np.int8).reshape(-1, dimension)
            found.scales[first : first + size] = np.frombuffer(scales, "<f4")
        first += size
    return found
