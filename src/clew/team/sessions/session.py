"""A session and its state machine, without I/O: `step` takes a session and an event, and returns the new session and
the effects that its caller carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from clew.errors import IllegalState, InvalidInput

MAX_NAME = 100
MAX_SUMMARY = 10_000


class SessionStatus(StrEnum):
    CREATED = "created"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"


class SessionAction(StrEnum):
    """The events of a session."""

    ACTIVATE = "activate"
    SUSPEND = "suspend"
    RESUME = "resume"
    COMPLETE = "complete"
    FAIL = "fail"


class SessionEffect(StrEnum):
    """Work that follows from an event. The caller does it after it stored the session."""

    FOCUS = "focus"
    UNFOCUS = "unfocus"


TRANSITIONS: Mapping[SessionStatus, Mapping[SessionAction, SessionStatus]] = {
    SessionStatus.CREATED: {SessionAction.ACTIVATE: SessionStatus.ACTIVE},
    SessionStatus.ACTIVE: {
        SessionAction.SUSPEND: SessionStatus.SUSPENDED,
        SessionAction.COMPLETE: SessionStatus.COMPLETED,
        SessionAction.FAIL: SessionStatus.FAILED,
    },
    SessionStatus.SUSPENDED: {
        SessionAction.RESUME: SessionStatus.ACTIVE,
        SessionAction.COMPLETE: SessionStatus.COMPLETED,
    },
    SessionStatus.COMPLETED: {},
    SessionStatus.FAILED: {},
}
"""The action that leads from one state to another. Every other action is refused."""

_EFFECTS: Mapping[SessionStatus, tuple[SessionEffect, ...]] = {
    SessionStatus.ACTIVE: (SessionEffect.FOCUS,),
    SessionStatus.SUSPENDED: (SessionEffect.UNFOCUS,),
    SessionStatus.COMPLETED: (SessionEffect.UNFOCUS,),
    SessionStatus.FAILED: (SessionEffect.UNFOCUS,),
}


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits in seconds; 0 is no limit. A session without messages for `auto_suspend_after` is suspended; one that is
    older than `session_timeout` fails."""

    auto_suspend_after: float = 0.0
    session_timeout: float = 0.0


class SessionContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The private notes of a session. No other session reads them."""

    current_task: str = ""
    current_objective: str = ""
    completed_steps: Sequence[str] = ()
    next_steps: Sequence[str] = ()
    blockers: Sequence[str] = ()
    summary: str = ""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work and its conversation."""

    id: str
    name: str = ""
    state: SessionStatus = SessionStatus.CREATED
    created_at: datetime
    activated_at: datetime | None = None
    suspended_at: datetime | None = None
    completed_at: datetime | None = None
    last_active_at: datetime
    reason: str = ""
    """Why Clew changed the state by itself; empty where a person did."""
    context: SessionContext = SessionContext()
    limits: SessionLimits = SessionLimits()
    metadata: dict[str, Any] = {}
    user: str = ""
    """The agent id of the principal that began it."""


class SessionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An action at a time. `summary` belongs to `complete`, `reason` to an action that no person asked for."""

    action: SessionAction
    at: datetime
    summary: str = ""
    reason: str = ""


def step(session: Session, event: SessionEvent) -> tuple[Session, tuple[SessionEffect, ...]]:
    """Return the session after an event, and the effects. Raises IllegalState."""
    state = TRANSITIONS[session.state].get(event.action)
    if state is None:
        raise refusal(session, event.action)
    times: dict[str, Any] = {"last_active_at": max(session.last_active_at, event.at)}
    if state is SessionStatus.ACTIVE:
        times |= {"activated_at": event.at}
    elif state is SessionStatus.SUSPENDED:
        times |= {"suspended_at": event.at}
    else:
        times |= {"completed_at": event.at}
    context = msgspec.structs.replace(session.context, summary=event.summary) if event.summary else session.context
    changed = msgspec.structs.replace(session, state=state, reason=event.reason, context=context, **times)
    return changed, _EFFECTS[state]


def due_event(session: Session, last_message: datetime | None, now: datetime) -> SessionEvent | None:
    """Return the event that a limit of an active session calls for, or None."""
    if session.state is not SessionStatus.ACTIVE:
        return None
    limits = session.limits
    if limits.session_timeout and now - session.created_at > timedelta(seconds=limits.session_timeout):
        return SessionEvent(
            action=SessionAction.FAIL, at=now, reason=f"it passed its time limit of {limits.session_timeout:g} s"
        )
    idle_since = max(session.last_active_at, last_message or session.last_active_at)
    if limits.auto_suspend_after and now - idle_since > timedelta(seconds=limits.auto_suspend_after):
        return SessionEvent(
            action=SessionAction.SUSPEND, at=now, reason=f"no message came for {limits.auto_suspend_after:g} s"
        )
    return None


def check_new(name: str, limits: SessionLimits) -> None:
    """Check the settings of a new session. Raises InvalidInput."""
    if len(name) > MAX_NAME:
        raise InvalidInput("name", f"has {len(name)} characters; {MAX_NAME} are allowed")
    if name != name.strip() or not name.isprintable():
        raise InvalidInput("name", "must be printable text without spaces at its ends")
    for field in SessionLimits.__struct_fields__:
        if getattr(limits, field) < 0:
            raise InvalidInput(field, "must be 0 (no limit) or a number of seconds")


def label(session: Session) -> str:
    """The name of a session, or the end of its id."""
    return session.name or session.id[-8:]


def refusal(session: Session, verb: str) -> IllegalState:
    """The error for an action that the state of a session does not allow."""
    allowed = tuple(TRANSITIONS[session.state])
    hint = "" if allowed else "Its messages stay readable. Begin another with `clew session new`"
    return IllegalState(verb, f"session {label(session)}", session.state, allowed, reason=session.reason, hint=hint)
