"""Spans of runs in one process: their attributes, omitted texts, and ids derived from the records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import Clock, ManualClock, SystemClock, to_micros
from clew.errors import LeaseLost
from clew.telemetry.run_tracer import RunTracer
from clew.telemetry.settings import TelemetrySettings
from clew.telemetry.spans import FinishedSpan, SettledClaim, claim_span
from clew.telemetry.traced_trail import TracedTrail
from clew.tools.tool import Effects, tool
from clew.trail.bootstrap import read_pieces
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Consumer
from clew.trail.model.flow import shipped_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.trace_context import TraceContext, current_trace, find_trace, parse_traceparent
from tests.agents.runtimes import Running, running

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@tool(effects=Effects(reads_only=True))
async def count(to: int = 1) -> str:
    """Count up to a number."""
    if to < 0:
        raise ValueError("the secret is negative")
    return " ".join(str(number) for number in range(1, to + 1))


def traced(
    trail: Trail, clock: Clock, settings: TelemetrySettings | None = None
) -> tuple[TracedTrail, RunTracer, list[FinishedSpan]]:
    spans: list[FinishedSpan] = []
    tracer = RunTracer(trail, clock, settings or TelemetrySettings(), spans.append)
    return TracedTrail(trail, tracer), tracer, spans


@asynccontextmanager
async def chatting(trail: Trail, me: Principal, script: list[dict[str, Any]], **more: Any) -> AsyncIterator[Running]:
    async with running(trail, SystemClock(), me, script, tools=[count], **more) as run:
        yield run


async def test_the_steps_of_a_run_are_parts_of_its_span(trail: Trail, clock: ManualClock, me: Principal) -> None:
    wrapped, tracer, spans = traced(trail, clock)
    script = [{"call": {"count": {"to": 3}}}, {"say": "One two three."}]
    async with chatting(wrapped, me, script) as run:
        await run.say("count to three")
    await tracer.close()
    (whole,) = [each for each in spans if each.name == "invoke_agent assistant"]
    parts = [each for each in spans if each is not whole]
    assert {each.trace_id for each in spans} == {whole.trace_id}
    assert {each.parent_id for each in parts} == {whole.span_id}
    assert whole.parent_id == ""
    assert sorted(each.name.split()[0] for each in parts) == sorted(
        ["build_context", "step", "chat", "step", "execute_tool", "step", "chat", "step"]
    )
    assert all(whole.start <= each.start <= each.end <= whole.end for each in parts)
    assert not any("three" in str(each).lower() for each in spans), "a text left the trail"


async def test_a_call_that_fails_is_an_error_without_its_text(trail: Trail, clock: ManualClock, me: Principal) -> None:
    wrapped, tracer, spans = traced(trail, clock)
    script = [{"call": {"count": {"to": -3}}}, {"say": "I could not."}]
    async with chatting(wrapped, me, script) as run:
        await run.say("count")
    await tracer.close()
    failed = [each for each in spans if each.error]
    assert {each.name for each in failed} == {"execute_tool count"}
    assert not any("secret" in str(each) for each in spans)


async def test_a_run_in_the_trace_of_its_caller_is_in_that_trace(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    wrapped, tracer, spans = traced(trail, clock)
    async with chatting(wrapped, me, [{"say": "Yes."}, {"say": "No."}]) as run:
        current_trace.set(parse_traceparent(f"00-{TRACE}-{CALLER}-01"))
        first = (await run.say("one"))[0].session
        current_trace.set(parse_traceparent(f"00-{TRACE[::-1]}-{CALLER}-00"))
        await run.say("two")
        records = await run.written()
    await tracer.close()
    assert {each.trace_id for each in spans} == {TRACE}, "the caller of the second run does not want a trace"
    (whole,) = [each for each in spans if each.name.startswith("invoke_agent")]
    assert whole.parent_id == CALLER
    of_first = [each for each in records if each.session == first and each.schema_name != run.flow.usage]
    assert {find_trace(each) for each in of_first} == {TraceContext(TRACE, CALLER)}


async def test_a_step_that_another_worker_repeats_has_the_same_ids(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    (one, _, lost), (two, tracer, made) = traced(trail, clock), traced(trail, clock)
    await trail.deliveries.register(Consumer(name="agent/parrot", selector=Selector(schema_name="job.v1")), by=me)
    job = await trail.records.create(Draft(title="m", schema_name="job.v1", context={}), by=me)
    answer = Draft(title="done", schema_name="agent.response.v1", context={"status": "done"})
    (dead,) = await one.deliveries.claim("agent/parrot", by=me, worker="one")
    await trail.deliveries.abandon("one", by=me)
    (claim,) = await two.deliveries.claim("agent/parrot", by=me, worker="two")
    with pytest.raises(LeaseLost):
        await one.deliveries.finish(dead, [answer], by=me)
    await two.deliveries.finish(claim, [answer], by=me)
    await tracer.close()
    assert lost == [], "work that was lost leaves no span"
    step, whole = made
    assert (step.name, whole.name) == ("step parrot", "invoke_agent parrot")
    assert step.parent_id == whole.span_id
    assert whole.start == to_micros(job.created_at) * 1_000
    now = clock.now()
    again = SettledClaim(claim=dead, record=job, outputs=[answer], start=now, end=now)
    same = claim_span(shipped_flow(read_pieces()), again)
    assert (same.trace_id, same.span_id, same.parent_id) == (step.trace_id, step.span_id, step.parent_id)


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        (f"00-{TRACE}-{CALLER}-01", True),
        (f"00-{TRACE}-{CALLER}-00", True),
        (f"cc-{TRACE}-{CALLER}-01-more", True),
        (f"00-{TRACE}-{CALLER}-01-more", False),
        (f"ff-{TRACE}-{CALLER}-01", False),
        (f"00-{'0' * 32}-{CALLER}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{CALLER}-01", False),
        ("", False),
        (f"00-{TRACE}-{CALLER}-01\n", False),
    ],
)
def test_a_traceparent_counts_only_when_it_is_well_formed(text: str, is_valid: bool) -> None:
    found = parse_traceparent(text)
    assert (found is not None) == is_valid
    assert found is None or found[:2] == (TRACE, CALLER)
