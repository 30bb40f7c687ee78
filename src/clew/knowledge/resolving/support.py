"""How far a source speaks of what a question is about: the share of the question's telling words that it has, each
weighed by how rare it is. What lacks most of them is no answer, however near it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from clew.knowledge.code.words import terms_of
from clew.knowledge.resolving.wordings import SAME_WORDS
from clew.trail.nodes import Node
from clew.trail.readable import find_words

LEAST = 0.5
"""So much of a short question a source must speak of."""
SHORT = 4
"""Of more words than these, less will do: a long question tells more than its answer says again."""
NEAR_BEST = 0.6
"""Beside the best, what has less than this share of its support is left out."""
INSIDE = 0.7
"""What a word counts that stands only in the body of a function."""
PASSAGE = 80
"""So many words of a text are looked at together."""
UNHEARD = 1.25
MOST_LETTERS = 20_000

_SAME = {word: words for words in SAME_WORDS for word in words}


class Wanted(msgspec.Struct, frozen=True):
    """The words that a question is about, each with what it weighs."""

    weights: Mapping[str, float]

    @property
    def least(self) -> float:
        """The support from which on a source answers."""
        return LEAST * min(1.0, SHORT / max(1, len(self.weights)))


def build_wanted(words: Sequence[str], rarity: Mapping[str, float]) -> Wanted:
    """Words that occur nowhere count a little more than the rarest of the others."""
    missing = UNHEARD * max(rarity.values(), default=0.0) or 1.0
    return Wanted({word: rarity.get(word) or missing for word in words})


def support_of(wanted: Wanted, node: Node, body: str = "") -> float:
    """From 0 to 1. Without telling words nothing is supported."""
    whole = sum(wanted.weights.values())
    if not whole:
        return 0.0
    named, inside = _terms(f"{node.name}\n{node.path or ''}"), _terms(body)
    return max(_weigh(wanted, named | said, inside) for said in _passages(node.content)) / whole


def _weigh(wanted: Wanted, said: set[int], inside: set[int]) -> float:
    return sum(weight * _worth(word, said, inside) for word, weight in wanted.weights.items())


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
