"""Which agents and workflows there are: read from the trail, and followed while it changes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator

import msgspec

from clew.access import Principal
from clew.agents.folder.definitions import read_agent
from clew.agents.runs.workflow_runner import Workflow, read_workflow
from clew.context.definition import AgentDefinition
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.claims import outlast

_log = logging.getLogger(__name__)


class RegistryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One definition that works. `name` is unique among all; `seq` the event that brought it, if that is known."""

    name: str
    record_id: str
    version: int
    agent: AgentDefinition | None = None
    workflow: Workflow | None = None
    seq: int | None = None


Changed = Callable[[RegistryEntry | None, RegistryEntry | None], Awaitable[None]]
"""Told what was there before, and what is there now."""


class AgentRegistry:
    """The definitions of one owner. Of several with one name the newest holds."""

    def __init__(self, trail: Trail, flow: Flow, *, by: Principal) -> None:
        self._trail = trail
        self._flow = flow
        self._by = by
        self._entries: dict[str, RegistryEntry] = {}
        self.broken: dict[str, str] = {}
        """Definitions that cannot be used: record → what is wrong."""

    def entries(self) -> Iterator[RegistryEntry]:
        return iter(self._entries.values())

    async def find_agent(self, agent_id: str) -> AgentDefinition | None:
        """The agent of that name; of one that was written a moment ago too."""
        entry = self._entries.get(f"agent/{agent_id}")
        if entry is not None:
            return entry.agent
        match = ContextMatch(path="agent_id", value=agent_id)
        selector = Selector(schema_name=self._flow.agent, context_match=(match,))
        page = await self._trail.records.list(selector, by=self._by, limit=1)
        found = self._read(page.items[0], None) if page.items else None
        return found.agent if found is not None else None

    async def load(self) -> None:
        """Read all definitions, each name's newest."""
        selector = Selector(schema_names=(self._flow.agent, self._flow.workflow))
        cursor = None
        while True:
            page = await self._trail.records.list(selector, by=self._by, limit=500, cursor=cursor, oldest_first=True)
            for record in page.items:
                if (entry := self._read(record, None)) is not None:
                    self._entries[entry.name] = entry
            if (cursor := page.cursor) is None:
                return

    async def follow(self, after: int, changed: Changed) -> None:
        """Take in every later change, until cancelled. Failures of the storage are waited out."""

        async def take_in() -> None:
            nonlocal after
            selector = Selector(schema_names=(self._flow.agent, self._flow.workflow))
            async for event in self._trail.log.follow(after, by=self._by, selector=selector):
                await self._take_in(event, changed)
                after = event.seq

        await outlast(take_in, "definitions")

    async def _take_in(self, event: Event, changed: Changed) -> None:
        before = next((each for each in self._entries.values() if each.record_id == event.breadcrumb_id), None)
        record = event.breadcrumb
        after = self._read(record, event.seq) if record is not None and event.type != "breadcrumb.deleted" else None
        if before is not None and (after is None or after.name != before.name):
            del self._entries[before.name]
            await changed(before, None)
            before = None
        if after is not None:
            replaced = self._entries.get(after.name)
            self._entries[after.name] = after
            await changed(replaced, after)

    def _read(self, record: Breadcrumb, seq: int | None) -> RegistryEntry | None:
        """What a record defines; None, and remembered as broken, where it cannot be used."""
        try:
            if record.schema_name == self._flow.workflow:
                workflow = read_workflow(record)
                found = RegistryEntry(
                    name=f"workflow/{workflow.workflow_id}",
                    record_id=record.id,
                    version=record.version,
                    workflow=workflow,
                    seq=seq,
                )
            else:
                agent = read_agent(record)
                found = RegistryEntry(
                    name=f"agent/{agent.agent_id}", record_id=record.id, version=record.version, agent=agent, seq=seq
                )
        except InvalidInput as error:
            self.broken[record.id] = str(error)
            _log.warning("the definition %s cannot be used: %s", record.id, error)
            return None
        self.broken.pop(record.id, None)
        return found
