"""The passages of many files as arrays in memory. A segment is built once and never changed. A view joins the large
segment with a small one for changed files."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import numpy as np
import numpy.typing as npt

from clew.knowledge.code.files import is_inline_test, kind_of, may_have_inline_tests
from clew.knowledge.code.search.passages import FIELDS, KINDS, SYMBOL_KINDS, Packed
from clew.knowledge.code.search.words import terms_of
from clew.lazy_pattern import lazy_pattern
from clew.trail.search.unique import unique

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Terms = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Computed = TypeVar("Computed")

SCALE_BYTES = 4
_SCANS = 12
"""After this many calls, terms are sorted. A single question makes fewer calls."""
_BLOCK = 512
"""Vectors that are unpacked at a time. A block fits into the processor's cache."""
_WORD = lazy_pattern(r"\w+")
_PACKAGE = frozenset(("__init__", "index", "mod", "lib", "main"))
"""File names, such as `__init__`, that represent their folder."""


class CompactVectors(msgspec.Struct, frozen=True):
    """Vectors of one length: `codes` from -127 to 127, times their scale."""

    codes: npt.NDArray[np.int8]
    scales: Floats

    @property
    def size(self) -> int:
        """The size of the vectors in bytes."""
        return int(self.codes.nbytes + self.scales.nbytes)


class PackedFile(msgspec.Struct, frozen=True):
    """A file with its packed passages and their vectors, if any: a byte for each number, then a scale a vector."""

    path: str
    blob: str
    language: str
    packed: Packed
    vectors: bytes = b""


class CodePostings(msgspec.Struct):
    """Rows and counts sorted by term, and the start of each term."""

    terms: Terms
    starts: Ints
    rows: Rows
    counts: Counts

    def number_of(self, terms: Terms) -> Ints:
        """How many rows each term has."""
        return self._slices(terms)[1]

    def find(self, terms: Terms) -> tuple[Ints, Rows, Counts]:
        """All rows of these terms: the index of the term, the row, the counts."""
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


class TermScan:
    """Postings of terms in no order. The first calls scan all terms, which takes a tenth of the time of sorting. After
    several calls the terms are sorted."""

    def __init__(self, terms: Terms, rows: Rows, counts: Counts) -> None:
        self._held: tuple[Terms, Rows, Counts] | CodePostings = terms, rows, counts
        self._calls = 0

    def of(self, terms: Terms) -> CodePostings:
        """Postings that have all rows of these terms."""
        held = self._held  # another thread may sort meanwhile
        if isinstance(held, CodePostings):
            return held
        self._calls += 1
        if self._calls > _SCANS:
            self._held = found = _sorted(*held)
            return found
        wanted = np.zeros(1 << 16, bool)
        wanted[terms & 0xFFFF] = True
        all_terms, rows, counts = held
        hits = np.flatnonzero(wanted[all_terms & 0xFFFF])
        return _sorted(all_terms[hits], rows[hits], counts[hits])


class IndexSegment(msgspec.Struct, dict=True):
    """Files and their passages, numbered from 0."""

    files: list[PackedFile]
    body: TermScan
    passage_file: Rows
    passage_first: Ints
    passage_length: Floats
    passage_kind: Counts
    file_length: Floats
    path_kinds: Counts
    inline_tests: Bools
    vectors: CompactVectors | None

    @cached_property
    def folders(self) -> CodePostings:
        return _path_terms([folder_of(each.path) for each in self.files])

    @cached_property
    def stems(self) -> CodePostings:
        return _path_terms([stem_of(each.path) for each in self.files])

    @cached_property
    def names(self) -> CodePostings:
        return _passage_names(self.files, self.passage_kind)

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        return _file_names(self.files)


class Matches(NamedTuple):
    """Occurrences of terms, sorted by term and row: which term, in which row, how often in each field."""

    which: Ints
    rows: Ints
    counts: Counts


class PassagePlace(NamedTuple):
    """A passage: `name` is the qualname of a symbol or a heading, `owner` the headings above."""

    path: str
    blob: str
    language: str
    kind: str
    name: str
    owner: str
    start: int
    end: int


def build_segment(contents: Sequence[PackedFile], dimension: int = 0) -> IndexSegment:
    """The arrays of these files, with vectors of this dimension. A passage without such a vector gets zeros."""
    lengths = [np.frombuffer(each.packed.lengths, "<u4") for each in contents]
    sizes = np.array([len(length) for length in lengths], np.int64)
    first = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(contents), dtype=np.int32), sizes)
    length = np.concatenate([np.zeros(0, np.float32), *lengths]).astype(np.float32)
    kinds = np.frombuffer(b"".join(each.packed.kinds for each in contents), np.uint8)
    return IndexSegment(
        files=[msgspec.structs.replace(each, packed=_slim(each.packed), vectors=each.vectors[:1]) for each in contents],
        body=_body([each.packed for each in contents], first),
        passage_file=owner,
        passage_first=first,
        passage_length=length,
        passage_kind=kinds,
        file_length=np.bincount(owner, length, len(contents)).astype(np.float32),
        path_kinds=np.array([kind_of(each.path) for each in contents], np.uint8),
        inline_tests=_inline_tests(contents),
        vectors=_vectors(contents, sizes, dimension) if dimension else None,
    )


class IndexView:
    """Files and passages of several segments under one numbering. `dead` files have a newer version elsewhere."""

    def __init__(self, segments: Sequence[IndexSegment], dead: Sequence[Bools]) -> None:
        self.segments = segments
        self.files = [file for segment in segments for file in segment.files]
        self.dead = np.concatenate([np.zeros(0, bool), *dead])
        self._file_base = _bases([len(segment.files) for segment in segments])
        self._passage_base = _bases([len(segment.passage_file) for segment in segments])
        starts = [segment.passage_first + base for segment, base in zip(segments, self._passage_base, strict=True)]
        self._passage_first: list[int] = np.concatenate([np.zeros(0, np.int64), *starts]).tolist()
        owners = [segment.passage_file + base for segment, base in zip(segments, self._file_base, strict=True)]
        self.passage_file: Ints = np.concatenate([np.zeros(0, np.int64), *owners])
        self.passage_length: Floats = np.concatenate(
            [np.zeros(0, np.float32), *(one.passage_length for one in segments)]
        )
        self.passage_kind: Counts = np.concatenate([np.zeros(0, np.uint8), *(one.passage_kind for one in segments)])
        self.file_length: Floats = np.concatenate([np.zeros(0, np.float32), *(one.file_length for one in segments)])
        self.path_kinds: Counts = np.concatenate([np.zeros(0, np.uint8), *(one.path_kinds for one in segments)])
        self.inline_tests: Bools = np.concatenate([np.zeros(0, bool), *(one.inline_tests for one in segments)])
        self.is_symbol: Bools = self.passage_kind < len(SYMBOL_KINDS)
        self.dead_passages: Bools = self.dead[self.passage_file]
        self._cache: dict[object, Any] = {}

    def cached(self, key: object, compute: Callable[[], Computed]) -> Computed:
        """A cached value that depends only on this view and its key."""
        if key not in self._cache:
            self._cache[key] = compute()
        return cast("Computed", self._cache[key])

    def number_of(self, terms: Terms) -> Ints:
        """In how many passages each term occurs."""
        if len(self.segments) == 1:
            return self.segments[0].body.of(terms).number_of(terms)
        return sum((each.body.of(terms).number_of(terms) for each in self.segments), np.zeros(len(terms), np.int64))

    def find(self, terms: Terms) -> list[Matches]:
        """For each segment the passages in which the terms occur, those of dead files included."""
        return [
            Matches(which, rows + base, counts)
            for segment, base in zip(self.segments, self._passage_base, strict=True)
            for which, rows, counts in (segment.body.of(terms).find(terms),)
        ]

    def find_paths(self, terms: Terms, *, stems: bool) -> Matches:
        """The files whose name, or else whose folders, have the terms."""
        found = [
            Matches(which, rows + base, counts)
            for segment, base in zip(self.segments, self._file_base, strict=True)
            for which, rows, counts in ((segment.stems if stems else segment.folders).find(terms),)
        ]
        return self._alive(found, None)

    def find_names(self, names: Iterable[str]) -> Matches:
        """The symbols with these names, as spelled."""
        ids = unique(name_ids(names))
        found = [
            Matches(which, rows + base, counts)
            for segment, base in zip(self.segments, self._passage_base, strict=True)
            for which, rows, counts in (segment.names.find(ids),)
        ]
        return self._alive(found, self.passage_file)

    def files_named(self, name: str) -> list[int]:
        """The files with that name, with or without its ending."""
        return [
            int(base) + row
            for segment, base in zip(self.segments, self._file_base, strict=True)
            for row in segment.by_name.get(name, ())
            if not self.dead[base + row]
        ]

    def passages_of(self, file: int) -> tuple[int, int]:
        """The passages of a file: the first, and the one after the last."""
        first = self._passage_first[file]
        return first, first + len(self.files[file].packed.names)

    def place_of(self, passage: int) -> PassagePlace:
        return self.places_of(np.array([passage]))[0]

    def places_of(self, passages: Ints) -> list[PassagePlace]:
        found = []
        numbers, kinds = self.passage_file[passages].tolist(), self.passage_kind[passages].tolist()
        for passage, number, kind in zip(passages.tolist(), numbers, kinds, strict=True):
            file, at = self.files[number], passage - self._passage_first[number]
            packed = file.packed
            place = packed.names[at], packed.owners[at], packed.starts[at], packed.ends[at]
            found.append(PassagePlace(file.path, file.blob, file.language, KINDS[kind], *place))
        return found

    def cosines(self, vector: Floats) -> Floats:
        """The cosine of each passage with a vector of length 1; 0 for those without a vector."""
        found = [
            np.zeros(len(segment.passage_file), np.float32)
            if segment.vectors is None
            else products(vector, segment.vectors)
            for segment in self.segments
        ]
        return np.concatenate([np.zeros(0, np.float32), *found])

    def _alive(self, found: Sequence[Matches], owner: Ints | None) -> Matches:
        joined = Matches(*(np.concatenate(column) for column in zip(*found, strict=True)))
        if not self.dead.any():
            return joined
        files = joined.rows if owner is None else owner[joined.rows]
        alive = ~self.dead[files]
        return Matches(joined.which[alive], joined.rows[alive], joined.counts[alive])


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def stem_of(path: str) -> str:
    """The name of a file without its ending. For an index file such as `__init__`, it includes the name of the
    folder."""
    folder, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0] or name
    return f"{folder.rpartition('/')[2]} {stem}" if stem in _PACKAGE else stem


def name_ids(names: Iterable[str]) -> Terms:
    """Names as spelled, as numbers; of a qualname the last part."""
    last = (name.rpartition(".")[2].encode("utf-8", "replace") for name in names)
    return np.array([zlib.crc32(name) for name in last], np.uint32)


def _slim(packed: Packed) -> Packed:
    """The packed passages without the parts that the arrays of a segment already contain."""
    return msgspec.structs.replace(packed, kinds=b"", lengths=b"", terms=b"", rows=b"", counts=b"")


def _passage_names(contents: Sequence[PackedFile], kinds: Counts) -> CodePostings:
    rows = np.flatnonzero(kinds < len(SYMBOL_KINDS)).astype(np.int32)
    names = [name for content in contents for name in content.packed.names]
    ids = name_ids(names[row] for row in rows)
    return _sorted(ids, rows, np.ones((len(ids), 1), np.uint8))


def _file_names(contents: Sequence[PackedFile]) -> dict[str, list[int]]:
    """Files by the last part of their path, with its ending and without."""
    names: dict[str, list[int]] = {}
    for row, content in enumerate(contents):
        name = content.path.rpartition("/")[2]
        for key in {name, name.partition(".")[0], stem_of(content.path).partition(" ")[0]}:
            names.setdefault(key, []).append(row)
    return names


def _body(texts: Sequence[Packed], first: Ints) -> TermScan:
    terms = [np.frombuffer(text.terms, "<u4") for text in texts]
    rows = np.concatenate([np.zeros(0, np.int32), *(np.frombuffer(text.rows, "<u2") for text in texts)], dtype=np.int32)
    rows += np.repeat(first.astype(np.int32), [len(term) for term in terms])
    counts = np.frombuffer(b"".join(text.counts for text in texts), np.uint8).reshape(-1, FIELDS)
    return TermScan(np.concatenate([np.zeros(0, np.uint32), *terms], dtype=np.uint32), rows, counts)


def _inline_tests(contents: Sequence[PackedFile]) -> Bools:
    found = [
        # most files have no such tests, and a folder has many thousand names
        [is_inline_test(each.path, name) for name in each.packed.names]
        if may_have_inline_tests(each.path)
        else [False] * len(each.packed.names)
        for each in contents
    ]
    return np.array(list(chain.from_iterable(found)), bool)


def _path_terms(texts: Sequence[str]) -> CodePostings:
    known: dict[str, set[int]] = {}
    for text in texts:
        if text not in known:
            known[text] = {term for word in _WORD.findall(text) for term in terms_of(word)}
    found = [(term, row) for row, text in enumerate(texts) for term in known[text]]
    terms, rows = (np.array([pair[at] for pair in found], np.int64) for at in (0, 1))
    return _sorted(terms.astype(np.uint32), rows.astype(np.int32), np.ones((len(found), 1), np.uint8))


def _sorted(terms: Terms, rows: Rows, counts: Counts) -> CodePostings:
    """Sort postings by term, in place if possible. For a large folder, this takes most of the time of building."""
    keys = terms.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(len(terms), dtype=np.uint64)
    keys.sort()
    order = keys.astype(np.uint32)
    keys >>= np.uint64(32)
    found = keys.astype(np.uint32)
    starts = np.flatnonzero(np.diff(found, prepend=found[:1] + np.uint32(1)))
    return CodePostings(found[starts], np.append(starts, len(terms)), rows[order], counts[order])


def _vectors(contents: Sequence[PackedFile], sizes: Ints, dimension: int) -> CompactVectors:
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


def _bases(sizes: Sequence[int]) -> Ints:
    return np.cumsum([0, *sizes], dtype=np.int64)[:-1]


def compact(vectors: Floats) -> CompactVectors:
    """Quantize vectors (one per row) to 8 bits: the numbers of a vector become multiples of 1/127 of its largest
    number."""
    scales = (np.abs(vectors).max(axis=1, initial=0.0) / 127).astype(np.float32)
    steps = np.where(scales > 0, scales, 1).astype(np.float32)
    return CompactVectors(np.rint(vectors / steps[:, None]).astype(np.int8), scales)


def products(query: Floats, vectors: CompactVectors) -> Floats:
    """The product of a query with each vector: their cosines if all are of length 1."""
    found = np.empty(len(vectors.codes), np.float32)
    for first in range(0, len(found), _BLOCK):
        block = vectors.codes[first : first + _BLOCK].astype(np.float32)
        found[first : first + len(block)] = np.vecdot(block, query)
    return found * vectors.scales
