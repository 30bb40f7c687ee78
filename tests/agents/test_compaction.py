"""Compaction of a run: its conversation becomes shorter, and the run goes on."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.agents.assembly import RuntimeAdditions
from clew.agents.conversations.steps import Answered
from clew.clock import ManualClock
from clew.llm.messages import ToolCall, Usage
from clew.llm.model_catalogue import ModelInfo
from clew.llm.requests import ModelReply, ModelRequest, OnText
from clew.llm.tokens import estimate_tokens
from clew.tools.tool import Effects, tool
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

CONTEXT = 8_000
STEPS = 24


class Reader:
    """A model that reads a page in each step, and reports the tokens of its prompt."""

    name = "reader"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.sizes: list[int] = []

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        self.requests.append(request)
        self.sizes.append(sum(estimate_tokens(each.content) for each in request.messages))
        at = len(self.requests)
        calls = (ToolCall(id=f"c{at}", name="read-page", arguments={"page": at}),) if at <= STEPS else ()
        usage = Usage(input_tokens=self.sizes[-1], output_tokens=10)
        return ModelReply(
            content="" if calls else "Read all.", tool_calls=calls, usage=usage, model="reader", finish_reason="stop"
        )


@tool(effects=Effects(reads_only=True, reaches_out=False))
async def read_page(page: int) -> str:
    """Read a page."""
    return f"Page {page}: " + "words of the page " * 100


async def open_items(agent: str, session: str) -> str:
    return "issue 7 is open"


@pytest.mark.req("SYL-54", "SYL-57")
async def test_a_full_context_is_compacted_once_and_the_run_goes_on(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    from clew.agents.assembly import build_runtime
    from clew.agents.conversations.conversation import Conversations
    from clew.config import Config
    from clew.llm.model import Models
    from clew.tools.permissions.policy import read_policy
    from clew.trail.bootstrap import bootstrap
    from clew.trail.model.flow import read_flow
    from tests.agents.runtimes import ALLOW, Running, no_code

    await bootstrap(trail, me)
    model = Reader()
    info = ModelInfo(name="reader", provider="scripted", context_tokens=CONTEXT, budget_tokens=CONTEXT)
    runtime = await build_runtime(
        trail,
        clock,
        Models(Config(), {}).with_model("*", model, info),
        by=me,
        from_record=no_code,
        tools=(read_page,),
        policy=read_policy(ALLOW),
        additions=RuntimeAdditions(open_items=open_items),
    )
    flow = await read_flow(trail, by=me)
    async with runtime.running():
        run = Running(trail, me, flow, runtime, Conversations(trail, flow, clock), model)  # type: ignore[arg-type]  # a model of this test
        await run.define(
            flow.agent,
            agent_id="reader",
            context_trigger={"schema_name": flow.message, "all_tags": ["consumer:reader"]},
            capabilities={"tools": ["read-page"]},
        )
        steps = await run.say("Read all pages.", agent="reader")
    [answer] = [each for each in steps if isinstance(each, Answered)]
    assert (answer.status, answer.text) == ("done", "Read all.")
    assert len(model.requests) == STEPS + 1
    largest = model.sizes.index(max(model.sizes))
    assert max(model.sizes) < CONTEXT
    after = model.requests[largest + 1]
    assert model.sizes[largest + 1] < model.sizes[largest] / 2
    shown = "\n".join(each.content for each in after.messages)
    assert "Read all pages." in shown
    assert "Your conversation was shortened" in shown
    assert "issue 7 is open" in shown
    assert 'read-page({"page":1})' in shown
    found = await trail.records.list(Selector(schema_name=flow.checkpoint), by=me, limit=50, oldest_first=True)
    done = [each.context["do"] for each in found.items]
    assert done.count("compacted") == done.count("compact") >= 1
