"""The Guide: all messages of the team pass through it. The Guide stamps and checks each message, and either refuses it
or writes it to the trail. Agents hold no references to each other; their tools send messages here."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations, inside, require_session_control
from clew.clock import Clock
from clew.errors import AccessDenied, Conflict, IllegalState, InvalidInput, NotFound
from clew.team.messages.conversation import find_conversation
from clew.team.messages.message import TeamMessage, message_draft, read_message
from clew.team.messages.message_types import ROUTES, USER, MessageType, read_payload
from clew.team.sessions.session import TRANSITIONS, Session, SessionAction, SessionStatus, refusal
from clew.team.sessions.session_manager import SessionManager
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, check_key
from clew.trail.store import Trail

VIA, HOP = "via", "guide"
"""The field of the metadata that shows that a message passed the Guide."""
_RESUMING = frozenset({MessageType.SESSION_RESUME})
"""Messages that a user may send to a suspended session."""
_ACTIONS = {
    MessageType.SESSION_SUSPEND: SessionAction.SUSPEND,
    MessageType.SESSION_RESUME: SessionAction.RESUME,
    MessageType.SESSION_COMPLETE: SessionAction.CLOSE,
}
_FOR_GUIDE = frozenset({MessageType.SESSION_CREATE, MessageType.SESSION_SWITCH, *_ACTIONS})
"""Messages that the Guide itself carries out."""
_NAMESPACE = UUID("8e0b1f3a-6a35-5a53-9d0c-2c7c6f0f0a9b")


class Guide:
    """Sends the messages of users and of the tools of agents. `by` is the principal that writes them."""

    def __init__(self, trail: Trail, conversations: Conversations, clock: Clock, *, by: Principal) -> None:
        self._records = trail.records
        self._history = conversations.sessions
        self._sessions = SessionManager(trail, conversations, clock)
        self._clock = clock
        self._by = by

    async def send(self, message: TeamMessage, *, by: Principal, key: str | None = None) -> TeamMessage:
        """Stamp a message, check it, and write it. Without a session id, the message goes to the session in which the
        caller works. Messages with the same `key` are written and carried out only once. Keys are unique per session,
        or per sender for messages without a session.

        Raises InvalidInput (type, payload, sender, receiver, session), IllegalState (a session that is not active, an
        expired message), AccessDenied (another agent, a session of others), NotFound (unknown session).
        """
        key = None if key is None else _key_of(key, message, by)
        id = self._clock.new_id() if key is None else str(uuid5(_NAMESPACE, f"{self._by.owner_id}\n{key}"))
        record = None if key is None else (await self._records.find_many([id], by=self._by)).get(id)
        if record is None:
            stamped = await self._stamp(message, id, by)
            self._require_fresh(stamped)
            await self._require_sender(stamped, by)
            await self._require_session(stamped, by)
            record = await self._records.create(checked_message_draft(stamped, key=key), by=self._by)
        else:
            await self._require_sender(msgspec.structs.replace(message, session_id=record.session or ""), by)
        return await self._carry_out(record, by)

    async def _carry_out(self, record: Breadcrumb, by: Principal) -> TeamMessage:
        """Carry out a message about a session, and mark the message as processed. If the process dies in between, the
        next `send` of the same message completes it."""
        message = read_message(record)
        if message.type not in _FOR_GUIDE or message.status != "pending":
            return message
        await self._act(message, by)
        done = msgspec.structs.replace(message, status="processed", processed_at=self._clock.now())
        with suppress(Conflict):  # somebody else sent it at the same time
            change = Change(context=msgspec.to_builtins(done), embed="never")
            await self._records.update(record.id, change, expect=record.version, by=self._by)
        return done

    async def _act(self, message: TeamMessage, by: Principal) -> None:
        """Carry out a message about a session, unless that was done before."""
        match message.type:
            case MessageType.SESSION_CREATE:
                id = str(uuid5(_NAMESPACE, f"session\n{message.id}"))
                try:
                    await self._sessions.get(id, by=by)
                except NotFound:
                    await self._sessions.create(str(message.payload.get("name") or ""), by=by, id=id)
            case MessageType.SESSION_SWITCH:
                await self._sessions.switch(message.session_id, by=by)
            case type:
                found, action = await self._sessions.get(message.session_id, by=by), _ACTIONS[type]
                if found.state not in _results_of(action):
                    await self._sessions.act(message.session_id, action, by=by)

    async def _stamp(self, message: TeamMessage, id: str, by: Principal) -> TeamMessage:
        session = message.session_id or await self._own_session(by)
        if not session:
            hint = "Name a session, or begin one with `clew session new`"
            raise InvalidInput("session_id", "is missing, and no session is focused", hint=hint)
        return msgspec.structs.replace(
            message,
            id=id,
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
        """Raise AccessDenied unless the sender is genuine: a person may send only as the user, a tool only as its agent
        and within the session of the agent's conversation."""
        if by.steers:
            if message.source != USER:
                raise AccessDenied(f"send a message as {message.source[:50]}", ["a tool of that agent"])
            require_session_control(await self._history.first(message.session_id, by=inside(by)), by)
            return
        own = find_conversation(by.session)
        if message.source != by.agent_id:
            raise AccessDenied(f"send a message as {message.source[:50]}", [f"the agent {message.source[:50]}"])
        if own is None or own.session != message.session_id:
            needed = "an agent of that session; a query may set across_sessions"
            raise AccessDenied(f"send a message to the session {message.session_id[:50]} as {by.agent_id}", [needed])

    async def _require_session(self, message: TeamMessage, by: Principal) -> None:
        """Raise IllegalState unless the session takes the message. A suspended session takes messages of its agents
        about work in progress, and the user's message to resume it."""
        found = await self._sessions.get(message.session_id, by=by)
        _require_action(found, message.type)
        if found.state is SessionStatus.SUSPENDED and (message.type in _RESUMING or not by.steers):
            return
        if found.state is not SessionStatus.ACTIVE:
            raise refusal(found, "send a message to")


def _require_action(session: Session, type: MessageType) -> None:
    """Raise IllegalState if the state of the session does not allow the action of this message type."""
    action = _ACTIONS.get(type)
    if action is not None and action not in TRANSITIONS[session.state]:
        raise refusal(session, action)


def _results_of(action: SessionAction) -> set[SessionStatus]:
    """The states that an action leads to."""
    return {actions[action] for actions in TRANSITIONS.values() if action in actions}


def _key_of(key: str, message: TeamMessage, by: Principal) -> str:
    """The key of a message on the trail. Raises InvalidInput."""
    check_key(key)
    own = find_conversation(by.session)
    session = message.session_id or (own.session if own is not None else f"of/{by.agent_id}")
    return f"team/door/{session}/{key}"


def checked_message_draft(message: TeamMessage, *, key: str | None = None) -> Draft:
    """The record of a message that passes the Guide. Raises InvalidInput for a sender or receiver that the message type
    does not allow, and for an invalid payload."""
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
    """Build a message for `Guide.send`. Without a target it goes to the first receiver of its type. Raises InvalidInput
    for an unknown type."""
    try:
        known = MessageType(type)
    except ValueError:
        hint = f"Types are {', '.join(MessageType)}"
        raise InvalidInput("type", f"{type[:50]!r} is not a type of message", hint=hint) from None
    fields = {"id": "", "timestamp": clock.now(), "session_id": session_id, "source": source, "type": known, **more}
    return msgspec.convert(
        {**fields, "target": target or ROUTES[known].receivers[0], "payload": dict(payload)}, TeamMessage
    )
