"""Steps of a conversation in the runtime: a scripted model that calls a tool again and again, and then answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.agents.assembly import build_runtime
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.sessions import SentMessage
from clew.agents.conversations.steps import Answered
from clew.clock import SystemClock
from clew.config import Config
from clew.llm.model import Models
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from clew.tools.permissions.policy import read_policy
from clew.tools.tool import Effects, Tool, tool
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import read_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Embedder, Trail
from speed.step_payload import Step, first_payload

ME = Principal(owner_id="bench", agent_id="bench")
AGENT = "stepper"
ALLOWED = {"rules": [{"tool": "*", "verdict": "allow"}]}


class Talking:
    """A runtime at work on a trail, with an agent that calls the tool `step` so often before it answers."""

    def __init__(self, trail: Trail, talk: Conversations) -> None:
        self.trail = trail
        self.talk = talk

    async def hold(self) -> SentMessage:
        """One conversation in a session of its own, from its message to its answer."""
        sent = await self.talk.send("go", by=ME, agent=AGENT)
        await self.follow(sent)
        return sent

    async def follow(self, sent: SentMessage) -> None:
        """Until the answer. Raises RuntimeError when the conversation ends otherwise than it should."""
        steps = [step async for step in self.talk.follow(sent, by=ME)]
        answer = steps[-1]
        if not isinstance(answer, Answered) or answer.text != "done":
            raise RuntimeError(f"a conversation ended with {answer}")


async def open_talking(
    folder: Path, step: Step, calls: int, stack: AsyncExitStack, embedder: Embedder | None = None
) -> Talking:
    trail = await open_trail(f"sqlite://{folder / 'trail.db'}", embedder=embedder)
    stack.push_async_callback(trail.close)
    clock = SystemClock()
    await bootstrap(trail, ME)
    flow = await read_flow(trail, by=ME)
    models = Models(Config(), {}).with_model("*", ScriptedModel(script(calls)))
    runtime = await build_runtime(
        trail, clock, models, by=ME, from_record=no_code, tools=[make_tool(step)], policy=read_policy(ALLOWED)
    )
    trigger = {"schema_name": flow.message, "all_tags": [f"consumer:{AGENT}"]}
    agent = {"agent_id": AGENT, "system_prompt": "You step.", "context_trigger": trigger}
    await trail.records.create(
        Draft(title=AGENT, schema_name=flow.agent, context=agent, idempotency_key="agent"), by=ME
    )
    await stack.enter_async_context(runtime.running())
    return Talking(trail, Conversations(trail, flow, clock))


def script(calls: int) -> list[ScriptedTurn]:
    begin = ScriptedTurn(user="go", call={"step": {"n": 0}})
    following = [ScriptedTurn(expect=f"step {at}", call={"step": {"n": at}}) for at in range(1, calls)]
    return [begin, *following, ScriptedTurn(say="done")]


def make_tool(step: Step) -> Tool:
    @tool(name="step", effects=Effects(reads_only=True))
    async def take(n: int) -> str:
        """Take the next step."""
        payload = step.take({**first_payload(), "n": n})
        return f"step {payload['n']} {payload['text']}"

    return take


async def no_code(record: Breadcrumb, config: Mapping[str, Any]) -> Tool:
    raise LookupError("there are no tools of code here")


class ConversationStepper:
    """See `Stepper`. A session is a conversation of so many tool calls; the runtime gives it its name."""

    def __init__(self, folder: Path, step: Step, steps: int) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._talking = self._runner.run(open_talking(folder, step, steps, self._stack))

    def run(self, sessions: list[str], steps: int) -> None:
        self._runner.run(self._run(sessions))

    async def _run(self, sessions: list[str]) -> None:
        await asyncio.gather(*(self._talking.hold() for _ in sessions))

    def resume(self, session: str) -> None:
        self._runner.run(self._resume())

    async def _resume(self) -> None:
        selector = Selector(schema_name=self._talking.talk.flow.message)
        message = (await self._talking.trail.records.list(selector, by=ME)).items[0]
        await self._talking.follow(
            SentMessage(id=message.id, session=str(message.session), run=message.id, agent=AGENT)
        )

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()
