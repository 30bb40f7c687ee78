"""The agent that called another one, as recorded in the definition of the called agent. The caller limits the policy,
the tools and the budget of the called agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from clew.context.definition import AgentDefinition

MAX_DEPTH = 8
"""The maximum length of a chain of agents that called one another."""
_FIELD = "called_by"

FindAgent = Callable[[str], Awaitable[AgentDefinition | None]]


class CallingAgent(msgspec.Struct, frozen=True, kw_only=True):
    """The agent that called, the record of its request, and the budget that it lent."""

    agent: str = ""
    request: str = ""
    budget: str | None = None


def caller_metadata(caller: CallingAgent) -> dict[str, Any]:
    """The metadata of the definition of an agent that was called."""
    return {_FIELD: msgspec.to_builtins(caller)}


def find_caller(metadata: Any) -> CallingAgent | None:
    """The caller in the metadata of a definition; None if the agent was not called by another one. Unreadable metadata
    is treated as an unknown caller, so that the agent may do nothing instead of everything."""
    found = metadata.get(_FIELD) if isinstance(metadata, Mapping) else None
    if found is None:
        return None
    try:
        return msgspec.convert(found, CallingAgent)
    except msgspec.ValidationError:
        return CallingAgent()


async def walk_callers(agent: AgentDefinition, find_agent: FindAgent) -> AsyncIterator[AgentDefinition | None]:
    """Yield the callers of an agent, the direct caller first. The last item is None if a caller no longer exists or the
    chain is longer than `MAX_DEPTH`."""
    for _ in range(MAX_DEPTH):
        caller = find_caller(agent.metadata)
        if caller is None:
            return
        parent = await find_agent(caller.agent)
        yield parent
        if parent is None:
            return
        agent = parent
    if find_caller(agent.metadata) is not None:
        yield None
