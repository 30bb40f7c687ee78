"""A runtime on a real trail with a scripted model, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from clew.access import Principal
from clew.agents.assembly import build_runtime
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.sessions import SentMessage
from clew.agents.conversations.steps import Step
from clew.agents.runtime import Runtime
from clew.clock import Clock
from clew.config import Config
from clew.llm.model import Models
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from clew.tools.permissions.policy import Policy, read_policy
from clew.tools.tool import Tool
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow, read_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import run_tag

PATIENCE = 60
"""Seconds after which a wait in a test fails."""
ALLOW = {"rules": [{"tool": "*", "verdict": "allow"}]}


@dataclass
class Running:
    """A runtime at work."""

    trail: Trail
    me: Principal
    flow: Flow
    runtime: Runtime
    talk: Conversations
    model: ScriptedModel

    async def say(self, text: str, **how: Any) -> list[Step]:
        """The steps of a message, up to its answer."""
        sent = await self.talk.send(text, by=self.me, **how)
        return await self.rest_of(sent)

    async def rest_of(self, sent: SentMessage) -> list[Step]:
        async with asyncio.timeout(PATIENCE):
            return [step async for step in self.talk.follow(sent, by=self.me)]

    async def written(self, run: str | None = None, *schemas: str) -> list[Breadcrumb]:
        """The records on the trail, of a run or of some schemas, in order."""
        selector = Selector(schema_names=schemas, all_tags=(run_tag(run),) if run else ())
        page = await self.trail.records.list(selector, by=self.me, limit=500, oldest_first=True)
        return list(page.items)

    async def define(self, schema: str, **context: Any) -> Breadcrumb:
        """Write a definition."""
        return await self.trail.records.create(
            Draft(title="A definition", schema_name=schema, context=context), by=self.me
        )

    async def until(self, selector: Selector, count: int = 1) -> list[Breadcrumb]:
        """This number of records, as soon as they exist."""
        async with asyncio.timeout(PATIENCE):
            while True:
                head = await self.trail.log.head()
                page = await self.trail.records.list(selector, by=self.me, limit=500, oldest_first=True)
                if len(page.items) >= count:
                    return list(page.items)
                await self.trail.log.wait(head, PATIENCE)


@asynccontextmanager
async def running(
    trail: Trail,
    clock: Clock,
    me: Principal,
    script: Sequence[ScriptedTurn | Mapping[str, Any]],
    *,
    tools: Iterable[Tool] = (),
    policy: Policy | None = None,
    **parts: Any,
) -> AsyncIterator[Running]:
    """A runtime in which every agent has a model that follows the script. It allows all calls unless a test says
    otherwise."""
    import msgspec

    await bootstrap(trail, me)
    model = ScriptedModel(msgspec.convert(list(script), list[ScriptedTurn]) if script else [ScriptedTurn(say="Yes.")])
    models = Models(Config(), {}).with_model("*", model)
    runtime = await build_runtime(
        trail,
        clock,
        models,
        by=me,
        from_record=parts.pop("from_record", no_code),
        tools=tools,
        policy=policy or read_policy(ALLOW),
        **parts,
    )
    flow = await read_flow(trail, by=me)
    async with runtime.running():
        yield Running(trail, me, flow, runtime, Conversations(trail, flow, clock), model)


async def no_code(record: Breadcrumb, config: Mapping[str, Any]) -> Tool:
    raise AssertionError("this test has no tools of code")
