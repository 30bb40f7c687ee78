"""A record that is deleted while a run waits enters no later prompt of the run, and does not stall it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from clew.access import Principal
from clew.agents.runs.agent_runner import AgentRunner
from clew.agents.runs.executor import Gathered
from clew.clock import ManualClock
from clew.tools.tool import tool
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.agents.payments import Bank, answer
from tests.agents.runtimes import PATIENCE, Running, running
from tests.agents.whole_runs import CLERK, answer_of, hire
from tests.handlers import until

FOUND = "the number of the safe is 4711"
DELETED_ANSWER = "I stopped: an answer of the model was deleted before the run ended."


async def test_a_record_that_is_deleted_while_a_run_waits_enters_no_later_prompt(bank: Bank) -> None:
    @tool()
    async def look(place: str) -> str:
        """Look somewhere."""
        return f"in {place}: {FOUND}"

    script = [
        {"user": "pay", "call": {"look": {"place": "the drawer"}}},
        {"expect": FOUND, "call": {"pay": {"amount": 3}}},
        {"expect": "paid 3", "say": "Done."},
    ]
    async with bank.asking(script, look) as (run, sent, question):
        responses = await run.written(sent.run, run.flow.response)
        (found,) = [each for each in responses if each.context["tool"] == "look"]
        await run.trail.records.delete(found.id, by=run.me)
        asked = len(run.model.requests)
        await answer(run, question, "once")
        ended = answer_of(await run.rest_of(sent))
        later = run.model.requests[asked:]
    assert FOUND not in str(later)
    assert ended.status == "done", ended.text
    assert "text was deleted" in str(later)


async def test_a_turn_whose_response_is_deleted_goes_on_with_the_others(bank: Bank) -> None:
    @tool()
    async def look(place: str) -> str:
        """Look somewhere."""
        return f"in {place}: {FOUND}"

    script = [
        {"user": "pay", "call": [{"look": {"place": "the drawer"}}, {"pay": {"amount": 3}}]},
        {"expect": "paid 3", "say": "Done."},
    ]
    async with bank.asking(script, look) as (run, sent, question):
        of_look = (ContextMatch(path="tool", value="look"),)
        (found,) = await run.until(Selector(schema_name=run.flow.response, context_match=of_look))
        await has_seen(run, found.id)
        await run.trail.records.delete(found.id, by=run.me)
        asked = len(run.model.requests)
        await answer(run, question, "once")
        ended = answer_of(await run.rest_of(sent))
        later = run.model.requests[asked:]
    assert ended.status == "done", ended.text
    assert FOUND not in str(later)
    assert "text was deleted" in str(later)


async def test_a_worker_that_starts_later_goes_on_without_a_deleted_response(bank: Bank) -> None:
    @tool()
    async def look(place: str) -> str:
        """Look somewhere."""
        return f"in {place}: {FOUND}"

    script = [
        {"user": "pay", "call": [{"look": {"place": "the drawer"}}, {"pay": {"amount": 3}}]},
        {"expect": "paid 3", "say": "Done."},
    ]
    async with bank.asking(script, look) as (run, sent, question):
        of_look = (ContextMatch(path="tool", value="look"),)
        (found,) = await run.until(Selector(schema_name=run.flow.response, context_match=of_look))
        await run.trail.records.delete(found.id, by=run.me)
    async with bank.open(script, look) as run:
        await answer(run, question, "once")
        ended = answer_of(await run.rest_of(sent))
        later = run.model.requests
    assert ended.status == "done", ended.text
    assert FOUND not in str(later)
    assert "text was deleted" in str(later)


async def has_seen(run: Running, event_of: str) -> None:
    """Return when the clerk has worked on the newest event of a record."""
    events, _ = await run.trail.log.read(0, by=run.me, limit=1_000)
    seq = max(event.seq for event in events if event.breadcrumb_id == event_of)
    await until(
        run.trail, lambda state: state.cursor >= seq and state.pending + state.claimed == 0, f"agent/{CLERK}", run.me
    )


@pytest.mark.parametrize("turn", [0, 1])
async def test_a_run_stops_when_an_answer_of_its_model_is_deleted_while_a_tool_waits(bank: Bank, turn: int) -> None:
    @tool()
    async def look() -> str:
        """Look somewhere."""
        return FOUND

    script = [
        {"user": "pay", "call": {"look": {}}},
        {"expect": FOUND, "call": {"pay": {"amount": 3}}},
        {"expect": "paid 3", "say": "Done."},
    ]
    async with bank.asking(script, look) as (run, sent, question):
        responses = await run.written(sent.run, run.flow.response)
        answers = [each for each in responses if each.context["tool"] == run.flow.model_tool]
        await run.trail.records.delete(answers[turn].id, by=run.me)
        await answer(run, question, "once")
        ended = answer_of(await run.rest_of(sent))
    assert ended.status == "stopped"
    assert ended.text.startswith(DELETED_ANSWER)


@pytest.mark.parametrize("which", ["model", "tool"])
async def test_a_response_that_is_deleted_before_its_agent_saw_it_does_not_stall_the_run(
    trail: Trail, clock: ManualClock, me: Principal, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool(name="look")
    async def look() -> str:
        """Look somewhere."""
        return FOUND

    script = [{"call": {"look": {}}}, {"say": "Done."}]
    held = asyncio.Event()
    execute = AgentRunner.execute

    async def hold(runner: AgentRunner, trigger: Breadcrumb, gathered: Gathered, event: Event) -> Sequence[Draft]:
        if trigger.schema_name == "tool.response.v1" and (trigger.context["tool"] == "look") == (which == "tool"):
            held.set()
            await asyncio.Event().wait()
        return await execute(runner, trigger, gathered, event)

    with monkeypatch.context() as patch:
        patch.setattr(AgentRunner, "execute", hold)
        async with running(trail, clock, me, script, tools=[look]) as run:
            await hire(run, capabilities={"tools": ["look"]})
            sent = await run.talk.send("look", by=me, agent=CLERK)
            await asyncio.wait_for(held.wait(), PATIENCE)
    last = (await run.written(sent.run, run.flow.response))[-1]
    await trail.records.delete(last.id, by=me)
    async with running(trail, clock, me, script, tools=[look]) as run:
        ended = answer_of(await run.rest_of(sent))
    if which == "model":
        assert ended.status == "stopped"
        assert DELETED_ANSWER in ended.text
    else:
        assert (ended.status, ended.text) == ("done", "Done.")
        assert "text was deleted" in str(run.model.requests)


@pytest.mark.parametrize("which", ["model", "tool"])
async def test_a_response_that_is_deleted_while_its_agent_begins_to_read_it_does_not_stall_the_run(
    trail: Trail, clock: ManualClock, me: Principal, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool(name="look")
    async def look() -> str:
        """Look somewhere."""
        return FOUND

    execute = AgentRunner.execute
    deleted: set[str] = set()

    async def delete(runner: AgentRunner, trigger: Breadcrumb, gathered: Gathered, event: Event) -> Sequence[Draft]:
        is_meant = trigger.schema_name == "tool.response.v1" and (trigger.context["tool"] == "look") == (
            which == "tool"
        )
        if is_meant and trigger.id not in deleted:
            deleted.add(trigger.id)
            await trail.records.delete(trigger.id, by=me)
        return await execute(runner, trigger, gathered, event)

    monkeypatch.setattr(AgentRunner, "execute", delete)
    async with running(trail, clock, me, [{"call": {"look": {}}}, {"say": "Done."}], tools=[look]) as run:
        await hire(run, capabilities={"tools": ["look"]})
        sent = await run.talk.send("look", by=me, agent=CLERK)
        ended = answer_of(await run.rest_of(sent))
    if which == "model":
        assert (ended.status, DELETED_ANSWER in ended.text) == ("stopped", True)
    else:
        assert (ended.status, ended.text) == ("done", "Done.")
        assert "text was deleted" in str(run.model.requests)
