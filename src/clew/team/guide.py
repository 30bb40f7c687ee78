"""The Guide: every message of the team passes it. It stamps a message, refuses one that may not be sent, and writes the
others to the trail. Agents hold no references to each other; their tools send messages here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations, inside, require_say
from clew.clock import Clock
from clew.errors import AccessDenied, IllegalState, InvalidInput
from clew.team.messages.conversation import find_conversation
from clew.team.messages.message import TeamMessage, message_draft
from clew.team.messages.message_types import ROUTES, USER, MessageType, read_payload
from clew.team.sessions.session import SessionAction, SessionStatus, refusal
from clew.team.sessions.session_manager import SessionManager
from clew.trail.model.breadcrumb import Draft, check_key
from clew.trail.store import Trail

VIA, HOP = "via", "guide"
"""The field of the metadata that shows that a message passed the Guide."""
_RESUMING = frozenset({MessageType.SESSION_RESUME})
"""Messages to a session that is suspended."""
_ACTIONS = {
    MessageType.SESSION_SUSPEND: SessionAction.SUSPEND,
    MessageType.SESSION_RESUME: SessionAction.RESUME,
    MessageType.SESSION_COMPLETE: SessionAction.CLOSE,
}


class Guide:
    """Sends the messages of users and of the tools of agents. `by` is the principal that writes them."""

    def __init__(self, trail: Trail, conversations: Conversations, clock: Clock, *, by: Principal) -> None:
        self._records = trail.records
        self._history = conversations.sessions
        self._sessions = SessionManager(trail, conversations, clock)
        self._clock = clock
        self._by = by

    async def send(self, message: TeamMessage, *, by: Principal, key: str | None = None) -> TeamMessage:
        """Stamp a message, check it, and write it. An empty session is the one that the caller works in. The same `key`
        writes a message once.

        Raises InvalidInput (type, payload, sender, receiver, session), IllegalState (a session that is not active, an
        expired message), AccessDenied (another agent, a session of others), NotFound (unknown session).
        """
        stamped = await self._stamp(message, by)
        self._require_fresh(stamped)
        await self._require_sender(stamped, by)
        await self._require_session(stamped, by)
        if key is not None:
            check_key(key)
            key = f"team/door/{stamped.session_id}/{key}"
        written = await self._records.create(passed_draft(stamped, key=key), by=self._by)
        await self._act(stamped, by)
        return msgspec.convert(written.context, TeamMessage)

    async def _act(self, message: TeamMessage, by: Principal) -> None:
        """Carry out a message about a session, which the Guide itself receives."""
        match message.type:
            case MessageType.SESSION_CREATE:
                await self._sessions.create(str(message.payload.get("name") or ""), by=by)
            case MessageType.SESSION_SWITCH:
                await self._sessions.switch(message.session_id, by=by)
            case MessageType.SESSION_SUSPEND | MessageType.SESSION_RESUME | MessageType.SESSION_COMPLETE:
                await self._sessions.act(message.session_id, _ACTIONS[message.type], by=by)

    async def _stamp(self, message: TeamMessage, by: Principal) -> TeamMessage:
        session = message.session_id or await self._own_session(by)
        if not session:
            hint = "Name a session, or begin one with `clew session new`"
            raise InvalidInput("session_id", "is missing, and no session is focused", hint=hint)
        return msgspec.structs.replace(
            message,
            id=self._clock.new_id(),
            session_id=session,
            timestamp=min(message.timestamp, self._clock.now()),
            status="pending",
            error="",
            processed_at=None,
        )

    async def _own_session(self, by: Principal) -> str:
        """The session of an agent's conversation, or the focused session of a person."""
        if (own := find_conversation(by.session)) is not None:
            return own.session
        focused = await self._sessions.focused(by=by)
        return focused.id if focused is not None else ""

    def _require_fresh(self, message: TeamMessage) -> None:
        if message.is_expired(self._clock.now()):
            raise IllegalState(
                "send", f"the message {message.type}", "expired", (), hint="Send it with a later deadline"
            )

    async def _require_sender(self, message: TeamMessage, by: Principal) -> None:
        """A person sends as the user; the tool of an agent as that agent, within the session of its conversation."""
        if by.steers:
            if message.source != USER:
                raise AccessDenied(f"send a message as {message.source[:50]}", ["a tool of that agent"])
            require_say(await self._history.first(message.session_id, by=inside(by)), by)
            return
        own = find_conversation(by.session)
        if message.source != by.agent_id:
            raise AccessDenied(f"send a message as {message.source[:50]}", [f"the agent {message.source[:50]}"])
        if own is None or own.session != message.session_id:
            needed = "an agent of that session; a query may set across_sessions"
            raise AccessDenied(f"send a message to the session {message.session_id[:50]} as {by.agent_id}", [needed])

    async def _require_session(self, message: TeamMessage, by: Principal) -> None:
        """An agent may report its work under way to its own session while that is suspended; nothing new starts."""
        found = await self._sessions.get(message.session_id, by=by)
        if found.state is SessionStatus.SUSPENDED and (message.type in _RESUMING or not by.steers):
            return
        if found.state is not SessionStatus.ACTIVE:
            raise refusal(found, "send a message to")


def passed_draft(message: TeamMessage, *, key: str | None = None) -> Draft:
    """The record of a message that passes the Guide. Raises InvalidInput for a sender or receiver that its type does
    not have, and for a payload that does not fit."""
    route = ROUTES[message.type]
    for field, name, allowed in (
        ("source", message.source, route.senders),
        ("target", message.target, route.receivers),
    ):
        if name not in allowed:
            verb = "is sent by" if field == "source" else "goes to"
            raise InvalidInput(field, f"{message.type} {verb} {', '.join(allowed)}, not {name[:50]}")
    read_payload(message.type, message.payload)
    metadata = {**message.metadata, VIA: HOP}
    return message_draft(msgspec.structs.replace(message, metadata=metadata), key=key)


def build_message(
    type: str,
    payload: Mapping[str, Any],
    *,
    source: str,
    target: str = "",
    session_id: str = "",
    clock: Clock,
    **more: Any,
) -> TeamMessage:
    """A message that the Guide will stamp. Without a target it goes to the first receiver of its type. Raises
    InvalidInput for an unknown type and for fields that do not fit."""
    try:
        known = MessageType(type)
    except ValueError:
        hint = f"Types are {', '.join(MessageType)}"
        raise InvalidInput("type", f"{type[:50]!r} is not a type of message", hint=hint) from None
    fields = {"id": "", "timestamp": clock.now(), "session_id": session_id, "source": source, "type": known, **more}
    return msgspec.convert(
        {**fields, "target": target or ROUTES[known].receivers[0], "payload": dict(payload)}, TeamMessage
    )
