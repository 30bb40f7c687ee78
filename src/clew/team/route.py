"""Routes: the targets of a message, the intents of a question, and the decision of the Guide."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

import msgspec

CERTAIN = 0.8
"""The minimum confidence of a decision that needs neither a model nor a question to the user."""

FOLLOW_UP = "followup"
"""The class of messages that continue the conversation with the current agent."""


class RouteTarget(StrEnum):
    """The target of a message: eight agents, the session manager's commands, and the control of a running plan."""

    ACADEMIC = "academic"
    ARCHITECT = "architect"
    ARCHIVALIST = "archivalist"
    CONTROL = "control"
    DESIGNER = "designer"
    INSPECTOR = "inspector"
    LIBRARIAN = "librarian"
    SESSION = "session"
    TASK = "task"
    TESTER = "tester"


AGENTS = tuple(each for each in RouteTarget if each not in (RouteTarget.CONTROL, RouteTarget.SESSION, RouteTarget.TASK))
"""The targets that talk to the user."""

DUTIES: dict[RouteTarget, str] = {
    RouteTarget.ACADEMIC: "research in papers, standards and other projects",
    RouteTarget.ARCHITECT: "a change of the code or a plan for one",
    RouteTarget.ARCHIVALIST: "past work and decisions, or something to remember",
    RouteTarget.CONTROL: "an approval, a stop or a step of the running plan",
    RouteTarget.DESIGNER: "the user interface",
    RouteTarget.INSPECTOR: "a review or a check of code",
    RouteTarget.LIBRARIAN: "a question about the code as it is",
    RouteTarget.SESSION: "listing, opening, switching or closing sessions",
    RouteTarget.TASK: "a message to a numbered task",
    RouteTarget.TESTER: "writing, running or explaining tests",
}
"""The purpose of each target, for users and models."""


class Intent(StrEnum):
    """The intent of a question about the code (the first three), the history (the next five), or either."""

    LOCATE = "LOCATE"
    PATTERN = "PATTERN"
    EXPLAIN = "EXPLAIN"
    HISTORICAL = "HISTORICAL"
    ACTIVITY = "ACTIVITY"
    OUTCOME = "OUTCOME"
    SIMILAR = "SIMILAR"
    RESUME = "RESUME"
    GENERAL = "GENERAL"


LIBRARIAN_INTENTS = (Intent.LOCATE, Intent.PATTERN, Intent.EXPLAIN, Intent.GENERAL)
ARCHIVALIST_INTENTS = (
    Intent.HISTORICAL,
    Intent.ACTIVITY,
    Intent.OUTCOME,
    Intent.SIMILAR,
    Intent.RESUME,
    Intent.GENERAL,
)

DecidedBy = Literal["command", "classifier", "model", "follow-up", "default"]


class RouteCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """One class that the classifier considered, with its probability; `followup` is the current agent."""

    target: str
    probability: float


class MessageRoute(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a message, its probability, and the step that decided.

    `intent` and `subject` are set for the librarian and the archivalist, `time_scope` for the archivalist alone;
    `since` and `until` are the dates of the time scope. If the decision is a guess, `question` is a question to the
    user. `cached` means that the model decided it earlier for a message with the same text.
    """

    target: RouteTarget
    confidence: float
    decided_by: DecidedBy
    intent: str = ""
    subject: str = ""
    time_scope: str = ""
    since: str = ""
    until: str = ""
    question: str = ""
    cached: bool = False
    candidates: Sequence[RouteCandidate] = ()
