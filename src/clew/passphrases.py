"""Passphrases: passwords of several words, as distinct from labels and sentences about passwords."""

from __future__ import annotations

import re

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
    r"(?m)^([^\S\n]*(?:[-+][^\S\n]+)?(?:export[^\S\n]+|set[^\S\n]+|ENV[^\S\n]+)?[\w.-]{0,100}?"
    r"(?:(?i:passw(?:or)?d|passphrase|passcode|pwd)(?:[_-]?\d{1,3})?[^\S\n]{0,5}[=:]|(?<=[_-])(?i:pass)=)[^\S\n]{0,5})"
    r"([a-z\d][a-z\d-]*(?: [a-z\d][a-z\d-]*){1,11})(?=[^\S\n]*(?:#.*)?$)"
)
"""A line that sets a password to several words without quotes."""


def is_ordinary(value: str) -> bool:
    """Whether a value is a word that messages put after the name of a secret."""
    return _ORDINARY_VALUE.fullmatch(value) is not None


def is_phrase(text: str) -> bool:
    """Whether a text between quotes is a passphrase: three words or more, and no sentence."""
    return _PHRASE.fullmatch(text) is not None and _SENTENCE.isdisjoint(text.split())


def mask_phrases(text: str, mask: str, *, least: int = 2) -> str:
    """Mask passphrases without quotes, of `least` words or more, that a whole line sets."""

    def replace(found: re.Match[str]) -> str:
        words = found[2].split()
        is_label = not _SENTENCE.isdisjoint(words) or any(map(is_ordinary, words))
        return found[0] if is_label or len(words) < least else found[1] + mask

    return _LINE.sub(replace, text)
