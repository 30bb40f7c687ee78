"""What a question is about, as a few words: `where is the auth middleware` is about `auth_middleware`."""

from __future__ import annotations

import re
from functools import lru_cache

import Stemmer

from clew.knowledge.resolving.phrases import TIMES
from clew.trail.readable import find_words
from clew.trail.text import STOP, split_word

MAX_WORDS = 6
EMPTY = "general"

_VAGUE_WORDS = """
    strategy strategies approach approaches pattern patterns convention conventions framework frameworks code codebase
    function functions method methods class classes file files module modules project repository repo implementation
    implemented implement implements defined define defines definition located location work works worked working handle
    handles handled happen happens happened happening changed change changes find locate explain describe walk
    show list look recently recent before earlier previously past similar resume continue leave left off similarly
    current currently decide decided decision decisions chose chosen choose instead result results outcome status
    history activity live lives place stand stands call calls called calling callers caller succeed succeeded
    fail failed pass passed turn turned time last approach responsible part piece exactly actually new old our ours
"""
_VAGUE = frozenset(_VAGUE_WORDS.split())
"""Words that say what is wanted, not of what."""
_stem = Stemmer.Stemmer("english").stemWord
_TIMES = re.compile(rf"\b(?:{'|'.join(map(re.escape, TIMES))})\b")


def time_scope_of(text: str) -> str:
    """The time that a question speaks of, as a name such as `last_month`; empty where it bounds none."""
    found = _TIMES.search(text.lower())
    if found is None:
        return ""
    return "recently" if found[0] == "recent" else found[0].replace(" ", "_")


def subject_of(text: str, *, fallback: str = EMPTY) -> str:
    """The words of a question that name what it is about, joined by `_`; `fallback` where none does."""
    return "_".join(subject_words(text)) or fallback


def subject_words(text: str) -> list[str]:
    """The same as a list, each once: identifiers split into their parts, at most MAX_WORDS."""
    plain = _TIMES.sub(" ", text.lower()) if _TIMES.search(text.lower()) else None
    said = [part for word in find_words(text) for part in split_word(word)]
    kept = set(find_words(plain)) if plain is not None else None
    words = [part for part in said if part not in STOP and (kept is None or _is_kept(part, kept))]
    telling = [word for word in words if word not in _VAGUE] or [word for word in words if word in _OBJECTS]
    return list(dict.fromkeys(telling))[:MAX_WORDS]


def _is_kept(part: str, kept: set[str]) -> bool:
    return any(part in word for word in kept)


_OBJECTS = frozenset(
    ("class", "classes", "function", "functions", "files", "modules", "decisions", "changes", "history")
)
"""Vague words that are a subject where there is no other."""


@lru_cache(1 << 12)
def subject_key(subject: str) -> str:
    """A subject for comparison: stems in order of the alphabet, so that `token_validation` and `validated_tokens` are
    one. A name of one letter less is another name: `auth` and `authz` stay apart."""
    return " ".join(sorted({_stem(word) for word in subject.split("_")}))
