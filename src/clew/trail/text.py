"""How text becomes terms: words, identifiers split into their parts, accents folded, stems, 32-bit ids.

A term's id depends on the owner as well: what one owner wrote can neither match nor weigh in another's search.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from array import array
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import Stemmer

from clew.trail.readable import Readable

Ints = npt.NDArray[np.int64]
Words32 = npt.NDArray[np.uint32]

MAX_WORDS_PER_FIELD = 2_000
MAX_KNOWN_WORDS = 100_000
MAX_QUERY_CHARS = 4_000
MAX_PARTS = 8
"""An identifier of more parts is not kept as a whole."""

_STOP_WORDS = """
    a an the this that these those some any each every either neither both all another other others such same
    own i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she
    her hers herself it its itself they them their theirs themselves one ones who whom whose whoever which what
    whatever someone somebody something anyone anybody anything everyone everybody everything none thing things
    am is are was were be been being do does did doing done have has had having can could may might must shall
    should will would cannot and or but nor so yet if then else than because since unless until while although
    though whether however therefore thus hence of to in on at by for from with without within into onto unto
    upon over under above below about against among along around after before between during through toward
    towards via per as off out up down away back again also already always almost just only even ever never not
    no yes often once soon sometimes still too very quite rather really perhaps maybe likely now here there
    where when why how wherever whenever more most much many few several enough lot bit kind way etc get gets
    getting got give gives giving given gave go goes going gone gonna come came put take make makes making made
    let lets use used uses using need needs want wants wanted wish like know see say said tell ask asked think
    mean try trying seem seems looking wonder wondering help please provide possible regarding together
    otherwise indeed thereby far further well sure hello hi hey oh ok okay thank thanks s t d m ll re ve im ive
    id dont didnt doesnt isnt cant whats thats youre theyre don didn doesn isn aren wasn weren won wouldn couldn
    shouldn hasn haven hadn became
"""
STOP = frozenset(_STOP_WORDS.split())
"""English function words and the polite filler of requests; other languages rely on the rarity of their words."""

_WORD = re.compile(r"\w+")
_UPPER, _LOWER = "A-Z\u00c0-\u00d6\u00d8-\u00de", "a-z\u00df-\u00f6\u00f8-\u024f"
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_PART = re.compile(rf"[{_CJK}]|\d+|[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|[^\W\d_{_UPPER}{_LOWER}{_CJK}]+")
_MARKS = re.compile("[\u0300-\u036f]")
_stemmer = Stemmer.Stemmer("english")


class Words(msgspec.Struct):
    """The parts of a text in order, and the identifiers that were split, joined without their separators."""

    parts: list[str]
    compounds: list[str]


@lru_cache(1 << 16)
def split_word(word: str) -> tuple[str, ...]:
    """`fooBar_baz2` → foo, bar, baz, 2; one part for each CJK character; lower case without accents."""
    return tuple(
        part.lower() if part.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", part)).casefold()
        for part in _PART.findall(word)
    )


def find_words(text: str) -> list[str]:
    """The words of a text as they are written, compatibility forms made plain."""
    return _WORD.findall(text if text.isascii() else unicodedata.normalize("NFKC", text))


def split_text(text: str) -> Words:
    pieces = [split_word(word) for word in find_words(text)]
    compounds = ["".join(parts) for parts in pieces if 1 < len(parts) <= MAX_PARTS]
    return Words([part for parts in pieces for part in parts], compounds)


@lru_cache(1 << 17)
def term_id(word: str, salt: int) -> int:
    """The 32-bit id of a word's stem for one owner."""
    return zlib.crc32(_stemmer.stemWord(word).encode(), salt)


def owner_salt(owner_id: str) -> int:
    return zlib.crc32(owner_id.encode())


_SPREAD = 0x9E3779B1


def pair_id(first: int, second: int) -> int:
    """The id of two terms that stand side by side."""
    return (first * _SPREAD ^ second) & 0xFFFF_FFFF


def name_id(text: str, salt: int) -> int:
    """The id of a whole name: the same for `getUser`, `get_user`, `Get user` and `get-user`."""
    return zlib.crc32("".join(split_text(text[:500]).parts).encode(), salt)


HEADER = 5
"""Words before the lists of a packed record: number of terms, of pairs, of title terms, length, name."""

FIELDS, CONTENT = 3, 2
LOW = np.uint64(0xFFFF_FFFF)


def pack_terms(shown: Sequence[Readable], owner_id: str) -> list[bytes]:
    """Records as the ranking sees them, each in 32-bit words: the header, then term ids without repeats (the
    title's first), then for each how often it stands in title, description and content (a byte each), then the ids
    of adjacent pairs. The length is in tenths of a word; the content's words count a fifth.

    Many at once cost a fraction of each alone.
    """
    texts = [text for each in shown for text in (each.title, each.description, each.content)]
    words = [find_words(text)[:MAX_WORDS_PER_FIELD] for text in texts]
    place = np.repeat(np.arange(len(words)), [len(some) for some in words])
    kept, kept_row, aside, aside_row = vocabulary(owner_id).look_up([word for some in words for word in some])
    terms = _Terms(len(shown), kept, place[kept_row], aside, place[aside_row])
    salt = owner_salt(owner_id)
    return terms.pack(np.array([name_id(each.title, salt) for each in shown], np.uint32))


class _Terms:
    """The terms of some records: `kept` with the place of each (three times its record, plus its field) in reading
    order, and those set aside."""

    def __init__(self, records: int, kept: Words32, kept_at: Ints, aside: Words32, aside_at: Ints) -> None:
        self._records = records
        self._kept = kept
        self._kept_at = kept_at
        at = np.concatenate((kept_at, aside_at))
        self._keys, which = np.unique(_joined(at // FIELDS, np.concatenate((kept, aside))), return_inverse=True)
        counts = np.bincount(which * FIELDS + at % FIELDS, minlength=FIELDS * len(self._keys))
        self._counts = np.minimum(counts.reshape(-1, FIELDS), 255) @ np.array([1, 1 << 8, 1 << 16])
        self._in_title = np.zeros(len(self._keys), np.bool_)
        self._in_title[which[: len(kept)][kept_at % FIELDS == 0]] = True

    def pack(self, names: Words32) -> list[bytes]:
        record = (self._keys >> np.uint64(32)).astype(np.int64)
        number = np.bincount(record, minlength=self._records)
        pairs = self._pairs()
        pair_number = np.bincount((pairs >> np.uint64(32)).astype(np.int64), minlength=self._records)
        size = HEADER + 2 * number + pair_number
        start = np.cumsum(size) - size
        packed = np.empty(int(size.sum()), np.uint32)
        title_number = np.bincount(record[self._in_title], minlength=self._records)
        header: tuple[npt.NDArray[Any], ...] = (number, pair_number, title_number, self._lengths(), names)
        for offset, column in enumerate(header):
            packed[start + offset] = column
        order = np.argsort(2 * record + ~self._in_title, kind="stable")
        position, row = ranges(start + HEADER, number)
        packed[position] = (self._keys & LOW)[order]
        packed[position + number[row]] = self._counts[order]
        packed[ranges(start + HEADER + 2 * number, pair_number)[0]] = pairs & LOW
        blob = packed.astype("<u4", copy=False).tobytes()
        return [blob[4 * first : 4 * (first + words)] for first, words in zip(start, size, strict=True)]

    def _pairs(self) -> npt.NDArray[np.uint64]:
        """Record and id of each pair of terms that stand side by side in a field."""
        first, second = self._kept[:-1], self._kept[1:]
        beside = self._kept_at[:-1] == self._kept_at[1:]
        joined: npt.NDArray[np.uint64] = np.unique(
            _joined(self._kept_at[1:][beside] // FIELDS, (first * np.uint32(_SPREAD) ^ second)[beside])
        )
        return joined

    def _lengths(self) -> Ints:
        worth = np.where(self._kept_at % FIELDS == CONTENT, 2, 10)
        return np.maximum(np.bincount(self._kept_at // FIELDS, worth, self._records).astype(np.int64), 10)


def _joined(record: Ints, id: Words32) -> npt.NDArray[np.uint64]:
    return record.astype(np.uint64) << np.uint64(32) | id.astype(np.uint64)


def ranges(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """The positions start[i] … start[i] + count[i] for all i in one array, and the i of each."""
    row = np.repeat(np.arange(len(count)), count)
    return np.arange(len(row)) + (start - np.cumsum(count) + count)[row], row


class Vocabulary(dict[str, int]):
    """The words met so far, numbered. For each the ids of its parts that say something, and the ids that are matched
    but never counted as length: its stop words, and the word as a whole where it was split."""

    def __init__(self, salt: int) -> None:
        super().__init__()
        self._salt = salt
        self._lock = Lock()
        self._forget()

    def look_up(self, words: list[str]) -> tuple[Words32, Ints, Words32, Ints]:
        """The ids of both kinds for all words in order, each with the place of its word."""
        with self._lock:
            if len(self) > MAX_KNOWN_WORDS:
                self._forget()
            numbers = np.fromiter(map(self.__getitem__, words), np.int64, len(words))
            return *_gather(self._kept, numbers), *_gather(self._aside, numbers)

    def __missing__(self, word: str) -> int:
        parts = split_word(word)
        whole = ("".join(parts),) if 1 < len(parts) <= MAX_PARTS else ()
        stops = [part for part in parts if part in STOP]
        for (ends, ids), found in ((self._kept, [p for p in parts if p not in STOP]), (self._aside, [*whole, *stops])):
            ids.extend(term_id(part, self._salt) for part in found)
            ends.append(len(ids))
        self[word] = number = len(self)
        return number

    def _forget(self) -> None:
        self.clear()
        self._kept, self._aside = (array("q", [0]), array("I")), (array("q", [0]), array("I"))


def _gather(lists: tuple[array[int], array[int]], numbers: Ints) -> tuple[Words32, Ints]:
    """The lists with these numbers, one after another, and the place of each item's list."""
    ends, ids = np.frombuffer(lists[0], np.int64), np.frombuffer(lists[1], np.uint32)
    start = ends[numbers]
    position, row = ranges(start, ends[numbers + 1] - start)
    return ids[position], row


@lru_cache(64)
def vocabulary(owner_id: str) -> Vocabulary:
    return Vocabulary(owner_salt(owner_id))
