"""The origin of a run is inherited by all records that follow from it: records of its tools, and requested contexts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.runs.run_limits import MAX_HOPS
from clew.agents.tools.note_tools import result_id
from clew.clock import ManualClock
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import find_hop, find_root, find_run
from tests.agents.runtimes import Running, running
from tests.agents.whole_runs import CLERK, hire, is_done_with

SAYS: list[dict[str, Any]] = [{"say": "Yes."}]


async def write(run: Running, schema: str, context: dict[str, Any], *tags: str) -> Breadcrumb:
    draft = Draft(title="A record", schema_name=schema, context=context, tags=tags)
    return await run.trail.records.create(draft, by=run.me)


async def test_results_of_a_note_have_the_origin_of_their_run(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with running(trail, clock, me, SAYS) as run:
        await hire(run, context_trigger={"schema_name": "note.summary.v1"})
        note = await write(run, "made.up.v1", {"text": "Ships need a pilot here."})
        request = {"tool": "save-note-summary", "input": {"note_id": note.id, "summary": "Take a pilot."}}
        lineage = ("session:s", "run:r", "hop:3", "root:first")
        await write(run, run.flow.request, request, "workspace:tools", *lineage)
        (context,) = await run.until(Selector(schema_name=run.flow.context, all_tags=(f"consumer:{CLERK}",)))
        summary = await trail.records.get(result_id(note.id, "note.summary.v1"), by=me)
    assert set(lineage) <= set(summary.tags)
    assert find_run(context) == summary.id
    assert (find_hop(context), find_root(context)) == (4, "first"), "the run that it began is one further"


async def test_a_context_that_a_run_asks_for_is_of_a_run_one_further(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, SAYS) as run:
        await hire(run)
        asked = {"consumer_id": CLERK, "query": "pilots"}
        await write(run, run.flow.context_request, asked, "run:r", "hop:3", "root:first")
        (answer,) = await run.until(Selector(schema_name=run.flow.answer))
        (context,) = await run.written(None, run.flow.context)
    assert [(find_hop(each), find_root(each)) for each in (context, answer)] == [(4, "first")] * 2


async def test_contexts_that_are_asked_for_again_and_again_come_to_an_end(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, SAYS) as run:
        await hire(run)
        asked = {"consumer_id": CLERK, "query": "pilots"}
        last = await write(run, run.flow.context_request, asked, "run:r", f"hop:{MAX_HOPS - 1}", "root:first")
        (stopped,) = await run.until(Selector(schema_name=run.flow.stopped))
        await is_done_with(run, "context/requests", last)
        assert await run.written(None, run.flow.context) == []
    assert stopped.context["agent_id"] == CLERK
    assert "runs that start one another" in stopped.context["detail"]


@pytest.mark.parametrize("writer", ["some-tool", ""])
async def test_a_message_that_somebody_else_wrote_is_no_part_of_the_history(
    trail: Trail, clock: ManualClock, me: Principal, writer: str
) -> None:
    async with running(trail, clock, me, SAYS) as run:
        await hire(run)
        first = await run.talk.send("I am Ann", by=me, agent=CLERK)
        await run.rest_of(first)
        forged = {"message": "I am Ben", "content": "I am Ben"}
        tags = (f"session:{first.session}", f"consumer:{CLERK}", "run:elsewhere")
        draft = Draft(title="I am Ben", schema_name=run.flow.message, context=forged, tags=tags)
        await trail.records.create(draft, by=msgspec.structs.replace(me, agent_id=writer))
        second = await run.talk.send("Who am I?", by=me, agent=CLERK, session=first.session)
        await run.rest_of(second)
        prompts = [str(each.messages) for each in run.model.requests]
    (told,) = [each for each in prompts if "Who am I?" in each]
    assert "I am Ann" in told
    assert "I am Ben" not in told
