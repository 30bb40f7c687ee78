"""Conversion of text into terms: words, parts of identifiers, folded accents, stems, 32-bit ids.

A term's id depends on the owner as well: the records of one owner can neither match nor weigh in another's search.
"""

from __future__ import annotations

import hashlib
import unicodedata
import zlib
from array import array
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import Stemmer

from clew.lazy_pattern import lazy_pattern
from clew.trail.model.readable import find_words, is_recurring

MAX_KNOWN_LENGTH = 64
MAX_QUERY_CHARS = 4_000
MAX_PARTS = 8
"""An identifier with more parts is only indexed by its parts."""

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

_UPPER, _LOWER = "A-Z\u00c0-\u00d6\u00d8-\u00de", "a-z\u00df-\u00f6\u00f8-\u024f"
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_PART = lazy_pattern(rf"[{_CJK}]|\d+|[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|[^\W\d_{_UPPER}{_LOWER}{_CJK}]+")
_ASCII_PART = lazy_pattern(r"\d+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""The pattern of words for ASCII texts. The full pattern takes milliseconds to compile, and most folders never need
it."""
_MARKS = lazy_pattern("[\u0300-\u036f]")
_stemmer = Stemmer.Stemmer("english", 0)  # its own cache is slower than stemming


class Words(msgspec.Struct):
    """The parts of a text in order, and the identifiers that were split, joined without their separators."""

    parts: list[str]
    compounds: list[str]


def split_word(word: str) -> tuple[str, ...]:
    """Split a word into parts in lower case without accents: `fooBar_baz2` → foo, bar, baz, 2. Each CJK character is a
    part."""
    return _split_known(word) if is_recurring(word) else _split(word)


def _split(word: str) -> tuple[str, ...]:
    return tuple(
        part.lower() if part.isascii() else _MARKS.sub("", unicodedata.normalize("NFKD", part)).casefold()
        for part in (_ASCII_PART if word.isascii() else _PART).findall(word)
    )


_split_known = lru_cache(1 << 16)(_split)


def split_text(text: str) -> Words:
    pieces = [split_word(word[:MAX_KNOWN_LENGTH]) for word in find_words(text)]
    compounds = ["".join(parts) for parts in pieces if 1 < len(parts) <= MAX_PARTS]
    return Words([part for parts in pieces for part in parts], compounds)


def term_id(word: str, salt: int) -> int:
    """The 32-bit id of a word's stem for one owner."""
    return _known_term_id(word, salt) if is_recurring(word) else _term_id(word, salt)


def _term_id(word: str, salt: int) -> int:
    return zlib.crc32(_stemmer.stemWord(word).encode(), salt)


_known_term_id = lru_cache(1 << 17)(_term_id)


def rare_term_ids(words: Sequence[str], salt: int) -> list[int]:
    """Term ids of words that will hardly be needed again. They are not cached."""
    return [zlib.crc32(stem.encode(), salt) for stem in _stemmer.stemWords(words)]


@lru_cache(1 << 10)
def owner_salt(owner_id: str, secret: str) -> int:
    """The salt of the term ids of an owner. Without the trail's secret, nobody can find out which ids of different
    owners belong to the same term."""
    return int.from_bytes(hashlib.blake2b(owner_id.encode(), digest_size=4, key=secret.encode()[:64]).digest())


SPREAD = 0x9E3779B1


def pair_id(first: int, second: int) -> int:
    """The id of two terms that stand side by side."""
    return (first * SPREAD ^ second) & 0xFFFF_FFFF


def name_id(text: str, salt: int) -> int:
    """The id of a whole name: the same for `getUser`, `get_user`, `Get user` and `get-user`."""
    return zlib.crc32("".join(split_text(text[:500]).parts).encode(), salt)


HEADER = 6
"""Words before the lists of a packed record: number of terms, of pairs, of title terms, length, name, checksum."""


def are_whole(terms: bytes) -> bool:
    """Whether packed terms are undamaged."""
    words = array("I", terms[: 4 * HEADER])
    return len(words) == HEADER and words[5] == zlib.crc32(terms[4 * HEADER :])
