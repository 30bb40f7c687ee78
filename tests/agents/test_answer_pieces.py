"""The text of an answer on the trail: its end is written with the response, and what arrives before it soon."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.agents.runs.model_calls import AnswerPieces
from clew.agents.runs.requests import read_request, request_draft
from clew.clock import ManualClock
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running


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
async def test_what_arrives_before_a_pause_is_written_before_the_end(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
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
