"""Free text of the user, turned into the message that fits the state of the work. If a question is open, the text
answers it. If not, it starts a request, changes the plan, adds a requirement or asks about the work, depending on the
phase."""

from __future__ import annotations

from clew.errors import IllegalState
from clew.team.machines.effects import SendMessage, send
from clew.team.machines.phases import Phase
from clew.team.machines.team_state import TeamState
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ARCHITECT, USER, MessageType
from clew.team.messages.payloads import PlanRequest, QuestionAnswer, TextPayload, UserInterrupt

_T = MessageType


def understand(state: TeamState, message: TeamMessage) -> SendMessage:
    """Turn a text of the user into a message. Raises IllegalState if several questions are open, or if the text is a
    response and no question is open."""
    text = str(message.payload["text"])
    if len(state.questions) > 1:
        raise IllegalState("answer", "the team", f"asked by {len(state.questions)} questions", tuple(state.questions))
    for id, each in state.questions.items():
        answer = QuestionAnswer(text=text, request=id, pipeline=each.pipeline)
        return send(_T.CLARIFICATION_RESPONSE, USER, ARCHITECT, answer)
    if message.type is _T.USER_RESPONSE:
        raise IllegalState("answer", "a question", "without an open question", ("wait for one",))
    match state.phase:
        case Phase.SESSION:
            return send(_T.PLAN_REQUEST, USER, ARCHITECT, PlanRequest(request=text))
        case Phase.PLANNING:
            return send(_T.PLAN_MODIFIED, USER, ARCHITECT, TextPayload(text=text))
        case Phase.EXECUTION:
            return send(_T.USER_INTERRUPT, USER, ARCHITECT, UserInterrupt(kind="add", text=text))
    return send(_T.USER_INTERRUPT, USER, ARCHITECT, UserInterrupt(kind="ask", text=text))
