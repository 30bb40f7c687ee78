"""The part of a text that speaks of a question: a section may say it in its last sentence."""

from __future__ import annotations

import re

from clew.knowledge.answering.question import content_words
from clew.knowledge.code.words import terms_of
from clew.trail.readable import find_words

MOST_LETTERS = 20_000
"""So much of a text is looked at."""

_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")
_MARKUP = re.compile(r"^(?:#{1,6}\s+|[-*+]\s+|\d{1,3}[.)]\s+)")


def excerpt(text: str, question: str, room: int) -> str:
    """From the sentence on that has the most words of the question, behind the heading of the text; the beginning where
    that shows it as well. On one line, and not cut to `room`."""
    said = [_MARKUP.sub("", part).strip() for part in _SENTENCE.split(text[:MOST_LETTERS])]
    sentences = list(dict.fromkeys(filter(None, said)))
    best = _best(sentences, question)
    whole = " ".join(sentences)
    if not best or len(" ".join(sentences[: best + 1])) <= room:
        return whole
    head = f"{sentences[0]} … " if len(sentences[0]) <= room // 3 else "… "
    return head + " ".join(sentences[best:])


def _best(sentences: list[str], question: str) -> int:
    """Which of the sentences has most of what is asked for; the first of several, and 0 where none has any."""
    wanted = {term for word in content_words(question) for term in terms_of(word)}
    found = [len(wanted & {term for word in find_words(each) for term in terms_of(word)}) for each in sentences]
    return found.index(max(found)) if found else 0
