"""The text of an answer on the trail: the last piece is written with the response, and earlier pieces soon after they
arrive."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from clew.access import Principal
from clew.agents.budgets.budget import AgentBudget
from clew.agents.conversations.steps import AnswerChunk
from clew.agents.runs.model_calls import AnswerPieces
from clew.agents.runs.requests import read_request, request_draft
from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.tools.tool import tool
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running
from tests.agents.whole_runs import CLERK, answer_of, hire

HALF = "\ud800"
"""Half of a surrogate pair: the trail refuses it."""


async def pieces_of(run: Running) -> AnswerPieces:
    """The pieces of an answer to a request that nobody handles."""
    draft = request_draft(run.flow, "none", {}, request_id="r", requested_by="a", tags=("run:x",))
    record = await run.trail.records.create(draft, by=run.me)
    return AnswerPieces(run.runtime.parts.tools.models, record, read_request(record))


async def test_a_text_that_arrives_at_once_is_left_to_the_caller(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, []) as run:
        pieces = await pieces_of(run)
        await pieces.add("one ")
        await pieces.add("two")
        (rest,) = await pieces.take()
        assert (rest.context["index"], rest.context["text"]) == (0, "one two")
        assert await run.written(None, run.flow.delta) == []
        assert not await pieces.take()


@pytest.mark.req("RCR-40")
async def test_text_before_a_pause_is_written_before_the_end(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with running(trail, clock, me, []) as run:
        pieces = await pieces_of(run)
        await pieces.add("one ")
        (first,) = await run.until(Selector(schema_name=run.flow.delta))
        await pieces.add("two")
        (rest,) = await pieces.take()
        assert (first.context["index"], first.context["text"]) == (0, "one ")
        assert (rest.context["index"], rest.context["text"]) == (1, "two")


async def test_the_text_of_a_call_that_failed_is_kept(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with running(trail, clock, me, []) as run:
        pieces = await pieces_of(run)
        await pieces.add("half")
        await pieces.flush()
        assert [each.context["text"] for each in await run.written(None, run.flow.delta)] == ["half"]


async def test_a_piece_that_was_not_written_is_not_lost_silently(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, []) as run:
        pieces = await pieces_of(run)
        for text in (HALF, "two"):
            await pieces.add(text)
            await asyncio.sleep(0.2)
        with pytest.raises(InvalidInput, match="surrogate"):
            await pieces.take()
        await pieces.flush()
        assert await run.written(None, run.flow.delta) == []


async def test_an_answer_whose_text_cannot_be_written_is_paid_once(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, [{"say": f"{HALF} two", "delay": 0.1}]) as run:
        await hire(run, budget={"tokens": 100_000})
        assert answer_of(await run.say("hello", agent=CLERK)).status == "stopped"
        (record,) = await run.written(None, run.flow.budget)
    budget = msgspec.convert(record.context, AgentBudget)
    assert (budget.reserved, budget.spent.calls) == ({}, 1)
    assert budget.spent.tokens > 0


@pytest.mark.req("RCR-40")
async def test_a_reader_that_comes_back_gets_the_texts_between_tool_calls(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    @tool()
    async def look() -> str:
        """Look."""
        return "seen"

    script = [{"say": "I will look.", "call": {"look": {}}}, {"say": "Done."}]
    async with running(trail, clock, me, script, tools=[look]) as run:
        await hire(run, capabilities={"tools": ["look"]})
        sent = await run.talk.send("hello", by=run.me, agent=CLERK)
        first = await run.rest_of(sent)
        again = [each async for each in run.talk.resume(sent, by=run.me)]
        for steps in (first, again):
            assert [each.text for each in steps if isinstance(each, AnswerChunk)] == ["I will look.", "Done."]
