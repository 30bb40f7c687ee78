"""Sessions on the trail: create, switch, suspend, resume and close them, their private context and statistics, and the
session of a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations, inside, open_conversations, require_session_control
from clew.agents.conversations.sessions import MAX_SESSIONS, MAX_TURNS, SessionInfo, SessionTurn
from clew.clock import Clock
from clew.errors import AccessDenied, AlreadyExists, ClewError, Conflict, InvalidInput, NotFound, TooLarge
from clew.team.sessions.promotion import Promotions
from clew.team.sessions.session import (
    MAX_SUMMARY,
    Session,
    SessionAction,
    SessionConfig,
    SessionEffect,
    SessionEvent,
    SessionStatus,
    apply_limits,
    branch_name,
    check_branch,
    check_new,
    refusal,
    step,
)
from clew.team.sessions.session_context import SessionContext, check_context
from clew.team.sessions.session_snapshot import SessionSnapshot, SessionSnapshots, TeamStateOf, build_snapshot
from clew.team.sessions.session_store import SessionStore, is_over
from clew.trail.store import Trail

SHORTEST = 4
"""The minimum number of characters of an id that identify a session."""
_RETRIES = 50
_LISTED = "`clew session list` shows them"
Update = Callable[[SessionContext], SessionContext]


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a list shows it. `title` is its name, or the beginning of its first message."""

    id: str
    state: SessionStatus
    title: str
    agent: str
    is_focused: bool
    started_at: datetime
    last_at: datetime


class SessionStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a session: messages, answers, messages without an answer, journal entries, and promoted ones."""

    messages: int
    answers: int
    pending: int
    entries: int
    promoted: int
    files: int
    """Files that the session modified or created."""


class SessionManager:
    """The sessions of a trail. Each call uses the rights of its principal. Only the user who began a session, or a
    curator of its owner, may change it. `team_state_of` returns the state of the team of a session, for its
    snapshot."""

    def __init__(
        self, trail: Trail, conversations: Conversations, clock: Clock, team_state_of: TeamStateOf | None = None
    ) -> None:
        self._history = conversations.sessions
        self._clock = clock
        self._team_state_of = team_state_of
        self._store = SessionStore(trail, conversations.flow, conversations.sessions, clock)
        self._snapshots = SessionSnapshots(trail, conversations.flow.session_snapshot)
        self.promotions = Promotions(trail, conversations.flow, clock)

    async def create(
        self,
        name: str = "",
        *,
        by: Principal,
        config: SessionConfig | None = None,
        base_branch: str = "",
        metadata: dict[str, Any] | None = None,
        id: str = "",
    ) -> Session:
        """Write a new active session and focus it; `id` is chosen here unless Clew already chose one. Raises
        InvalidInput, AccessDenied, AlreadyExists (an open session has that name)."""
        by.require("create")
        config = config or SessionConfig()
        check_new(name, config)
        check_branch(base_branch)
        earlier = await self._store.by_name(name, by)
        for each in earlier:
            if not is_over(await self.get(each.id, by=by)):
                raise AlreadyExists("session", repr(name))
        now, id = self._clock.now(), id or self._clock.new_id()
        new = Session(
            id=id,
            name=name,
            created_at=now,
            last_active_at=now,
            branch_name=branch_name(name, id) if config.enable_git_isolation else "",
            base_branch=base_branch,
            config=config,
            metadata=metadata or {},
        )
        active, effects = step(new, SessionEvent(action=SessionAction.ACTIVATE, at=now))
        key = f"session/{uuid5(NAMESPACE_OID, name)}/{earlier[0].id if earlier else ''}" if name else None
        await self._store.begin(active, key, by)
        await self._carry_out(effects, active, by)
        return active

    async def get(self, id: str, *, by: Principal) -> Session:
        """A session, with its time limits applied. Raises NotFound."""
        return (await self._store.load(id, by))[1]

    async def find(self, given: str, *, by: Principal) -> str:
        """Return the id of a session, found by its id, its name, or the beginning or end of its id. An open session is
        preferred to closed ones with the same name. Raises NotFound, and ClewError if several sessions match."""
        is_id = await self._store.exists(given, by)
        found = [given] if is_id else [each.id for each in await self._store.by_name(given, by)]
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
        """Sessions with the newest activity first. Conversations of the agents of a session belong to it. Raises
        InvalidInput, AccessDenied."""
        if not 1 <= limit <= MAX_SESSIONS:
            raise InvalidInput("limit", f"must be between 1 and {MAX_SESSIONS}")
        now, focused = self._clock.now(), await self._store.read_focus(by)
        recent = {each.id: each for each in await self._history.recent(by=by, limit=MAX_SESSIONS)}
        stored = {each.id: await self._store.limited(each, by) for each in await self._store.newest(by)}
        ids = [id for id in {**recent, **stored} if id in stored or id.partition(".")[0] not in stored]
        views = [_view(stored.get(id), recent.get(id), now, is_focused=id == focused) for id in ids]
        wanted = [each for each in views if state is None or each.state is state]
        return sorted(wanted, key=lambda each: each.last_at, reverse=True)[:limit]

    async def focused(self, *, by: Principal) -> Session | None:
        """The session that the caller works in. A session that is no longer active is not focused."""
        id = await self._store.read_focus(by)
        if id is None:
            return None
        try:
            found = await self.get(id, by=by)
        except NotFound:
            return None
        return found if found.state is SessionStatus.ACTIVE else None

    async def act(
        self, id: str, action: SessionAction, *, by: Principal, summary: str = "", reason: str = ""
    ) -> Session:
        """Change the state of a session. `suspend` writes a snapshot, which `resume` restores. Closing an active
        session counts as its success and promotes its journal entries. Raises NotFound, AccessDenied, IllegalState,
        TooLarge."""
        if len(summary) > MAX_SUMMARY:
            raise TooLarge("summary", len(summary), MAX_SUMMARY, "characters")
        event = SessionEvent(action=action, at=self._clock.now(), summary=summary, reason=reason)
        was_active = False
        effects: tuple[SessionEffect, ...] = ()

        async def take(session: Session) -> Session:
            nonlocal was_active, effects
            was_active = session.state is SessionStatus.ACTIVE
            changed, effects = step(session, event)
            if action is SessionAction.SUSPEND:
                await self._snapshots.write(await self._snapshot(changed, by), by=inside(by))
            return await self._restored(changed, by) if action is SessionAction.RESUME else changed

        changed = await self._change(id, take, by)
        await self._carry_out(effects, changed, by)
        if action is not SessionAction.RESUME:
            is_success = action is SessionAction.CLOSE and was_active
            await self.promotions.settle(id, by=inside(by), is_success=is_success)
        return changed

    async def close_all(self, *, by: Principal, summary: str = "") -> Sequence[Session]:
        """Close all sessions that are open and that the caller may close. Raises TooLarge."""
        done = []
        for state in (SessionStatus.ACTIVE, SessionStatus.SUSPENDED):
            for each in await self.list(by=inside(by), state=state):
                try:
                    done.append(await self.act(each.id, SessionAction.CLOSE, by=by, summary=summary))
                except AccessDenied:  # somebody else began it
                    continue
        return done

    async def switch(self, id: str, *, by: Principal) -> Session:
        """Focus a session, and resume it if it is suspended. Raises NotFound, AccessDenied, IllegalState."""
        session = await self.get(id, by=by)
        require_session_control(await self._history.first(id, by=inside(by)), by)
        if session.state is SessionStatus.SUSPENDED:
            return await self.act(id, SessionAction.RESUME, by=by)
        if session.state is not SessionStatus.ACTIVE:
            raise refusal(session, "switch to")
        await self._store.focus(id, by)
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

    async def get_context(self, id: str, *, by: Principal) -> SessionContext:
        """The private context of a session, with the ids of its last messages. Raises NotFound, AccessDenied for a
        caller of another session."""
        _require_own(id, by)
        session = await self.get(id, by=by)
        turns = await self._history.turns(id, by=inside(by), limit=MAX_TURNS)
        history = tuple(each.id for each in turns)
        return msgspec.structs.replace(session.context, conversation_id=id, message_history=history)

    async def update_context(self, id: str, update: Update, *, by: Principal) -> Session:
        """Replace the private context by the result of `update`. Concurrent updates are applied one after the other.
        Raises NotFound, AccessDenied, IllegalState for a session that is not active, TooLarge."""
        _require_own(id, by)

        async def take(session: Session) -> Session:
            if session.state is not SessionStatus.ACTIVE:
                raise refusal(session, "change the context of")
            context = check_context(update(session.context))
            stored = msgspec.structs.replace(context, conversation_id="", message_history=())
            return msgspec.structs.replace(session, context=stored, last_active_at=self._clock.now())

        return await self._change(id, take, by)

    async def set_plan(self, id: str, plan: str, *, by: Principal) -> Session:
        """Set the active plan of the session, and move the previous plan to its history. An empty `plan` only ends the
        previous one. Raises NotFound, AccessDenied."""

        async def take(session: Session) -> Session:
            earlier = (session.active_dag_id,) if session.active_dag_id not in ("", plan) else ()
            history = (*session.dag_history, *earlier)
            return msgspec.structs.replace(session, active_dag_id=plan, dag_history=history)

        return await self._change(id, take, by)

    async def set_branch(self, id: str, branch: str, *, by: Principal) -> Session:
        """Note the branch that the session works on. Raises NotFound, AccessDenied."""

        async def take(session: Session) -> Session:
            return msgspec.structs.replace(session, branch_name=branch)

        return await self._change(id, take, by)

    async def snapshot(self, id: str, *, by: Principal) -> SessionSnapshot:
        """The stored snapshot of a suspended session; for other sessions, a snapshot of the current state. Raises
        NotFound, AccessDenied."""
        _require_own(id, by)
        session = await self.get(id, by=by)
        stored = await self._snapshots.read(id, by=inside(by)) if session.state is SessionStatus.SUSPENDED else None
        return stored or await self._snapshot(session, by)

    async def query_history(self, id: str, text: str = "", *, by: Principal, limit: int = 20) -> Sequence[SessionTurn]:
        """The last messages and answers of a session, oldest first; with a text, those that contain it. Raises
        NotFound, InvalidInput, AccessDenied for a caller of another session."""
        _require_own(id, by)
        if not text.strip():
            return await self._history.turns(id, by=inside(by), limit=limit)
        turns = await self._history.turns(id, by=inside(by), limit=MAX_TURNS)
        wanted = text.strip().casefold()
        return [each for each in turns if wanted in each.text.casefold()][-limit:]

    async def stats(self, id: str, *, by: Principal) -> SessionStats:
        """Counts of a session; messages and answers up to the newest 200. Raises NotFound, AccessDenied."""
        _require_own(id, by)
        session = await self.get(id, by=by)
        turns = await self._history.turns(id, by=inside(by), limit=MAX_TURNS)
        entries = await self.promotions.entries(id, by=inside(by))
        return SessionStats(
            messages=sum(each.role == "user" for each in turns),
            answers=sum(each.role == "agent" for each in turns),
            pending=len(await self._history.open_runs(id, by=inside(by))),
            entries=len(entries),
            promoted=sum(bool(each.metadata.get("promoted")) for each in entries),
            files=len({**session.context.modified_files, **session.context.created_files}),
        )

    async def _change(self, id: str, take: Callable[[Session], Awaitable[Session]], by: Principal) -> Session:
        """Apply `take` to the current session and write what has changed. Retries if another writer was first. Raises
        NotFound, AccessDenied and the errors of `take`."""
        require_session_control(await self._history.first(id, by=inside(by)), by)
        for _ in range(_RETRIES):
            record, session = await self._store.load(id, by)
            changed = await take(session)
            if record is not None and changed == session:
                return session
            try:
                await self._store.write(record, changed, by)
            except Conflict:
                continue
            return changed
        raise ClewError(f"session {id} changes too often", hint="Try again")

    async def _snapshot(self, session: Session, by: Principal) -> SessionSnapshot:
        pending = await self._history.open_runs(session.id, by=inside(by))
        entries = [each.id for each in await self.promotions.entries(session.id, by=inside(by))]
        team: Mapping[str, Any] | None = None
        if self._team_state_of is not None:
            team = await self._team_state_of(session.id, inside(by))
        return build_snapshot(session, pending, entries, team, self._clock.now())

    async def _restored(self, session: Session, by: Principal) -> Session:
        """A resumed session with the private context of its snapshot."""
        found = await self._snapshots.read(session.id, by=inside(by))
        if found is None:  # its limits suspended it; nothing changed since
            return session
        return msgspec.structs.replace(
            session, context=found.session.context, active_dag_id=found.session.active_dag_id
        )

    async def _carry_out(self, effects: tuple[SessionEffect, ...], session: Session, by: Principal) -> None:
        for effect in effects:
            match effect:
                case SessionEffect.FOCUS:
                    await self._store.focus(session.id, by)
                case SessionEffect.UNFOCUS:
                    if await self._store.read_focus(by) == session.id:
                        await self._store.focus("", by)


async def open_sessions(
    trail: Trail, clock: Clock, *, by: Principal, team_state_of: TeamStateOf | None = None
) -> SessionManager:
    """The sessions of an owner."""
    conversations = await open_conversations(trail, clock, by=by, scopes=by.scopes)
    return SessionManager(trail, conversations, clock, team_state_of)


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


def _require_own(id: str, by: Principal) -> None:
    """Raise AccessDenied for a caller that works in another session."""
    if by.session and by.session != id and not by.session.startswith(f"{id}."):
        raise AccessDenied("read the private context of another session", ["a caller outside of a session"])
