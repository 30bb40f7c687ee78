"""The agents and workflows of an owner, read from the trail and kept up to date."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator

import msgspec

from clew.access import Principal
from clew.agents.budgets.budget import read_limits
from clew.agents.runs.workflow_runner import Workflow, read_workflow
from clew.context.definition import AgentDefinition, read_definition
from clew.errors import InvalidInput
from clew.tools.permissions.policy import read_policy
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.claims import retry_on_storage_error

_log = logging.getLogger(__name__)


class RegistryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One valid definition. `name` is unique; `seq` is the number of the event that wrote it, if known."""

    name: str
    record_id: str
    version: int
    agent: AgentDefinition | None = None
    workflow: Workflow | None = None
    seq: int | None = None


Changed = Callable[[RegistryEntry | None, RegistryEntry | None], Awaitable[None]]
"""Called with the entry before and after a change."""


class AgentRegistry:
    """The definitions of one owner. If several have the same name, the newest is used."""

    def __init__(self, trail: Trail, flow: Flow, *, by: Principal) -> None:
        self._trail = trail
        self._flow = flow
        self._by = by
        self._entries: dict[str, RegistryEntry] = {}
        self.broken: dict[str, str] = {}
        """Invalid definitions: id of the record → the error."""

    def entries(self) -> Iterator[RegistryEntry]:
        return iter(self._entries.values())

    async def find_agent(self, agent_id: str) -> AgentDefinition | None:
        """The agent with this id, even if it was written a moment ago and `follow` has not seen it yet."""
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
        async for record in each_record(self._trail, selector, by=self._by):
            if (entry := self._read(record, None)) is not None:
                self._entries[entry.name] = entry

    async def follow(self, after: int, changed: Changed) -> None:
        """Apply every later change until cancelled. Retries when the storage fails."""

        async def take_in() -> None:
            nonlocal after
            selector = Selector(schema_names=(self._flow.agent, self._flow.workflow))
            async for event in self._trail.log.follow(after, by=self._by, selector=selector):
                await self._take_in(event, changed)
                after = event.seq

        await retry_on_storage_error(take_in, "definitions")

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
        """The entry of a record; None for an invalid one, which `broken` then lists."""
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
            _log.warning("the definition %s is invalid: %s", record.id, error)
            return None
        self.broken.pop(record.id, None)
        return found


def read_agent(breadcrumb: Breadcrumb) -> AgentDefinition:
    """The agent that a breadcrumb defines, with a valid budget and policy. Raises InvalidInput that names the field."""
    found = read_definition(breadcrumb)
    read_limits(found.budget)
    read_policy(found.permissions or {})
    return found
