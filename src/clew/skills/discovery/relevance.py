"""Decides whether a skill fits a question at all; see docs/decisions/0023.

fit = relevance of the hit - 1.5 · nearness of the question to general topics + 0.5 · share of its words known here

A skill for a certain tool needs a lower fit, and a much higher one if the question names a tool that no skill mentions.
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

BACKGROUND, KNOWN_WORDS, KNOWN_IN_HEADS, OTHER_TOOL = 1.5, 0.5, 0.5, 1.2
FITS, FITS_FOR_A_TOOL = 0.72, 0.64
"""The least fit of a skill, and of a skill for a certain tool."""

SHARE_OF_BEST, ALWAYS_CLOSE, CLOSE_BESIDE_NAME = 0.6, 1.0, 2.0
"""A skill is shown in addition to the best one if its fit has this share of the best fit, or is at least the second
value. If the best skill is called by its name, the fit must be at least the third value."""

_TALK = "good great nice cool fine perfect morning afternoon evening day night bye goodbye welcome cheers sorry"
_SMALL_TALK = frozenset(_TALK.split())
"""Words of greeting and courtesy. A message that has only such words needs no skill."""
_NUMBERED = re.compile(r"[\w-]*\d[\w-]*")
"""Numbers, dates and ids, which no skill mentions."""


class Vocabulary(msgspec.Struct, frozen=True):
    """The stems of all words of skills, the stems in names and descriptions, and the tools that they name."""

    words: frozenset[int] = frozenset()
    heads: frozenset[int] = frozenset()
    tools: frozenset[str] = frozenset()


class SkillFit:
    """The measure for one question. Without an embedder it is `closeness`, by words alone. For a question without
    content words only a skill that it names is close."""

    def __init__(self, question: str, vocabulary: Vocabulary, background: Background | None) -> None:
        self._has_content = has_content_words(question)
        self._bonus, self._names_other_tool = 0.0, False
        if background is not None:
            known = KNOWN_WORDS * known_share(question, vocabulary.words)
            known += KNOWN_IN_HEADS * known_share(question, vocabulary.heads)
            self._bonus = known - BACKGROUND * background.nearness(question)
            self._names_other_tool = bool(find_tools(question[:MAX_QUERY_CHARS]) - vocabulary.tools)
        self._has_background = background is not None

    def closeness(self, hit: Hit) -> float:
        """Return the closeness of a hit: 1 is just close enough, 0 the least. A skill called by its name has the
        highest value."""
        if not self._has_content and not hit.exact:
            return 0.0
        if hit.exact or hit.vector_score is None or not self._has_background:
            return closeness(hit)
        return below_exact(max(1.0 + hit.relevance + self._bonus - self._wanted(hit.breadcrumb), 0.0))

    def _wanted(self, skill: Breadcrumb) -> float:
        if not _is_for_a_tool(skill.title, str(skill.context.get("description", ""))):
            return FITS
        return FITS_FOR_A_TOOL + (OTHER_TOOL if self._names_other_tool else 0.0)


def open_background(embedder: Embedder | None) -> Background | None:
    """Return the vectors of common questions, or None without an embedder."""
    return Background(embedder) if embedder is not None else None


def select_close(hits: Sequence[Hit], measure: Callable[[Hit], float], limit: int) -> list[tuple[Hit, float]]:
    """Return the first hits with their closeness, without hits that are far off or far behind the best; empty if no hit
    is close."""
    found = [(hit, measure(hit)) for hit in hits]
    best = max((close for _, close in found), default=0.0)
    if best < 1.0:
        return []
    least = min(SHARE_OF_BEST * best, ALWAYS_CLOSE) if best < EXACT else CLOSE_BESIDE_NAME
    return [each for each in found if each[1] >= least][:limit]


def read_vocabulary(heads: Iterable[str], bodies: Iterable[str]) -> Vocabulary:
    """Return the words of names and descriptions (`heads`), and of all texts."""
    heads, bodies = list(heads), list(bodies)
    first = _stems(heads)
    tools = frozenset[str]().union(*(find_tools(text, is_lenient=True) for text in (*heads, *bodies)))
    return Vocabulary(first | _stems(bodies), first, tools)


def has_content_words(question: str) -> bool:
    """Whether a question has a word that is not a function word, number, greeting or courtesy."""
    return bool(_content_words(question) - _SMALL_TALK)


def known_share(question: str, stems: Collection[int]) -> float:
    """Return the share of known words of a question, without function words and numbers; 1 if it has no others."""
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
