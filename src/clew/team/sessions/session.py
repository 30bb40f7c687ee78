"""A session and its state machine, without I/O: `step` takes a session and an event, and returns the new session and
the effects that its caller carries out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from clew.errors import IllegalState, InvalidInput

MAX_NAME = 100
MAX_SUMMARY = 10_000
MAX_LIMIT = 315_576_000
"""Ten years in seconds."""


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
    CLOSE = "close"
    FAIL = "fail"


class SessionEffect(StrEnum):
    """Work that follows from an event. The caller does it after it stored the session."""

    FOCUS = "focus"
    UNFOCUS = "unfocus"


TRANSITIONS: Mapping[SessionStatus, Mapping[SessionAction, SessionStatus]] = {
    SessionStatus.CREATED: {SessionAction.ACTIVATE: SessionStatus.ACTIVE},
    SessionStatus.ACTIVE: {
        SessionAction.SUSPEND: SessionStatus.SUSPENDED,
        SessionAction.CLOSE: SessionStatus.COMPLETED,
        SessionAction.FAIL: SessionStatus.FAILED,
    },
    SessionStatus.SUSPENDED: {
        SessionAction.RESUME: SessionStatus.ACTIVE,
        SessionAction.CLOSE: SessionStatus.COMPLETED,
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
    summary: str = ""
    limits: SessionLimits = SessionLimits()
    metadata: dict[str, Any] = {}


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
    summary = event.summary or session.summary
    changed = msgspec.structs.replace(session, state=state, reason=event.reason, summary=summary, **times)
    return changed, _EFFECTS[state]


def apply_limits(session: Session, last_message: datetime | None, now: datetime) -> Session:
    """Return the session as its limits leave it now: suspended when it was idle too long, failed when it is too old."""
    if session.state is not SessionStatus.ACTIVE:
        return session
    limits = session.limits
    end = session.created_at + timedelta(seconds=limits.session_timeout)
    if limits.session_timeout and now > end:
        reason = f"it passed its time limit of {limits.session_timeout:g} s"
        return step(session, SessionEvent(action=SessionAction.FAIL, at=end, reason=reason))[0]
    idle_since = max(session.last_active_at, last_message or session.last_active_at)
    end = idle_since + timedelta(seconds=limits.auto_suspend_after)
    if limits.auto_suspend_after and now > end:
        reason = f"no message came for {limits.auto_suspend_after:g} s"
        return step(session, SessionEvent(action=SessionAction.SUSPEND, at=end, reason=reason))[0]
    return session


def check_new(name: str, limits: SessionLimits) -> None:
    """Check the settings of a new session. Raises InvalidInput."""
    if len(name) > MAX_NAME:
        raise InvalidInput("name", f"has {len(name)} characters; {MAX_NAME} are allowed")
    if name != name.strip() or not name.isprintable():
        raise InvalidInput("name", "must be printable text without spaces at its ends")
    for field in SessionLimits.__struct_fields__:
        if not 0 <= getattr(limits, field) <= MAX_LIMIT:
            raise InvalidInput(field, f"must be 0 (no limit) or up to {MAX_LIMIT:,} seconds")


def label(session: Session) -> str:
    """The name of a session, or the end of its id."""
    return session.name or session.id[-8:]


def refusal(session: Session, verb: str) -> IllegalState:
    """The error for an action that the state of a session does not allow."""
    allowed = tuple(TRANSITIONS[session.state])
    hint = "" if allowed else "Its messages stay readable. Begin another with `clew session new`"
    return IllegalState(verb, f"session {label(session)}", session.state, allowed, reason=session.reason, hint=hint)
