"""The coordinator: the one handler of the messages of a team. It applies a message to the state of its session, and
writes the records of the effects together with the acknowledgement of the message."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ClewError, IllegalState, InvalidInput, NotFound
from clew.team.machines.effects import AskAgent, CallTool, Effect, Effects, EndSession, SendMessage
from clew.team.messages.message import SCHEMA, TYPE_TAG, TeamMessage, read_message
from clew.team.messages.message_types import FOR_THE_RECORD, MEMBERS, ORCHESTRATOR, RUNTIME, USER, MessageType
from clew.team.messages.payloads import CallResult, MessageRefusal, PlanRequest, RunEnd
from clew.team.runtime.effect_drafts import EffectDrafts
from clew.team.runtime.request_limits import within_limits
from clew.team.runtime.session_budgets import SessionBudgets
from clew.team.runtime.status_records import StatusRecords
from clew.team.runtime.team_states import EXPIRED, TeamStates, apply
from clew.team.sessions.session import MAX_SUMMARY, SessionAction
from clew.team.sessions.session_manager import SessionManager
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.work.handlers import Handler

NAME = "team/coordinator"
HANDLED = Selector(
    schema_name=SCHEMA, any_tags=tuple(TYPE_TAG + each for each in MessageType if each not in FOR_THE_RECORD)
)
"""Selects the messages that can have effects or be refused."""
RETRY = RetryPolicy(attempts=100, backoff=0.5, backoff_limit=30.0)
"""Only failures of the storage are tried again; a message itself is applied or refused."""
_REFUSAL, _INSTEAD = 1_000, 2_000
"""Numbers, in derived ids, of records that do not come from an effect: refusals and substitutes for failed records."""

_log = logging.getLogger(__name__)


class Coordinator:
    """Applies messages to the states of their sessions. Messages of one session are applied in order."""

    def __init__(
        self,
        states: TeamStates,
        effects: EffectDrafts,
        sessions: SessionManager,
        status: StatusRecords,
        budgets: SessionBudgets,
        clock: Clock,
        *,
        by: Principal,
    ) -> None:
        self._states = states
        self._effects = effects
        self._sessions = sessions
        self._status = status
        self._budgets = budgets
        self._clock = clock
        self._by = by
        self._unwritten: dict[str, Effects] = {}
        """The effects of recent messages, whose records may not be stored yet."""

    def handler(self) -> Handler:
        return Handler(
            name=NAME,
            selector=HANDLED,
            function=self._handle,
            retry=RETRY,
            start="beginning",
            types=("breadcrumb.created",),
            refused=self._on_refused,
        )

    async def _handle(self, event: Event, deps: Any) -> Sequence[Draft]:
        record = event.breadcrumb
        if record is None:
            return ()
        try:
            message = read_message(record)
        except InvalidInput as error:
            _log.warning("the message %s cannot be read: %s", record.id, error)
            return ()
        if message.type is MessageType.RUN_ENDED:
            await self._release(message)
        return await self._carry_out(message)

    async def _release(self, message: TeamMessage) -> None:
        """Return the rest of a run's budget. This must wait until the end of the run is on the trail."""
        conversation = message.payload.get("conversation")
        if isinstance(conversation, str) and message.parent_id:
            await self._budgets.release(conversation, message.parent_id)

    async def _carry_out(self, message: TeamMessage) -> Sequence[Draft]:
        state = await self._states.before(message)
        if message.is_expired(self._clock.now()):
            return self._refuse(message, EXPIRED, "Send it again with a later deadline")
        applied = apply(state, message, self._states.gate)
        if applied.refusal is not None:
            refused = self._refuse(message, applied.refusal.message, applied.refusal.hint)
            return (*refused, *self._failure_instead(message, applied.refusal.message))
        if applied.state.dag_history != state.dag_history:
            await self._sessions.set_plan(message.session_id, applied.state.dag_history[-1], by=self._by)
        if applied.state.branch != state.branch:
            await self._note_branch(message.session_id, applied.state.branch)
        drafts: list[Draft] = []
        for number, effect in enumerate(applied.effects):
            if isinstance(effect, EndSession):
                await self._close(message.session_id, effect)
            else:
                drafts += await self._effects.drafts(message, number, await self._limited(message.session_id, effect))
        await self._status.note(applied.state)
        self._unwritten = {message.id: applied.effects, **_newest(self._unwritten)}
        return drafts

    async def _limited(self, session: str, effect: Effect) -> Effect:
        """Apply the limits of the session to a plan request that was made from a text of the user."""
        if not isinstance(effect, SendMessage) or effect.type is not MessageType.PLAN_REQUEST:
            return effect
        request = msgspec.convert(effect.payload, PlanRequest)
        limited = within_limits(request, await self._sessions.get(session, by=self._by))
        return msgspec.structs.replace(effect, payload=msgspec.to_builtins(limited))

    async def _note_branch(self, session: str, branch: str) -> None:
        """Correct the branch of the session record if the preferred name was taken."""
        if (await self._sessions.get(session, by=self._by)).branch_name not in ("", branch):
            await self._sessions.set_branch(session, branch, by=self._by)

    async def _close(self, session: str, effect: EndSession) -> None:
        """Close the session record. A session that is already over stays unchanged."""
        action = SessionAction.CLOSE if effect.success else SessionAction.FAIL
        with suppress(IllegalState, NotFound):
            await self._sessions.act(session, action, by=self._by, summary=effect.summary[:MAX_SUMMARY])

    def _refuse(self, message: TeamMessage, reason: str, hint: str) -> Sequence[Draft]:
        """The refusal of a message. A refusal itself is never refused."""
        if message.type is MessageType.MESSAGE_REFUSED:
            return ()
        _log.info("%s of %s is refused: %s", message.type, message.source, reason)
        target = message.source if message.source in MEMBERS else USER
        refusal = MessageRefusal(message=message.id, type=message.type, reason=reason or "refused", hint=hint)
        return (self._message(message, _REFUSAL, MessageType.MESSAGE_REFUSED, target, refusal),)

    def _failure_instead(self, message: TeamMessage, reason: str) -> Sequence[Draft]:
        """A failure message that replaces an unusable result, so that the team does not wait for the result."""
        why = f"its result cannot be used: {reason}"[:500]
        match message.type, message.payload.get("status"):
            case MessageType.CALL_RESULT, "success":
                payload = {**message.payload, "status": "error", "output": {}, "error": why}
            case MessageType.RUN_ENDED, "answered":
                payload = {**message.payload, "status": "failed", "text": "", "error": why}
            case _:
                return ()
        effect = SendMessage(type=message.type, source=RUNTIME, target=ORCHESTRATOR, payload=payload)
        return (self._effects.message(message, _INSTEAD, effect),)

    def _on_refused(self, event: Event, error: ClewError) -> Sequence[Draft]:
        """The records that replace those that cannot be stored: each prompt and each call ends with the error, so that
        the team does not wait for its end."""
        if event.breadcrumb is None:
            return ()
        message = read_message(event.breadcrumb)
        why = f"it cannot be stored: {error}"[:500]
        drafts = list(self._refuse(message, why, ""))
        for number, effect in enumerate(self._unwritten.get(message.id, ()), _INSTEAD):
            match effect:
                case AskAgent():
                    ended = RunEnd(
                        conversation=effect.conversation,
                        role=effect.role,
                        pipeline=effect.pipeline,
                        status="failed",
                        error=why,
                    )
                    drafts.append(self._message(message, number, MessageType.RUN_ENDED, ORCHESTRATOR, ended))
                case CallTool():
                    failed = CallResult(call=effect.call, tool=effect.tool, status="error", error=why)
                    drafts.append(self._message(message, number, MessageType.CALL_RESULT, ORCHESTRATOR, failed))
        return drafts

    def _message(
        self, cause: TeamMessage, number: int, type: MessageType, target: str, payload: msgspec.Struct
    ) -> Draft:
        effect = SendMessage(type=type, source=RUNTIME, target=target, payload=msgspec.to_builtins(payload))
        return self._effects.message(cause, number, effect)


def _newest(unwritten: dict[str, Effects], most: int = 64) -> dict[str, Effects]:
    return dict(list(unwritten.items())[:most])
