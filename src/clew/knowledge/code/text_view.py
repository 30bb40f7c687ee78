"""All files of an index as they are at one moment: a large segment, a small one with what changed since it was built,
and which of the large one's files still count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.knowledge.code.text_segment import Floats, Ints, Rows, Segment, Terms, TextFile, name_ids

Bools = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]


class Matches(NamedTuple):
    """Where the terms of a question occur, sorted by term and then by row: which term, in which row, how often in each
    field."""

    which: Ints
    rows: Rows
    counts: npt.NDArray[np.uint8]


class View:
    """Files and units of several segments under one numbering, the dead ones included."""

    def __init__(self, segments: Sequence[Segment], dead: Sequence[Bools]) -> None:
        self.segments = segments
        self.dead = np.concatenate([np.zeros(0, bool), *dead])
        self.files: list[TextFile] = [file for segment in segments for file in segment.files]
        self._file_base = _bases([len(segment.files) for segment in segments])
        self._unit_base = _bases([len(segment.unit_file) for segment in segments])
        owners = [segment.unit_file + base for segment, base in zip(segments, self._file_base, strict=True)]
        self.unit_file: Ints = np.concatenate([np.zeros(0, np.int64), *owners])
        self.unit_length: Floats = np.concatenate([np.zeros(0, np.float32), *(one.unit_length for one in segments)])
        self.file_length: Floats = np.concatenate([np.zeros(0, np.float32), *(one.file_length for one in segments)])

        self.kinds: Kinds = np.concatenate([np.zeros(0, np.uint8), *(one.kinds for one in segments)])

        firsts = [segment.unit_first + base for segment, base in zip(segments, self._unit_base, strict=True)]
        self.is_symbol: Bools = np.ones(len(self.unit_file), bool)
        self.is_symbol[np.concatenate([np.zeros(0, np.int64), *firsts])] = False

        self.dead_units: Bools = self.dead[self.unit_file]

    def number_of(self, terms: Terms) -> Ints:
        """In how many units each term occurs."""
        number = np.zeros(len(terms), np.int64)
        for segment in self.segments:
            number += segment.body.number_of(terms)
        return number

    def find(self, terms: Terms) -> list[Matches]:
        """For each segment the units in which the terms occur, the dead ones included."""
        return [
            Matches(which, rows + base, counts)
            for segment, base in zip(self.segments, self._unit_base, strict=True)
            for which, rows, counts in (segment.body.find(terms),)
        ]

    def find_paths(self, terms: Terms, *, stems: bool) -> Matches:
        """The files whose name, or else whose folders, have the terms."""
        found = [
            Matches(which, rows + base, counts)
            for segment, base in zip(self.segments, self._file_base, strict=True)
            for which, rows, counts in ((segment.stems if stems else segment.folders).find(terms),)
        ]
        return self._living(Matches(*(np.concatenate(column) for column in zip(*found, strict=True))), None)

    def find_names(self, names: Iterable[str]) -> Matches:
        """The units that define the names, spelled like this."""
        ids = np.unique(name_ids(names))
        found = [
            Matches(which, rows + base, counts)
            for segment, base in zip(self.segments, self._unit_base, strict=True)
            for which, rows, counts in (segment.names.find(ids),)
        ]
        return self._living(Matches(*(np.concatenate(column) for column in zip(*found, strict=True))), self.unit_file)

    def named(self, name: str) -> list[int]:
        """The files of that name, ending included or not."""
        return [
            int(base) + row
            for segment, base in zip(self.segments, self._file_base, strict=True)
            for row in segment.by_name.get(name, ())
            if not self.dead[base + row]
        ]

    def units_of(self, file: int) -> tuple[int, int]:
        """The units of a file: the first, and the one after the last."""
        first, last = np.searchsorted(self.unit_file, [file, file + 1]).tolist()
        return first, last

    def unit_of(self, unit: int) -> tuple[str, int]:
        """The qualname and the line of a unit; no name for a file as a whole."""
        at = int(np.searchsorted(self._unit_base, unit, side="right")) - 1
        return self.segments[at].unit_of(unit - int(self._unit_base[at]))

    def cosines(self, vector: Floats) -> Floats:
        """How close each unit is to a vector of unit length; 0 for those without one."""
        return np.concatenate([np.zeros(0, np.float32), *(segment.cosines(vector) for segment in self.segments)])

    def _living(self, found: Matches, owner: Ints | None) -> Matches:
        if not self.dead.any():
            return found
        files = found.rows if owner is None else owner[found.rows]
        alive = ~self.dead[files]
        return Matches(found.which[alive], found.rows[alive], found.counts[alive])


def _bases(sizes: Sequence[int]) -> Ints:
    return np.cumsum([0, *sizes], dtype=np.int64)[:-1]
