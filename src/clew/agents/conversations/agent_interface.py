"""An agent as the doors and adapters see it, whatever protocol they speak: input in, a stream of steps out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Protocol

import msgspec

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.steps import Begun, Step
from clew.catalog.registry import DomainRegistry

Running = Callable[[], AbstractAsyncContextManager[object]]
"""Does the work of agents while it is open."""
ToolNames = Callable[[], Awaitable[tuple[str, ...]]]


class AgentInput(msgspec.Struct, frozen=True, kw_only=True):
    """What is said to an agent: in a new session unless one is named. The same `key` is said once."""

    text: str
    session: str | None = None
    key: str | None = None


class AgentCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent can do, for whoever connects to it."""

    name: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    can_stream: bool = True
    can_cancel: bool = True
    can_resume: bool = True


class Agent(Protocol):
    """The one interface of an agent. An adapter takes one and gives one, so adapters compose."""

    @property
    def name(self) -> str: ...

    @property
    def registry(self) -> DomainRegistry | None:
        """The domains, those of MCP servers among them, that the agent reaches; None where there are none."""
        ...

    def process(self, input: AgentInput) -> AsyncIterator[Step]:
        """What comes of an input, as it comes: first `Begun`, last `Answered` or `GaveUp`. A reader that leaves ends
        nothing. Raises InvalidInput, NotFound, AccessDenied."""
        ...

    async def capabilities(self) -> AgentCapabilities:
        """Raises NotFound where nobody defines the agent."""
        ...

    async def start(self) -> None:
        """Get ready to work. Starting twice is harmless."""
        ...

    async def stop(self) -> None:
        """Give back what was under way. Stopping twice is harmless."""
        ...


class AgentCore:
    """An agent on the trail. It works in this process between `start` and `stop` where `running` is given, else in
    whatever process does."""

    def __init__(
        self,
        name: str,
        conversations: Conversations,
        *,
        by: Principal,
        running: Running | None = None,
        registry: DomainRegistry | None = None,
        tools: ToolNames | None = None,
        source: str = "chat",
    ) -> None:
        self.name = name
        self.registry = registry
        self._conversations = conversations
        self._by = by
        self._running = running
        self._tools = tools
        self._source = source
        self._open: AsyncExitStack | None = None

    async def process(self, input: AgentInput) -> AsyncIterator[Step]:
        sent = await self._conversations.send(
            input.text, by=self._by, session=input.session, agent=self.name, source=self._source, key=input.key
        )
        yield Begun(seq=sent.after, session=sent.session, run=sent.run, id=sent.id, agent=sent.agent)
        async with aclosing(self._conversations.follow(sent, by=self._by)) as steps:
            async for step in steps:
                yield step

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
