"""Cancelled runs end with one answer and do nothing more, at any moment of the cancellation and from any process."""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.agents.conversations.conversation import Conversations
from clew.agents.conversations.sessions import SentMessage
from clew.agents.repairs.circuit_breaker import FAILURES
from clew.clock import ManualClock, SystemClock
from clew.tools.tool import Effects, Tool, tool
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import read_flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running
from tests.agents.whole_runs import CLERK, answer_of, hire, is_done_with
from tests.faults.processes import Child, open_at

Script = list[dict[str, Any]]
ENDLESS: Script = [{"user": "talk", "say": "on and " * 2_000, "delay": 0.05}]
"""An answer that takes minutes, so that it is always cancelled in the middle."""
WAITING: Script = [
    {"user": "wait", "call": {"hold": {}}},
    {"say": "This is never said."},
    {"user": "hello", "say": "Hello."},
]


class Holding:
    """A tool that begins and does not end by itself."""

    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), asyncio.Event()

    def tools(self) -> list[Tool]:
        @tool(effects=Effects(keyed=True))
        async def hold() -> str:
            """Hold on for ever."""
            self.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()
            return "held"

        return [hold]


async def call_off(run: Running, sent: SentMessage) -> tuple[str, ...]:
    return await run.talk.cancel(sent.session, by=run.me, reason="Ctrl-C", run=sent.run)


def cancel_draft(run: Running, sent: SentMessage) -> Draft:
    tags = (f"session:{sent.session}", f"run:{sent.run}", f"consumer:{sent.agent}")
    return Draft(title="Cancel", schema_name=run.flow.cancel, tags=tags, context={"reason": "again"})


async def only_answer(run: Running, sent: SentMessage) -> Breadcrumb:
    (found,) = await run.written(sent.run, run.flow.answer)
    return found


async def response_to(run: Running, sent: SentMessage, tool: str) -> Breadcrumb:
    """The response to the only tool request, after the agent has handled it."""
    (request,) = [each for each in await run.written(sent.run, run.flow.request) if each.context["tool"] == tool]
    tag = f"request:{request.context['requestId']}"
    (response,) = await run.until(Selector(schema_name=run.flow.response, all_tags=(tag,)))
    await is_done_with(run, f"agent/{sent.agent}", response)
    return response


async def test_a_run_is_cancelled_in_the_middle_of_what_its_model_says(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, ENDLESS) as run:
        await hire(run)
        sent = await run.talk.send("talk", by=me, agent=CLERK)
        await run.until(Selector(schema_name=run.flow.delta))
        assert await call_off(run, sent) == (sent.run,)
        answer = answer_of(await run.rest_of(sent))
        response = await response_to(run, sent, "llm")
        assert (await only_answer(run, sent)).context["reason"] == "Ctrl-C"
        assert len(await run.written(sent.run, run.flow.request)) == 1
    assert (answer.status, answer.reason) == ("cancelled", "Ctrl-C")
    assert response.context["status"] == "cancelled"


async def test_a_run_is_cancelled_while_its_tool_works_and_the_session_goes_on(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    holding = Holding()
    async with running(trail, clock, me, WAITING, tools=holding.tools()) as run:
        await hire(run)
        sent = await run.talk.send("wait", by=me, agent=CLERK)
        await holding.began.wait()
        await call_off(run, sent)
        assert answer_of(await run.rest_of(sent)).status == "cancelled"
        await holding.ended.wait()
        assert (await response_to(run, sent, "hold")).context["status"] == "cancelled"
        assert len(run.model.requests) == 1, "the model was not asked again"
        other = await run.talk.send("hello", by=me, agent=CLERK)
        assert answer_of(await run.rest_of(other)).text == "Hello."


async def test_a_run_that_is_cancelled_before_its_first_step_asks_no_model(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, ENDLESS) as run:
        await hire(run)
    sent = await run.talk.send("talk", by=me, agent=CLERK)
    assert await call_off(run, sent) == (sent.run,)
    async with running(trail, clock, me, ENDLESS) as run:
        assert answer_of(await run.rest_of(sent)).status == "cancelled"
        (context,) = await run.until(Selector(schema_name=run.flow.context))
        await is_done_with(run, f"agent/{CLERK}", context)
        assert await run.written(sent.run, run.flow.request) == []
        assert run.model.requests == []


async def test_a_run_that_is_cancelled_twice_has_one_answer(trail: Trail, clock: ManualClock, me: Principal) -> None:
    holding = Holding()
    async with running(trail, clock, me, WAITING, tools=holding.tools()) as run:
        await hire(run)
        sent = await run.talk.send("wait", by=me, agent=CLERK)
        await holding.began.wait()
        twice = await trail.records.create_many([cancel_draft(run, sent), cancel_draft(run, sent)], by=me)
        assert answer_of(await run.rest_of(sent)).status == "cancelled"
        await is_done_with(run, f"agent/{CLERK}", twice[-1])
        await only_answer(run, sent)


async def test_a_run_that_has_ended_cannot_be_cancelled(trail: Trail, clock: ManualClock, me: Principal) -> None:
    async with running(trail, clock, me, WAITING, tools=Holding().tools()) as run:
        await hire(run)
        sent = await run.talk.send("hello", by=me, agent=CLERK)
        assert answer_of(await run.rest_of(sent)).text == "Hello."
        assert await call_off(run, sent) == ()
        late = await trail.records.create(cancel_draft(run, sent), by=me)
        await is_done_with(run, f"agent/{CLERK}", late)
        assert (await only_answer(run, sent)).context["status"] == "done"


async def test_other_runs_go_on(trail: Trail, clock: ManualClock, me: Principal) -> None:
    release = asyncio.Event()

    @tool(effects=Effects(reads_only=True))
    async def hold() -> str:
        """Hold on until released."""
        await release.wait()
        return "held"

    async with running(trail, clock, me, WAITING, tools=[hold]) as run:
        await hire(run)
        one = await run.talk.send("wait", by=me, agent=CLERK)
        other = await run.talk.send("wait", by=me, agent=CLERK)
        requests = Selector(schema_name=run.flow.request, context_match=(ContextMatch(path="tool", value="hold"),))
        await run.until(requests, 2)
        await call_off(run, one)
        assert answer_of(await run.rest_of(one)).status == "cancelled"
        release.set()
        assert answer_of(await run.rest_of(other)).text == "This is never said."


async def cancel_everything(channel: Connection, folder: Path, me: Principal, session: str) -> None:
    """In another process: cancel the runs of a session."""
    trail = await open_at(folder)
    talk = Conversations(trail, await read_flow(trail, by=me), SystemClock())
    channel.send(await talk.cancel(session, by=me, reason="from elsewhere"))
    await trail.close()


async def test_a_run_is_cancelled_by_another_process(tmp_path: Path, me: Principal) -> None:
    trail, clock = await open_at(tmp_path), SystemClock()
    async with running(trail, clock, me, ENDLESS) as run:
        await hire(run)
        sent = await run.talk.send("talk", by=me, agent=CLERK)
        await run.until(Selector(schema_name=run.flow.delta))
        with Child(cancel_everything, tmp_path, me, sent.session) as child:
            assert await asyncio.to_thread(child.hear) == (sent.run,)
        answer = answer_of(await run.rest_of(sent))
        assert (await response_to(run, sent, "llm")).context["status"] == "cancelled"
    await trail.close()
    assert (answer.status, answer.reason) == ("cancelled", "from elsewhere")


async def test_a_cancellation_does_not_count_as_a_failure_of_the_model(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    script: Script = [*ENDLESS, {"user": "hello", "say": "Hello."}]
    async with running(trail, clock, me, script) as run:
        await hire(run)
        for at in range(FAILURES + 1):
            sent = await run.talk.send("talk", by=me, agent=CLERK)
            await run.until(Selector(schema_name=run.flow.delta), at + 1)
            await call_off(run, sent)
            await run.rest_of(sent)
            await response_to(run, sent, "llm")
        assert answer_of(await run.say("hello", agent=CLERK)).text == "Hello."


@pytest.mark.req("RCR-48")
async def test_with_a_run_those_of_the_agents_that_it_called_are_cancelled(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    holding = Holding()
    script: Script = [
        {"user": "big task", "call": {"spawn-agent": {"task": "small task", "tools": ["hold"]}}},
        {"say": "This is never said."},
        {"user": "small task", "call": {"hold": {}}},
        {"say": "Nor is this."},
    ]
    async with running(trail, clock, me, script, tools=holding.tools()) as run:
        await hire(run, capabilities={"can_spawn_agents": True})
        sent = await run.talk.send("big task", by=me, agent=CLERK)
        await holding.began.wait()
        await call_off(run, sent)
        await holding.ended.wait()
        answers = await run.until(Selector(schema_name=run.flow.answer), 2)
        assert [each.context["status"] for each in answers] == ["cancelled", "cancelled"]
        assert {each.context["reason"] for each in answers} == {"Ctrl-C"}
        (response,) = [
            each for each in await run.written(None, run.flow.response) if each.context["tool"] == "spawn-agent"
        ]
        await is_done_with(run, f"agent/{CLERK}", response)
        assert len(run.model.requests) == 2
