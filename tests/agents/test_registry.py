"""The registered agents and workflows while the trail changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clew.access import Principal
from clew.agents.folder.registry import AgentRegistry, RegistryEntry
from clew.trail.bootstrap import read_pieces
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.flow import shipped_flow
from clew.trail.store import Trail

FLOW = shipped_flow(read_pieces())


def agent(name: str, **more: Any) -> Draft:
    return Draft(title=name, schema_name=FLOW.agent, context={"agent_id": name, **more})


class Watching:
    """The changes that a registry reported, and a way to wait for them."""

    def __init__(self) -> None:
        self.told: list[tuple[str | None, str | None]] = []
        self._more = asyncio.Event()

    async def changed(self, before: RegistryEntry | None, after: RegistryEntry | None) -> None:
        self.told.append((before.name if before else None, after.name if after else None))
        self._more.set()

    async def until(self, count: int) -> None:
        while len(self.told) < count:
            self._more.clear()
            await self._more.wait()


@pytest.mark.req("RCR-39")
async def test_definitions_come_change_and_go_with_their_breadcrumbs(trail: Trail, me: Principal) -> None:
    registry, watching = AgentRegistry(trail, FLOW, by=me), Watching()
    following = asyncio.create_task(registry.follow(0, watching.changed))
    async with asyncio.timeout(60):
        made = await trail.records.create(agent("a", system_prompt="one"), by=me)
        await watching.until(1)
        await trail.records.update(made.id, Change(context={"agent_id": "a", "system_prompt": "two"}), expect=1, by=me)
        await watching.until(2)
        found = await registry.find_agent("a")
        await trail.records.delete(made.id, by=me)
        await watching.until(3)
    following.cancel()
    assert found is not None
    assert found.system_prompt == "two"
    assert watching.told == [(None, "agent/a"), ("agent/a", "agent/a"), ("agent/a", None)]
    assert await registry.find_agent("a") is None


async def test_an_unusable_definition_is_reported_and_affects_no_other(trail: Trail, me: Principal) -> None:
    await trail.records.create(agent("good"), by=me)
    bad = await trail.records.create(agent("bad", capabilites={}), by=me)
    registry = AgentRegistry(trail, FLOW, by=me)
    await registry.load()
    assert [each.name for each in registry.entries()] == ["agent/good"]
    assert "capabilites" in registry.broken[bad.id]


async def test_the_newest_of_two_definitions_with_one_name_is_used(trail: Trail, me: Principal) -> None:
    await trail.records.create(agent("a", system_prompt="old"), by=me)
    newest = await trail.records.create(agent("a", system_prompt="new"), by=me)
    registry = AgentRegistry(trail, FLOW, by=me)
    await registry.load()
    assert [each.record_id for each in registry.entries()] == [newest.id]


async def test_agents_of_other_owners_do_not_exist(trail: Trail, me: Principal, stranger: Principal) -> None:
    await trail.records.create(agent("a"), by=stranger)
    registry = AgentRegistry(trail, FLOW, by=me)
    await registry.load()
    assert list(registry.entries()) == []
    assert await registry.find_agent("a") is None
