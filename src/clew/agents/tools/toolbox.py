"""All tools that agents can call: those that come with the program, and those that are breadcrumbs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from clew.access import Principal
from clew.context.definition import AgentDefinition
from clew.llm.messages import ToolSpec
from clew.tools.tool import Tool
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

MOST = 200
"""How many tools from the trail are offered to an agent."""

FromRecord = Callable[[Breadcrumb, dict[str, Any]], Awaitable[Tool]]
"""Makes a tool of a record and the secrets that its configuration names. Raises InvalidInput."""


class FoundTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool, and the record that it was built from; None for a built-in tool."""

    tool: Tool
    record: Breadcrumb | None = None

    @property
    def guarded_as(self) -> str:
        """The name of the tool's circuit breaker. Each version of a record is a separate tool."""
        return self.tool.name if self.record is None else f"{self.tool.name}@{self.record.version}"


class Toolbox:
    """Finds tools by name. A tool that comes with the program wins over a record of the same name."""

    def __init__(self, trail: Trail, flow: Flow, from_record: FromRecord, built_in: Iterable[Tool] = ()) -> None:
        self._trail = trail
        self._flow = flow
        self._from_record = from_record
        self._built_in = {tool.name: tool for tool in built_in}

    def add(self, tools: Iterable[Tool]) -> None:
        """Add built-in tools."""
        self._built_in.update((tool.name, tool) for tool in tools)

    def find_built_in(self, name: str) -> Tool | None:
        """A tool that comes with the program."""
        return self._built_in.get(name)

    async def find(self, name: str, *, by: Principal, config: dict[str, Any] | None = None) -> FoundTool | None:
        """The tool of that name: a built-in tool, or a tool built from the newest record. Raises InvalidInput if the
        record is not a valid tool."""
        if (tool := self._built_in.get(name)) is not None:
            return FoundTool(tool=tool)
        record = await self.find_record(name, by=by)
        return None if record is None else FoundTool(tool=await self._from_record(record, config or {}), record=record)

    async def find_record(self, name: str, *, by: Principal) -> Breadcrumb | None:
        """The record of a tool that does not come with the program."""
        if name in self._built_in:
            return None
        match = ContextMatch(path="name", value=name)
        page = await self._trail.records.list(
            Selector(schema_name=self._flow.tool, context_match=(match,)), by=by, limit=1
        )
        return page.items[0] if page.items else None

    async def find_named(self, name: str, *, by: Principal) -> bool | None:
        """Whether an agent that may call all tools may call this one. None if no tool has exactly this name."""
        if (tool := self._built_in.get(name)) is not None:
            return tool.searchable
        return True if await self.find_record(name, by=by) is not None else None

    async def names(self, *, by: Principal) -> list[str]:
        """All names, for the error about an unknown tool."""
        records = await self._records(by)
        return sorted({*self._built_in, *(str(each.context.get("name")) for each in records)})

    async def specs(self, agent: AgentDefinition, *, by: Principal) -> tuple[ToolSpec, ...]:
        """The descriptions, by name, of the tools that an agent's model may call."""
        if not agent.capabilities.can_use_tools:
            return ()
        found = {
            tool.name: _spec(tool.name, tool.description, tool.schema)
            for tool in self._built_in.values()
            if may_call(agent, tool.name, named_only=not tool.searchable)
        }
        for record in await self._records(by):
            context = record.context
            name = str(context.get("name"))
            schema = context.get("input_schema")
            spec = _spec(name, str(context.get("description") or ""), schema if isinstance(schema, dict) else {})
            found.setdefault(name, spec)
        return tuple(found[name] for name in sorted(found) if may_call(agent, name))

    async def _records(self, by: Principal) -> tuple[Breadcrumb, ...]:
        page = await self._trail.records.list(Selector(schema_name=self._flow.tool), by=by, limit=MOST)
        return page.items


def may_call(agent: AgentDefinition, name: str, *, named_only: bool = False) -> bool:
    """Whether an agent's definition lets it call a tool. A `named_only` tool must be named in the definition; an
    unrestricted list of tools does not include it."""
    wanted = agent.capabilities.tools
    if not agent.capabilities.can_use_tools:
        return False
    if name == SPAWN and not agent.capabilities.can_spawn_agents:
        return False
    if wanted is None:
        return not named_only
    return any(fnmatchcase(name, pattern) for pattern in wanted)


SPAWN = "spawn-agent"
"""The name of the only tool that needs a capability."""


def _spec(name: str, description: str, schema: dict[str, Any]) -> ToolSpec:
    return ToolSpec(name=name, description=description, schema=schema or {"type": "object", "properties": {}})
