"""A session, its configuration and its state machine, without I/O: `step` takes a session and an event, and returns the
new session and the effects that its caller carries out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from clew.errors import IllegalState, InvalidInput
from clew.team.sessions.session_context import SessionContext

MAX_NAME = 100
MAX_SUMMARY = 10_000
MAX_LIMIT = 315_576_000
"""Ten years in seconds."""
MAX_AGENTS = 64
BRANCH_PREFIX = "clew/"
MAX_BRANCH = 60
SHORT_ID = 8
"""The number of characters at the end of an id that are shown to people."""
_REVISION = re.compile(r"\w[\w./+~^@-]{0,199}")


class SessionStatus(StrEnum):
    CREATED = "created"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"


class SessionAction(StrEnum):
    """The actions that change the state of a session."""

    ACTIVATE = "activate"
    SUSPEND = "suspend"
    RESUME = "resume"
    CLOSE = "close"
    FAIL = "fail"


class SessionEffect(StrEnum):
    """Work that follows from an event. The caller does the work after storing the session."""

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
"""The actions allowed in each state, and the state that each leads to. All other actions are refused."""

_EFFECTS: Mapping[SessionStatus, tuple[SessionEffect, ...]] = {
    SessionStatus.ACTIVE: (SessionEffect.FOCUS,),
    SessionStatus.SUSPENDED: (SessionEffect.UNFOCUS,),
    SessionStatus.COMPLETED: (SessionEffect.UNFOCUS,),
    SessionStatus.FAILED: (SessionEffect.UNFOCUS,),
}


class SessionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a session. Times are in seconds, and 0 means no limit.

    At most `max_concurrent_tasks` tasks and `max_engineers` engineers work at the same time. A run of a task that takes
    longer than `task_timeout` fails. A session without activity for `auto_suspend_after` is suspended; one that is
    older than `session_timeout` fails. With `enable_git_isolation` the session works on its own branch.
    """

    max_concurrent_tasks: int = 4
    max_engineers: int = 4
    task_timeout: float = 0.0
    session_timeout: float = 0.0
    auto_suspend_after: float = 0.0
    enable_git_isolation: bool = True


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
    """Why Clew changed the state automatically; empty if a person changed it."""
    summary: str = ""
    context: SessionContext = SessionContext()
    active_dag_id: str = ""
    dag_history: tuple[str, ...] = ()
    branch_name: str = ""
    base_branch: str = ""
    config: SessionConfig = SessionConfig()
    metadata: dict[str, Any] = {}


class SessionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An action and its time. `summary` is for the end of a session, `reason` for automatic actions."""

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


def read_session(record: Mapping[str, Any]) -> Session:
    """The session of a record. Records of earlier versions store the configuration as `limits`."""
    if "config" not in record and "limits" in record:
        record = {**record, "config": record["limits"]}
    return msgspec.convert(record, Session)


def has_limits(config: SessionConfig) -> bool:
    """Whether a session can change its state automatically because of time limits."""
    return bool(config.auto_suspend_after or config.session_timeout)


def apply_limits(session: Session, last_activity: datetime | None, now: datetime) -> Session:
    """Return the session with its time limits applied: suspended if it was idle too long, failed if it is too old."""
    if session.state is not SessionStatus.ACTIVE:
        return session
    limits = session.config
    end = session.created_at + timedelta(seconds=limits.session_timeout)
    if limits.session_timeout and now > end:
        reason = f"it passed its time limit of {limits.session_timeout:g} s"
        return step(session, SessionEvent(action=SessionAction.FAIL, at=end, reason=reason))[0]
    idle_since = max(session.last_active_at, last_activity or session.last_active_at)
    end = idle_since + timedelta(seconds=limits.auto_suspend_after)
    if limits.auto_suspend_after and now > end:
        reason = f"no message came for {limits.auto_suspend_after:g} s"
        return step(session, SessionEvent(action=SessionAction.SUSPEND, at=end, reason=reason))[0]
    return session


def check_new(name: str, config: SessionConfig) -> None:
    """Check the settings of a new session. Raises InvalidInput."""
    if len(name) > MAX_NAME:
        raise InvalidInput("name", f"has {len(name)} characters; {MAX_NAME} are allowed")
    if name != name.strip() or not name.isprintable():
        raise InvalidInput("name", "must be printable text without spaces at its ends")
    for field in ("task_timeout", "session_timeout", "auto_suspend_after"):
        if not 0 <= getattr(config, field) <= MAX_LIMIT:
            raise InvalidInput(field, f"must be 0 (no limit) or up to {MAX_LIMIT:,} seconds")
    for field in ("max_concurrent_tasks", "max_engineers"):
        if not 1 <= getattr(config, field) <= MAX_AGENTS:
            raise InvalidInput(field, f"must be between 1 and {MAX_AGENTS}")


def check_branch(name: str) -> None:
    """Check the name of a branch, a tag or a commit. Raises InvalidInput."""
    if name and (not _REVISION.fullmatch(name) or ".." in name):
        raise InvalidInput("base_branch", f"{name[:60]!r} is not the name of a branch", hint="For example main")


def branch_name(name: str, id: str) -> str:
    """The branch of a new session: its name, reduced to characters that are safe for git and shells, or the end of its
    id."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub(r"[^A-Za-z0-9_]+", "-", plain).strip("-_")[:MAX_BRANCH].rstrip("-_")
    return BRANCH_PREFIX + (words or id[-SHORT_ID:])


def label(session: Session) -> str:
    """The name of a session, or the end of its id."""
    return session.name or session.id[-SHORT_ID:]


def refusal(session: Session, verb: str) -> IllegalState:
    """The error for an action that the state of a session does not allow."""
    allowed = tuple(TRANSITIONS[session.state])
    hint = "" if allowed else "Its messages stay readable. Begin another with `clew session new`"
    return IllegalState(verb, f"session {label(session)}", session.state, allowed, reason=session.reason, hint=hint)
