"""The phrases of questions: they tell what is asked for. Data: a phrase is words, `*` standing for one word or a few;
the first that fits counts, so what says more comes first."""

from __future__ import annotations

from enum import StrEnum


class Target(StrEnum):
    """Who answers. Three of them know things, the others do them."""

    LIBRARIAN = "librarian"
    ARCHIVALIST = "archivalist"
    ACADEMIC = "academic"
    ARCHITECT = "architect"
    INSPECTOR = "inspector"
    TESTER = "tester"
    DESIGNER = "designer"
    SESSION_MANAGER = "session_manager"


class Intent(StrEnum):
    """What a question wants of code (the first three), of history (the next five), or of either."""

    LOCATE = "LOCATE"
    PATTERN = "PATTERN"
    EXPLAIN = "EXPLAIN"
    HISTORICAL = "HISTORICAL"
    ACTIVITY = "ACTIVITY"
    OUTCOME = "OUTCOME"
    SIMILAR = "SIMILAR"
    RESUME = "RESUME"
    GENERAL = "GENERAL"


HISTORY_INTENTS = (Intent.HISTORICAL, Intent.ACTIVITY, Intent.OUTCOME, Intent.SIMILAR, Intent.RESUME)

OF_HISTORY: tuple[tuple[Intent, tuple[str, ...]], ...] = (
    (Intent.GENERAL, ("did * work on",)),
    (Intent.OUTCOME, ("current status of the", "current state of the")),
    (
        Intent.RESUME,
        (
            "where did we leave",
            "where was i",
            "where were we",
            "left off",
            "leave off",
            "pick up",
            "continue from",
            "continue where",
            "continue yesterday",
            "resume",
            "last session",
            "current status",
            "current state",
        ),
    ),
    (
        Intent.SIMILAR,
        (
            "similar",
            "seen this",
            "seen * before",
            "like this before",
            "like before",
            "same as before",
            "comparable",
            "resembles",
            "problems like",
            "errors like",
            "had this * before",
            "happened before",
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
            "did * help",
            "turn out",
            "turned out",
            "result of",
            "results of",
            "outcome",
            "status of",
            "was * successful",
            "issues * found",
            "issues found",
            "is * done yet",
            "is * finished",
            "was * a success",
            "was * a failure",
        ),
    ),
    (Intent.HISTORICAL, ("what did we", "how did we", "why did we")),
    (
        Intent.ACTIVITY,
        (
            "what changed",
            "what has changed",
            "what has happened",
            "what happened",
            "recent changes",
            "recently changed",
            "recent work",
            "recent modifications",
            "recent commits",
            "changed recently",
            "who worked on",
            "who changed",
            "who touched",
            "who wrote",
            "history of",
            "files changed",
            "files did",
            "what did * do",
            "what did * change",
            "modifications",
            "last commit",
            "latest commits",
        ),
    ),
    (
        Intent.HISTORICAL,
        (
            "why do we",
            "what broke",
            "what has broken",
            "broke before",
            "broken before",
            "what failed",
            "failed before",
            "went wrong",
            "user prefer",
            "user prefers",
            "do we prefer",
            "we prefer",
            "preference",
            "preferences",
            "preferred",
            "why was",
            "why were",
            "when was",
            "when were",
            "when did",
            "which commit",
            "which commits",
            "what commit",
            "which change",
            "what broke",
            "broke before",
            "what fixed",
            "who added",
            "who removed",
            "who introduced",
            "why is * instead of",
            "what approach did",
            "what was the",
            "what was our",
            "did we",
            "have we ever",
            "have we already",
            "last time",
            "previously",
            "past solutions",
            "past decisions",
            "past failures",
            "decided",
            "decision",
            "decisions",
            "in the past",
            "earlier",
            "used to",
        ),
    ),
)

OF_CODE: tuple[tuple[Intent, tuple[str, ...]], ...] = (
    (
        Intent.PATTERN,
        (
            "strategy",
            "approach",
            "approaches",
            "pattern",
            "patterns",
            "how do we",
            "how are * handled",
            "convention",
            "conventions",
            "what * do we use",
            "what * does this project use",
            "do we use",
            "our style",
            "best way here",
        ),
    ),
    (
        Intent.LOCATE,
        (
            "where is",
            "where are",
            "where's",
            "where do",
            "where does",
            "where can i find",
            "where",
            "which file",
            "which files",
            "which function",
            "which functions",
            "which class",
            "which classes",
            "which module",
            "which modules",
            "what file",
            "what calls",
            "who calls",
            "callers of",
            "locate",
            "find",
            "show me",
            "look up",
            "definition of",
            "defined",
        ),
    ),
    (
        Intent.EXPLAIN,
        (
            "how does",
            "how do * work",
            "how is",
            "how are",
            "explain",
            "what does",
            "what is * for",
            "walk through",
            "walk me through",
            "describe",
            "why does",
            "why is",
            "tell me about",
            "understand",
        ),
    ),
)

OF_CODE_IN_GENERAL = (
    "list all",
    "list the",
    "how many",
    "which languages",
    "what languages",
    "what is",
    "what are",
    "is there a",
    "is there an",
    "are there",
    "do we have",
    "does the code",
    "codebase",
    "repository",
)

TIMES = (
    "last month",
    "last week",
    "last year",
    "last quarter",
    "last sprint",
    "this week",
    "this month",
    "this morning",
    "yesterday",
    "today",
    "recently",
    "recent",
)
"""Said of a time, as it is written in `time_scope`. "before" and "earlier" bound nothing, and are none."""
