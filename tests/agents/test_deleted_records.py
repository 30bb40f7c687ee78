"""A record that is deleted while a run waits enters no later prompt of the run."""

from __future__ import annotations

from clew.tools.tool import tool
from clew.trail.model.selector import ContextMatch, Selector
from tests.agents.payments import Bank, answer
from tests.agents.runtimes import Running
from tests.agents.whole_runs import CLERK, answer_of
from tests.handlers import until

FOUND = "the number of the safe is 4711"


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
