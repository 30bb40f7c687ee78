"""Triggers that load a skill: a word of the message, the phase of the work, or a path.

A pattern has alternative phrases such as `deploy|roll ?out`. It is expanded to phrases once, so no pattern can make a
search slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product

import msgspec

from clew.errors import ValidationError
from clew.lazy_pattern import lazy_pattern
from clew.skills.exposure import Via
from clew.skills.manifest import Skill
from clew.trail.model.globs import glob_matches

MAX_PATTERN = 500
MAX_PHRASES = 64
_WORD = lazy_pattern(r"\w+", re.UNICODE)
_PIECE = lazy_pattern(r"([^?|()\[\]{}*+\\^$.])(\?)?")


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The input of triggers: the message, the phase of the work, and the paths in use."""

    text: str = ""
    phase: str = ""
    paths: tuple[str, ...] = ()


class TriggeredSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that a turn triggers, and the cause."""

    skill: str
    via: Via
    why: str


def match(skills: Iterable[Skill], turn: Turn) -> list[TriggeredSkill]:
    """Return the skills of tier 2 that a turn triggers, by priority and name."""
    said = " ".join(_words(turn.text))
    found = [(skill, why) for skill in skills if skill.tier == 2 and (why := _reason(skill, turn, said))]
    found.sort(key=lambda each: (-each[0].priority, each[0].name))
    return [
        TriggeredSkill(skill=skill.name, via="path" if why.startswith("path") else "trigger", why=why)
        for skill, why in found
    ]


def expand(pattern: str) -> tuple[str, ...]:
    """Return the phrases of a pattern, in lower case. Raises ValidationError for other regular expressions."""
    if len(pattern) > MAX_PATTERN:
        raise ValidationError(f"the trigger is over {MAX_PATTERN} characters", trigger=pattern[:50])
    phrases: dict[str, None] = {}
    for part in pattern.split("|"):
        for phrase in _spellings(part, pattern):
            if phrase.strip():
                phrases[phrase.strip().casefold()] = None
    if len(phrases) > MAX_PHRASES:
        raise _refused(pattern, f"expands to more than {MAX_PHRASES} phrases")
    return tuple(phrases)


def _spellings(part: str, pattern: str) -> Sequence[str]:
    pieces = list(_PIECE.finditer(part))
    if sum(len(piece[0]) for piece in pieces) != len(part):
        raise _refused(pattern, "uses unsupported syntax of regular expressions")
    if sum(1 for piece in pieces if piece[2]) > 6:
        raise _refused(pattern, f"expands to more than {MAX_PHRASES} phrases")
    choices = [(piece[1], "") if piece[2] else (piece[1],) for piece in pieces]
    return ["".join(chosen) for chosen in product(*choices)]


def _refused(pattern: str, reason: str) -> ValidationError:
    return ValidationError(
        f"the trigger {pattern[:80]!r} {reason}",
        allowed=("phrases", "|", "?"),
        hint="Separate phrases by |; ? makes the letter or space before it optional, as in roll ?out",
        trigger=pattern,
    )


@lru_cache(maxsize=4_096)
def _phrases(pattern: str) -> tuple[str, ...]:
    """Like `expand`, with a space before each phrase. An invalid pattern has no phrases."""
    try:
        return tuple(" " + " ".join(_words(phrase)) for phrase in expand(pattern) if _words(phrase))
    except ValidationError:
        return ()


def _reason(skill: Skill, turn: Turn, said: str) -> str:
    """Return the reason why a turn triggers a skill; empty if it does not. Phrases match at the beginning of words."""
    triggers = skill.triggers
    around = f" {said} "
    for word in (*triggers.words, *skill.keywords):
        if (wanted := " ".join(_words(word))) and f" {wanted} " in around:
            return f"the word {word!r}"
    for phrase in _phrases(triggers.pattern) if triggers.pattern else ():
        if phrase in around:
            return f"the words {phrase.strip()!r}"
    if turn.phase and turn.phase.casefold() in (phase.casefold() for phase in triggers.phases):
        return f"the phase {turn.phase!r}"
    for path in turn.paths:
        for glob in triggers.paths:
            if glob_matches(glob, path):
                return f"path {path} matches {glob}"
    return ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
