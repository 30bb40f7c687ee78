"""What a question wants and who answers it, by rules: no model, well under a millisecond."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from clew.knowledge.resolving.phrases import (
    HISTORY_INTENTS,
    OF_CODE,
    OF_CODE_IN_GENERAL,
    OF_HISTORY,
    Intent,
    Target,
)
from clew.knowledge.resolving.request_phrases import COMMANDS, DOING, OF_OTHERS, SESSIONS
from clew.knowledge.resolving.subjects import subject_of, time_scope_of
from clew.knowledge.resolving.wordings import ASKING

By = Literal["command", "cache", "rules", "model"]

SURE, LIKELY, UNSURE = 0.95, 0.85, 0.5
"""A phrase that begins the question; one within it; none at all."""
TRUSTED = 0.8
"""From this confidence on a cached answer may be used, and no model is asked what was meant."""
MAX_LOOKED_AT = 2_000

_COMMAND = re.compile(r"/([a-z][\w-]*)(?:\s+(.*))?\Z", re.DOTALL | re.IGNORECASE)
_TICKET = re.compile(r"[A-Z][A-Z0-9]{1,9}-\d{1,7}|#\d{1,7}")
_POLITE = re.compile(
    r"^(?:(?:please|hey|hi|ok|okay|so|and|can you|could you|would you|i want to|i need to|let's|lets)\b[\s,]*)+"
)
_FILLERS = re.compile(r"\b(?:exactly|actually|really|basically|usually|normally|originally|currently) ")
_QUESTION_WORDS = "where what which who how why when is are do does did has have was were explain find locate show"
_QUESTIONS = frozenset(_QUESTION_WORDS.split())


class Classified(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers, what is wanted, of what, and how sure that is. `time_scope` is for history alone; `tokens` are what
    it took to find out."""

    target: Target
    intent: Intent = Intent.GENERAL
    subject: str = ""
    time_scope: str = ""
    confidence: float = UNSURE
    by: By = "rules"
    tokens: int = 0


def read_command(text: str) -> Classified | None:
    """What a message that begins with a slash wants; None where it is no command."""
    found = _COMMAND.match(text.strip())
    target = COMMANDS.get(found[1].lower()) if found else None
    if found is None or target is None:
        return None
    rest = found[2] or ""
    intent = classify_code(rest)[0] if target is Target.LIBRARIAN else Intent.GENERAL
    intent = classify_history(rest)[0] if target is Target.ARCHIVALIST else intent
    subject = subject_of(rest, asking=asking_words(rest, intent))
    return Classified(target=target, intent=intent, subject=subject, confidence=1.0, by="command")


def classify(text: str) -> Classified:
    """Who answers a message, and what it wants. Never raises: what fits nothing is for the architect, with little
    confidence."""
    command = read_command(text)
    if command is not None:
        return command
    line = _plain(text)
    if _match(line, SESSIONS):
        return Classified(target=Target.SESSION_MANAGER, subject=subject_of(text), confidence=SURE)
    first = line.split(" ", 1)[0]
    asks = first in _QUESTIONS or text.rstrip().endswith("?")
    for target, phrases in OF_OTHERS:
        found = _match(line, phrases)
        if found and (not asks or target is Target.ACADEMIC):
            return Classified(target=target, subject=subject_of(text), confidence=SURE if found == 1 else LIKELY)
    if first in DOING:
        return Classified(target=Target.ARCHITECT, subject=subject_of(text), confidence=SURE)
    return _classify_question(text, line, asks=asks)


def _classify_question(text: str, line: str, *, asks: bool) -> Classified:
    """History is asked for by what was; code by what is."""
    intent, confidence = classify_history(line)
    if intent is not Intent.GENERAL:
        return _of_history(text, intent, confidence)
    if _TICKET.fullmatch(text.strip()):  # what else than what was done about it
        return _of_history(text, Intent.HISTORICAL, LIKELY)
    intent, confidence = classify_code(line)
    if intent is Intent.GENERAL and time_scope_of(text) and asks:
        return _of_history(text, Intent.GENERAL, LIKELY)
    if intent is not Intent.GENERAL or asks or _match(line, OF_CODE_IN_GENERAL):
        sure = confidence if intent is not Intent.GENERAL else (0.75 if _match(line, OF_CODE_IN_GENERAL) else 0.6)
        subject = subject_of(text, asking=asking_words(text, intent))
        return Classified(target=Target.LIBRARIAN, intent=intent, subject=subject, confidence=sure)
    return Classified(target=Target.ARCHITECT, subject=subject_of(text), confidence=UNSURE)


def _of_history(text: str, intent: Intent, confidence: float) -> Classified:
    subject = "session" if intent is Intent.RESUME else subject_of(text, asking=asking_words(text, intent))
    return Classified(
        target=Target.ARCHIVALIST,
        intent=intent,
        subject=subject,
        time_scope=time_scope_of(text),
        confidence=confidence,
    )


def classify_code(text: str) -> tuple[Intent, float]:
    """What a question wants of code, and how sure that is."""
    return _first(_plain(text), OF_CODE)


def classify_history(text: str) -> tuple[Intent, float]:
    """What a question wants of history, and how sure that is."""
    intent, confidence = _first(_plain(text), OF_HISTORY)
    assert intent in (*HISTORY_INTENTS, Intent.GENERAL)
    return intent, confidence


def asking_words(text: str, intent: Intent) -> frozenset[str]:
    """The words of a question that ask for this intent, and so do not name what it is about: those of the phrase by
    which it was told, and those that always do."""
    line, found = _plain(text), frozenset[str]()
    for each, phrases in (*OF_HISTORY, *OF_CODE):
        if each is intent and _match(line, tuple(phrases)):
            found = _words_of_phrase(line, tuple(phrases))
            break
    return ASKING.get(intent, frozenset()) | found


def _words_of_phrase(line: str, phrases: tuple[str, ...]) -> frozenset[str]:
    """The words of the phrase that stands in a line, without what its `*` stands for."""
    found = _pattern(phrases).search(line)
    told = [each for each in phrases if found is not None and _pattern((each,)).fullmatch(found[0])]
    return frozenset(told[0].split()) if told else frozenset()


def _first(line: str, table: Iterable[tuple[Intent, Sequence[str]]]) -> tuple[Intent, float]:
    for intent, phrases in table:
        found = _match(line, tuple(phrases))
        if found:
            return intent, SURE if found == 1 else LIKELY
    return Intent.GENERAL, UNSURE


def _plain(text: str) -> str:
    """The words of a text on one line, in lower case, without the polite beginning and without fillers."""
    line = " ".join(re.sub(r"[^\w'/]+", " ", text[:MAX_LOOKED_AT].lower()).split())
    return _FILLERS.sub("", _POLITE.sub("", line)).strip()


def _match(line: str, phrases: tuple[str, ...]) -> int:
    """1 where a phrase begins the line, 2 where one stands in it, 0 where none does."""
    found = _pattern(phrases).search(line)
    return 0 if found is None else 1 if found.start() == 0 else 2


@lru_cache(512)
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    parts = (re.escape(each).replace(r"\*", r"\w+(?: \w+){0,4}?").replace(r"\ ", " ") for each in phrases)
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)")
