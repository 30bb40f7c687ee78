"""Passphrases: passwords of several words, as distinct from labels and sentences about passwords."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.lazy_pattern import lazy_pattern

ORDINARY = (
    r"(?:expired|invalid|valid|missing|required|denied|empty|unknown|null|none|nil|true|false|undefined|unset|set|wrong"
    r"|refused|rejected|revoked|string|str|text|bytes|int|object|yes|no|ok|failed|found|error)"
)
"""Words that messages put after the name of a secret."""
_ORDINARY_VALUE = lazy_pattern(rf"(?i:passw.*|pass|secret|hidden|{ORDINARY})")
_SENTENCE = frozenset(
    (
        *("a", "an", "and", "are", "at", "be", "by", "can", "cannot", "do", "for", "from", "has", "have", "if", "in"),
        *("is", "it", "least", "may", "must", "new", "no", "not", "of", "on", "or", "should", "that", "the", "this"),
        *("to", "too", "use", "used", "was", "with", "you", "your", "characters", "enter", "field", "invalid"),
        *("match", "password", "please", "required", "see", "wrong"),
    )
)
"""Words of sentences and labels about passwords; a passphrase has none of them."""
_PHRASE = lazy_pattern(r"[a-z\d-]+(?: [a-z\d-]+){2,11}")
_LINE = lazy_pattern(
    r"(?m)^([^\S\n]*(?:[-+>|][^\S\n]+)?(?:export[^\S\n]+|set[^\S\n]+|ENV[^\S\n]+)?[\w.-]{0,100}?"
    r"(?:(?i:passw(?:or)?d|passphrase|passcode|pwd)(?:[_-]?\d{1,3})?[^\S\n]{0,5}(:?=|:)|(?<=[_-])(?i:pass)(=))"
    r"[^\S\n]{0,5})([A-Za-z\d][A-Za-z\d-]*(?:[^\S\n]{1,3}[A-Za-z\d][A-Za-z\d-]*){1,11})(?=[^\S\n]*(?:#.*)?$)"
)
"""A line that sets a password to several words without quotes, or a label before some words."""


def is_ordinary(value: str) -> bool:
    """Whether a value is a word that messages put after the name of a secret."""
    return _ORDINARY_VALUE.fullmatch(value) is not None


def is_phrase(text: str) -> bool:
    """Whether a text between quotes is a passphrase: three words or more, and no sentence."""
    return _PHRASE.fullmatch(text) is not None and _SENTENCE.isdisjoint(text.split())


def mask_phrases(text: str, mask: str, *, least: int = 2) -> str:
    """Mask passphrases without quotes, of `least` words or more, that a whole line sets."""

    def replace(found: re.Match[str]) -> str:
        words = found[4].split()
        is_assigned = found[2] != ":"
        if len(words) < least or _is_sentence(words, is_assigned=is_assigned):
            return found[0]
        return found[1] + mask

    return _LINE.sub(replace, text)


def _is_sentence(words: Sequence[str], *, is_assigned: bool) -> bool:
    """Whether words are a sentence or a label about a password. A single word of sentences may be part of a passphrase.
    After a colon, capitals and a common first word of sentences indicate a label, as in `passwd: Authentication
    failure`."""
    common = [each.lower() in _SENTENCE or is_ordinary(each) for each in words]
    if 2 * sum(common) >= len(words):
        return True
    return not is_assigned and (common[0] or any(each != each.lower() for each in words))
