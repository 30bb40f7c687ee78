"""A need in words, as stemmed terms to match with names and descriptions, with synonyms from `synonyms.json`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.words import terms_of
from clew.knowledge.project.formats import load_table
from clew.trail.text import STOP, split_word

MAX_NEED = 300
_MAX_WORDS = 12
_WORD = re.compile(r"[^\W_][\w.-]*")
_RELATION = re.compile(r"\b(?:for|to|of|with|that|which|from|when|in|on)\b", re.IGNORECASE)


class Need(msgspec.Struct, frozen=True):
    """The terms of each word; `head` is the index of the word that names the thing."""

    words: Sequence[str]
    terms: Sequence[frozenset[int]]
    head: int

    def matched(self, known: frozenset[int]) -> list[bool]:
        return [not terms.isdisjoint(known) for terms in self.terms]


def read_need(text: str, leave_out: frozenset[str] = frozenset()) -> Need:
    """Parse a need. Raises InvalidInput when it has no words."""
    plain = text[:MAX_NEED]
    words = _content(plain, leave_out) or _content(plain, frozenset())
    if not words:
        raise InvalidInput("need", "has no words", hint="Say what you need, such as 'date formatting'")
    first = _content(_RELATION.split(plain, maxsplit=1)[0], leave_out)
    head = len(first) - 1 if first and words[: len(first)] == first else len(words) - 1
    return Need(words, [frozenset(alike(word)) for word in words], head)


def terms_in(text: str) -> frozenset[int]:
    """The terms of a name or a description."""
    return frozenset(term for word in _WORD.findall(text[:2_000]) for term in terms_of(word))


@cache
def alike(word: str) -> frozenset[int]:
    """The terms of a word and of its synonyms."""
    own = frozenset(terms_of(word))
    groups = [group for group in _groups() if not group.isdisjoint(own)]
    return own.union(*groups)


@cache
def _groups() -> tuple[frozenset[int], ...]:
    groups = load_table("synonyms.json", list[list[str]])
    return tuple(frozenset(term for word in group for term in terms_of(word)) for group in groups)


def _content(text: str, leave_out: frozenset[str]) -> list[str]:
    parts = (part for word in _WORD.findall(text) for part in split_word(word))
    return [part for part in parts if part not in STOP and part not in leave_out][:_MAX_WORDS]
