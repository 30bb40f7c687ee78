"""Sessions on the trail: create, switch, suspend, resume and close them, and choose the session of a message.

A conversation has no session record until somebody names it or changes its state; until then it is active.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec

from clew.access import ROLES, Principal
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.sessions import MAX_SESSIONS, SESSION_TAG, SessionInfo, sent_message
from clew.clock import Clock
from clew.errors import AccessDenied, AlreadyExists, ClewError, Conflict, InvalidInput, NotFound, TooLarge
from clew.team.sessions.session import (
    MAX_SUMMARY,
    Session,
    SessionAction,
    SessionContext,
    SessionEffect,
    SessionEvent,
    SessionLimits,
    SessionStatus,
    check_new,
    due_event,
    refusal,
    step,
)
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

SHORTEST = 4
"""The fewest characters of an id that name a session."""
_RETRIES = 20
_LISTED = "`clew session list` shows them"


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a list shows it. `title` is its name, or the beginning of its first message."""

    id: str
    state: SessionStatus
    title: str
    agent: str
    is_focused: bool
    started_at: datetime
    last_at: datetime


class SessionManager:
    """The sessions of a trail. Each call has the rights of a principal: the user who began a session, or a curator of
    its owner, changes it."""

    def __init__(self, trail: Trail, conversations: Conversations, clock: Clock) -> None:
        self._records = trail.records
        self._history = conversations.sessions
        self._flow = conversations.flow
        self._clock = clock

    async def create(
        self,
        name: str = "",
        *,
        by: Principal,
        limits: SessionLimits | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Session:
        """Write a new active session and focus it. Raises InvalidInput, AccessDenied, AlreadyExists (an open session
        has that name)."""
        by.require("create")
        limits = limits or SessionLimits()
        check_new(name, limits)
        if name and any(each.name == name and not _is_over(each) for _, each in await self._stored(by)):
            raise AlreadyExists("session", repr(name))
        now = self._clock.now()
        new = Session(
            id=self._clock.new_id(),
            name=name,
            created_at=now,
            last_active_at=now,
            limits=limits,
            metadata=metadata or {},
            user=by.agent_id,
        )
        active, effects = step(new, SessionEvent(action=SessionAction.ACTIVATE, at=now))
        await self._records.create(self._draft(active), by=_inside(by))
        await self._carry_out(effects, active, by)
        return active

    async def get(self, id: str, *, by: Principal) -> Session:
        """A session as it is now: a limit that has passed is applied first. Raises NotFound."""
        record, session = await self._load(id, by)
        if session.limits == SessionLimits():
            return session
        due = due_event(session, await self._history.last_message(id, by=_inside(by)), self._clock.now())
        return session if due is None else await self._apply(record, session, due, by)

    async def find(self, given: str, *, by: Principal) -> str:
        """The id of the session with this name or id, or whose id begins or ends so. Raises NotFound, and ClewError
        where several do."""
        views = await self.list(by=by, limit=MAX_SESSIONS)
        exact = [each.id for each in views if given in (each.id, each.title)]
        near = [
            each.id
            for each in views
            if len(given) >= SHORTEST and given in (each.id[: len(given)], each.id[-len(given) :])
        ]
        found = exact or near
        if not found:
            raise NotFound("session", given[:100], hint=_LISTED)
        if len(found) > 1:
            raise ClewError(f"{given!r} means {len(found)} sessions", hint=f"For example {found[0]} and {found[1]}")
        return found[0]

    async def list(
        self, *, by: Principal, state: SessionStatus | None = None, limit: int = MAX_SESSIONS
    ) -> Sequence[SessionView]:
        """Sessions with the newest activity first. Raises InvalidInput, AccessDenied."""
        recent = {each.id: each for each in await self._history.recent(by=by, limit=limit)}
        stored = {each.id: each for _, each in await self._stored(by)}
        focused = await self._read_focus(by)
        views = [_view(stored.get(id), recent.get(id), is_focused=id == focused) for id in {**recent, **stored}]
        wanted = [each for each in views if state is None or each.state is state]
        return sorted(wanted, key=lambda each: each.last_at, reverse=True)[:limit]

    async def focused(self, *, by: Principal) -> Session | None:
        """The session that the caller works in. A session that is no longer active is not focused."""
        id = await self._read_focus(by)
        if id is None:
            return None
        try:
            found = await self.get(id, by=by)
        except NotFound:
            return None
        return found if found.state is SessionStatus.ACTIVE else None

    async def act(self, id: str, action: SessionAction, *, by: Principal, summary: str = "") -> Session:
        """Change the state of a session. Raises NotFound, AccessDenied, IllegalState, TooLarge."""
        if len(summary) > MAX_SUMMARY:
            raise TooLarge("summary", len(summary), MAX_SUMMARY, "characters")
        session = await self.get(id, by=by)
        _require_say(session, by)
        for _ in range(_RETRIES):
            record, session = await self._load(id, by)
            event = SessionEvent(action=action, at=self._clock.now(), summary=summary)
            try:
                return await self._apply(record, session, event, by)
            except Conflict:
                continue
        raise ClewError(f"session {id} changes too often", hint="Try again")

    async def switch(self, id: str, *, by: Principal) -> Session:
        """Focus a session, and resume it where it is suspended. Raises NotFound, AccessDenied, IllegalState."""
        session = await self.get(id, by=by)
        _require_say(session, by)
        if session.state is SessionStatus.SUSPENDED:
            return await self.act(id, SessionAction.RESUME, by=by)
        if session.state is not SessionStatus.ACTIVE:
            raise refusal(session, "switch to")
        await self._focus(id, by)
        return session

    async def update_context(
        self, id: str, change: Callable[[SessionContext], SessionContext], *, by: Principal
    ) -> Session:
        """Change the private notes of a session; `change` runs again where another writer came first. Raises NotFound,
        AccessDenied, IllegalState (the session is over)."""
        for _ in range(_RETRIES):
            record, session = await self._load(id, by)
            _require_say(session, by)
            if _is_over(session):
                raise refusal(session, "change")
            changed = msgspec.structs.replace(session, context=change(session.context))
            try:
                return await self._store(record, changed, by)
            except Conflict:
                continue
        raise ClewError(f"session {id} changes too often", hint="Try again")

    async def choose(self, session: str | None, *, by: Principal) -> str | None:
        """The session of a message: the named one, else the focused one, else None for a new one. Raises IllegalState
        for a session that is not active."""
        if session is None:
            focused = await self.focused(by=by)
            return None if focused is None else focused.id
        try:
            found = await self.get(session, by=by)
        except NotFound:
            return session  # the conversation refuses it, in its own words
        if found.state is not SessionStatus.ACTIVE:
            raise refusal(found, "send a message to")
        return session

    async def _load(self, id: str, by: Principal) -> tuple[Breadcrumb | None, Session]:
        """The record of a session, if there is one, and the session. Raises NotFound."""
        by = _inside(by)
        found = (await self._records.find_many([id], by=by)).get(id)
        if found is not None and found.schema_name == self._flow.session:
            return found, msgspec.convert(found.context, Session)
        first = await self._history.first(id, by=by)
        began = first.created_at
        last = await self._history.last_message(id, by=by)
        return None, Session(
            id=sent_message(first).session,
            state=SessionStatus.ACTIVE,
            created_at=began,
            activated_at=began,
            last_active_at=last or began,
            user=first.created_by or "",
        )

    async def _apply(self, record: Breadcrumb | None, session: Session, event: SessionEvent, by: Principal) -> Session:
        changed, effects = step(session, event)
        stored = await self._store(record, changed, by)
        await self._carry_out(effects, stored, by)
        return stored

    async def _store(self, record: Breadcrumb | None, session: Session, by: Principal) -> Session:
        """Write a session. Raises Conflict where another writer came first."""
        draft = self._draft(session)
        if record is not None:
            change = Change(title=draft.title, tags=draft.tags, context=draft.context, embed="never")
            await self._records.update(record.id, change, expect=record.version, by=_inside(by))
            return session
        try:
            await self._records.create(draft, by=_inside(by))
        except AlreadyExists:
            raise Conflict(session.id, expected=0, actual=1) from None
        return session

    def _draft(self, session: Session) -> Draft:
        return Draft(
            id=session.id,
            title=session.name or "Session",
            schema_name=self._flow.session,
            tags=(SESSION_TAG + session.id, f"state:{session.state}"),
            context=msgspec.to_builtins(session),
            embed="never",
        )

    async def _stored(self, by: Principal) -> Sequence[tuple[Breadcrumb, Session]]:
        """The newest session records."""
        page = await self._records.list(Selector(schema_name=self._flow.session), by=_inside(by), limit=MAX_SESSIONS)
        return [(each, msgspec.convert(each.context, Session)) for each in page.items]

    async def _carry_out(self, effects: tuple[SessionEffect, ...], session: Session, by: Principal) -> None:
        for effect in effects:
            match effect:
                case SessionEffect.FOCUS:
                    await self._focus(session.id, by)
                case SessionEffect.UNFOCUS:
                    if await self._read_focus(by) == session.id:
                        await self._focus("", by)

    async def _read_focus(self, by: Principal) -> str | None:
        id = _focus_id(by)
        found = (await self._records.find_many([id], by=_inside(by))).get(id)
        if found is None or found.schema_name != self._flow.focus:
            return None
        return str(found.context.get("session") or "") or None

    async def _focus(self, session: str, by: Principal) -> None:
        """Make this the one session that the caller works in; an empty one is none."""
        id, context = _focus_id(by), {"user": by.agent_id, "session": session}
        for _ in range(_RETRIES):
            found = (await self._records.find_many([id], by=_inside(by))).get(id)
            try:
                if found is None:
                    draft = Draft(id=id, title="Focus", schema_name=self._flow.focus, context=context, embed="never")
                    await self._records.create(draft, by=_inside(by))
                else:
                    change = Change(context=context, embed="never")
                    await self._records.update(id, change, expect=found.version, by=_inside(by))
            except (Conflict, AlreadyExists):
                continue
            return
        raise ClewError("the focused session changes too often", hint="Try again")


def read_state(text: str) -> SessionStatus:
    """Raises InvalidInput."""
    try:
        return SessionStatus(text)
    except ValueError:
        raise InvalidInput("state", f"{text[:40]!r} is not a state", hint=f"Use {', '.join(SessionStatus)}") from None


def _view(stored: Session | None, recent: SessionInfo | None, *, is_focused: bool) -> SessionView:
    if stored is None:
        assert recent is not None  # one of them named the session
        return SessionView(
            id=recent.id,
            state=SessionStatus.ACTIVE,
            title=recent.title,
            agent=recent.agent,
            is_focused=is_focused,
            started_at=recent.started_at,
            last_at=recent.last_at,
        )
    return SessionView(
        id=stored.id,
        state=stored.state,
        title=stored.name or (recent.title if recent else "Session"),
        agent=recent.agent if recent else "",
        is_focused=is_focused and stored.state is SessionStatus.ACTIVE,
        started_at=stored.created_at,
        last_at=max(stored.last_active_at, recent.last_at) if recent else stored.last_active_at,
    )


def _is_over(session: Session) -> bool:
    return session.state in (SessionStatus.COMPLETED, SessionStatus.FAILED)


def _require_say(session: Session, by: Principal) -> None:
    """Raise AccessDenied unless the caller is a curator or began the session."""
    by.require("create")
    if not by.may("administer") and (not by.agent_id or session.user != by.agent_id):
        raise AccessDenied("change a session that another began", ["curator"])


def _focus_id(by: Principal) -> str:
    return str(uuid5(NAMESPACE_OID, f"clew/session-focus\n{by.owner_id}\n{by.agent_id}"))


def _inside(by: Principal) -> Principal:
    """The caller with the roles that session records need."""
    return msgspec.structs.replace(by, roles=ROLES)
