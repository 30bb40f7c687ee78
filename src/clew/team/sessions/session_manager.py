"""Sessions on the trail: create, switch, suspend, resume and close them, and choose the session of a message.

A conversation has no session record until somebody names it or changes its state; until then it is active.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations, inside, require_say
from clew.agents.conversations.sessions import MAX_SESSIONS, SESSION_TAG, SessionInfo
from clew.clock import Clock
from clew.errors import AlreadyExists, ClewError, Conflict, InvalidInput, NotFound, TooLarge
from clew.team.sessions.session import (
    MAX_SUMMARY,
    Session,
    SessionAction,
    SessionEffect,
    SessionEvent,
    SessionLimits,
    SessionStatus,
    apply_limits,
    check_new,
    refusal,
    step,
)
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.selector import ContextMatch, Selector
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
        earlier = await self._by_name(name, by)
        for id in earlier:
            if not _is_over(await self.get(id, by=by)):
                raise AlreadyExists("session", repr(name))
        now = self._clock.now()
        new = Session(
            id=self._clock.new_id(),
            name=name,
            created_at=now,
            last_active_at=now,
            limits=limits,
            metadata=metadata or {},
        )
        active, effects = step(new, SessionEvent(action=SessionAction.ACTIVATE, at=now))
        key = f"session/{uuid5(NAMESPACE_OID, name)}/{earlier[0] if earlier else ''}" if name else None
        await self._begin(active, key, by)
        await self._carry_out(effects, active, by)
        return active

    async def _begin(self, session: Session, key: str | None, by: Principal) -> None:
        """Write a new session. Of several with one key, which are begun at the same time, one is written. Raises
        AlreadyExists for the others."""
        draft = self._draft(session, by)
        try:
            written = await self._records.create(msgspec.structs.replace(draft, idempotency_key=key), by=inside(by))
        except AlreadyExists:  # the session of that key was deleted
            written = await self._records.create(draft, by=inside(by))
        if written.id != draft.id:
            raise AlreadyExists("session", repr(session.name))

    async def get(self, id: str, *, by: Principal) -> Session:
        """A session as its limits leave it now. Raises NotFound."""
        return (await self._load(id, by))[1]

    async def find(self, given: str, *, by: Principal) -> str:
        """The id of the session with this id or name, or whose id begins or ends so; of several with one name the open
        one. Raises NotFound, and ClewError where several are meant."""
        found = [given] if await self._exists(given, by) else await self._by_name(given, by)
        if not found and len(given) >= SHORTEST:
            ids = [each.id for each in await self.list(by=by)]
            found = [id for id in ids if given in (id[: len(given)], id[-len(given) :])]
        if not found:
            raise NotFound("session", given[:100], hint=_LISTED)
        if len(found) > 1:
            raise ClewError(f"{given!r} means {len(found)} sessions", hint=f"For example {found[0]} and {found[1]}")
        return found[0]

    async def list(
        self, *, by: Principal, state: SessionStatus | None = None, limit: int = MAX_SESSIONS
    ) -> Sequence[SessionView]:
        """Sessions with the newest activity first. Raises InvalidInput, AccessDenied."""
        if not 1 <= limit <= MAX_SESSIONS:
            raise InvalidInput("limit", f"must be between 1 and {MAX_SESSIONS}")
        now, focused = self._clock.now(), await self._read_focus(by)
        recent = {each.id: each for each in await self._history.recent(by=by, limit=MAX_SESSIONS)}
        stored = {each.id: each for each in await self._stored(by)}
        views = [_view(stored.get(id), recent.get(id), now, is_focused=id == focused) for id in {**recent, **stored}]
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
        require_say(await self._history.first(id, by=inside(by)), by)
        for _ in range(_RETRIES):
            record, session = await self._load(id, by)
            changed, effects = step(session, SessionEvent(action=action, at=self._clock.now(), summary=summary))
            try:
                await self._store(record, changed, by)
            except Conflict:
                continue
            await self._carry_out(effects, changed, by)
            return changed
        raise ClewError(f"session {id} changes too often", hint="Try again")

    async def switch(self, id: str, *, by: Principal) -> Session:
        """Focus a session, and resume it where it is suspended. Raises NotFound, AccessDenied, IllegalState."""
        session = await self.get(id, by=by)
        require_say(await self._history.first(id, by=inside(by)), by)
        if session.state is SessionStatus.SUSPENDED:
            return await self.act(id, SessionAction.RESUME, by=by)
        if session.state is not SessionStatus.ACTIVE:
            raise refusal(session, "switch to")
        await self._focus(id, by)
        return session

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

    async def _exists(self, id: str, by: Principal) -> bool:
        try:
            await self._history.first(id, by=inside(by))
        except (NotFound, InvalidInput):
            return False
        return True

    async def _by_name(self, name: str, by: Principal) -> Sequence[str]:
        """The ids of the open sessions of this name, else the id of the newest closed one."""
        named = Selector(schema_name=self._flow.session, context_match=(ContextMatch(path="name", value=name),))
        page = await self._records.list(named, by=inside(by), limit=MAX_SESSIONS) if name else None
        found = [msgspec.convert(each.context, Session) for each in page.items] if page else []
        return [each.id for each in found if not _is_over(each)] or [each.id for each in found[:1]]

    async def _load(self, id: str, by: Principal) -> tuple[Breadcrumb | None, Session]:
        """The record of a session, if there is one, and the session as its limits leave it. Raises NotFound."""
        by = inside(by)
        record_id = _record_id(id, by)
        found = (await self._records.find_many([record_id], by=by)).get(record_id)
        if found is not None and found.schema_name == self._flow.session:
            session = msgspec.convert(found.context, Session)
            last = await self._history.last_message(id, by=by) if session.limits != SessionLimits() else None
            return found, apply_limits(session, last, self._clock.now())
        began = (await self._history.first(id, by=by)).created_at
        last = await self._history.last_message(id, by=by)
        return None, Session(
            id=id, state=SessionStatus.ACTIVE, created_at=began, activated_at=began, last_active_at=last or began
        )

    async def _store(self, record: Breadcrumb | None, session: Session, by: Principal) -> None:
        """Write a session. Raises Conflict where another writer came first."""
        draft = self._draft(session, by)
        if record is not None:
            change = Change(title=draft.title, tags=draft.tags, context=draft.context, embed="never")
            await self._records.update(record.id, change, expect=record.version, by=inside(by))
            return
        try:
            await self._records.create(draft, by=inside(by))
        except AlreadyExists:
            raise Conflict(session.id, expected=0, actual=1) from None

    def _draft(self, session: Session, by: Principal) -> Draft:
        return Draft(
            id=_record_id(session.id, by),
            title=session.name or "Session",
            schema_name=self._flow.session,
            tags=(SESSION_TAG + session.id, f"state:{session.state}"),
            context=msgspec.to_builtins(session),
            embed="never",
        )

    async def _stored(self, by: Principal) -> Sequence[Session]:
        """The sessions of the newest records."""
        page = await self._records.list(Selector(schema_name=self._flow.session), by=inside(by), limit=MAX_SESSIONS)
        return [msgspec.convert(each.context, Session) for each in page.items]

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
        found = (await self._records.find_many([id], by=inside(by))).get(id)
        if found is None or found.schema_name != self._flow.focus:
            return None
        return str(found.context.get("session") or "") or None

    async def _focus(self, session: str, by: Principal) -> None:
        """Make this the one session that the caller works in; an empty one is none. Of two at once either may win."""
        id, context = _focus_id(by), {"user": by.agent_id, "session": session}
        found = (await self._records.find_many([id], by=inside(by))).get(id)
        with suppress(Conflict, AlreadyExists):  # another focus came right after this one
            if found is None:
                draft = Draft(id=id, title="Focus", schema_name=self._flow.focus, context=context, embed="never")
                await self._records.create(draft, by=inside(by))
            else:
                change = Change(schema_name=self._flow.focus, context=context, embed="never")
                await self._records.update(id, change, expect=found.version, by=inside(by))


def read_state(text: str) -> SessionStatus:
    """Raises InvalidInput."""
    try:
        return SessionStatus(text)
    except ValueError:
        raise InvalidInput("state", f"{text[:40]!r} is not a state", hint=f"Use {', '.join(SessionStatus)}") from None


def _view(stored: Session | None, recent: SessionInfo | None, now: datetime, *, is_focused: bool) -> SessionView:
    if stored is None:
        assert recent is not None  # one of them named the session
        stored = Session(
            id=recent.id, state=SessionStatus.ACTIVE, created_at=recent.started_at, last_active_at=recent.last_at
        )
    session = apply_limits(stored, recent.last_at if recent else None, now)
    return SessionView(
        id=session.id,
        state=session.state,
        title=session.name or (recent.title if recent else "Session"),
        agent=recent.agent if recent else "",
        is_focused=is_focused and session.state is SessionStatus.ACTIVE,
        started_at=session.created_at,
        last_at=max(session.last_active_at, recent.last_at) if recent else session.last_active_at,
    )


def _is_over(session: Session) -> bool:
    return session.state in (SessionStatus.COMPLETED, SessionStatus.FAILED)


def _record_id(session: str, by: Principal) -> str:
    """The id of the record of a session. Whoever names a session does not choose the id of a record."""
    return str(uuid5(NAMESPACE_OID, f"clew/session\n{by.owner_id}\n{session}"))


def _focus_id(by: Principal) -> str:
    return str(uuid5(NAMESPACE_OID, f"clew/session-focus\n{by.owner_id}\n{by.agent_id}"))
