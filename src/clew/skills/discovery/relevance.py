"""Whether a skill fits a question at all. docs/decisions/0008 shows what the measure tells apart.

fit = relevance of the hit - 1.5 · nearness of the question to topics at large + 0.5 · share of its words known here
A skill that is for a certain tool needs less to fit, and much more where the question names one that no skill knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache

import msgspec

from clew.llm.background import Background
from clew.skills.discovery.known_tools import find_tools
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.query import Hit
from clew.trail.model.readable import find_words
from clew.trail.search.closeness import EXACT, below_exact, closeness
from clew.trail.search.text import MAX_KNOWN_LENGTH, MAX_QUERY_CHARS, STOP, split_text, split_word, term_id
from clew.trail.store import Embedder

BACKGROUND, KNOWN, KNOWN_IN_HEADS, ELSEWHERE = 1.5, 0.5, 0.5, 1.2
FITS, FITS_FOR_A_TOOL = 0.72, 0.64
"""From here on a skill fits; and one that says of itself for which tool it is."""

BESIDE, BESIDE_AT_MOST, BESIDE_A_NAME = 0.6, 1.0, 2.0
"""Beside the best, one with this share of its measure is worth showing, and one that is close by itself; beside a skill
that was called by its name only what is very close."""

_TALK = "good great nice cool fine perfect morning afternoon evening day night bye goodbye welcome cheers sorry"
_SMALL_TALK = frozenset(_TALK.split())
"""Words of greeting and courtesy that a search still looks for; alone they ask for no skill."""
_NUMBERED = re.compile(r"[\w-]*\d[\w-]*")
"""Numbers, dates and ids: no skill knows them, whatever it is for."""


class Vocabulary(msgspec.Struct, frozen=True):
    """The stems of all words that skills have, and of those in their names and descriptions; the tools they name."""

    words: frozenset[int] = frozenset()
    heads: frozenset[int] = frozenset()
    tools: frozenset[str] = frozenset()


class SkillFit:
    """The measure for one question. Without an embedder it is `closeness`, by words alone. To a question without any
    telling word nothing is close but what it names."""

    def __init__(self, question: str, vocabulary: Vocabulary, background: Background | None) -> None:
        self._is_telling = has_telling_words(question)
        self._bonus, self._is_elsewhere = 0.0, False
        if background is not None:
            known = KNOWN * known_share(question, vocabulary.words)
            known += KNOWN_IN_HEADS * known_share(question, vocabulary.heads)
            self._bonus = known - BACKGROUND * background.nearness(question)
            self._is_elsewhere = bool(find_tools(question[:MAX_QUERY_CHARS]) - vocabulary.tools)
        self._has_background = background is not None

    def closeness(self, hit: Hit) -> float:
        """How close a hit is, 1 being just close enough, never below 0. Nothing is as close as a name that was
        called."""
        if not self._is_telling and not hit.exact:
            return 0.0
        if hit.exact or hit.vector_score is None or not self._has_background:
            return closeness(hit)
        return below_exact(max(1.0 + hit.relevance + self._bonus - self._wanted(hit.breadcrumb), 0.0))

    def _wanted(self, skill: Breadcrumb) -> float:
        if not _is_for_a_tool(skill.title, str(skill.context.get("description", ""))):
            return FITS
        return FITS_FOR_A_TOOL + (ELSEWHERE if self._is_elsewhere else 0.0)


def open_background(embedder: Embedder | None) -> Background | None:
    """Return the vectors of common questions, or None without an embedder."""
    return Background(embedder) if embedder is not None else None


def close_ones(hits: Sequence[Hit], measure: Callable[[Hit], float], limit: int) -> list[tuple[Hit, float]]:
    """The first hits with how close they are, those aside that are far off or far behind the best; none where no hit at
    all is close."""
    found = [(hit, measure(hit)) for hit in hits]
    best = max((close for _, close in found), default=0.0)
    if best < 1.0:
        return []
    least = min(BESIDE * best, BESIDE_AT_MOST) if best < EXACT else BESIDE_A_NAME
    return [each for each in found if each[1] >= least][:limit]


def read_vocabulary(heads: Iterable[str], bodies: Iterable[str]) -> Vocabulary:
    """The words of names and descriptions, and of all texts."""
    heads, bodies = list(heads), list(bodies)
    first = _stems(heads)
    tools = frozenset[str]().union(*(find_tools(text, is_lenient=True) for text in (*heads, *bodies)))
    return Vocabulary(first | _stems(bodies), first, tools)


def has_telling_words(question: str) -> bool:
    """Whether a question has any word beside function words, numbers, greetings and politeness."""
    return bool(_content_words(question) - _SMALL_TALK)


def known_share(question: str, stems: Collection[int]) -> float:
    """Which share of the words of a question, function words and numbers aside, is known; 1 where it has no others."""
    words = _content_words(question)
    return sum(term_id(word, 0) in stems for word in words) / len(words) if words else 1.0


def _content_words(question: str) -> set[str]:
    said = _NUMBERED.sub(" ", question[:MAX_QUERY_CHARS])
    return {word for word in split_text(said).parts if word not in STOP}


@lru_cache(1 << 12)
def _is_for_a_tool(name: str, description: str) -> bool:
    return bool(find_tools(f"{name}\n{description}", is_lenient=True))


def _stems(texts: Iterable[str]) -> frozenset[int]:
    words: set[str] = set()
    for text in texts:
        words.update(find_words(text))
    return frozenset(term_id(part, 0) for word in words for part in split_word(word[:MAX_KNOWN_LENGTH]))
