"""The question in a trigger, and the relevance of records to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from clew.access import Principal
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.query import Hit, SearchRequest
from clew.trail.model.readable import STOP_WORDS, find_words, readable, tag_kind
from clew.trail.model.selector import Selector
from clew.trail.search.closeness import closeness
from clew.trail.store import Trail

MAX_QUESTION = 1_000
LEAST_CLOSE = 0.1
"""The least similarity for a context. An answer needs 0.5."""
LEAST_SAID = 0.5
"""The least similarity for messages of other sessions, because chats resemble each other and rarely help elsewhere."""
LEAST_MEANT = 0.15
"""The least cosine of a hit for a single word, because the word alone is weak evidence."""
SURE = 0.75
"""The similarity by words above which a hit is about the word, rather than merely containing it."""
SAME = 0.97
"""The least cosine of two messages that count as the same."""

_COURTESIES = frozenset(("bye", "cheers", "goodbye", "hallo", "hello", "hey", "okay", "sorry", "thank", "thanks"))


class ContextQuestion(msgspec.Struct, frozen=True):
    """A question, and the number of its content words. Without any, nothing is relevant."""

    text: str
    words: int


def question_of(trigger: Breadcrumb, view: Mapping[str, Any] | None = None) -> ContextQuestion:
    """Build the question of a trigger: its text as a model sees it, then its pointer tags. The title counts only if
    there is no other text."""
    shown = readable(trigger.title, trigger.context if view is None else view)
    lines = dict.fromkeys(filter(None, (*shown.description.split("\n"), *shown.content.split("\n"))))
    words = (" ".join(lines) or trigger.title)[:MAX_QUESTION]
    pointers = " ".join(tag for tag in trigger.tags if tag_kind(tag) == "pointer")
    text = f"{words} {pointers}".strip()[: 2 * MAX_QUESTION]
    return ContextQuestion(text, sum(map(_means_something, find_words(text))))


def _means_something(word: str) -> bool:
    lower = word.lower()
    return lower not in STOP_WORDS and lower not in _COURTESIES and (len(word) > 2 or not word.isascii())


async def find_closest(
    trail: Trail, selector: Selector, question: ContextQuestion, limit: int, *, without: str, by: Principal
) -> tuple[Hit, ...]:
    """Return the best hits for a question, without the trigger itself."""
    if not question.text:
        return ()
    request = SearchRequest(text=question.text, selector=selector, limit=limit, exclude=(without,))
    return (await trail.index.search(request, by=by)).hits


def similarity(hit: Hit) -> float:
    """Return the similarity of a hit, from 0 to 1. A hit that is just close enough for an answer has 0.5."""
    return min(1.0, closeness(hit) / 2)


def is_meant(hit: Hit, question: ContextQuestion) -> bool:
    """Whether a hit matches by more than containing the only word of the question."""
    is_about = hit.vector_score is None or hit.vector_score >= LEAST_MEANT or similarity(hit) >= SURE
    return question.words > 1 or is_about
