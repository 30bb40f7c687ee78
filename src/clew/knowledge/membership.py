"""Whether a domain can have anything to say on a text, found out without looking: an immutable XOR filter of 8 bits a
term, and a Bloom filter for what came since. Never a wrong "no"; a wrong "yes" for at most 1.5 % of terms.

Terms are the words of a text and the parts of its identifiers, without case and endings. Only search uses this; it is
nobody's tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from math import ceil, log

import numpy as np
import numpy.typing as npt

from clew.trail.text import STOP, split_text, term_id

CAPACITY, WRONG = 10_000, 0.01
"""Terms that the Bloom filter is made for, and the share of wrong answers that it may give then."""
REBUILD_AT = CAPACITY // 2
"""With so many new terms a rebuild is due. The other half is for what comes while it is under way."""

Keys = npt.NDArray[np.uint64]
Marks = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Answers = npt.NDArray[np.bool_]
_TRIES = 100


def terms_of(text: str) -> set[int]:
    """All terms of a text that is taken in."""
    words = split_text(text)
    return {term_id(word, 0) for word in (*words.parts, *words.compounds)}


def telling_words(text: str) -> list[str]:
    """The words of a question that tell something, each once: without stop words, unless there are no others."""
    parts = split_text(text).parts
    return list(dict.fromkeys([part for part in parts if part not in STOP] or parts))


class XorFilter:
    """A set of 64-bit keys that cannot be changed, at about ten bits a key. Says yes to every key of the set, and to
    one in 256 of the others."""

    def __init__(self, keys: Iterable[int]) -> None:
        unique = np.unique(np.fromiter(keys, np.uint64))
        self._length = (int(1.23 * len(unique)) + 32) // 3 + 1
        for seed in range(_TRIES):
            self._seed = seed
            if (order := _peel(self._places(unique), 3 * self._length)) is not None:
                self._marks = self._fill(unique, order)
                return
        raise AssertionError("a hundred seeds in a row that do not work: the keys are not what they seem")

    def contains(self, keys: Keys) -> Answers:
        """For each key whether it is in the set."""
        places = self._places(keys)
        folded = self._marks[places[0]] ^ self._marks[places[1]] ^ self._marks[places[2]]
        answer: Answers = folded == self._wanted(keys)
        return answer

    def _wanted(self, keys: Keys) -> Marks:
        return (_mixed(keys, 4 * self._seed) >> np.uint64(56)).astype(np.uint8)

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return int(self._marks.nbytes)

    def _places(self, keys: Keys) -> Places:
        """For each key a place in each third of the marks."""
        thirds = [_mixed(keys, 4 * self._seed + third) % np.uint64(self._length) for third in range(1, 4)]
        return np.stack([third.astype(np.int64) + at * self._length for at, third in enumerate(thirds)])

    def _fill(self, keys: Keys, order: list[tuple[Places, Places]]) -> Marks:
        """The marks, set in the reverse of the order in which keys were freed. Keys freed together touch none of each
        other's places, so they are set together."""
        marks = np.zeros(3 * self._length, np.uint8)
        places, wanted = self._places(keys), self._wanted(keys)
        for which, free in reversed(order):
            others = np.bitwise_xor.reduce(marks[places[:, which]], axis=0)
            marks[free] = wanted[which] ^ others ^ marks[free]
        return marks


def _peel(places: Places, size: int) -> list[tuple[Places, Places]] | None:
    """Rounds of (keys, the place that each has alone), until none is left; None where some block each other."""
    number = places.shape[1]
    left = np.ones(number, bool)
    counts = np.bincount(places.ravel(), minlength=size)
    holders = np.zeros(size, np.int64)
    np.bitwise_xor.at(holders, places, np.arange(number))
    order = []
    while left.any():
        alone = np.flatnonzero(counts == 1)
        which, first = np.unique(holders[alone], return_index=True)
        if not len(which):
            return None
        order.append((which, alone[first]))
        left[which] = False
        np.subtract.at(counts, places[:, which], 1)
        np.bitwise_xor.at(holders, places[:, which], which)
    return order


class BloomFilter:
    """A set of 64-bit keys that can only grow. Says yes to every key of the set, and to one in a hundred others once
    it has as many as it was made for."""

    def __init__(self, capacity: int = CAPACITY, wrong: float = WRONG) -> None:
        self._bits = ceil(-capacity * log(wrong) / log(2) ** 2)
        self._hashes = max(1, round(self._bits / capacity * log(2)))
        self._set = np.zeros(self._bits, bool)
        self.count = 0

    def add(self, keys: Keys) -> None:
        self._set[self._places(keys)] = True
        self.count += len(keys)

    def contains(self, keys: Keys) -> Answers:
        """For each key whether it is in the set."""
        return np.asarray(self._set[self._places(keys)].all(axis=0))

    def _places(self, keys: Keys) -> Keys:
        first, step = _mixed(keys, 11), _mixed(keys, 12) | np.uint64(1)
        hashes = np.arange(self._hashes, dtype=np.uint64)[:, None]
        places: Keys = (first + hashes * step) % np.uint64(self._bits)
        return places


class Membership:
    """The terms of one domain. Adding and asking belong to one thread; a rebuild runs beside it, and what is added
    meanwhile is never missed."""

    def __init__(self, terms: Iterable[int] = ()) -> None:
        self._kept = XorFilter(terms)
        self._recent: list[BloomFilter] = [BloomFilter()]
        self._rebuilding = False
        self._first_new = 0

    @property
    def is_due(self) -> bool:
        """Whether there is so much new that a rebuild is worth while, and none is under way."""
        return not self._rebuilding and sum(each.count for each in self._recent) >= REBUILD_AT

    def add(self, text: str) -> None:
        """Take in the terms of a text. They are found as soon as this returns."""
        keys = _keys(terms_of(text))
        # while the filter is made anew, what the old one has counts for nothing: the new one need not have it
        known = self._recent[self._first_new :] if self._rebuilding else self._all()
        fresh = keys[~_found(known, keys)]
        if self._recent[-1].count + len(fresh) > CAPACITY:
            self._recent.append(BloomFilter(max(CAPACITY, len(fresh))))
        self._recent[-1].add(fresh)

    def contains(self, text: str) -> bool:
        """Whether any term that tells something may be there. True for a text without words, of which nothing is
        known."""
        asked = {term_id(word, 0) for word in (*telling_words(text), *split_text(text).compounds)}
        return not asked or bool(_found(self._all(), _keys(asked)).any())

    async def rebuild(self, read: Callable[[], Awaitable[Iterable[int]]]) -> None:
        """Make the filter anew, in another thread, from all terms there are: those that `read` brings. What is added
        from now on may be missing there. A rebuild while one is under way does nothing."""
        if self._rebuilding:
            return
        self._rebuilding = True
        self._first_new = len(self._recent)
        self._recent.append(BloomFilter())
        try:
            self._kept = await asyncio.to_thread(XorFilter, await read())
            self._recent = self._recent[self._first_new :]
        finally:
            self._rebuilding = False

    def _all(self) -> list[XorFilter | BloomFilter]:
        return [self._kept, *self._recent]


def _found(filters: Sequence[XorFilter | BloomFilter], keys: Keys) -> Answers:
    """For each key whether one of the filters has it."""
    answers = np.zeros(len(keys), bool)
    for each in filters:
        answers |= each.contains(keys)
    return answers


def _keys(terms: Iterable[int]) -> Keys:
    return np.fromiter(terms, np.uint64)


def _mixed(keys: Keys, seed: int) -> Keys:
    """Keys spread evenly over all 64 bits, differently for each seed (the finaliser of SplitMix64)."""
    mixed = keys + np.uint64((seed + 1) * 0x9E37_79B9_7F4A_7C15 & 0xFFFF_FFFF_FFFF_FFFF)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    final: Keys = mixed ^ (mixed >> np.uint64(31))
    return final
