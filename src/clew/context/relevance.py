"""The question in a trigger, and which records are relevant to it."""

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
"""The least similarity for a context; an answer needs 0.5."""
LEAST_SAID = 0.5
"""The same of what was said in another session: chat is like other chat, and rarely of use there."""
LEAST_MEANT = 0.15
"""The least cosine of what one word alone finds: that the word stands somewhere says little."""
SURE = 0.75
"""So close by its words alone is what is about a word rather than holds it."""
SAME = 0.97
"""From this cosine on two messages say the same."""

_COURTESIES = frozenset(("bye", "cheers", "goodbye", "hallo", "hello", "hey", "okay", "sorry", "thank", "thanks"))


class ContextQuestion(msgspec.Struct, frozen=True):
    """A question, and the number of its content words. Without any, nothing is relevant."""

    text: str
    words: int


def question_of(trigger: Breadcrumb, view: Mapping[str, Any] | None = None) -> ContextQuestion:
    """The text of the trigger as a model sees it, then its pointer tags. The title counts only if there is no other
    text."""
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
    """The best hits for a question, without the trigger itself."""
    if not question.text:
        return ()
    request = SearchRequest(text=question.text, selector=selector, limit=limit, exclude=(without,))
    return (await trail.index.search(request, by=by)).hits


def similarity(hit: Hit) -> float:
    """From 0 to 1: a hit that is just close enough for an answer is half way."""
    return min(1.0, closeness(hit) / 2)


def is_meant(hit: Hit, question: ContextQuestion) -> bool:
    """Whether a hit is more than one that happens to hold the only word of the question."""
    is_about = hit.vector_score is None or hit.vector_score >= LEAST_MEANT or similarity(hit) >= SURE
    return question.words > 1 or is_about
