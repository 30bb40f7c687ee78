"""Effects of the state machines as records: prompts of agents, calls of tools, messages, timers and cancellations.

The id and the key of each record come from the message and the number of the effect, so that a repeated step writes
nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.agents.conversations.sessions import SESSION_TAG, Sessions, message_draft
from clew.agents.runs.call_limits import WORK_LANE
from clew.agents.runs.requests import request_draft
from clew.clock import Clock
from clew.team.guide import checked_message_draft
from clew.team.machines.effects import AskAgent, CallTool, CancelRun, Effect, SendMessage, StartTimer
from clew.team.messages.message import TeamMessage
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.work.correlation import CONSUMER_TAG, run_tag

TEAM = "team"
"""The requester of the tools of the team, and the source of its prompts."""
RUN_OF_TEAM = "team:run"
"""Tag on the prompts of the team, each of which starts a run."""
TIMER = "team.timer.v1"
_NAMESPACE = UUID("5d8b9a64-0f3f-5c9a-9a43-6f0c9f7d8f51")
_SEPARATOR = "@"


class TeamPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a prompt, as stored in its record."""

    message: str
    number: int
    role: str
    conversation: str
    pipeline: str = ""


class EffectDrafts:
    """Turns effects into drafts, for one owner."""

    def __init__(self, flow: Flow, sessions: Sessions, clock: Clock, *, by: Principal) -> None:
        self._flow = flow
        self._sessions = sessions
        self._clock = clock
        self._by = by

    async def drafts(self, message: TeamMessage, number: int, effect: Effect) -> Sequence[Draft]:
        """The records of one effect of a message. Raises InvalidInput for a message that cannot be sent."""
        match effect:
            case AskAgent():
                return (self._prompt(message, number, effect),)
            case CallTool():
                return (self._call(message, number, effect),)
            case SendMessage():
                return (self.message(message, number, effect),)
            case StartTimer():
                return (self._timer(message, number, effect),)
            case CancelRun():
                return await self._cancellations(message, number, effect)
        return ()

    def message(self, cause: TeamMessage, number: int, effect: SendMessage) -> Draft:
        """A message of the team that another message caused."""
        sent = TeamMessage(
            id=derived_id(self._by, cause.id, number),
            correlation_id=cause.correlation_id or cause.id,
            parent_id=cause.id,
            session_id=cause.session_id,
            source=effect.source,
            target=effect.target,
            type=effect.type,
            payload=effect.payload,
            timestamp=self._clock.now(),
        )
        return checked_message_draft(sent, key=_key(cause.id, number))

    def _prompt(self, cause: TeamMessage, number: int, effect: AskAgent) -> Draft:
        id = derived_id(self._by, cause.id, number)
        draft = message_draft(
            self._flow, effect.prompt, id=id, session=effect.conversation, agent=effect.role, source=TEAM
        )
        origin = TeamPrompt(
            message=cause.id,
            number=number,
            role=effect.role,
            conversation=effect.conversation,
            pipeline=effect.pipeline,
        )
        return msgspec.structs.replace(
            draft,
            tags=(*draft.tags, RUN_OF_TEAM, *((WORK_LANE,) if effect.pipeline else ())),
            context={**draft.context, TEAM: msgspec.to_builtins(origin)},
            idempotency_key=_key(cause.id, number),
        )

    def _call(self, cause: TeamMessage, number: int, effect: CallTool) -> Draft:
        request_id = f"{effect.call}{_SEPARATOR}{derived_id(self._by, cause.id, number)[:13]}"
        draft = request_draft(
            self._flow,
            effect.tool,
            effect.input,
            request_id=request_id,
            requested_by=TEAM,
            tags=(SESSION_TAG + cause.session_id, run_tag(derived_id(self._by, cause.id, number)), WORK_LANE),
        )
        return msgspec.structs.replace(draft, idempotency_key=_key(cause.id, number))

    def _timer(self, cause: TeamMessage, number: int, effect: StartTimer) -> Draft:
        due = self._clock.now() + timedelta(seconds=effect.seconds)
        return Draft(
            id=derived_id(self._by, cause.id, number),
            title=f"Timer {effect.key}"[:200],
            schema_name=TIMER,
            tags=(SESSION_TAG + cause.session_id,),
            context={"session_id": cause.session_id, "key": effect.key, "due_at": due.isoformat()},
            embed="never",
            idempotency_key=_key(cause.id, number),
        )

    async def _cancellations(self, cause: TeamMessage, number: int, effect: CancelRun) -> Sequence[Draft]:
        """The cancellation of each run of a conversation that has not ended."""
        runs = await self._sessions.open_runs(effect.conversation, by=self._by)
        return [
            Draft(
                title="Cancel a run",
                schema_name=self._flow.cancel,
                tags=(SESSION_TAG + each.session, run_tag(each.run), CONSUMER_TAG + each.agent),
                context={"reason": effect.reason[:200]},
                embed="never",
                idempotency_key=f"{_key(cause.id, number)}/{each.run}",
            )
            for each in runs
        ]


def derived_id(by: Principal, message: str, number: int) -> str:
    """The id of the record for an effect of a message."""
    return str(uuid5(_NAMESPACE, f"{by.owner_id}\n{message}\n{number}"))


def call_of(request_id: str) -> str:
    """The name of the call in the id of a request."""
    return request_id.rpartition(_SEPARATOR)[0] or request_id


def find_prompt(record: Breadcrumb, flow: Flow, *, by: Principal) -> TeamPrompt | None:
    """The origin of a prompt of the team; None for any other message. Only Clew can choose record ids, so no other
    writer can forge such a prompt."""
    if record.schema_name != flow.message or RUN_OF_TEAM not in record.tags:
        return None
    found = read_prompt(record.context)
    return found if found is not None and derived_id(by, found.message, found.number) == record.id else None


def read_prompt(context: Mapping[str, Any]) -> TeamPrompt | None:
    """The origin of a prompt that its context names; None if it names none."""
    try:
        return msgspec.convert(context.get(TEAM), TeamPrompt)
    except msgspec.ValidationError:
        return None


def _key(message: str, number: int) -> str:
    return f"team/{message}/{number}"
