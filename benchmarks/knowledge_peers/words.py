"""The words and names that peers take from a question."""

from __future__ import annotations

import re

from clew.trail.search.text import STOP

MAX_WORDS = 200


def words_of(question: str) -> list[str]:
    """The parts of its words in lower case, each once, without stop words."""
    return _without_stop_words(re.findall(r"\w+", question.lower().replace("_", " ")))


def names_of(question: str) -> list[str]:
    """Its words as they are written, each once, without stop words."""
    return _without_stop_words(re.findall(r"[^\W\d]\w*", question))


def _without_stop_words(words: list[str]) -> list[str]:
    found = list(dict.fromkeys(words))
    return ([word for word in found if word.lower() not in STOP] or found)[:MAX_WORDS]
