"""Conversations as interfaces use them: send, follow, cancel, allow, list and resume, with the permission for each."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.agents.conversations import conversation
from clew.agents.conversations.conversation import MAX_MESSAGE, Conversations, open_conversations
from clew.agents.conversations.sessions import SentMessage
from clew.agents.conversations.steps import (
    AnswerChunk,
    Answered,
    ModelAnswered,
    PermissionAsked,
    RunAbandoned,
    Step,
    ToolAnswered,
    ToolCalled,
)
from clew.clock import ManualClock
from clew.errors import AccessDenied, AlreadyExists, InvalidInput, NotFound, TooLarge
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Consumer, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Worker, handles
from tests.conversations import AGENT, PATIENCE, Stage, define, open_stage

EMITTER = frozenset({"emitter"})


@pytest.fixture
async def talks(trail: Trail, clock: ManualClock, me: Principal) -> Conversations:
    await define(trail, me)
    return await open_conversations(trail, clock, by=me)


async def steps_of(talks: Conversations, sent: SentMessage, by: Principal) -> list[Step]:
    async with asyncio.timeout(PATIENCE):
        return [step async for step in talks.follow(sent, by=by)]


def acting_as(by: Principal, **changes: Any) -> Principal:
    return msgspec.structs.replace(by, **changes)


@pytest.mark.req("RCR-40")
async def test_a_message_is_one_breadcrumb_that_names_session_run_and_agent(
    talks: Conversations, trail: Trail, me: Principal
) -> None:
    sent = await talks.send("hello there", by=me, agent=AGENT)
    found = await trail.records.get(sent.id, by=me)
    assert found.schema_name == "user.message.v1"
    assert found.tags == ("chat:input", f"session:{sent.session}", f"consumer:{AGENT}", f"run:{sent.id}")
    assert found.context == {"message": "hello there", "content": "hello there", "source": "chat"}
    assert (sent.run, sent.agent) == (sent.id, AGENT)


@pytest.mark.req("RCR-40")
async def test_the_steps_of_a_run_come_in_order_and_end_with_its_answer(
    talks: Conversations, trail: Trail, me: Principal
) -> None:
    async def play(stage: Stage, message: Breadcrumb) -> None:
        await stage.write("agent.context.v1", {"consumer_id": AGENT, "breadcrumb_count": 2, "token_estimate": 70})
        await stage.call("llm", {"messages": []}, request="m1")
        await stage.say("I will ", "look.")
        output = {"content": "I will look.", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 2}}
        await stage.respond("llm", output, request="m1")
        await stage.call("search", {"query": "x"})
        await stage.respond("search", "found")
        await stage.answer("There.")

    async with open_stage(trail, me, play):
        sent = await talks.send("look", by=me, agent=AGENT)
        steps = await steps_of(talks, sent, me)
    kinds = ["ContextBuilt", "AnswerChunk", "AnswerChunk", "ModelAnswered", "ToolCalled", "ToolAnswered", "Answered"]
    assert [type(step).__name__ for step in steps] == kinds
    assert {(step.session, step.run) for step in steps} == {(sent.session, sent.run)}
    assert [step.seq for step in steps] == sorted(step.seq for step in steps)
    assert [step.text for step in steps if isinstance(step, AnswerChunk)] == ["I will ", "look."]
    usage = [(step.input_tokens, step.output_tokens) for step in steps if isinstance(step, ModelAnswered)]
    assert usage == [(5, 2)]
    assert [step.input for step in steps if isinstance(step, ToolCalled)] == [{"query": "x"}]
    assert [(step.output, step.milliseconds) for step in steps if isinstance(step, ToolAnswered)] == [("found", 12.4)]


async def test_the_answer_of_an_agent_called_on_the_way_does_not_end_the_run(
    talks: Conversations, trail: Trail, me: Principal
) -> None:
    async def play(stage: Stage, message: Breadcrumb) -> None:
        await stage.answer("from the helper", agent="helper")
        await stage.answer("the end")

    async with open_stage(trail, me, play):
        steps = await steps_of(talks, await talks.send("hi", by=me, agent=AGENT), me)
    assert [step.text for step in steps if isinstance(step, Answered)] == ["from the helper", "the end"]


async def test_runs_of_one_session_are_not_mixed_up(talks: Conversations, trail: Trail, me: Principal) -> None:
    first = await talks.send("first", by=me, agent=AGENT)
    second = await talks.send("second", by=me, agent=AGENT, session=first.session)
    async with open_stage(trail, me):
        pass
    await Stage(trail, me, await trail.records.get(first.id, by=me)).answer("one")
    await Stage(trail, me, await trail.records.get(second.id, by=me)).answer("two")
    texts = [
        [step.text for step in await steps_of(talks, sent, me) if isinstance(step, Answered)]
        for sent in (second, first)
    ]
    assert texts == [["two"], ["one"]]


async def test_a_run_that_was_given_up_ends_with_the_reason(
    talks: Conversations, trail: Trail, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "LOOK_EVERY", 0.05)

    async def fail(event: Any, deps: object) -> None:
        raise RuntimeError("the runner broke")

    handler = handles(Selector(schema_name="user.message.v1"), name="agent/parrot", retry=RetryPolicy(attempts=1))(fail)
    worker = Worker(trail, [handler], by=me, worker_id="w")
    await worker.register()
    running = asyncio.create_task(worker.run())
    sent = await talks.send("hi", by=me, agent=AGENT)
    steps = await steps_of(talks, sent, acting_as(me, roles=frozenset({"subscriber"})))
    worker.stop()
    await running
    assert isinstance(steps[-1], RunAbandoned)
    assert "the runner broke" in steps[-1].reason


async def test_a_dead_letter_of_somebody_who_only_listens_does_not_end_the_run(
    talks: Conversations, trail: Trail, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "LOOK_EVERY", 0.05)
    once = RetryPolicy(attempts=1)
    await trail.deliveries.register(Consumer(name="listener", retry=once), by=me)
    sent = await talks.send("hi", by=me, agent=AGENT)
    (claim,) = await trail.deliveries.claim("listener", by=me, worker="w")
    assert await trail.deliveries.fail(claim, "nobody home", by=me)
    following = talks.follow(sent, by=me)
    reading = asyncio.ensure_future(anext(following))
    looked = asyncio.Event()
    listing = trail.dead_letters.list

    async def list_and_tell(**given: Any) -> Any:
        found = await listing(**given)
        looked.set()
        return found

    monkeypatch.setattr(trail.dead_letters, "list", list_and_tell)
    await asyncio.wait_for(looked.wait(), PATIENCE)
    await Stage(trail, me, await trail.records.get(sent.id, by=me)).answer("hi")
    assert isinstance(await asyncio.wait_for(reading, PATIENCE), Answered)
    await following.aclose()


async def test_a_reader_that_leaves_ends_nothing_and_another_sees_it_all(
    talks: Conversations, trail: Trail, me: Principal
) -> None:
    sent = await talks.send("one two", by=me, agent=AGENT)
    stage = Stage(trail, me, await trail.records.get(sent.id, by=me))
    await stage.say("one")
    following = talks.follow(sent, by=me)
    assert isinstance(await anext(following), AnswerChunk)
    await following.aclose()
    await stage.answer("one two")
    assert [type(step).__name__ for step in await steps_of(talks, sent, me)] == ["AnswerChunk", "Answered"]
    listed = await trail.records.list(Selector(schema_name="run.cancel.v1"), by=me)
    assert listed.items == ()


@pytest.mark.parametrize("text", ["", "  \n\t "])
async def test_an_empty_message_is_refused(talks: Conversations, me: Principal, text: str) -> None:
    with pytest.raises(InvalidInput, match="message"):
        await talks.send(text, by=me, agent=AGENT)


async def test_a_message_may_be_long_and_odd_but_not_endless(talks: Conversations, trail: Trail, me: Principal) -> None:
    odd = "\x1b[31m \u202e日本 " * 10
    sent = await talks.send(odd, by=me, agent=AGENT)
    found = await trail.records.get(sent.id, by=me)
    assert found.context["message"] == odd
    assert "\x1b" not in found.title
    assert "\u202e" not in found.title
    assert (await talks.send("\x00\u200b.", by=me, agent=AGENT)).id
    with pytest.raises(TooLarge):
        await talks.send("x" * (MAX_MESSAGE + 1), by=me, agent=AGENT)


async def test_a_session_or_agent_that_there_is_not_is_not_found(talks: Conversations, me: Principal) -> None:
    with pytest.raises(NotFound, match="session"):
        await talks.send("hi", by=me, agent=AGENT, session="none")
    with pytest.raises(NotFound, match="agent"):
        await talks.send("hi", by=me, agent="nobody")


async def test_the_same_key_sends_once_however_often_it_is_used(
    talks: Conversations, trail: Trail, me: Principal
) -> None:
    sents = await asyncio.gather(*(talks.send("hi", by=me, agent=AGENT, key="k1") for _ in range(5)))
    assert len({(sent.id, sent.session, sent.run) for sent in sents}) == 1
    await trail.records.create(Draft(title="x", context={}, idempotency_key="taken"), by=me)
    await talks.send("hi", by=me, agent=AGENT, key="taken")
    await talks.send("hi", by=me, agent=AGENT, key="taken", session=None)


async def test_a_key_that_was_used_for_another_text_session_or_agent_gets_nothing_of_it(
    talks: Conversations, trail: Trail, me: Principal
) -> None:
    sent = await talks.send("hi", by=me, agent=AGENT, key="k1")
    assert (await talks.send("hi", by=me, agent=AGENT, key="k1", session=sent.session)).id == sent.id
    with pytest.raises(AlreadyExists, match="key"):
        await talks.send("something else", by=me, agent=AGENT, key="k1")
    other = await talks.send("hi", by=me, agent=AGENT)
    with pytest.raises(AlreadyExists, match="key"):
        await talks.send("hi", by=me, agent=AGENT, key="k1", session=other.session)
    await define(trail, me, "second")
    assert (await talks.send("something else", by=me, agent="second", key="k1")).id != sent.id
    with pytest.raises(InvalidInput):
        await talks.send("hi", by=me, agent=AGENT, key="x" * 301)


async def test_cancelling_is_one_record_for_each_run_without_an_answer(
    talks: Conversations, trail: Trail, me: Principal
) -> None:
    answered = await talks.send("one", by=me, agent=AGENT)
    await Stage(trail, me, await trail.records.get(answered.id, by=me)).answer("done")
    open_ones = [await talks.send(text, by=me, agent=AGENT, session=answered.session) for text in ("two", "three")]
    assert await talks.cancel(answered.session, by=me, reason="enough") == tuple(each.run for each in open_ones)
    page = await trail.records.list(Selector(schema_name="run.cancel.v1"), by=me, oldest_first=True)
    assert [each.context for each in page.items] == [{"reason": "enough"}] * 2
    assert set(page.items[0].tags) == {f"session:{answered.session}", f"run:{open_ones[0].run}", f"consumer:{AGENT}"}
    assert await talks.cancel(answered.session, by=me, reason="x", run=answered.run) == ()
    with pytest.raises(NotFound):
        await talks.cancel("none", by=me, reason="x")


async def ask_for(talks: Conversations, trail: Trail, by: Principal, **more: Any) -> SentMessage:
    sent = await talks.send("write it", by=by, agent=AGENT)
    keeper = acting_as(by, roles=frozenset({"curator"}))
    await Stage(trail, keeper, await trail.records.get(sent.id, by=keeper)).ask("write", {"path": "x"}, **more)
    return sent


async def test_a_permission_is_answered_once_and_the_first_answer_counts(
    talks: Conversations, trail: Trail, me: Principal
) -> None:
    sent = await ask_for(talks, trail, me)
    asked = await talks.permission("t1", by=me)
    assert isinstance(asked, PermissionAsked)
    assert (asked.tool, asked.pattern, asked.choices) == ("write", "write *", ("once", "session", "always", "deny"))
    await talks.answer_permission("t1", "session", by=me)
    await talks.answer_permission("t1", "session", by=me)
    with pytest.raises(AlreadyExists):
        await talks.answer_permission("t1", "deny", by=me)
    page = await trail.records.list(Selector(schema_name="permission.answer.v1"), by=me)
    said = {"request_id": "t1", "question": asked.id, "answer": "session", "by": "ann"}
    assert [each.context for each in page.items] == [said]
    assert {f"session:{sent.session}", f"run:{sent.run}", "request:t1", "permission:answered"} == set(
        page.items[0].tags
    )


async def test_only_what_is_offered_can_be_chosen(talks: Conversations, trail: Trail, me: Principal) -> None:
    await ask_for(talks, trail, me, choices=["once", "deny"])
    with pytest.raises(InvalidInput, match="once, deny"):
        await talks.answer_permission("t1", "always", by=me)
    with pytest.raises(NotFound):
        await talks.answer_permission("t2", "once", by=me)


@pytest.mark.req("RCR-40")
async def test_sessions_of_another_owner_do_not_exist(
    talks: Conversations, trail: Trail, me: Principal, stranger: Principal
) -> None:
    await define(trail, stranger)
    sent = await ask_for(talks, trail, me)
    assert await talks.sessions.recent(by=stranger) == []
    for attempt in (
        talks.send("hi", by=stranger, agent=AGENT, session=sent.session),
        talks.sessions.turns(sent.session, by=stranger),
        talks.cancel(sent.session, by=stranger, reason="x"),
        talks.answer_permission("t1", "always", by=stranger),
    ):
        with pytest.raises(NotFound):
            await attempt
    forged = Draft(
        title="x",
        schema_name="permission.answer.v1",
        context={"request_id": "t1", "answer": "always"},
        tags=(f"session:{sent.session}", "request:t1"),
    )
    await trail.records.create(forged, by=stranger)
    assert (await trail.records.list(Selector(schema_name="permission.answer.v1"), by=me)).items == ()


async def test_only_the_starter_of_a_session_and_curators_may_steer_it(
    talks: Conversations, trail: Trail, me: Principal
) -> None:
    writer = acting_as(me, agent_id="bob", roles=EMITTER)
    sent = await ask_for(talks, trail, writer)
    for other in (acting_as(me, agent_id="eve", roles=EMITTER), acting_as(me, agent_id="", roles=EMITTER)):
        with pytest.raises(AccessDenied):
            await talks.answer_permission("t1", "once", by=other)
        with pytest.raises(AccessDenied):
            await talks.cancel(sent.session, by=other, reason="x")
    with pytest.raises(AccessDenied):
        await talks.cancel(sent.session, by=acting_as(me, agent_id="bob", roles=frozenset({"subscriber"})), reason="x")
    with pytest.raises(AccessDenied, match="allow a tool"):
        await talks.answer_permission("t1", "once", by=writer)
    await talks.answer_permission("t1", "deny", by=writer)
    assert await talks.cancel(sent.session, by=writer, reason="x") == (sent.run,)
    assert await talks.cancel(sent.session, by=me, reason="x") == (sent.run,)


@pytest.mark.parametrize("schema", ["permission.answer.v1", "permission.request.v1", "run.cancel.v1"])
async def test_a_writer_cannot_steer_by_writing_the_record_itself(
    talks: Conversations, trail: Trail, me: Principal, schema: str
) -> None:
    context = {"request_id": "t1", "answer": "once", "tool": "x", "choices": [], "reason": ""}
    draft = Draft(title="x", schema_name=schema, context=context, tags=("request:t1",))
    with pytest.raises(AccessDenied):
        await trail.records.create(draft, by=acting_as(me, roles=EMITTER))


async def test_sessions_are_listed_by_their_last_message_and_named_by_their_first(
    talks: Conversations, clock: ManualClock, me: Principal
) -> None:
    first = await talks.send("How does a claim end?\nTell me.", by=me, agent=AGENT)
    clock.advance(seconds=1)
    second = await talks.send("x" * 200, by=me, agent=AGENT)
    clock.advance(seconds=1)
    await talks.send("and then?", by=me, agent=AGENT, session=first.session)
    listed = await talks.sessions.recent(by=me)
    assert [each.id for each in listed] == [first.session, second.session]
    assert listed[0].title == "How does a claim end? Tell me."
    assert (len(listed[1].title), listed[0].agent) == (80, AGENT)
    assert listed[0].last_at > listed[0].started_at
    assert len(await talks.sessions.recent(by=me, limit=1)) == 1
    with pytest.raises(InvalidInput):
        await talks.sessions.recent(by=me, limit=0)


async def test_a_session_can_be_taken_up_where_it_was_left(talks: Conversations, trail: Trail, me: Principal) -> None:
    async with open_stage(trail, me):
        sent = await talks.send("one", by=me, agent=AGENT)
        await steps_of(talks, sent, me)
        again = await talks.send("two", by=me, agent=AGENT, session=sent.session)
        await steps_of(talks, again, me)
    turns = await talks.sessions.turns(sent.session, by=me, limit=3)
    assert [(turn.role, turn.text) for turn in turns] == [("agent", "one"), ("user", "two"), ("agent", "two")]
    with pytest.raises(NotFound):
        await talks.sessions.turns("none", by=me)


async def test_an_owner_whose_trail_was_not_set_up_has_no_agents_yet(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    talks = await open_conversations(trail, clock, by=me)
    with pytest.raises(NotFound, match="agent"):
        await talks.send("hi", by=me)
