"""The phrases of requests: they tell who is to do something. Data, written as in `phrases`; looked at before the
questions."""

from __future__ import annotations

from clew.knowledge.resolving.phrases import Target

COMMANDS: dict[str, Target] = {
    "session": Target.SESSION_MANAGER,
    "sessions": Target.SESSION_MANAGER,
    "switch": Target.SESSION_MANAGER,
    "pause": Target.SESSION_MANAGER,
    "resume": Target.SESSION_MANAGER,
    "close": Target.SESSION_MANAGER,
    "find": Target.LIBRARIAN,
    "where": Target.LIBRARIAN,
    "code": Target.LIBRARIAN,
    "history": Target.ARCHIVALIST,
    "brief": Target.ARCHIVALIST,
    "research": Target.ACADEMIC,
    "plan": Target.ARCHITECT,
    "inspect": Target.INSPECTOR,
    "review": Target.INSPECTOR,
    "test": Target.TESTER,
    "design": Target.DESIGNER,
}
"""`/name …` goes there, whatever follows."""

SESSIONS = (
    "switch to session",
    "switch to the * session",
    "switch session",
    "new session",
    "start a * session",
    "list * sessions",
    "list sessions",
    "close * session",
    "close session",
    "pause * session",
    "pause session",
    "resume session",
    "resume the * session",
    "rename * session",
    "delete * session",
    "show * sessions",
)

OF_OTHERS: tuple[tuple[Target, tuple[str, ...]], ...] = (
    (
        Target.ACADEMIC,
        (
            "research",
            "best practice",
            "best practices",
            "rfc",
            "paper",
            "papers",
            "literature",
            "compare",
            "comparison of",
            "pros and cons",
            "trade offs",
            "tradeoffs",
            "state of the art",
            "industry",
            "recommended way",
            "what do others",
            "alternatives to",
            "according to",
        ),
    ),
    (
        Target.DESIGNER,
        (
            "button",
            "modal",
            "css",
            "stylesheet",
            "layout",
            "ui",
            "ux",
            "color",
            "colors",
            "colour",
            "dark mode",
            "responsive",
            "accessibility",
            "font",
            "icon",
            "icons",
            "navbar",
            "sidebar",
            "dashboard page",
            "screen",
            "tooltip",
            "animation",
        ),
    ),
    (
        Target.TESTER,
        (
            "write tests",
            "write a test",
            "write unit tests",
            "add tests",
            "add a test",
            "add unit tests",
            "run the tests",
            "run tests",
            "run all tests",
            "test coverage",
            "unit test",
            "unit tests",
            "integration test",
            "integration tests",
            "test plan",
            "regression test",
            "flaky test",
            "flaky tests",
            "test the",
        ),
    ),
    (
        Target.INSPECTOR,
        (
            "review",
            "inspect",
            "audit",
            "check the code",
            "check my",
            "check this",
            "lint",
            "code quality",
            "security check",
            "vulnerabilities",
            "find bugs",
            "code smells",
            "validate the",
        ),
    ),
)
"""What is asked of those who do things."""

_DOING_WORDS = """
    add build change create fix implement make migrate move refactor remove rename replace rewrite update upgrade use
    write delete extract split integrate introduce support convert port wire extend optimize optimise
"""
DOING = frozenset(_DOING_WORDS.split())
"""A request that begins with one of these wants something done: by the architect, unless another does such things."""
