"""How far a source speaks of what a question is about: the share of the question's telling words that it has, each
weighed by how rare it is. What lacks most of them is no answer, however near it stands, and neither is what lacks the
rarest of a few."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from clew.knowledge.code.words import terms_of
from clew.knowledge.git.search import MADE, UNMADE
from clew.knowledge.resolving.wordings import SAME_WORDS
from clew.trail.nodes import Node
from clew.trail.readable import find_words

LEAST = 0.5
"""So much of a short question a source must speak of."""
SHORT = 4
"""Of more words than these, less will do: a long question tells more than its answer says again."""
FEW = 3
"""Of so many words, the rarest thing must be there."""
NEAR_BEST = 0.6
"""Beside the best, what has less than this share of its support is left out."""
INSIDE = 0.7
"""What a word counts that stands only in the body of a function."""
PASSAGE = 80
"""So many words of a text are looked at together."""
UNHEARD = 1.25
MOST_LETTERS = 20_000

_ACTION = re.compile(
    r"(?<=\bi )\w+|(?<=\bwe )\w+|(?<=\bto )\w+|(?<=\byou )\w+|(?<=\bone )\w+|\b\w{3,40}(?:ed|ing)\b|\b\d+\b",
    re.IGNORECASE,
)
_SAME = {word: words for words in SAME_WORDS for word in words}
_ALIKE = {word: words for words in (MADE, UNMADE) for word in words}
DONE = frozenset((*MADE, *UNMADE))
"""What may be done to something; where that is asked about, a source must say it."""


class Wanted(msgspec.Struct, frozen=True):
    """The words that a question is about, each with what it weighs. All of `needed` a source must have; those of
    `actions` it may say otherwise."""

    weights: Mapping[str, float]
    needed: frozenset[str] = frozenset()
    actions: frozenset[str] = frozenset()

    @property
    def rarest(self) -> frozenset[str]:
        """The things of a short question of which a source must have one: the rarest. None where a question is long, or
        all of its words are as rare."""
        things = {word: weight for word, weight in self.weights.items() if word not in self.actions}
        most = max(things.values(), default=0.0)
        found = frozenset(word for word, weight in things.items() if weight == most)
        is_one_of_several = len(found) < len(self.weights) and (len(found) == 1 or len(found) < len(things))
        return found if len(self.weights) <= FEW and is_one_of_several else frozenset()

    @property
    def least(self) -> float:
        """The support from which on a source answers."""
        return LEAST * min(1.0, SHORT / max(1, len(self.weights)))


def build_wanted(
    words: Sequence[str], rarity: Mapping[str, float], needed: Collection[str] = (), actions: Collection[str] = ()
) -> Wanted:
    """Words that occur nowhere count a little more than the rarest of the others."""
    missing = UNHEARD * max(rarity.values(), default=0.0) or 1.0
    weights = {word: rarity.get(word) or missing for word in words}
    return Wanted(weights, frozenset(needed).intersection(words), frozenset(actions).intersection(words))


def actions_in(question: str) -> frozenset[str]:
    """The words of a question that tell what is done, by where they stand or how they end, and its numbers: others may
    say these otherwise."""
    return frozenset(map(str.lower, _ACTION.findall(question[:MOST_LETTERS])))


def support_of(wanted: Wanted, node: Node, body: str = "") -> float:
    """From 0 to 1. Without telling words nothing is supported, nor where a word is missing that a source must have."""
    whole = sum(wanted.weights.values())
    if not whole:
        return 0.0
    named, inside = _terms(f"{node.name}\n{node.path or ''}"), _terms(body)
    return max(_weigh(wanted, named | said, inside) for said in _passages(node.content)) / whole


def _weigh(wanted: Wanted, said: set[int], inside: set[int]) -> float:
    worth = {word: _worth(word, said, inside) for word in wanted.weights}
    rarest = wanted.rarest
    if rarest and not any(worth[word] for word in rarest):
        return 0.0
    if not all(
        worth[word] or any(_worth(each, said, inside) for each in _ALIKE.get(word, ())) for word in wanted.needed
    ):
        return 0.0
    return sum(weight * worth[word] for word, weight in wanted.weights.items())


def _passages(text: str) -> Iterator[set[int]]:
    """The terms of each stretch of a text: words that stand far apart do not speak of one thing."""
    words = [terms_of(word) for word in find_words(text[:MOST_LETTERS])]
    for at in range(0, max(1, len(words) - PASSAGE // 2), PASSAGE // 2):
        yield {term for terms in words[at : at + PASSAGE] for term in terms}


def _worth(word: str, said: set[int], inside: set[int]) -> float:
    forms = [set(terms_of(form)) for form in _SAME.get(word, (word,))]
    if any(form and form <= said for form in forms):
        return 1.0
    return INSIDE if any(form and form <= inside for form in forms) else 0.0


def _terms(text: str) -> set[int]:
    return {term for word in find_words(text[:MOST_LETTERS]) for term in terms_of(word)}
