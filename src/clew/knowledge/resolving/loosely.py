"""Whether two questions that find the same also ask the same of it, in words that differ by little: to print for to
show, the items of a list for the list, a direction that only one of them spells out. The words alone would not do:
this is for questions with one finding."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import lru_cache
from itertools import pairwise

import msgspec

from clew.knowledge.resolving.aspects import are_at_odds, aspect_of
from clew.knowledge.resolving.intents import asking_words
from clew.knowledge.resolving.phrases import Intent
from clew.knowledge.resolving.rewording import CONTAINER, reword
from clew.knowledge.resolving.subjects import stem_of, subject_words

_PHRASES = (
    (r"(?<!\bthe )(?<!\ba )(?<!\ban )(?<!\bour )(?<!\bof )(?:print|show|display)(?:s|ed|ing)?", "display"),
    (r"check(?:s|ed|ing)? (?=(?:\w+ ){1,4}if\b)", ""),
    (r"finding ", ""),
    (r"(?:text|txt) (?=files?\b)", ""),
)
"""What one may say and the other leave out, or say otherwise. A display is something else than to display."""
_LITTLE_WORDS = ("value", "item", "element")
_SAY_LITTLE = frozenset(map(stem_of, _LITTLE_WORDS))
_LITTLE = re.compile(
    rf"(?<=\w )\b(?:{'|'.join(_LITTLE_WORDS)})s?(?= in (?:(?:a|an|the|our|each|every) )?{CONTAINER}\b)"
    rf"|\b{CONTAINER} (?:{'|'.join(_LITTLE_WORDS)})s(?! \w)"
    rf"|\b(?:{'|'.join(_LITTLE_WORDS)})s? (?:is|are)\b"
)
"""Where these words may be left out: the values in a list, the items of a dictionary, the value that is a number."""
_ACTIONS = frozenset(map(stem_of, ("read", "write", "convert", "parse", "copy", "save", "export", "import")))
_SOURCE, _GOAL = "<", ">"

_RULES = tuple((re.compile(rf"(?<![\w.]){pattern}", re.IGNORECASE), said) for pattern, said in _PHRASES)
_WORD = re.compile(r"[^\W_]+")


class Said(msgspec.Struct, frozen=True):
    """What a question says: the stems of what it is about, and of those that it could leave out; the stems of two
    neighbours, by that of the one word that they would make; and its marks."""

    telling: frozenset[str]
    little: frozenset[str]
    pairs: dict[str, tuple[str, str]]
    marks: frozenset[str]

    def followers(self, stem: str) -> set[str]:
        """The things that a word says more about by standing before them."""
        after = {two for one, two in self.pairs.values() if one == stem}
        return (after & self.telling) - _ACTIONS


def are_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two findings, the best first, are as good as one: the first is the same, or half of all are."""
    if not one or not other:
        return False
    return one[0] == other[0] or 2 * len(set(one) & set(other)) >= max(len(one), len(other))


def are_loosely_the_same(one: str, other: str, intent: Intent) -> bool:
    """Whether two questions for one intent that find the same want the same. Names, numbers, times, negations and what
    is asked for are marked alike in both; of the words, one has all that the other has, and beyond that none but such
    as it could leave out."""
    first, second = _read(one, intent), _read(other, intent)
    if not (first.telling & second.telling) - _SAY_LITTLE:
        return False
    ours, theirs = _beyond(first, second), _beyond(second, first)
    if (ours and theirs) or not ours <= first.little or not theirs <= second.little:
        return False
    return _go_together(first, second) and not are_at_odds(reword(one), reword(other))


@lru_cache(1 << 10)
def _read(question: str, intent: Intent) -> Said:
    text = reword(question)
    for pattern, said in _RULES:
        text = pattern.sub(said, text)
    little = [word for found in _LITTLE.findall(text.lower()) for word in _WORD.findall(found)]
    stems = [(one + two, stem_of(one), stem_of(two)) for one, two in pairwise(_WORD.findall(text.lower()))]
    return Said(
        telling=frozenset(map(stem_of, subject_words(text, asking_words(text, intent)))),
        little=frozenset(map(stem_of, little)) & _SAY_LITTLE,
        pairs={stem_of(both): (one, two) for both, one, two in stems},
        marks=frozenset(aspect_of(text).split()),
    )


def _beyond(said: Said, other: Said) -> Set[str]:
    """The words of a question that the other has not, neither so nor written as one or as two."""
    left = said.telling - other.telling - other.pairs.keys()
    whole = other.telling & said.pairs.keys()
    return left.difference(*(said.pairs[stem] for stem in whole))


def _go_together(one: Said, other: Said) -> bool:
    """Whether the marks of two questions are the same, but for where something comes from or goes to: that may be said
    by one alone, unless the other says otherwise or makes another thing of it: what is copied to the disk is not the
    disk copy."""
    if any(mark[0] not in _SOURCE + _GOAL for mark in one.marks ^ other.marks):
        return False
    for turn in (_SOURCE, _GOAL):
        ours, theirs = ({mark for mark in each.marks if mark[0] == turn} for each in (one, other))
        if ours and theirs and ours != theirs:
            return False
    turned = {(_GOAL if mark[0] == _SOURCE else _SOURCE) + mark[1:] for mark in one.marks}
    apart = {mark[1:] for mark in one.marks ^ other.marks}
    return turned.isdisjoint(other.marks) and all(one.followers(stem) == other.followers(stem) for stem in apart)
