"""Statements that cannot both hold: another number for the same thing, or one says what the other denies."""

from __future__ import annotations

import re

import msgspec

from clew.knowledge.text import coverage, likeness, stems

MOSTLY, ALIKE = 0.5, 0.6
"""More than this share of the shorter statement's words is in the other; all words of two that differ by a `not`."""
FEWEST = 2
"""So many words two statements share at least that differ by a `not`."""

_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split()) if word != "one"} | {"once": "1"}
_TOKEN = re.compile(r"#?\w+(?:[.:]\d+)*(?:'\w+)?")
_NUMBER = re.compile(r"\d+(?:[.:]\d+)*")
_DENIALS = frozenset(("never", "not", "no", "without", "avoid", "stop", "stopped", "cannot", "nor"))
_INSTEAD = frozenset(("than", "of"))
_BEFORE_INSTEAD = frozenset(("rather", "instead"))
_COUNTING = frozenset(("time", "at", "most", "least", "about", "to", "up", "exact"))
_REFERENCES = frozenset(
    ("issu", "pr", "gh", "section", "line", "page", "step", "releas", "ticket", "bug", "figur", "tabl")
)
"""What is numbered, not counted."""
_NEAR = 2


class Statement(msgspec.Struct, frozen=True):
    """A sentence: what it is about, which numbers it gives for what, which it denies, and whether it denies at all."""

    about: frozenset[str]
    given: dict[str, set[str]]
    denied: set[str]
    is_denial: bool


def are_opposed(one: str, other: str) -> bool:
    """Whether two sentences contradict each other, as far as numbers and denials tell."""
    a, b = read_statement(one), read_statement(other)
    near = coverage(a.about, b.about)
    if near > MOSTLY and (_differ(a, b) or a.denied & _all_given(b) or b.denied & _all_given(a)):
        return True
    has_numbers = bool(a.given or b.given or a.denied or b.denied)
    is_alike = likeness(a.about, b.about) >= ALIKE and len(a.about & b.about) >= FEWEST
    return not has_numbers and is_alike and a.is_denial is not b.is_denial


def read_statement(sentence: str) -> Statement:
    """A sentence taken apart."""
    words = [_NUMBERS.get(word, word) for word in _TOKEN.findall(sentence.lower())]
    given: dict[str, set[str]] = {}
    denied: set[str] = set()
    for at, word in enumerate(words):
        if not _NUMBER.fullmatch(word):
            continue
        before = words[max(0, at - _NEAR) : at]
        if _denies(before):
            denied.add(word)
            continue
        for stem in _things(before, words[at + 1 : at + 1 + _NEAR]):
            given.setdefault(stem, set()).add(word)
    about = frozenset(stem for stem in stems(" ".join(words)) if not stem.isdigit()) - _COUNTING
    is_denial = any(word in _DENIALS or word.endswith("n't") for word in words)
    return Statement(about, given, denied, is_denial)


def _differ(a: Statement, b: Statement) -> bool:
    shared = a.given.keys() & b.given.keys()
    return any(a.given[thing].isdisjoint(b.given[thing]) for thing in shared)


def _all_given(statement: Statement) -> set[str]:
    return {number for numbers in statement.given.values() for number in numbers}


def _denies(before: list[str]) -> bool:
    is_instead = len(before) == _NEAR and before[0] in _BEFORE_INSTEAD and before[1] in _INSTEAD
    return is_instead or any(word in _DENIALS or word.endswith("n't") for word in before)


def _things(before: list[str], after: list[str]) -> frozenset[str]:
    """What a number counts: the words next to it. None where it only names something."""
    found = stems(" ".join((*before, *after)))
    things = frozenset(stem for stem in found if not stem[0].isdigit()) - _COUNTING
    return frozenset() if things & _REFERENCES else things
