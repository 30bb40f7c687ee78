"""From an event to the breadcrumbs that a handler writes."""

from __future__ import annotations

import asyncio

import pytest

from clew.access import Principal
from clew.errors import AccessDenied, InvalidInput
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.event import Consumer, Event, RetryPolicy
from clew.trail.model.selector import EVERYTHING, ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Worker, handles
from tests.handlers import ANN, NOTES, PATIENCE, PAUSE, Calls, handler_of, note, run_worker, settled, text_of, texts


async def test_a_handler_turns_an_event_into_breadcrumbs(trail: Trail) -> None:
    @handles(NOTES)
    async def shout(event: Event, deps: dict[str, str]) -> list[Draft]:
        tags = event.breadcrumb.session_tags if event.breadcrumb else ()
        return [
            Draft(
                title="Shout",
                schema_name="shout.v1",
                tags=tags,
                context={"text": text_of(event).upper() + deps["end"]},
            )
        ]

    async with run_worker(trail, shout, deps={"end": "!"}):
        await trail.records.create(note("hello", "session:s1"), by=ANN)
        await settled(trail, "shout")

    [shouted] = (await trail.records.list(Selector(schema_name="shout.v1"), by=ANN)).items
    assert shouted.context == {"text": "HELLO!"}
    assert shouted.session == "s1"


def test_a_handler_has_the_name_of_its_function_by_default() -> None:
    async def tidy(event: Event, deps: None) -> None:
        return None

    assert handles(NOTES)(tidy).name == "tidy"
    assert handles(NOTES, name="other")(tidy).name == "other"
    assert handles(NOTES, name="other")(tidy).consumer == Consumer(name="other", retry=RetryPolicy(), selector=NOTES)


async def test_two_handlers_of_one_name_are_refused(trail: Trail) -> None:
    with pytest.raises(InvalidInput, match="reader"):
        Worker(trail, [handler_of(Calls()), handler_of(Calls())], by=ANN, worker_id="w1")


async def test_a_caller_that_may_not_subscribe_cannot_run_a_worker(trail: Trail) -> None:
    emitter = Principal(owner_id="ann", roles=frozenset({"emitter"}))

    with pytest.raises(AccessDenied):
        await Worker(trail, [handler_of(Calls())], by=emitter, worker_id="w1").run()


async def test_a_handler_that_starts_at_the_beginning_sees_what_was_there_before(trail: Trail) -> None:
    await trail.records.create(note("old"), by=ANN)
    everything, news = Calls(), Calls()

    async with run_worker(trail, handler_of(everything, name="all", start="beginning"), handler_of(news, name="news")):
        await trail.records.create(note("new"), by=ANN)
        await settled(trail, "all")
        await settled(trail, "news")

    assert [text_of(event) for event in everything.events] == ["old", "new"]
    assert [text_of(event) for event in news.events] == ["new"]


async def test_outputs_can_trigger_further_handlers(trail: Trail) -> None:
    @handles(NOTES)
    async def first(event: Event, deps: None) -> list[Draft]:
        return [Draft(title="Step", schema_name="step.v1", context={"text": text_of(event) + ">1"})]

    @handles(Selector(schema_name="step.v1"))
    async def second(event: Event, deps: None) -> list[Draft]:
        return [Draft(title="End", schema_name="end.v1", context={"text": text_of(event) + ">2"})]

    async with run_worker(trail, first, second):
        await trail.records.create(note("go"), by=ANN)
        async with asyncio.timeout(PATIENCE):
            while not (ends := await texts(trail, "end.v1")):
                await asyncio.sleep(PAUSE)

    assert ends == ["go>1>2"]


@pytest.mark.req("RCR-23")
async def test_an_event_that_the_selector_does_not_mean_is_acknowledged_without_running(trail: Trail) -> None:
    calls = Calls()
    narrow = Selector(schema_name="note.v1", context_match=(ContextMatch(path="text", value="mine"),))

    async with run_worker(trail, handler_of(calls, narrow)):
        await trail.deliveries.register(Consumer(name="reader", selector=EVERYTHING), by=ANN)
        await trail.records.create(note("not mine"), by=ANN)
        await trail.records.create(Draft(title="Other", schema_name="other.v1", context={"text": "mine"}), by=ANN)
        await trail.records.create(note("mine"), by=ANN)
        state = await settled(trail)

    assert [text_of(event) for event in calls.events] == ["mine"]
    assert state.dead == 0


async def test_an_event_whose_breadcrumb_is_gone_is_acknowledged_without_running(trail: Trail) -> None:
    calls = Calls()
    handler = handler_of(calls)
    await Worker(trail, [handler], by=ANN, worker_id="w0").register()
    gone = await trail.records.create(note("gone"), by=ANN)
    await trail.records.delete(gone.id, by=ANN)
    await trail.records.create(note("here"), by=ANN)

    async with run_worker(trail, handler):
        await settled(trail)

    assert [text_of(event) for event in calls.events] == ["here"]


async def test_deletions_come_to_those_who_ask_for_them(trail: Trail) -> None:
    calls = Calls()

    async with run_worker(trail, handler_of(calls, types=("breadcrumb.deleted",))):
        written = await trail.records.create(note(), by=ANN)
        await trail.records.delete(written.id, by=ANN)
        await trail.records.create(Draft(title="Other", schema_name="other.v1", context={}), by=ANN)
        await settled(trail)

    assert [(event.type, event.breadcrumb_id) for event in calls.events] == [("breadcrumb.deleted", written.id)]


async def test_a_handler_sees_the_version_that_the_change_made(trail: Trail) -> None:
    calls = Calls()
    handler = handler_of(calls)
    await Worker(trail, [handler], by=ANN, worker_id="w0").register()
    written = await trail.records.create(note("one"), by=ANN)
    await trail.records.update(written.id, Change(context={"text": "two"}), expect=1, by=ANN)

    async with run_worker(trail, handler):
        await settled(trail)

    assert [(event.type, event.version, text_of(event)) for event in calls.events] == [
        ("breadcrumb.created", 1, "one"),
        ("breadcrumb.updated", 2, "two"),
    ]


@pytest.mark.req("RCR-34")
async def test_a_worker_that_has_a_share_of_the_time_finishes_a_batch_before_the_next_and_misses_nothing(
    trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.trail.work.claims.SHORTEST_REST", 0.001)
    gate = asyncio.Event()
    calls = Calls(lambda event: gate.wait() if text_of(event) == "1" else None)
    async with run_worker(trail, handler_of(calls), concurrency=2, share=0.5):
        await trail.records.create_many([note(str(number)) for number in range(6)], by=ANN)
        assert {text_of(await calls.next()) for _ in range(2)} == {"0", "1"}
        while (await trail.deliveries.consumers(by=ANN))[0].claimed > 1:
            await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(calls.events) == 2
        gate.set()
        assert {text_of(await calls.next()) for _ in range(4)} == {"2", "3", "4", "5"}
