"""How many records a conversation reads, counted at the trail while an agent answers a message."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.agents.conversations.agent_interface import AgentCore, AgentInput
from clew.agents.conversations.conversation import DEFAULT_AGENT, open_conversations
from clew.agents.conversations.steps import Answered
from clew.agents.runtime import Runtime
from clew.app import open_app
from clew.config import read_config
from clew.llm.model import open_models
from clew.llm.scripted_model import ScriptedModel, read_script
from tests.servers import PATIENCE

TURNS, TOOLS = 12, 3
MOST = 400


class CountedReads:
    """The records or the log of a trail, and how many records were read from it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.count = 0

    async def get(self, *arguments: Any, **named: Any) -> Any:
        self.count += 1
        return await self._inner.get(*arguments, **named)

    async def list(self, *arguments: Any, **named: Any) -> Any:
        page = await self._inner.list(*arguments, **named)
        self.count += len(page.items)
        return page

    async def read(self, *arguments: Any, **named: Any) -> Any:
        events, seq = await self._inner.read(*arguments, **named)
        self.count += sum(each.breadcrumb is not None for each in events)
        return events, seq

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def script() -> str:
    """Twelve answers of a model that call three tools each, and a last one that calls none."""
    calls = [[f"{{read-file: {{file_path: n{turn}-{tool}.txt}}}}" for tool in range(TOOLS)] for turn in range(TURNS)]
    turns = [f"- call: [{', '.join(each)}]" for each in calls]
    turns[0] = turns[0].replace("- call", "- user: go\n  call")
    return "\n".join([*turns, "- say: done"])


@pytest.mark.req("RCR-40")
async def test_a_chat_of_twelve_turns_with_tools_reads_each_record_of_its_run_once(tmp_path: Path) -> None:
    (tmp_path / ".clew").mkdir()
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    for turn in range(TURNS):
        for tool in range(TOOLS):
            (tmp_path / f"n{turn}-{tool}.txt").write_text(f"kettle {turn} {tool}\n")
    config = read_config(tmp_path / ".clew", {"CLEW_EMBEDDER": "hash"})
    async with open_app(config) as app:
        models = open_models(config, {}).with_model("*", ScriptedModel(read_script(script())))
        parts = (await app.runtime(models)).parts
        runtime = Runtime(replace(parts, unhurried=()))  # the edges of the graph are no part of the answer
        talks = await open_conversations(app.trail, app.clock, by=app.me)
        agent = AgentCore(DEFAULT_AGENT, talks, by=app.me, running=runtime.running)
        await agent.start()
        app.trail.records = records = CountedReads(app.trail.records)
        app.trail.log = log = CountedReads(app.trail.log)
        async with asyncio.timeout(PATIENCE):
            *_, last = [step async for step in agent.process(AgentInput(text="go"))]
        await agent.stop()
    assert isinstance(last, Answered)
    assert (last.status, last.text) == ("done", "done")
    assert TURNS * TOOLS < records.count + log.count <= MOST, (records.count, log.count)
