"""Records as the ranking sees them: terms, counts and adjacent pairs in 32-bit words, many records at a time.

After the header (see `text.HEADER`) come the ids of the record's terms without repeats, those of the title first. Then
come three bytes for each term: how often it occurs in title, description and content. Last come the ids of pairs of
adjacent words. The length is in tenths of a word. Words of the content count a fifth.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.trail.model.readable import MAX_KNOWN_WORDS, ReadableText, find_words, is_recurring
from clew.trail.search.text import HEADER, MAX_KNOWN_LENGTH, MAX_PARTS, SPREAD, STOP, name_id, split_word, term_id
from clew.trail.search.unique import unique, unique_with_places

MAX_WORDS_PER_FIELD = 2_000
BATCH = 500
FIELDS = 3
TENTHS = np.array((10, 10, 2), np.int64)
"""The length that a word of title, description and content adds."""

Ints = npt.NDArray[np.int64]


def pack_all(records: Sequence[tuple[ReadableText, int]]) -> list[bytes]:
    """The packed terms of records, each with the salt of its owner."""
    parts = (records[first : first + BATCH] for first in range(0, len(records), BATCH))
    return list(chain.from_iterable(map(_pack_some, parts)))


class WordTerms(dict[str, tuple[int, ...]]):
    """A cache from a word to the ids of its parts that are not stop words. `aside` has the ids that match but do not
    count as length: those of stop words, and that of the whole word if it was split."""

    def __init__(self, salt: int) -> None:
        super().__init__()
        self.aside = _Aside(salt)
        self._salt = salt

    def __missing__(self, word: str) -> tuple[int, ...]:
        parts = split_word(word[:MAX_KNOWN_LENGTH])
        return _known(self, word, tuple(term_id(part, self._salt) for part in parts if part not in STOP))


class _Aside(dict[str, tuple[int, ...]]):
    def __init__(self, salt: int) -> None:
        super().__init__()
        self._salt = salt

    def __missing__(self, word: str) -> tuple[int, ...]:
        parts = split_word(word[:MAX_KNOWN_LENGTH])
        whole = ("".join(parts),) if 1 < len(parts) <= MAX_PARTS else ()
        found = (*whole, *(part for part in parts if part in STOP))
        return _known(self, word, tuple(term_id(part, self._salt) for part in found))


def _known(words: dict[str, tuple[int, ...]], word: str, ids: tuple[int, ...]) -> tuple[int, ...]:
    if len(words) < MAX_KNOWN_WORDS and len(word) <= MAX_KNOWN_LENGTH and is_recurring(word):
        words[word] = ids
    return ids


@lru_cache(64)
def _word_terms(salt: int) -> WordTerms:
    return WordTerms(salt)


def _pack_some(records: Sequence[tuple[ReadableText, int]]) -> Iterator[bytes]:
    ids, places, kept = _find_terms(records)
    record, field = places // FIELDS, places % FIELDS
    found, which = unique_with_places(record << 32 | ids)
    counts = np.bincount(which * FIELDS + field, minlength=FIELDS * len(found)).reshape(-1, FIELDS)
    in_title = np.zeros(len(found), np.bool_)
    in_title[which[:kept][field[:kept] == 0]] = True
    order = np.argsort((found >> 32) * 2 + ~in_title, kind="stable")
    pairs = _find_pairs(ids[:kept], places[:kept])
    sizes = _Sizes(len(records), found >> 32, pairs >> 32)
    packed = np.zeros(int(sizes.ends[-1]), np.uint32)
    packed[sizes.starts] = sizes.terms
    packed[sizes.starts + 1] = sizes.pairs
    packed[sizes.starts + 2] = np.bincount((found >> 32)[in_title], minlength=len(records))
    lengths = np.bincount(record[:kept], TENTHS[field[:kept]], len(records))
    packed[sizes.starts + 3] = np.maximum(lengths, 10)
    packed[sizes.starts + 4] = [name_id(shown.title, salt) for shown, salt in records]
    at = sizes.place_terms((found >> 32)[order])
    packed[at] = found[order] & 0xFFFF_FFFF
    packed[at + sizes.terms[(found >> 32)[order]]] = np.minimum(counts[order], 255) @ (1, 1 << 8, 1 << 16)
    packed[sizes.place_pairs(pairs >> 32)] = pairs & 0xFFFF_FFFF
    return _cut(packed, sizes)


def _find_terms(records: Sequence[tuple[ReadableText, int]]) -> tuple[Ints, Ints, int]:
    """Return term ids in order, those that count as length first, the place of each as record * FIELDS + field, and the
    number of ids that count."""
    kept: list[int] = []
    aside: list[int] = []
    lengths: list[tuple[int, int]] = []
    for shown, salt in records:
        known = _word_terms(salt)
        for text in (shown.title, shown.description, shown.content):
            words, before = find_words(text)[:MAX_WORDS_PER_FIELD], (len(kept), len(aside))
            kept.extend(chain.from_iterable(map(known.__getitem__, words)))
            aside.extend(chain.from_iterable(map(known.aside.__getitem__, words)))
            lengths.append((len(kept) - before[0], len(aside) - before[1]))
    places = np.arange(len(lengths))
    where = np.concatenate([np.repeat(places, each) for each in zip(*lengths, strict=True)])
    return np.array(kept + aside, np.int64), where, len(kept)


def _find_pairs(ids: Ints, places: Ints) -> Ints:
    """Ids of pairs of adjacent terms within a field, without repeats. The upper half of each id is the record."""
    beside = places[1:] == places[:-1]
    first, second = ids[:-1][beside], ids[1:][beside]
    pair = (first * SPREAD ^ second) & 0xFFFF_FFFF
    return unique(places[1:][beside] // FIELDS << 32 | pair)


class _Sizes:
    """The positions of each record's parts in the packed words."""

    def __init__(self, records: int, of_terms: Ints, of_pairs: Ints) -> None:
        self.terms: Ints = np.bincount(of_terms, minlength=records)
        self.pairs: Ints = np.bincount(of_pairs, minlength=records)
        self.ends: Ints = np.cumsum(HEADER + 2 * self.terms + self.pairs)
        self.starts: Ints = np.concatenate((np.zeros(1, np.int64), self.ends[:-1]))

    def place_terms(self, record: Ints) -> Any:
        """The places of terms that are sorted by record."""
        return self.starts[record] + HEADER + _rank(record, self.terms)

    def place_pairs(self, record: Ints) -> Any:
        return self.starts[record] + HEADER + 2 * self.terms[record] + _rank(record, self.pairs)


def _rank(record: Ints, sizes: Ints) -> Ints:
    """The index of each item within its record. The items must be sorted by record."""
    before = np.cumsum(sizes) - sizes
    ranks: Ints = np.arange(len(record)) - before[record]
    return ranks


def _cut(packed: npt.NDArray[np.uint32], sizes: _Sizes) -> Iterator[bytes]:
    """The records one by one, each with its checksum."""
    whole = memoryview(packed.astype("<u4", copy=False).tobytes())
    for start, end in zip((sizes.starts * 4).tolist(), (sizes.ends * 4).tolist(), strict=True):
        body = start + 4 * HEADER
        checksum = zlib.crc32(whole[body:end]).to_bytes(4, "little")
        yield b"".join((whole[start : body - 4], checksum, whole[body:end]))
