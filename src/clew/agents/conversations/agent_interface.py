"""The interface of an agent for all protocols: messages in, a stream of steps out. It also cancels runs, answers
permission questions and lists sessions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Protocol

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.sessions import SentMessage, SessionInfo, SessionTurn
from clew.agents.conversations.steps import Choice, RunStarted, Step
from clew.catalog.registry import DomainRegistry

Running = Callable[[], AbstractAsyncContextManager[object]]
"""Returns a context manager that runs the agents of this process while it is open."""
ToolNames = Callable[[], Awaitable[tuple[str, ...]]]


class AgentInput(msgspec.Struct, frozen=True, kw_only=True):
    """A message to an agent, in the named session, else in the focused one, else in a new one. A message with the same
    `key` is sent only once. If `place` is set, only workers of this place run the tools of the run."""

    text: str
    session: str | None = None
    key: str | None = None
    place: str = ""


class AgentCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The abilities of an agent, for clients that connect to it."""

    name: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    can_stream: bool = True
    can_cancel: bool = True
    can_resume: bool = True


class Agent(Protocol):
    """The one interface of an agent. An adapter takes one and returns one, so adapters compose."""

    @property
    def name(self) -> str: ...

    @property
    def registry(self) -> DomainRegistry | None:
        """The domains that the agent can reach, including those of MCP servers; None if there are none."""
        ...

    def process(self, input: AgentInput) -> AsyncGenerator[Step, None]:
        """Send a message and yield its steps: first `RunStarted`, last `Answered` or `GaveUp`. The run continues if the
        caller stops reading. Raises InvalidInput, NotFound, AccessDenied."""
        ...

    async def send(self, input: AgentInput) -> SentMessage:
        """Write a message and return at once. Raises as `process`."""
        ...

    def follow(self, sent: SentMessage) -> AsyncGenerator[Step, None]:
        """Yield the steps of a message that was sent, up to the end of its run. Raises AccessDenied."""
        ...

    def resume(self, sent: SentMessage) -> AsyncGenerator[Step, None]:
        """Like `follow`, for a reader that comes back to a run: leaves out the pieces of an abandoned answer."""
        ...

    async def cancel(self, session: str, *, run: str | None = None, reason: str = "cancelled") -> tuple[str, ...]:
        """Cancel one run of a session, or all that have no answer yet; returns their ids. Raises NotFound,
        AccessDenied."""
        ...

    async def answer_permission(self, request_id: str, answer: Choice, *, question: str | None = None) -> None:
        """Answer a question for permission. See `Conversations.answer_permission`."""
        ...

    async def sessions(self, *, limit: int) -> Sequence[SessionInfo]:
        """The sessions, the newest first."""
        ...

    async def turns(self, session: str, *, limit: int) -> Sequence[SessionTurn]:
        """The last messages and answers of a session, oldest first. Raises NotFound."""
        ...

    async def open_runs(self, session: str) -> Sequence[SentMessage]:
        """The messages of a session that have no answer yet. Raises NotFound."""
        ...

    async def capabilities(self) -> AgentCapabilities:
        """The abilities of the agent. Raises NotFound if the agent is not defined."""
        ...

    async def start(self) -> None:
        """Get ready to work. Starting twice is harmless."""
        ...

    async def stop(self) -> None:
        """Release unfinished work. Stopping twice is harmless."""
        ...


class SessionGate(Protocol):
    """Chooses the session of each message."""

    async def choose(self, session: str | None, *, by: Principal) -> str | None:
        """The session of a message, or None for a new one. Raises IllegalState for a session that is not active."""
        ...


class AgentCore:
    """An agent on the trail. With `running`, its work is done in this process between `start` and `stop`; otherwise
    another process does it. Each message passes the `gate`."""

    def __init__(
        self,
        name: str,
        conversations: Conversations,
        *,
        by: Principal,
        running: Running | None = None,
        registry: DomainRegistry | None = None,
        tools: ToolNames | None = None,
        gate: SessionGate | None = None,
        source: str = "chat",
    ) -> None:
        self.name = name
        self.registry = registry
        self._conversations = conversations
        self._by = by
        self._running = running
        self._tools = tools
        self._gate = gate
        self._source = source
        self._open: AsyncExitStack | None = None

    async def process(self, input: AgentInput) -> AsyncGenerator[Step, None]:
        sent = await self.send(input)
        yield RunStarted(seq=sent.after, session=sent.session, run=sent.run, id=sent.id, agent=sent.agent)
        async for step in self.follow(sent):
            yield step

    async def send(self, input: AgentInput) -> SentMessage:
        chosen = None if self._gate is None else await self._gate.choose(input.session, by=self._by)
        return await self._conversations.send(
            input.text,
            by=self._by,
            session=input.session,
            default_session=chosen,
            agent=self.name,
            source=self._source,
            key=input.key,
            place=input.place,
        )

    async def follow(self, sent: SentMessage) -> AsyncGenerator[Step, None]:
        async with aclosing(self._conversations.follow(sent, by=self._by)) as steps:
            async for step in steps:
                yield step

    async def resume(self, sent: SentMessage) -> AsyncGenerator[Step, None]:
        async with aclosing(self._conversations.resume(sent, by=self._by)) as steps:
            async for step in steps:
                yield step

    async def cancel(self, session: str, *, run: str | None = None, reason: str = "cancelled") -> tuple[str, ...]:
        return await self._conversations.cancel(session, by=self._by, reason=reason, run=run)

    async def answer_permission(self, request_id: str, answer: Choice, *, question: str | None = None) -> None:
        await self._conversations.answer_permission(request_id, answer, by=self._by, question=question)

    async def sessions(self, *, limit: int) -> Sequence[SessionInfo]:
        return await self._conversations.sessions.recent(by=self._by, limit=limit)

    async def turns(self, session: str, *, limit: int) -> Sequence[SessionTurn]:
        return await self._conversations.sessions.turns(session, by=self._by, limit=limit)

    async def open_runs(self, session: str) -> Sequence[SentMessage]:
        return await self._conversations.sessions.open_runs(session, by=self._by)

    async def capabilities(self) -> AgentCapabilities:
        found = await self._conversations.find_agent(self.name, by=self._by)
        tools = await self._tools() if self._tools is not None else ()
        return AgentCapabilities(
            name=self.name, description=found.description, model=found.model or "", tools=tuple(tools)
        )

    async def start(self) -> None:
        if self._open is not None or self._running is None:
            return
        stack = AsyncExitStack()
        await stack.enter_async_context(self._running())
        self._open = stack

    async def stop(self) -> None:
        stack, self._open = self._open, None
        if stack is not None:
            await stack.aclose()
