"""Metadata of a question to the librarian or the archivalist: intent, subject and period.

The trigger phrases are data. `*` matches one to six words. The first intent with a matching phrase wins. Other words of
the message do not change the intent.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from clew.knowledge.answering.period import EVER, read_period
from clew.team.route import Intent, RouteTarget
from clew.trail.model.readable import find_words
from clew.trail.search.text import STOP, split_word

MAX_TEXT = 2_000
MAX_WORDS = 4
"""The number of words of a subject. Further words rarely belong to it."""

LIBRARIAN_TRIGGERS: tuple[tuple[Intent, tuple[str, ...]], ...] = (
    (
        Intent.PATTERN,
        (
            "strategy",
            "strategies",
            "approach",
            "approaches",
            "pattern",
            "patterns",
            "convention",
            "conventions",
            "how do we",
            "how are we",
            "do we use",
            "do we usually",
        ),
    ),
    (
        Intent.LOCATE,
        (
            "where",
            "find",
            "show me",
            "which file",
            "which files",
            "which function",
            "which functions",
            "locate",
            "which * use",
            "which * uses",
            "which * call",
            "which * calls",
            "who calls",
            "what calls",
            "do we have a",
            "do we have an",
            "do we already have",
            "list * places",
        ),
    ),
    (
        Intent.EXPLAIN,
        (
            "how does",
            "how do",
            "how is",
            "how are",
            "explain",
            "what does * do",
            "what do * do",
            "what happens",
            "walk through",
            "walk me through",
            "what is * for",
            "why does",
            "why do",
            "why is",
        ),
    ),
)

ARCHIVALIST_TRIGGERS: tuple[tuple[Intent, tuple[str, ...]], ...] = (
    (Intent.GENERAL, ("did * work on",)),
    (
        Intent.RESUME,
        (
            "where was i",
            "where were we",
            "where did we",
            "where did i",
            "continue from",
            "continue with",
            "pick up",
            "last session",
            "leave off",
            "left off",
            "resume",
            "current state",
            "get me back into",
            "catch me up",
        ),
    ),
    (
        Intent.SIMILAR,
        (
            "similar",
            "like before",
            "like this",
            "same as",
            "comparable",
            "seen this",
            "seen * before",
            "resembles",
            "have we * before",
            "has this * before",
            "just like it",
        ),
    ),
    (
        Intent.OUTCOME,
        (
            "did it work",
            "did * work",
            "did * pass",
            "did * succeed",
            "did * fail",
            "result of",
            "results of",
            "status of",
            "outcome",
            "how did * turn out",
            "did * turn out",
            "work out",
            "issues found",
            "have already failed",
        ),
    ),
    (
        Intent.ACTIVITY,
        (
            "what changed",
            "what has",
            "what happened",
            "what was done",
            "recent",
            "recent changes",
            "who worked on",
            "history of",
            "modifications",
            "files changed",
            "activity",
            "everything * did",
            "were finished",
        ),
    ),
    (
        Intent.HISTORICAL,
        (
            "how did we",
            "what did we",
            "did we decide",
            "what approach",
            "last time",
            "previously",
            "past",
            "prior",
            "earlier",
            "what was the",
            "why did",
            "why was",
            "why were",
            "when did",
            "before",
        ),
    ),
)

NOT_SUBJECTS: dict[Intent, str] = {
    Intent.PATTERN: "strategy strategies approach approaches pattern patterns convention conventions framework"
    " frameworks follow handle handled",
    Intent.LOCATE: "file files function functions place places code call calls define defined live",
    Intent.EXPLAIN: "work works happen happens flow",
    Intent.HISTORICAL: "decide decided handle handled solution approach",
    Intent.ACTIVITY: "change changed changes happened done work worked history team",
    Intent.OUTCOME: "work worked result results status outcome turn succeed fail pass end",
    Intent.SIMILAR: "similar run seen issues problems",
    Intent.GENERAL: "list exist exists repo repository team work worked note save record remember",
}
"""Words that express the intent of a question, and not its subject."""

ASKING = "find locate show explain list tell walk last first next"
"""Words of questions with any intent, which do not belong to the subject."""
SESSION = "session"
"""The subject of every question that resumes work."""
FULL_NAMES = {"auth_code": "authentication"}
"""Subjects with a fixed name."""

_SENTENCE_END = re.compile(r"[.?!;:]\s|\n")
_FILLER = re.compile(r"\b(?:exactly|actually|really|currently|originally|please)\s+")


RECENTLY, RECENT_DAYS = "recently", "the last 7 days"
_RECENT = re.compile(r"\b(?:recently|recent|lately)\b", re.IGNORECASE)
_LEADING = re.compile(r"^(?:(?:in|on|during|of|from|at|for|over|within) )?(?:the )?")


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a question. `since` and `until` are the dates of the time scope, or empty without bounds."""

    intent: Intent = Intent.GENERAL
    subject: str = ""
    time_scope: str = ""
    since: str = ""
    until: str = ""


def read_metadata(message: str, target: RouteTarget, now: datetime) -> Metadata | None:
    """Return the metadata of a message to the librarian or the archivalist; None for all other targets."""
    if target is RouteTarget.LIBRARIAN:
        intent, words = _match(message, LIBRARIAN_TRIGGERS)
        return Metadata(intent=intent, subject=_subject(message, intent, words))
    if target is not RouteTarget.ARCHIVALIST:
        return None
    intent, words = _match(message, ARCHIVALIST_TRIGGERS)
    said = _find_time(message, now)
    timeless = message.replace(said, " ") if said else message
    subject = SESSION if intent is Intent.RESUME else _subject(timeless, intent, words)
    scope = RECENTLY if _RECENT.fullmatch(said) else _LEADING.sub("", said.lower()).replace(" ", "_")
    return dated(Metadata(intent=intent, subject=subject, time_scope=scope), now)


def dated(metadata: Metadata, now: datetime) -> Metadata:
    """Add the first and the last day of the time scope, unless the scope has no bounds."""
    scope = RECENT_DAYS if metadata.time_scope == RECENTLY else metadata.time_scope.replace("_", " ")
    period = read_period(scope, now)
    if period is None:
        return metadata
    since = "" if period.since == EVER else f"{period.since:%Y-%m-%d}"
    return msgspec.structs.replace(metadata, since=since, until=f"{period.until - timedelta(seconds=1):%Y-%m-%d}")


def _find_time(message: str, now: datetime) -> str:
    """Return the words of a message that name a time."""
    recent = _RECENT.search(message)
    period = read_period(message, now) if recent is None else None
    return recent[0] if recent else period.said if period else ""


def snake_case(text: str) -> str:
    """Convert a subject to snake case: `CreateSession` and `create session` both become `create_session`."""
    return "_".join(part for word in find_words(text[:MAX_TEXT]) for part in split_word(word))[:100]


def _match(message: str, triggers: tuple[tuple[Intent, tuple[str, ...]], ...]) -> tuple[Intent, frozenset[str]]:
    """Return the first intent with a trigger in the message, and the words of that trigger."""
    line = _FILLER.sub("", " ".join(re.sub(r"[^\w']+", " ", message[:MAX_TEXT].lower()).split()))
    for intent, phrases in triggers:
        for phrase in phrases:
            if _pattern(phrase).search(line):
                return intent, frozenset(phrase.split())
    return Intent.GENERAL, frozenset()


@lru_cache(256)
def _pattern(phrase: str) -> re.Pattern[str]:
    words = re.escape(phrase).replace(r"\*", r"[\w']+(?: [\w']+){0,5}?").replace(r"\ ", " ")
    return re.compile(rf"(?<!\w){words}(?!\w)")


def _subject(message: str, intent: Intent, trigger: frozenset[str]) -> str:
    """Return the subject words of the first sentence; the ignored words if there are no others."""
    first = _SENTENCE_END.split(message[:MAX_TEXT].strip(), maxsplit=1)[0]
    said = [part for word in find_words(first) for part in split_word(word)]
    asking = {*ASKING.split(), *trigger}
    named = [word for word in said if word not in STOP and word not in asking]
    ignored = NOT_SUBJECTS.get(intent, "").split()
    full = "_".join(named)
    if full in FULL_NAMES:
        return FULL_NAMES[full]
    telling = [word for word in named if word not in ignored] or named
    return "_".join(dict.fromkeys(telling[:MAX_WORDS]))
