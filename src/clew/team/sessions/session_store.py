"""The records of sessions on the trail: read, write and list them, and the session that a user works in.

Until a user names a conversation or changes its state, it has no session record and is active.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from uuid import NAMESPACE_OID, uuid5

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import inside
from clew.agents.conversations.sessions import MAX_SESSIONS, SESSION_TAG, Sessions
from clew.clock import Clock
from clew.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from clew.team.sessions.session import Session, SessionStatus, apply_limits, has_limits, read_session
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail


class SessionStore:
    """Session records of a trail, each call with the rights of a principal."""

    def __init__(self, trail: Trail, flow: Flow, history: Sessions, clock: Clock) -> None:
        self._records = trail.records
        self._flow = flow
        self._history = history
        self._clock = clock

    async def load(self, id: str, by: Principal) -> tuple[Breadcrumb | None, Session]:
        """The record of a session, or None, and the session with its time limits applied. Raises NotFound."""
        by = inside(by)
        record_id = session_record_id(id, by)
        found = (await self._records.find_many([record_id], by=by)).get(record_id)
        if found is not None and found.schema_name == self._flow.session:
            return found, await self.limited(read_session(found.context), by)
        began = (await self._history.first(id, by=by)).created_at
        last = await self._history.last_message(id, by=by)
        return None, Session(
            id=id, state=SessionStatus.ACTIVE, created_at=began, activated_at=began, last_active_at=last or began
        )

    async def limited(self, session: Session, by: Principal) -> Session:
        """The session with its time limits applied. Every record of the session counts as activity."""
        if not has_limits(session.config) or session.state is not SessionStatus.ACTIVE:
            return session
        page = await self._records.list(Selector(session=session.id), by=inside(by), limit=1)
        last = page.items[0].created_at if page.items else None
        return apply_limits(session, last, self._clock.now())

    async def begin(self, session: Session, key: str | None, by: Principal) -> None:
        """Write a new session. If several sessions with the same key are begun at the same time, only one is written.
        Raises AlreadyExists for the others."""
        draft = self._draft(session, by)
        try:
            written = await self._records.create(msgspec.structs.replace(draft, idempotency_key=key), by=inside(by))
        except AlreadyExists:  # the session of that key was deleted
            written = await self._records.create(draft, by=inside(by))
        if written.id != draft.id:
            raise AlreadyExists("session", repr(session.name))

    async def write(self, record: Breadcrumb | None, session: Session, by: Principal) -> None:
        """Write a session. Raises Conflict if another writer was first."""
        draft = self._draft(session, by)
        if record is not None:
            change = Change(title=draft.title, tags=draft.tags, context=draft.context, embed="never")
            await self._records.update(record.id, change, expect=record.version, by=inside(by))
            return
        try:
            await self._records.create(draft, by=inside(by))
        except AlreadyExists:
            raise Conflict(session.id, expected=0, actual=1) from None

    async def exists(self, id: str, by: Principal) -> bool:
        try:
            await self._history.first(id, by=inside(by))
        except (NotFound, InvalidInput):
            return False
        return True

    async def by_name(self, name: str, by: Principal) -> Sequence[Session]:
        """The open sessions of this name, else the newest closed one."""
        named = Selector(schema_name=self._flow.session, context_match=(ContextMatch(path="name", value=name),))
        page = await self._records.list(named, by=inside(by), limit=MAX_SESSIONS) if name else None
        found = [read_session(each.context) for each in page.items] if page else []
        return [each for each in found if not is_over(each)] or found[:1]

    async def newest(self, by: Principal) -> Sequence[Session]:
        """The sessions of the newest records."""
        page = await self._records.list(Selector(schema_name=self._flow.session), by=inside(by), limit=MAX_SESSIONS)
        return [read_session(each.context) for each in page.items]

    async def read_focus(self, by: Principal) -> str | None:
        id = _focus_id(by)
        found = (await self._records.find_many([id], by=inside(by))).get(id)
        if found is None or found.schema_name != self._flow.focus:
            return None
        return str(found.context.get("session") or "") or None

    async def focus(self, session: str, by: Principal) -> None:
        """Set the session that the caller works in; an empty id means none. Either of two concurrent calls may win."""
        id, context = _focus_id(by), {"user": by.agent_id, "session": session}
        found = (await self._records.find_many([id], by=inside(by))).get(id)
        with suppress(Conflict, AlreadyExists):  # another focus came right after this one
            if found is None:
                draft = Draft(id=id, title="Focus", schema_name=self._flow.focus, context=context, embed="never")
                await self._records.create(draft, by=inside(by))
            else:
                change = Change(schema_name=self._flow.focus, context=context, embed="never")
                await self._records.update(id, change, expect=found.version, by=inside(by))

    def _draft(self, session: Session, by: Principal) -> Draft:
        return Draft(
            id=session_record_id(session.id, by),
            title=session.name or "Session",
            schema_name=self._flow.session,
            tags=(SESSION_TAG + session.id, f"state:{session.state}"),
            context=msgspec.to_builtins(session),
            embed="never",
        )


def is_over(session: Session) -> bool:
    return session.state in (SessionStatus.COMPLETED, SessionStatus.FAILED)


def session_record_id(session: str, by: Principal) -> str:
    """The id of the record of a session. The id is derived, so that a caller who chooses a session id cannot choose a
    record id."""
    return str(uuid5(NAMESPACE_OID, f"clew/session\n{by.owner_id}\n{session}"))


def _focus_id(by: Principal) -> str:
    return str(uuid5(NAMESPACE_OID, f"clew/session-focus\n{by.owner_id}\n{by.agent_id}"))
