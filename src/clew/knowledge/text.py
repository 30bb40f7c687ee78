"""Words of short texts and how alike two texts are: stems, without stop words."""

from __future__ import annotations

import Stemmer

from clew.trail.search.text import STOP, split_text

_stemmer = Stemmer.Stemmer("english")


def telling_words(text: str) -> list[str]:
    """The words of a question, each once, without stop words unless there are no others."""
    parts = split_text(text).parts
    return list(dict.fromkeys([part for part in parts if part not in STOP] or parts))


def stems(text: str) -> frozenset[str]:
    """The stems of a text's words; identifiers count as their parts."""
    return frozenset(_stemmer.stemWord(word) for word in split_text(text).parts if word not in STOP)


def share_of(wanted: frozenset[str], text: str) -> float:
    """The share of some stems that a text has, from 0 to 1."""
    return len(wanted & stems(text)) / len(wanted) if wanted else 0.0


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of all words that both have, from 0 to 1."""
    return len(one & other) / len(one | other) if one or other else 0.0


def coverage(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the shorter one's words that the other has too, from 0 to 1."""
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0
