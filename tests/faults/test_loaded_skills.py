"""Loaded skills survive kill -9 and are shared between processes: a skill that was reported as loaded stays loaded."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from clew.clock import SystemClock
from clew.skills.exposure_store import MemoryExposures, TrailExposures
from clew.skills.registry import ToolRegistry
from clew.skills.sessions.agent_session import AgentSession
from clew.trail.store import Trail
from tests.faults.processes import Child, open_at
from tests.skills.research_manifest import MANIFEST, ME

ROUNDS = int(os.environ.get("CLEW_FAULT_ROUNDS", "20"))
NAMES = ("dataAnalysis", "reporting", "charts", "deploying")


def session_at(trail: Trail) -> AgentSession:
    clock = SystemClock()
    return AgentSession(MANIFEST, ToolRegistry(), TrailExposures(trail, clock), by=ME, agent="anybody", clock=clock)


async def load_until_killed(channel: Connection, folder: Path) -> None:
    """Load and unload in turn without end, and report the loaded skills each time."""
    session = session_at(await open_at(folder, clock=SystemClock()))
    while True:
        for name in NAMES:
            channel.send((await session.load_skill(name)).state.discovered_skills)
        for name in NAMES:
            channel.send((await session.unload_skill(name)).state.discovered_skills)


async def load_one(channel: Connection, folder: Path, name: str) -> None:
    """Wait for a word, then load one skill over and over until it is there."""
    trail = await open_at(folder, clock=SystemClock())
    session = session_at(trail)
    channel.send("ready")
    channel.recv()
    for _ in range(10):
        await session.load_skill(name)
        await session.unload_skill(name)
    await session.load_skill(name)
    await trail.close()
    channel.send("done")


async def states_on_the_way() -> set[tuple[str, ...]]:
    """Every state that loading and unloading in turn goes through."""
    clock = SystemClock()
    sets = MemoryExposures(clock)
    session = AgentSession(MANIFEST, ToolRegistry(), sets, by=ME, agent="anybody", clock=clock)
    loads = [(await session.load_skill(name)).state.discovered_skills for name in NAMES]
    return {(), *loads, *[(await session.unload_skill(name)).state.discovered_skills for name in NAMES]}


@pytest.mark.req("O5")
async def test_loads_survive_kill_9_completely(tmp_path: Path) -> None:
    known, written = await states_on_the_way(), 0
    for round in range(min(ROUNDS, 10)):
        with Child(load_until_killed, tmp_path) as child:
            told = [child.hear() for _ in range(3 + round * 2)]
            child.kill()
        trail = await open_at(tmp_path, clock=SystemClock())
        session = session_at(trail)
        exposure, state = await session.exposure(), await session.state()
        stays = [each for each in await session.audit() if each.unloaded_at is None]
        await session.reset()
        assert exposure.version >= written + len(told), "every change that was told is there"
        assert state.discovered_skills in known, "and none by half"
        assert {each.skill_name for each in stays} == set(state.discovered_skills), "the audit fits the state"
        written = (await session.exposure()).version
        await trail.close()


@pytest.mark.req("CAR-16")
async def test_concurrent_loads_of_processes_lose_nothing(tmp_path: Path) -> None:
    children = [Child(load_one, tmp_path, name) for name in NAMES]
    try:
        assert [child.hear() for child in children] == ["ready"] * len(NAMES)
        for child in children:
            child.tell("go")
        assert [child.hear() for child in children] == ["done"] * len(NAMES)
    finally:
        for child in children:
            child.__exit__(None, None, None)
    trail = await open_at(tmp_path, clock=SystemClock())
    state = await session_at(trail).state()
    await trail.close()
    assert set(state.discovered_skills) == set(NAMES)
