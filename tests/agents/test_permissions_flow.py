"""A tool that needs its user's consent: the question and the answer are on the trail, so any process may answer at any
time."""

from __future__ import annotations

import pytest

from clew.agents.conversations.steps import Choice
from clew.agents.runs.requests import response_draft
from clew.errors import AlreadyExists
from clew.trail.model.event import MAX_DEATHS
from tests.agents.payments import PAYING, PERMISSIONS, Bank, answer, answer_draft, asked, of_pay, say
from tests.agents.whole_runs import CLERK, answer_of, hire, is_done_with


async def test_a_question_is_a_record_and_nothing_runs_before_its_answer(bank: Bank) -> None:
    async with bank.asking() as (run, sent, question):
        request = await of_pay(run, sent, run.flow.request)
        await is_done_with(run, "tools-runner", request)
        assert bank.paid == []
        assert await run.written(sent.run, run.flow.answer) == []
        await answer(run, question, "once")
        assert answer_of(await run.rest_of(sent)).text == "Done."
    assert len(bank.paid) == 1
    context = question.context
    assert (context["request_id"], context["tool"]) == (request.context["requestId"], "pay")
    assert context["input"]["amount"] == 3
    assert "hunter2" not in str(context), "a secret is not shown"
    assert context["choices"] == ["once", "session", "always", "deny"]
    assert {f"session:{sent.session}", f"run:{sent.run}"} <= set(question.tags)


async def test_a_permission_for_once_is_asked_again(bank: Bank) -> None:
    async with bank.asking() as (run, first, question):
        await answer(run, question, "once")
        await run.rest_of(first)
        second = await say(run)
        await answer(run, await asked(run, 2), "once")
        await run.rest_of(second)
    assert len(set(bank.paid)) == 2


@pytest.mark.parametrize(("choice", "elsewhere"), [("session", 2), ("always", 1)])
async def test_a_lasting_permission_is_not_asked_again_where_it_applies(
    bank: Bank, choice: Choice, elsewhere: int
) -> None:
    script = [PAYING[0], {"expect": "paid 3", "call": {"pay": {"amount": 4}}}]
    script += [{"expect": "paid 4", "say": "Done."}]
    async with bank.asking(script) as (run, first, question):
        await answer(run, question, choice)
        assert answer_of(await run.rest_of(first)).text == "Done."
        assert len(await run.written(None, run.flow.permission_request)) == 1, "the second call was not asked about"
        other = await say(run)
        if elsewhere == 2:
            await answer(run, await asked(run, 2), choice)
        assert answer_of(await run.rest_of(other)).text == "Done."
        assert len(await run.written(None, run.flow.permission_request)) == elsewhere
    assert len(set(bank.paid)) == 4


async def test_the_model_gets_the_denial_as_an_error(bank: Bank) -> None:
    script = [PAYING[0], {"expect": "did not allow pay", "say": "As you wish."}]
    async with bank.asking(script) as (run, sent, question):
        await answer(run, question, "deny")
        assert answer_of(await run.rest_of(sent)).text == "As you wish."
        (error,) = await run.written(sent.run, run.flow.error)
    assert bank.paid == []
    assert "error:permission" in error.tags


async def test_a_call_that_the_policy_denies_is_not_asked_about(bank: Bank) -> None:
    async with bank.open() as run:
        await hire(run, permissions={"deny": ["pay"]})
        assert answer_of(await run.rest_of(await say(run))).text == "Done."
        assert await run.written(None, run.flow.permission_request) == []
    assert bank.paid == []


@pytest.mark.req("RCR-29")
async def test_an_answer_that_comes_after_a_restart_is_matched(bank: Bank) -> None:
    async with bank.asking() as (run, sent, question):
        assert bank.paid == []
    await answer(run, question, "once")
    assert bank.paid == []
    async with bank.open() as run:
        assert answer_of(await run.rest_of(sent)).text == "Done."
    assert len(bank.paid) == 1


@pytest.mark.req("RCR-29")
async def test_a_response_from_elsewhere_that_comes_after_a_restart_is_matched(bank: Bank) -> None:
    async with bank.asking() as (run, sent, _):
        request = await of_pay(run, sent, run.flow.request)
    response = response_draft(run.flow, request, "pay", "success", output="paid 3 at the counter")
    async with bank.open() as run:
        await bank.trail.records.create(response, by=bank.me)
        assert answer_of(await run.rest_of(sent)).text == "Done."
        # the question has been answered: another answer changes nothing
        late = await bank.trail.records.create(answer_draft(run.flow, request.context["requestId"], "once"), by=bank.me)
        await is_done_with(run, PERMISSIONS, late)
    assert bank.paid == []


@pytest.mark.parametrize(("first", "second", "paid"), [("once", "always", 1), ("once", "deny", 1), ("deny", "once", 0)])
async def test_the_first_of_two_answers_is_accepted(bank: Bank, first: str, second: str, paid: int) -> None:
    async with bank.asking() as (run, sent, question):
        id = question.context["request_id"]
        both = [answer_draft(run.flow, id, first), answer_draft(run.flow, id, second)]
        written = await bank.trail.records.create_many(both, by=bank.me)
        assert answer_of(await run.rest_of(sent)).text == "Done."
        await is_done_with(run, PERMISSIONS, written[-1])
        assert len(await run.written(sent.run, run.flow.answer)) == 1
    assert len(bank.paid) == paid


async def test_a_later_answer_to_the_same_question_allows_nothing_for_longer(bank: Bank) -> None:
    async with bank.asking() as (run, sent, question):
        id = question.context["request_id"]
        both = [answer_draft(run.flow, id, "deny"), answer_draft(run.flow, id, "always", question=question.id)]
        await bank.trail.records.create_many(both, by=bank.me)
        await run.rest_of(sent)
        await say(run)
        await asked(run, 2)
    assert bank.paid == []


async def test_a_call_whose_workers_all_die_after_the_answer_ends_with_an_error(bank: Bank) -> None:
    async with bank.asking() as (run, sent, question):
        pass
    await answer(run, question, "once")
    for at in range(MAX_DEATHS):
        assert len(await bank.trail.deliveries.claim(PERMISSIONS, by=bank.me, worker=f"w{at}")) == 1
        await bank.trail.deliveries.abandon(f"w{at}", by=bank.me)
    async with bank.open([PAYING[0], {"expect": "was given up", "say": "Done."}]) as run:
        assert answer_of(await run.rest_of(sent)).text == "Done."
        response = await of_pay(run, sent, run.flow.response)
    assert response.context["error"] == f"it was given up: {MAX_DEATHS} workers died with it"
    assert bank.paid == []
    assert not await bank.trail.dead_letters.list(by=bank.me)


async def test_a_door_accepts_the_same_answer_again_and_no_other(bank: Bank) -> None:
    async with bank.asking() as (run, sent, question):
        await answer(run, question, "once")
        await answer(run, question, "once")
        with pytest.raises(AlreadyExists):
            await answer(run, question, "deny")
        await run.rest_of(sent)
        assert len(await run.written(None, run.flow.permission_answer)) == 1
    assert len(bank.paid) == 1


async def test_a_cancelled_run_that_waits_for_its_user_ends_and_a_late_answer_runs_nothing(bank: Bank) -> None:
    async with bank.asking() as (run, sent, question):
        await run.talk.cancel(sent.session, by=bank.me, reason="Ctrl-C", run=sent.run)
        assert answer_of(await run.rest_of(sent)).status == "cancelled"
        await answer(run, question, "always")
        (late,) = await run.written(None, run.flow.permission_answer)
        await is_done_with(run, PERMISSIONS, late)
        response = await of_pay(run, sent, run.flow.response)
        await is_done_with(run, f"agent/{CLERK}", response)
        assert len(await run.written(sent.run, run.flow.answer)) == 1
        assert len(run.model.requests) == 1
    assert response.context["status"] == "cancelled"
    assert bank.paid == []
