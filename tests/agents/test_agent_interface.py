"""The agent interface: the same for all protocols, with adapters around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.conversations.agent_adapters import load_adapter, wrap_all
from clew.agents.conversations.agent_interface import Agent, AgentCapabilities, AgentCore, AgentInput
from clew.agents.conversations.conversation import open_conversations
from clew.agents.conversations.steps import Answered, RunStarted, Step
from clew.catalog.registry import DomainRegistry
from clew.clock import ManualClock
from clew.errors import InvalidInput, NotFound
from clew.trail.store import Trail
from tests.conversations import AGENT, PATIENCE, define, open_stage


@pytest.fixture
async def core(trail: Trail, clock: ManualClock, me: Principal) -> AgentCore:
    await define(trail, me)

    async def tools() -> tuple[str, ...]:
        return ("ask", "get")

    talks = await open_conversations(trail, clock, by=me)
    return AgentCore(
        AGENT,
        talks,
        by=me,
        running=lambda: open_stage(trail, me),
        registry=DomainRegistry(),
        tools=tools,
        source="test",
    )


async def process(agent: Agent, text: str, session: str | None = None) -> list[Step]:
    async with asyncio.timeout(PATIENCE):
        return [step async for step in agent.process(AgentInput(text=text, session=session))]


class Marked:
    """An agent that puts a mark around the answers of another one."""

    def __init__(self, agent: Agent, mark: str) -> None:
        self._agent = agent
        self._mark = mark

    @property
    def name(self) -> str:
        return self._agent.name

    @property
    def registry(self) -> DomainRegistry | None:
        return self._agent.registry

    async def process(self, input: AgentInput) -> AsyncIterator[Step]:
        async for step in self._agent.process(input):
            if isinstance(step, Answered):
                step = msgspec.structs.replace(step, text=f"{self._mark}{step.text}{self._mark}")
            yield step

    async def capabilities(self) -> AgentCapabilities:
        return await self._agent.capabilities()

    async def start(self) -> None:
        await self._agent.start()

    async def stop(self) -> None:
        await self._agent.stop()


class Marker:
    def __init__(self, name: str) -> None:
        self.name = name

    def wrap(self, agent: Agent, config: Mapping[str, Any]) -> Agent:
        return Marked(agent, config.get("mark", "*"))


@pytest.mark.req("PLA-19")
async def test_an_agent_takes_input_and_returns_a_stream_of_steps(core: AgentCore) -> None:
    await core.start()
    await core.start()
    steps = await process(core, "hello you")
    again = await process(core, "and again", steps[0].session)
    await core.stop()
    await core.stop()
    assert isinstance(steps[0], RunStarted)
    assert isinstance(steps[-1], Answered)
    assert steps[-1].text == "hello you"
    assert {step.session for step in again} == {steps[0].session}


@pytest.mark.req("PLA-19")
async def test_an_agent_reports_its_capabilities_and_reach(core: AgentCore) -> None:
    found = await core.capabilities()
    assert (found.name, found.description, found.tools) == (AGENT, "Says it again", ("ask", "get"))
    assert found.can_stream
    assert isinstance(core.registry, DomainRegistry)


@pytest.mark.req("PLA-19")
@pytest.mark.req("PLA-20")
async def test_the_same_agent_runs_under_two_adapters_without_change(core: AgentCore) -> None:
    await core.start()
    plain, other = wrap_all(core, [Marker("a")]), wrap_all(core, [Marker("b")], {"b": {"mark": "#"}})
    answers = [(await process(agent, "hi"))[-1] for agent in (plain, other, core)]
    await core.stop()
    assert [step.text for step in answers if isinstance(step, Answered)] == ["*hi*", "#hi#", "hi"]


@pytest.mark.req("PLA-20")
async def test_adapters_compose_with_the_first_one_innermost(core: AgentCore) -> None:
    config = {"inner": {"mark": "("}, "outer": {"mark": "["}}
    agent = wrap_all(core, [Marker("inner"), Marker("outer")], config)
    await agent.start()
    last = (await process(agent, "hi"))[-1]
    await agent.stop()
    assert isinstance(last, Answered)
    assert last.text == "[(hi(["


async def test_an_agent_that_cannot_start_raises(trail: Trail, core: AgentCore, me: Principal) -> None:
    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        raise NotFound("sandbox", "any")
        yield

    talks = await open_conversations(trail, ManualClock(), by=me)
    agent = AgentCore(AGENT, talks, by=me, running=broken)
    with pytest.raises(NotFound):
        await agent.start()
    await agent.stop()


@pytest.mark.req("PLA-20")
@pytest.mark.parametrize(
    "code",
    [
        "class A:\n    name = 'a'\n    def wrap(self, agent, config): return agent\nadapter = A()\n",
        "class default:\n    name = 'a'\n    def wrap(self, agent, config): return agent\n",
    ],
)
def test_an_adapter_is_loaded_from_a_file(tmp_path: Path, code: str) -> None:
    (tmp_path / "mine.py").write_text(code)
    assert load_adapter(tmp_path / "mine.py").name == "a"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("", "defines no"),
        ("adapter = 3", "defines no"),
        ("class adapter:\n    name = 'a'", "defines no"),
        ("class adapter:\n    name = 4\n    def wrap(self, agent, config): ...", "defines no"),
        ("1/0", "ZeroDivisionError"),
        ("raise KeyError('x')", "KeyError"),
        ("def", "SyntaxError"),
        ("class adapter:\n    name = 'a'\n    def __init__(self): raise OSError('x')", "OSError"),
    ],
)
def test_a_file_without_an_adapter_is_refused_with_the_reason(tmp_path: Path, code: str, told: str) -> None:
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(InvalidInput, match=told):
        load_adapter(tmp_path / "mine.py")


def test_a_missing_adapter_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.py", tmp_path):
        with pytest.raises(InvalidInput, match="not a file"):
            load_adapter(path)
