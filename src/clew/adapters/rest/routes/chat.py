"""Conversations over REST: send a message, wait for the answer or follow it, answer permission questions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from clew.adapters.rest.operation import EmptyReply, RequestHeader, RestAnswer, RestCall, RestOperation, reply
from clew.adapters.rest.parsing import parse_text
from clew.adapters.rest.routes.events import resume_at
from clew.adapters.rest.sse import EventStream
from clew.agents.conversations.agent_interface import AgentCore, AgentInput
from clew.agents.conversations.conversation import (
    DEFAULT_AGENT,
    Conversations,
    check_message,
    is_end,
    open_conversations,
    run_selector,
)
from clew.agents.conversations.no_model_fallback import ask_instead, find_missing_model
from clew.agents.conversations.sessions import SentMessage
from clew.agents.conversations.steps import Answered, Choice, PermissionAsked, RunAbandoned, Step, step_of
from clew.errors import AccessDenied, AlreadyExists, IllegalState, InvalidInput, ModelError, NotFound, TooLarge
from clew.team.sessions.session_manager import SessionManager
from clew.trail.model.event import Event, sse_payload

MAX_WAIT = 300.0


class NewMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message to an agent. Without a `session` it goes to the caller's focused session, or to a new one. Without an
    agent it goes to `agent.name` of the settings. If a `place` is given, its workers call the tools. With `stream` the
    answer is a stream of events. Without it, the request waits up to `wait` seconds for the answer."""

    message: str
    session: str | None = None
    agent: str | None = None
    place: Annotated[str, Meta(max_length=100)] = ""
    stream: bool = False
    wait: Annotated[float, Meta(ge=0, le=MAX_WAIT)] = 60.0


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A pending permission question: the whole call with nothing masked, the reason, and the patterns that a
    lasting answer would store. POST /permissions/{request_id} answers with one of the choices, and with `id` as its
    `question`."""

    id: str
    request_id: str
    tool: str
    input: Any
    reason: str
    pattern: str
    choices: Sequence[str]


class ChatAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a message. While it is `running` or `waiting` for a permission, which `asked` describes, GET
    /events/stream with its session and `after` the cursor follows it. `without_model` means that no message was sent:
    the text is the answer of the catalog, and the reason explains how to add a model."""

    agent: str
    status: Literal["done", "cancelled", "stopped", "failed", "running", "waiting", "without_model"]
    session: str | None = None
    run: str | None = None
    message_id: str | None = None
    text: str = ""
    reason: str = ""
    answer_id: str | None = None
    permission: str | None = None
    asked: Asked | None = None
    cursor: int = 0


class Allow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The answer to a permission question: once, for the session, always, or no. `question` is the id of the question
    that was shown, so that the answer cannot apply to another one."""

    answer: Choice
    question: str | None = None


async def chat(call: RestCall) -> RestAnswer:
    asked: NewMessage = call.body
    call.by.require("subscribe")
    _require_agents(call)
    conversations = await _conversations(call)
    if (known := await _without_model(call, conversations)) is not None:
        return reply(known)
    agent, key = _agent(call, conversations, _named(call)), parse_text(call.headers, "idempotency-key")
    sent = await agent.send(AgentInput(text=asked.message, session=asked.session, key=key, place=asked.place))
    if asked.stream:
        return _stream(call, conversations, sent)
    return reply(await _wait(call, agent, sent, asked.wait))


def _require_agents(call: RestCall) -> None:
    """Raise AccessDenied for an owner whose agents do not run here, because no agent would answer."""
    operator = call.services.operator
    if call.services.models is not None and call.by.owner_id != operator:
        error = AccessDenied(f"chat: agents of {call.by.owner_id} do not run on this server", [])
        error.hint = f"Use a token of the owner {operator}, or serve this owner: `clew up --owner {call.by.owner_id}`"
        raise error


async def _without_model(call: RestCall, conversations: Conversations) -> ChatAnswer | None:
    """The answer from the catalog for an agent that has no model; None for an agent that has one. Raises ModelError
    if one is configured that cannot be used."""
    asked: NewMessage = call.body
    services = call.services
    if services.models is None:
        return None
    check_message(asked.message)
    agent = await conversations.find_agent(_named(call), by=call.by)
    missing = await find_missing_model(
        call.trail, conversations.flow, services.clock, services.models, agent, by=call.by
    )
    if missing is None:
        return None
    text = await ask_instead((await services.workspace()).catalog, asked.message, by=call.by)
    return ChatAnswer(agent=_named(call), status="without_model", text=text, reason=str(missing))


def _stream(call: RestCall, conversations: Conversations, sent: SentMessage) -> RestAnswer:
    """Stream the events of the run, from the message on or from the reader's last event. Each event includes its
    step."""
    assert call.caller is not None  # the guard of this route lets nobody else in
    after = resume_at(call)

    def is_last(event: Event) -> bool:
        step = step_of(event, conversations.flow)
        return step is not None and is_end(step, sent)

    async def payload(event: Event) -> dict[str, Any]:
        step = step_of(event, conversations.flow)
        return sse_payload(event) | {"step": None if step is None else await conversations.whole(step, by=call.by)}

    async def failure(cursor: int) -> dict[str, Any] | None:
        failed = await conversations.find_failure(sent, cursor, by=call.by)
        return None if failed is None else {"type": "failed", "step": failed}

    return EventStream(
        failure=failure,
        log=call.trail.log,
        by=call.by,
        selector=run_selector(sent.session, sent.run),
        after=sent.after if after is None else after,
        lasts=call.services.keys.remaining(call.caller),
        closing=call.services.closing,
        is_last=is_last,
        payload=payload,
    )


async def _wait(call: RestCall, agent: AgentCore, sent: SentMessage, seconds: float) -> ChatAnswer:
    """Wait for the answer. Returns the current progress if the time runs out, the server closes, or a permission
    question needs a person."""
    seen: list[Step] = []

    async def follow() -> None:
        async with contextlib.aclosing(agent.follow(sent)) as steps:
            async for step in steps:
                seen.append(step)
                if isinstance(step, PermissionAsked):
                    return

    await _for_a_while(follow(), seconds, call.services.closing)
    return _answer(sent, seen[-1] if seen else None)


async def _for_a_while(work: Coroutine[Any, Any, None], seconds: float, closing: asyncio.Event) -> None:
    """Run the work until it is done, the time runs out or the server closes. Raises the work's exceptions."""
    working, ending = asyncio.create_task(work), asyncio.create_task(closing.wait())
    try:
        await asyncio.wait((working, ending), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, ending):
            task.cancel()
        await asyncio.wait((working, ending))
    if not working.cancelled():
        working.result()


def _answer(sent: SentMessage, last: Step | None) -> ChatAnswer:
    ended: dict[str, Any]
    head: dict[str, Any] = {"session": sent.session, "run": sent.run, "message_id": sent.id, "agent": sent.agent}
    cursor = last.seq if last is not None else sent.after
    match last:
        case Answered() if is_end(last, sent):
            status = last.status if last.status in ("done", "cancelled", "stopped") else "done"
            ended = {"status": status, "text": last.text, "reason": last.reason, "answer_id": last.id}
        case RunAbandoned():
            ended = {"status": "failed", "reason": last.reason}
        case PermissionAsked():
            asked = msgspec.convert(last, Asked, from_attributes=True)
            ended = {"status": "waiting", "reason": last.reason, "permission": last.request_id, "asked": asked}
        case _:
            ended = {"status": "running"}
    return ChatAnswer(**head, **ended, cursor=cursor)


async def answer_permission(call: RestCall) -> RestAnswer:
    agent = _agent(call, await _conversations(call))
    asked: Allow = call.body
    await agent.answer_permission(call.path["request_id"], asked.answer, question=asked.question)
    return EmptyReply()


def _named(call: RestCall) -> str:
    """The agent of a message."""
    asked: NewMessage = call.body
    return asked.agent or call.services.agent


def _agent(call: RestCall, conversations: Conversations, name: str = DEFAULT_AGENT) -> AgentCore:
    """The agent as the caller sees it. Another process does its work."""
    gate = SessionManager(call.trail, conversations, call.services.clock)
    return AgentCore(name, conversations, by=call.by, gate=gate, source="rest")


async def _conversations(call: RestCall) -> Conversations:
    return await open_conversations(call.trail, call.services.clock, by=call.by)


OPERATIONS = (
    RestOperation(
        method="POST",
        path="/chat",
        handler=chat,
        summary="Send a message to an agent, and wait for its answer or follow it as server-sent events",
        group="chat",
        verb="create",
        writes=True,
        body=NewMessage,
        answer=ChatAnswer,
        streams=True,
        headers=(
            RequestHeader(name="Idempotency-Key", description="The same key sends the message once"),
            RequestHeader(
                name="Last-Event-ID", description="With a key and `stream`: the last message that was received"
            ),
        ),
        raises=(AlreadyExists, IllegalState, InvalidInput, ModelError, NotFound, TooLarge),
    ),
    RestOperation(
        method="POST",
        path="/permissions/{request_id}",
        handler=answer_permission,
        summary="Allow or deny a tool call that waits; for a curator, or the user who began the session",
        group="chat",
        verb="create",
        writes=True,
        body=Allow,
        status=204,
        raises=(AlreadyExists, InvalidInput),
    ),
)
