"""The phases of a session's work, and the messages of the user that each allows."""

from __future__ import annotations

from enum import StrEnum

from clew.errors import IllegalState
from clew.team.messages.message_types import MessageType


class Phase(StrEnum):
    SESSION = "session"
    RESEARCH = "research"
    PLANNING = "planning"
    EXECUTION = "execution"
    INSPECTION = "inspection"
    TESTING = "testing"
    COMPLETE = "complete"


_T = MessageType
_TASK = (
    _T.USER_TASK_PROMPT,
    _T.USER_TASK_QUERY,
    _T.USER_TASK_INTERRUPT,
    _T.USER_IGNORE_INSPECTOR,
    _T.USER_IGNORE_TESTER,
    _T.HANDOFF_REQUEST,
)
_CHOICES = (_T.USER_CHOICE, _T.CLARIFICATION_RESPONSE)

ALLOWED: dict[Phase, tuple[MessageType, ...]] = {
    Phase.SESSION: (_T.PLAN_REQUEST,),
    Phase.RESEARCH: (_T.USER_INTERRUPT,),
    Phase.PLANNING: (_T.PLAN_APPROVED, _T.PLAN_MODIFIED, _T.CLARIFICATION_RESPONSE, _T.USER_INTERRUPT),
    Phase.EXECUTION: (_T.USER_INTERRUPT, *_CHOICES, *_TASK),
    Phase.INSPECTION: (_T.USER_INTERRUPT, _T.USER_OVERRIDE, *_CHOICES),
    Phase.TESTING: (_T.USER_INTERRUPT, _T.USER_OVERRIDE, *_CHOICES),
    Phase.COMPLETE: (),
}
"""The messages that change the work and that the user may send in each phase."""

WORDS: dict[MessageType, str] = {
    _T.PLAN_REQUEST: "start a request",
    _T.PLAN_APPROVED: "approve the plan",
    _T.PLAN_MODIFIED: "modify the plan",
    _T.CLARIFICATION_RESPONSE: "answer a question",
    _T.USER_INTERRUPT: "interrupt the work",
    _T.USER_OVERRIDE: "override findings",
    _T.USER_CHOICE: "choose how a stuck task goes on",
    _T.USER_TASK_PROMPT: "prompt a task",
    _T.USER_TASK_QUERY: "ask about a task",
    _T.USER_TASK_INTERRUPT: "interrupt a task",
    _T.USER_IGNORE_INSPECTOR: "ignore the Inspector for a task",
    _T.USER_IGNORE_TESTER: "ignore the Tester for a task",
    _T.HANDOFF_REQUEST: "hand a task over",
}
"""The wording of each message type in refusals."""

STEERING = frozenset(type for types in ALLOWED.values() for type in types)


def require_allowed(phase: Phase, type: MessageType, subject: str) -> None:
    """Raise IllegalState for a message of the user that the phase does not allow."""
    if type in STEERING and type not in ALLOWED[phase]:
        allowed = [WORDS[each] for each in ALLOWED[phase]]
        raise IllegalState(WORDS[type], f"in {subject}", f"in the phase {phase}", allowed)
