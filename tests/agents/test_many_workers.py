"""Several runtimes on one trail, many conversations in one runtime, and steps that fail for a while."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import AsyncExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.agents.conversations.steps import Answered, RunAbandoned
from clew.agents.hooks.hook_points import PromptData
from clew.agents.repairs.circuit_breaker import FAILURES
from clew.agents.runs.requests import TOOLS
from clew.agents.runs.tools_runner import ATTEMPTS
from clew.clock import ManualClock, SystemClock
from clew.errors import Busy, Unreachable
from clew.tools.hook_chain import Hook
from clew.tools.tool import Effects, Tool, tool
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.flow import read_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running
from tests.agents.whole_runs import CLERK, answer_of, hire, let_time_pass
from tests.faults.processes import Child, eventually, open_at

READS = Effects(reads_only=True)
ME = Principal(owner_id="acme", agent_id="ann")
PROCESSES, RUNTIMES, REQUESTS = 5, 2, 300
Script = list[dict[str, Any]]
COUNTING: Script = [
    {"user": "count", "call": [{"count": {"to": 2}}, {"count": {"to": 3}}]},
    {"expect": ["1 2", "1 2 3"], "say": "Counted."},
]


@tool(effects=READS)
async def count(to: int) -> str:
    """Count up to a number."""
    return " ".join(str(number) for number in range(1, to + 1))


# -- several processes --------------------------------------------------------------------------------------


def noting(folder: Path) -> Tool:
    file = os.open(folder / "executed", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    @tool(effects=READS)
    async def mark(number: int) -> str:
        """Note that this was run."""
        os.write(file, f"{number} {os.getpid()}\n".encode())
        return str(number)

    return mark


async def work(channel: Connection, folder: Path, runtimes: int) -> None:
    """In another process: run all events until the test sends a message."""
    trail, clock = await open_at(folder), SystemClock()
    async with AsyncExitStack() as stack:
        for _ in range(runtimes):
            await stack.enter_async_context(running(trail, clock, ME, COUNTING, tools=[noting(folder), count]))
        channel.send("ready")
        await asyncio.to_thread(channel.recv)
    await trail.close()


@pytest.mark.req("RCR-28")
async def test_ten_workers_in_five_processes_run_each_of_many_requests_once(tmp_path: Path) -> None:
    trail = await open_at(tmp_path)
    await bootstrap(trail, ME)
    flow = await read_flow(trail, by=ME)
    children = [Child(work, tmp_path, RUNTIMES) for _ in range(PROCESSES)]
    try:
        for child in children:
            assert await asyncio.to_thread(child.hear) == "ready"
        drafts = [
            Draft(
                title=f"Request {number}",
                schema_name=flow.request,
                tags=(TOOLS, f"request:{number}", f"run:{number % 20}"),
                context={"tool": "mark", "input": {"number": number}, "requestId": str(number)},
                embed="never",
            )
            for number in range(REQUESTS)
        ]
        for at in range(0, REQUESTS, 100):
            await trail.records.create_many(drafts[at : at + 100], by=ME)

        async def answered() -> bool:
            return (await trail.upkeep.stats(by=ME)).schemas.get(flow.response, 0) >= REQUESTS

        await eventually(answered, "every request has a response", 120)
        for child in children:
            child.tell("end")
            assert await asyncio.to_thread(child.wait) == 0
    finally:
        for child in children:
            child.__exit__(None, None, None)
    lines = [line.split() for line in (tmp_path / "executed").read_text().splitlines()]
    assert Counter(number for number, _ in lines) == dict.fromkeys(map(str, range(REQUESTS)), 1)
    assert len({pid for _, pid in lines}) > 1, "the work was shared"
    assert (await trail.upkeep.stats(by=ME)).schemas[flow.response] == REQUESTS
    assert await trail.dead_letters.list(by=ME) == []
    await trail.close()


@pytest.mark.req("RCR-39")
async def test_an_agent_that_one_process_defines_is_served_by_another(tmp_path: Path) -> None:
    trail = await open_at(tmp_path)
    await bootstrap(trail, ME)
    with Child(work, tmp_path, 1) as child:
        assert await asyncio.to_thread(child.hear) == "ready"
        # this process has no workers: it only sends messages
        async with running(trail, SystemClock(), ME, COUNTING, tools=[noting(tmp_path), count]) as here:
            pass
        await hire(here)
        assert answer_of(await here.say("count", agent=CLERK)).text == "Counted."
        child.tell("end")
        assert await asyncio.to_thread(child.wait) == 0
    await trail.close()


@pytest.mark.req("RCR-39")
async def test_unused_consumers_of_a_changed_definition_are_removed(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    async with running(trail, clock, me, COUNTING, tools=[count]) as run:
        made = await hire(run)

        async def consumers() -> set[str]:
            return {each.consumer.name for each in await trail.deliveries.consumers(by=me)}

        async def has_context() -> bool:
            return f"context/{CLERK}" in await consumers()

        async def has_none() -> bool:
            return not await has_context()

        await eventually(has_context, "the agent's context is built")
        change = Change(context={**made.context, "context_trigger": None})
        await trail.records.update(made.id, change, expect=1, by=me)
        await eventually(has_none, "nobody builds it any more")
        assert f"agent/{CLERK}" in await consumers()


# -- many in one process ------------------------------------------------------------------------------------


async def test_many_conversations_at_once_are_all_answered_and_lose_nothing(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    many = 30
    async with running(trail, clock, me, COUNTING, tools=[count]) as run:
        await hire(run)
        answers = await asyncio.gather(*(run.say("count", agent=CLERK) for _ in range(many)))
        assert Counter(answer_of(steps).text for steps in answers) == {"Counted.": many}
        assert len({answer_of(steps).session for steps in answers}) == many
        schemas = (await trail.upkeep.stats(by=me)).schemas
        flow = run.flow
        parts = (flow.message, flow.context, flow.request, flow.response, flow.answer, flow.usage)
        assert [schemas[part] for part in parts] == [many, many, 4 * many, 4 * many, many, 2 * many]
        assert await trail.dead_letters.list(by=me) == []


@pytest.mark.req("RCR-25")
async def test_results_that_come_at_once_bring_one_step_also_without_a_session(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    many, both = 10, asyncio.Barrier(2)

    @tool(effects=READS)
    async def meet(number: int) -> str:
        """Wait for another, so that both end together."""
        await both.wait()
        return f"met {number}"

    script: Script = [{"user": "go", "call": [{"meet": {"number": 1}}, {"meet": {"number": 2}}]}, {"say": "They met."}]
    async with running(trail, clock, me, script, tools=[meet]) as run:
        await run.define(run.flow.agent, agent_id="host", subscriptions={"selectors": [{"schema_name": "guest.v1"}]})
        for number in range(1, many + 1):
            await trail.records.create(Draft(title="go", schema_name="guest.v1", context={}), by=me)
            await run.until(Selector(schema_name=run.flow.answer), number)
        schemas = (await trail.upkeep.stats(by=me)).schemas
        assert schemas[run.flow.request] == 4 * many
        assert len(run.model.requests) == 2 * many


# -- responses that nobody waits for ------------------------------------------------------------------------


@pytest.mark.req("RCR-29")
async def test_a_second_response_and_one_to_no_request_bring_nothing(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    """The tool of one turn keeps the run open while others write forged answers of its model."""
    go_on = asyncio.Event()

    @tool(effects=READS)
    async def hold() -> str:
        """Hold on until told."""
        await go_on.wait()
        return "held"

    script: Script = [{"user": "wait", "call": {"hold": {}}}, {"expect": "held", "say": "Done."}]
    async with running(trail, clock, me, script, tools=[hold, count]) as run:
        await hire(run)
        sent = await run.talk.send("wait", by=me, agent=CLERK)
        (_, asked) = await run.until(Selector(schema_name=run.flow.request), 2)
        (first,) = await run.written(sent.run, run.flow.response)
        calls = [{"id": "x", "name": "count", "arguments": {"to": 1}}]
        forged = {**first.context, "output": {**first.context["output"], "tool_calls": calls}}
        unasked = [tag for tag in first.tags if not tag.startswith("request:")]
        drafts = [
            Draft(title="Again", schema_name=run.flow.response, tags=first.tags, context=forged),
            Draft(
                title="Unasked",
                schema_name=run.flow.response,
                tags=(*unasked, "request:none"),
                context={**forged, "request_id": "none"},
            ),
        ]
        await trail.records.create_many(drafts, by=me)
        go_on.set()
        assert answer_of(await run.rest_of(sent)).text == "Done."
        requests = await run.written(sent.run, run.flow.request)
    assert [each.context["tool"] for each in requests] == ["llm", "hold", "llm"]
    assert asked.context["tool"] == "hold"


# -- failures that pass, and those that stay ----------------------------------------------------------------


@pytest.mark.req("SYL-112")
async def test_a_transient_failure_is_retried_and_a_lasting_one_is_reported_with_its_attempts(
    tmp_path: Path, me: Principal
) -> None:
    script: Script = [
        {"user": "hello", "fault": "server", "say": "Hello."},
        {"user": "goodbye", "fault": "server", "times": 9, "say": "Goodbye."},
    ]
    trail = await open_at(tmp_path)
    async with running(trail, SystemClock(), me, script) as run:
        await hire(run)
        assert answer_of(await run.say("hello", agent=CLERK)).text == "Hello."
        assert len(run.model.requests) == 2
        assert answer_of(await run.say("goodbye", agent=CLERK)).status == "stopped"
        (error,) = await run.written(None, run.flow.error)
    await trail.close()
    assert error.context["attempt_number"] == 3
    assert len(run.model.requests) == 2 + 3


@pytest.mark.req("SYL-112")
async def test_a_call_that_must_not_be_repeated_is_not_tried_again_when_it_fails(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    calls: list[str] = []

    @tool
    async def send(what: str) -> str:
        """Send something."""
        calls.append(what)
        raise TimeoutError("no answer from the post office")

    script: Script = [
        {"user": "send", "call": {"send": {"what": "a letter"}}},
        {"expect": "no answer", "say": "It failed."},
    ]
    async with running(trail, clock, me, script, tools=[send]) as run:
        await hire(run)
        assert answer_of(await run.say("send", agent=CLERK)).text == "It failed."
    assert calls == ["a letter"]


@pytest.mark.req("SYL-113")
async def test_a_step_that_fails_for_good_is_a_dead_letter_and_once_mended_delivers_once(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    is_broken = True

    async def break_down(data: PromptData) -> PromptData:
        if is_broken:
            raise Busy("the store room is locked")
        return data

    hook = Hook(name="break down", point="pre_prompt", function=break_down, required=True)
    async with running(trail, clock, me, [{"user": "hello", "say": "Hello."}], hooks=[hook]) as run:
        await hire(run)
        sent = await run.talk.send("hello", by=me, agent=CLERK)
        (letter,) = await eventually(lambda: _given_up(run, clock), "the step is given up")
        assert letter.consumer == f"agent/{CLERK}"
        assert (letter.attempts, "the store room is locked" in letter.reason) == (3, True)
        last = (await run.rest_of(sent))[-1]
        assert isinstance(last, RunAbandoned)
        assert "the store room is locked" in last.reason
        is_broken = False
        await trail.dead_letters.replay(letter.id, by=me)
        assert isinstance((await run.rest_of(sent))[-1], Answered)
        assert len(await run.written(sent.run, run.flow.answer)) == 1
        assert await trail.dead_letters.list(by=me) == []


@pytest.mark.req("SYL-112")
async def test_a_call_waits_for_a_database_that_is_away_longer_than_its_attempts_last(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    left = max(ATTEMPTS, FAILURES) + 1

    @tool(effects=READS)
    async def look() -> str:
        """Look into the database."""
        nonlocal left
        left -= 1
        if left >= 0:
            raise Unreachable("the server does not answer")
        return "found"

    script: Script = [{"call": {"look": {}}}, {"expect": "found", "say": "Found."}]
    async with running(trail, clock, me, script, tools=[look]) as run:
        await hire(run)
        await run.talk.send("look", by=me, agent=CLERK)
        (answered,) = await eventually(lambda: _answers(run, clock), "the run ends")
    assert (answered.context["status"], answered.context["message"]) == ("done", "Found.")


@pytest.mark.req("SYL-112")
async def test_an_agent_gets_a_busy_error_soon_and_other_agents_may_still_call_the_tool(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    attempts = 0

    @tool(effects=READS)
    async def look() -> str:
        """Look into a file that is locked."""
        nonlocal attempts
        attempts += 1
        raise Busy("somebody is writing maths.py")

    call = {"call": {"look": {}}}
    script: Script = [call, {**call, "expect": "is writing maths"}, {"expect": "is writing maths", "say": "Later."}]
    async with running(trail, clock, me, script, tools=[look]) as run:
        await hire(run)
        await run.talk.send("look", by=me, agent=CLERK)
        (answered,) = await eventually(lambda: _answers(run, clock), "the run ends")
        assert run.runtime.parts.tools.guard.breaker.state("look") == "closed"
    assert (answered.context["status"], answered.context["message"]) == ("done", "Later.")
    assert attempts == 2 * ATTEMPTS


async def _answers(run: Running, clock: ManualClock) -> list[Breadcrumb]:
    """The answers so far, while time passes."""
    await _given_up(run, clock)
    return await run.written(None, run.flow.answer)


async def _given_up(run: Running, clock: ManualClock) -> Any:
    await let_time_pass(run, clock)
    return await run.trail.dead_letters.list(by=run.me)
