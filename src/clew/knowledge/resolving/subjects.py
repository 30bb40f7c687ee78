"""What a question is about, as a few words: `where is the auth middleware` is about `auth_middleware`."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache

import Stemmer

from clew.knowledge.resolving.phrases import TIMES
from clew.knowledge.resolving.wordings import ORDINARY, SAME_WORDS
from clew.trail.readable import find_words
from clew.trail.text import STOP, split_word

MAX_WORDS = 6
EMPTY = "general"

_stemmed = Stemmer.Stemmer("english").stemWord
_TIMES = re.compile(rf"\b(?:{'|'.join(map(re.escape, TIMES))})\b")
_BRITISH = re.compile(r"(?<=\w{4}i)s(?=(?:e|es|ed|ing|ation|ations|er|ers)\Z)")
_SUFFIXES = (
    ("ize", re.compile(r"iz(?:e|es|ed|ing|ation|ations)\Z")),
    ("ate", re.compile(r"at(?:e|es|ed|ing|ion|ions)\Z")),
    ("er", re.compile(r"[eo]rs?\Z")),
    ("ity", re.compile(r"it(?:y|ies)\Z")),
    ("ive", re.compile(r"ives?\Z")),
    ("able", re.compile(r"[ai]ble\Z")),
    ("ant", re.compile(r"[ae]nts?\Z")),
    ("al", re.compile(r"als?\Z")),
    ("ist", re.compile(r"is(?:t|m)s?\Z")),
)
"""Endings that make another word: who authorizes is no author, and what is active is not what is activated."""


def _reduce(word: str) -> str:
    """The stem of a word, with what made it another word where the stem has lost that."""
    modern = _BRITISH.sub("z", word)
    stem: str = _stemmed(modern)
    lost = modern[len(stem) - 1 :]
    ending = next((name for name, pattern in _SUFFIXES if pattern.search(lost)), "")
    return f"{stem}~{ending}" if ending else stem


_ONE = {_reduce(word): _reduce(words[0]) for words in SAME_WORDS for word in words}
_OBJECTS = frozenset(
    ("class", "classes", "function", "functions", "files", "modules", "decisions", "changes", "history")
)
"""Words of asking that are a subject where there is no other."""


def time_scope_of(text: str) -> str:
    """The time that a question speaks of, as a name such as `last_month`; empty where it bounds none."""
    found = _TIMES.search(text.lower())
    if found is None:
        return ""
    return "recently" if found[0] == "recent" else found[0].replace(" ", "_")


def subject_of(text: str, *, fallback: str = EMPTY, asking: Set[str] = frozenset()) -> str:
    """The words of a question that name what it is about, joined by `_`; `fallback` where none does."""
    return "_".join(subject_words(text, asking)[:MAX_WORDS]) or fallback


def subject_words(text: str, asking: Set[str] = frozenset()) -> list[str]:
    """The same as a list, each once and however many: identifiers split into their parts, without words of asking and
    without `asking`, those that ask for just this."""
    plain = _TIMES.sub(" ", text.lower()) if _TIMES.search(text.lower()) else None
    said = [part for word in find_words(text) for part in split_word(word)]
    kept = set(find_words(plain)) if plain is not None else None
    words = [part for part in said if part not in STOP and (kept is None or _is_kept(part, kept))]
    telling = [word for word in words if word not in ORDINARY and word not in asking]
    return list(dict.fromkeys(telling or [word for word in words if word in _OBJECTS]))


def _is_kept(part: str, kept: set[str]) -> bool:
    return any(part in word for word in kept)


@lru_cache(1 << 12)
def subject_key(subject: str) -> str:
    """A subject for comparison: stems in order of the alphabet, so that `token_validation` and `validated_tokens` are
    one. A name of one letter less is another name: `auth` and `authz` stay apart."""
    return " ".join(sorted({stem_of(word) for word in subject.split("_")}))


def stem_of(word: str) -> str:
    """What a word has in common with its other forms, spellings and the words that say the same."""
    reduced = _reduce(word)
    return _ONE.get(reduced, reduced)
