"""Helpers for tests of conversations, in which the test itself writes the records of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from clew.access import Principal
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import run_tag
from clew.trail.work.handlers import Worker, handles

PATIENCE = 60.0
AGENT = "parrot"

Play = Callable[["Stage", Breadcrumb], Awaitable[None]]


class Stage:
    """Writes records of one run as its runners would."""

    def __init__(self, trail: Trail, by: Principal, message: Breadcrumb) -> None:
        self.trail = trail
        self.by = by
        self.message = message
        self.tags = (*message.session_tags, run_tag(message.id))

    async def write(self, schema_name: str, context: dict[str, Any], *tags: str) -> Breadcrumb:
        draft = Draft(
            title=schema_name, schema_name=schema_name, context=context, tags=(*self.tags, *tags), embed="never"
        )
        return await self.trail.records.create(draft, by=self.by)

    async def say(self, *pieces: str, request: str = "m1", start: int = 0) -> None:
        for index, text in enumerate(pieces, start):
            await self.write("agent.delta.v1", {"request_id": request, "index": index, "text": text})

    async def call(self, tool: str, input: dict[str, Any], request: str = "t1") -> None:
        await self.write("tool.request.v1", {"tool": tool, "input": input, "requestId": request}, f"request:{request}")

    async def respond(self, tool: str, output: Any, request: str = "t1", status: str = "success") -> None:
        result = {"output": output} if status == "success" else {"error": output}
        context = {"request_id": request, "tool": tool, "status": status, "execution_time_ms": 12.4, **result}
        await self.write("tool.response.v1", context, f"request:{request}")

    async def ask(self, tool: str, input: Any, request: str = "t1", **more: Any) -> None:
        context = {"request_id": request, "tool": tool, "input": input, "reason": "it writes", "pattern": f"{tool} *"}
        choices = {"choices": ["once", "session", "always", "deny"]}
        await self.write("permission.request.v1", context | choices | more, f"request:{request}", "permission:asked")

    async def answer(self, text: str, status: str = "done", agent: str = AGENT, **more: Any) -> None:
        context = {"message": text, "creator": {"type": "agent", "agent_id": agent}, "status": status, **more}
        await self.write("agent.response.v1", context, "agent:response", "chat:output")

    async def wait_for(self, schema_name: str) -> Breadcrumb:
        """The first record of that schema in this run, as soon as it exists."""
        selector = Selector(schema_name=schema_name, all_tags=self.tags)
        async with asyncio.timeout(PATIENCE):
            async for event in self.trail.log.follow(0, by=self.by, selector=selector):
                if event.breadcrumb is not None:
                    return event.breadcrumb
        raise AssertionError("the log has ended")


async def repeat(stage: Stage, message: Breadcrumb) -> None:
    """Repeats each message as its answer."""
    text = str(message.context["message"])
    await stage.say(*text.split(" "))
    await stage.answer(text)


async def define(trail: Trail, by: Principal, name: str = AGENT) -> None:
    """Set the trail up for an owner, with an agent."""
    await bootstrap(trail, by)
    draft = Draft(title=name, schema_name="agent.def.v1", context={"agent_id": name, "description": "Says it again"})
    await trail.records.create(draft, by=by)


@asynccontextmanager
async def open_stage(trail: Trail, by: Principal, play: Play = repeat) -> AsyncIterator[None]:
    """Play the agent's part of every message while this is open."""

    async def on_message(event: Event, deps: object) -> Sequence[Draft]:
        assert event.breadcrumb is not None
        await play(Stage(trail, by, event.breadcrumb), event.breadcrumb)
        return ()

    handler = handles(Selector(schema_name="user.message.v1"), name="stand-in")(on_message)
    worker = Worker(trail, [handler], by=by, worker_id="stand-in")
    await worker.register()
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        async with asyncio.timeout(PATIENCE):
            await running
