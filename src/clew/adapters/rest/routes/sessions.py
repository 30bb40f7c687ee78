"""Sessions over REST: create, list, read, focus, suspend, resume and close them, their private context, and promotion
of their entries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from clew.adapters.rest.operation import RestAnswer, RestCall, RestOperation, reply
from clew.agents.conversations.agent_interface import AgentCore
from clew.agents.conversations.conversation import DEFAULT_AGENT, open_conversations
from clew.agents.conversations.sessions import MAX_SESSIONS, MAX_TURNS, SessionTurn
from clew.errors import AccessDenied, AlreadyExists, IllegalState, InvalidInput, NotFound, TooLarge
from clew.knowledge.nodes.node_store import Node
from clew.team.sessions.session import MAX_SUMMARY, Session, SessionAction, SessionConfig, SessionStatus
from clew.team.sessions.session_context import ContextChange, SessionContext, change_context
from clew.team.sessions.session_manager import SessionManager, SessionStats, SessionView
from clew.team.sessions.session_snapshot import SessionSnapshot
from clew.team.team import Team


class NewSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session to begin. It becomes active, and the caller's focused one: messages without a session go there."""

    name: str = ""
    config: SessionConfig = SessionConfig()
    base_branch: str = ""
    metadata: dict[str, Any] = {}


class SessionsQuery(msgspec.Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_SESSIONS, description="At most this many")] = 20
    state: Annotated[SessionStatus | None, Meta(description="Only sessions in this state")] = None


class SessionList(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions, the one with the newest activity first."""

    items: Sequence[SessionView]


class TurnsQuery(msgspec.Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_TURNS, description="The maximum number; the newest are returned")] = 20
    search: Annotated[str, Meta(description="Only messages that contain this text")] = ""


class SessionTurns(msgspec.Struct, frozen=True, kw_only=True):
    """A session and its last turns, oldest first."""

    session: str
    state: SessionStatus
    items: Sequence[SessionTurn]


class SessionDetail(msgspec.Struct, frozen=True, kw_only=True):
    """The private context of a session, its counts, and its snapshot: the state at which it was suspended."""

    session: Session
    context: SessionContext
    stats: SessionStats
    snapshot: SessionSnapshot


class SessionEntries(msgspec.Struct, frozen=True, kw_only=True):
    """Journal entries of a session; `metadata.promoted` records who made an entry readable in all sessions, when and
    why."""

    items: Sequence[Node]


class ClosedSessions(msgspec.Struct, frozen=True, kw_only=True):
    items: Sequence[Session]


class CloseSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    summary: Annotated[str, Meta(max_length=MAX_SUMMARY)] = ""


class Cancel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The run to end; without one, all runs of the session that have no answer yet."""

    run: str | None = None
    reason: str = "cancelled by its user"


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that are being cancelled. Each will end with an answer of status `cancelled`."""

    runs: Sequence[str]


async def create_session(call: RestCall) -> RestAnswer:
    asked: NewSession = call.body or NewSession()
    manager, _ = await _open(call)
    if asked.base_branch and (team := await _team(call)) is not None:
        await team.require_base(asked.base_branch)
    made = await manager.create(
        asked.name, by=call.by, config=asked.config, base_branch=asked.base_branch, metadata=asked.metadata
    )
    return reply(made, status=201)


async def list_sessions(call: RestCall) -> RestAnswer:
    manager, _ = await _open(call)
    return reply(SessionList(items=await manager.list(by=call.by, state=call.query.state, limit=call.query.limit)))


async def get_session(call: RestCall) -> RestAnswer:
    manager, _ = await _open(call)
    id = call.path["session"]
    session = await manager.get(id, by=call.by)
    turns = await manager.query_history(id, call.query.search, by=call.by, limit=call.query.limit)
    return reply(SessionTurns(session=id, state=session.state, items=turns))


async def get_detail(call: RestCall) -> RestAnswer:
    manager, _ = await _open(call)
    id = call.path["session"]
    return reply(
        SessionDetail(
            session=await manager.get(id, by=call.by),
            context=await manager.get_context(id, by=call.by),
            stats=await manager.stats(id, by=call.by),
            snapshot=await manager.snapshot(id, by=call.by),
        )
    )


async def update_context(call: RestCall) -> RestAnswer:
    manager, _ = await _open(call)
    change: ContextChange = call.body
    return reply(
        await manager.update_context(call.path["session"], lambda each: change_context(each, change), by=call.by)
    )


async def list_entries(call: RestCall) -> RestAnswer:
    manager, _ = await _open(call)
    await manager.get_context(call.path["session"], by=call.by)  # refuses callers of another session
    return reply(SessionEntries(items=await manager.promotions.entries(call.path["session"], by=call.by)))


async def promote_entry(call: RestCall) -> RestAnswer:
    manager, _ = await _open(call)
    return reply(await manager.promotions.promote(call.path["entry"], by=call.by))


async def unpromote_entry(call: RestCall) -> RestAnswer:
    manager, _ = await _open(call)
    return reply(await manager.promotions.take_back(call.path["entry"], by=call.by))


async def close_sessions(call: RestCall) -> RestAnswer:
    summary = (call.body or CloseSession()).summary
    if (team := await _team(call)) is not None:
        return reply(ClosedSessions(items=await team.close_all(by=call.by, summary=summary)))
    manager, _ = await _open(call)
    return reply(ClosedSessions(items=await manager.close_all(by=call.by, summary=summary)))


async def focus_session(call: RestCall) -> RestAnswer:
    if (team := await _team(call)) is not None:
        return reply(await team.switch(call.path["session"], by=call.by))
    manager, _ = await _open(call)
    return reply(await manager.switch(call.path["session"], by=call.by))


async def suspend_session(call: RestCall) -> RestAnswer:
    if (team := await _team(call)) is not None:
        return reply(await team.suspend(call.path["session"], by=call.by))
    return await _act(call, SessionAction.SUSPEND)


async def resume_session(call: RestCall) -> RestAnswer:
    answer = await _act(call, SessionAction.RESUME)
    if (team := await _team(call)) is not None:
        await team.resume(call.path["session"], by=call.by)
    return answer


async def close_session(call: RestCall) -> RestAnswer:
    summary = (call.body or CloseSession()).summary
    if (team := await _team(call)) is not None:
        return reply(await team.close(call.path["session"], by=call.by, summary=summary))
    return await _act(call, SessionAction.CLOSE, summary)


async def cancel_session(call: RestCall) -> RestAnswer:
    _, agent = await _open(call)
    asked: Cancel = call.body
    runs = await agent.cancel(call.path["session"], run=asked.run, reason=asked.reason)
    return reply(Cancelled(runs=runs))


async def _act(call: RestCall, action: SessionAction, summary: str = "") -> RestAnswer:
    manager, _ = await _open(call)
    return reply(await manager.act(call.path["session"], action, by=call.by, summary=summary))


async def _team(call: RestCall) -> Team | None:
    """The team of the folder; None for a caller of another owner, who has none here."""
    if call.services.team is None or call.by.owner_id != call.services.operator:
        return None
    return await call.services.team()


async def _open(call: RestCall) -> tuple[SessionManager, AgentCore]:
    """The sessions, and the agent as the caller sees it. Another process does its work."""
    conversations = await open_conversations(call.trail, call.services.clock, by=call.by)
    manager = SessionManager(call.trail, conversations, call.services.clock)
    return manager, AgentCore(DEFAULT_AGENT, conversations, by=call.by, gate=manager, source="rest")


def _transition(name: str, handler: Callable[[RestCall], Awaitable[RestAnswer]], summary: str) -> RestOperation:
    """An operation that changes the state of a session and takes no body."""
    return RestOperation(
        method="POST",
        path=f"/sessions/{{session}}/{name}",
        handler=handler,
        summary=summary,
        group="sessions",
        verb="create",
        writes=True,
        answer=Session,
        raises=(IllegalState, NotFound),
    )


OPERATIONS = (
    RestOperation(
        method="GET",
        path="/sessions",
        handler=list_sessions,
        summary="List the sessions, newest first",
        group="sessions",
        verb="read",
        query=SessionsQuery,
        answer=SessionList,
    ),
    RestOperation(
        method="POST",
        path="/sessions",
        handler=create_session,
        summary="Begin a session and focus it",
        group="sessions",
        verb="create",
        writes=True,
        body=NewSession,
        is_body_needed=False,
        answer=Session,
        status=201,
        raises=(AlreadyExists, InvalidInput),
    ),
    RestOperation(
        method="GET",
        path="/sessions/{session}",
        handler=get_session,
        summary="The state of a session and its last messages",
        group="sessions",
        verb="read",
        query=TurnsQuery,
        answer=SessionTurns,
    ),
    RestOperation(
        method="POST",
        path="/sessions/{session}/cancel",
        handler=cancel_session,
        summary="Cancel the runs of a session; for a curator, or the user who began it",
        group="sessions",
        verb="create",
        writes=True,
        body=Cancel,
        is_body_needed=False,
        answer=Cancelled,
    ),
    _transition(
        "focus",
        focus_session,
        "Focus a session: messages without a session go there; a suspended session is resumed",
    ),
    _transition("suspend", suspend_session, "Suspend a session: it takes no messages until it is resumed"),
    _transition("resume", resume_session, "Resume a suspended session and focus it"),
    RestOperation(
        method="POST",
        path="/sessions/{session}/close",
        handler=close_session,
        summary="Close a session for good, with a summary",
        group="sessions",
        verb="create",
        writes=True,
        body=CloseSession,
        is_body_needed=False,
        answer=Session,
        raises=(IllegalState, NotFound, TooLarge),
    ),
    RestOperation(
        method="POST",
        path="/sessions/close",
        handler=close_sessions,
        summary="Close every open session that the caller may close",
        group="sessions",
        verb="create",
        writes=True,
        body=CloseSession,
        is_body_needed=False,
        answer=ClosedSessions,
        raises=(TooLarge,),
    ),
    RestOperation(
        method="GET",
        path="/sessions/{session}/detail",
        handler=get_detail,
        summary="The private context, counts and snapshot of a session",
        group="sessions",
        verb="read",
        answer=SessionDetail,
        raises=(AccessDenied, NotFound),
    ),
    RestOperation(
        method="PATCH",
        path="/sessions/{session}/context",
        handler=update_context,
        summary="Change the private context of a session; its agents read it",
        group="sessions",
        verb="create",
        writes=True,
        body=ContextChange,
        answer=Session,
        raises=(AccessDenied, IllegalState, InvalidInput, NotFound, TooLarge),
    ),
    RestOperation(
        method="GET",
        path="/sessions/{session}/entries",
        handler=list_entries,
        summary="The journal entries of a session",
        group="sessions",
        verb="read",
        answer=SessionEntries,
        raises=(AccessDenied, NotFound),
    ),
    RestOperation(
        method="POST",
        path="/entries/{entry}/promote",
        handler=promote_entry,
        summary="Make a journal entry readable in all sessions",
        group="sessions",
        verb="administer",
        writes=True,
        answer=Node,
        raises=(NotFound,),
    ),
    RestOperation(
        method="POST",
        path="/entries/{entry}/unpromote",
        handler=unpromote_entry,
        summary="Undo the promotion of a journal entry",
        group="sessions",
        verb="administer",
        writes=True,
        answer=Node,
        raises=(InvalidInput, NotFound),
    ),
)
