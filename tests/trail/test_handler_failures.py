"""Handlers and storage that fail: retries, backoff, deadlines, dead letters."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from clew.clock import ManualClock
from clew.errors import InvalidInput, StorageFull
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work import claims
from clew.trail.work.claims import describe, printable
from clew.trail.work.handlers import Worker
from tests.handlers import (
    ANN,
    PATIENCE,
    Calls,
    fail_with,
    handler_of,
    note,
    pass_time,
    run_worker,
    settled,
    text_of,
    texts,
    until,
)


@pytest.mark.req("SYL-112")
async def test_a_passing_failure_succeeds_on_a_later_attempt_and_writes_once(trail: Trail, clock: ManualClock) -> None:
    def act(event: Event) -> list[Draft]:
        if len(calls.events) < 3:
            raise ConnectionError("not yet")
        return [Draft(title="Done", schema_name="done.v1", context={"text": "done"})]

    calls = Calls(act)
    async with run_worker(trail, handler_of(calls, retry=RetryPolicy(attempts=3))):
        await trail.records.create(note(), by=ANN)
        for _ in range(2):
            await calls.next()
            await pass_time(trail, clock, hours=1)
        await calls.next()
        state = await settled(trail)

    assert len({event.seq for event in calls.events}) == 1
    assert (len(calls.events), state.dead) == (3, 0)
    assert await texts(trail, "done.v1") == ["done"]


@pytest.mark.req("SYL-112")
async def test_a_failed_event_is_not_tried_before_its_backoff(trail: Trail, clock: ManualClock) -> None:
    calls = Calls(fail_with(ValueError("no")))

    async with run_worker(trail, handler_of(calls, retry=RetryPolicy(backoff=100.0))):
        await trail.records.create(note("a"), by=ANN)
        await calls.next()
        await pass_time(trail, clock, seconds=70)
        await trail.records.create(note("b"), by=ANN)
        assert text_of(await calls.next()) == "b"
        await pass_time(trail, clock, seconds=60)
        assert text_of(await calls.next()) == "a"


@pytest.mark.req("SYL-113")
@pytest.mark.req("O16")
async def test_an_exhausted_event_is_a_dead_letter_with_its_reason_and_is_replayed_once(
    trail: Trail, clock: ManualClock
) -> None:
    broken = True

    def act(event: Event) -> list[Draft]:
        if broken:
            raise RuntimeError("the pump\nis broken \x1b[31m")
        return [Draft(title="Done", schema_name="done.v1", context={"text": text_of(event)})]

    calls = Calls(act)
    async with run_worker(trail, handler_of(calls, retry=RetryPolicy(attempts=2))):
        await trail.records.create(note("x"), by=ANN)
        await calls.next()
        await pass_time(trail, clock, hours=1)
        await calls.next()
        await until(trail, lambda state: state.dead == 1)
        [letter] = await trail.dead_letters.list(by=ANN)
        assert (letter.attempts, letter.reason) == (2, "RuntimeError: the pump is broken [31m")

        broken = False
        await trail.dead_letters.replay(letter.id, by=ANN)
        await calls.next()
        state = await settled(trail)

    assert state.dead == 0
    assert await texts(trail, "done.v1") == ["x"]


@pytest.mark.req("SYL-113")
async def test_an_exhausted_event_leaves_the_records_of_its_handler_instead_of_a_dead_letter(trail: Trail) -> None:
    async def given_up(event: Event, reason: str) -> list[Draft]:
        return [Draft(title="Sorry", schema_name="sorry.v1", context={"text": f"{text_of(event)}: {reason}"})]

    calls = Calls(fail_with(ValueError("no")))
    handler = replace(handler_of(calls, retry=RetryPolicy(attempts=2, backoff=0.0)), given_up=given_up)
    async with run_worker(trail, handler):
        await trail.records.create(note("x"), by=ANN)
        await settled(trail)
    assert (len(calls.events), await texts(trail, "sorry.v1")) == (2, ["x: ValueError: no"])
    assert not await trail.dead_letters.list(by=ANN)


@pytest.mark.parametrize("fault", ["unwritable", "broken"])
async def test_an_exhausted_event_is_a_dead_letter_if_the_records_for_it_fail(trail: Trail, fault: str) -> None:
    async def given_up(event: Event, reason: str) -> list[Draft]:
        if fault == "broken":
            raise RuntimeError("this too")
        return [Draft(title="", context={})]

    handler = replace(handler_of(Calls(fail_with(ValueError("no"))), retry=RetryPolicy(attempts=1)), given_up=given_up)
    async with run_worker(trail, handler):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)
    (letter,) = await trail.dead_letters.list(by=ANN)
    assert letter.reason == "ValueError: no"


@pytest.mark.req("SYL-112")
async def test_nothing_is_tried_after_the_deadline(trail: Trail, clock: ManualClock) -> None:
    calls = Calls(fail_with(ValueError("no")))
    policy = RetryPolicy(attempts=50, backoff=10.0, deadline=60.0)

    async with run_worker(trail, handler_of(calls, retry=policy)):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        await pass_time(trail, clock, seconds=61)
        await until(trail, lambda state: state.dead == 1)

    assert len(calls.events) == 1


async def test_a_run_longer_than_the_deadline_fails(trail: Trail) -> None:
    calls = Calls(lambda event: asyncio.Event().wait())

    async with run_worker(trail, handler_of(calls, retry=RetryPolicy(attempts=1, deadline=0.05))):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)

    [letter] = await trail.dead_letters.list(by=ANN)
    assert "TimeoutError" in letter.reason


@pytest.mark.parametrize(
    "outputs",
    [
        "not drafts",
        [{"title": "no draft"}],
        [Draft(title="", context={})],
        [Draft(title="ok", context={"half": "\ud800"})],
        17,
    ],
)
async def test_outputs_that_cannot_be_written_are_a_failure_of_the_handler(trail: Trail, outputs: Any) -> None:
    calls = Calls(lambda event: outputs)

    async with run_worker(trail, handler_of(calls, retry=RetryPolicy(attempts=1))):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)

    assert len(calls.events) == 1
    assert (await trail.upkeep.stats(by=ANN)).breadcrumbs == 1


async def test_one_bad_output_keeps_the_good_ones_from_being_written(trail: Trail) -> None:
    calls = Calls(lambda event: [Draft(title="good", schema_name="out.v1", context={}), Draft(title="", context={})])

    async with run_worker(trail, handler_of(calls, retry=RetryPolicy(attempts=1))):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)

    assert (await trail.records.list(Selector(schema_name="out.v1"), by=ANN)).items == ()


async def test_a_handler_that_cancels_itself_has_failed(trail: Trail) -> None:
    calls = Calls(fail_with(asyncio.CancelledError()))

    async with run_worker(trail, handler_of(calls, retry=RetryPolicy(attempts=1))):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)

    assert len(calls.events) == 1


async def test_an_unregistered_handler_registers_again(trail: Trail) -> None:
    calls = Calls()

    async with run_worker(trail, handler_of(calls)):
        await trail.records.create(note("1"), by=ANN)
        await calls.next()
        await settled(trail)
        await trail.deliveries.unregister("reader", by=ANN)
        await until(trail, lambda state: True)
        await trail.records.create(note("2"), by=ANN)
        await calls.next()

    assert [text_of(event) for event in calls.events] == ["1", "2"]


class Faulty:
    """The deliveries of a trail one of whose methods fails at first."""

    def __init__(self, deliveries: Any, method: str, failures: int) -> None:
        self._deliveries = deliveries
        self._method = method
        self.failures = failures

    def __getattr__(self, name: str) -> Any:
        return self._fail_first if name == self._method else getattr(self._deliveries, name)

    async def _fail_first(self, *args: Any, **options: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise StorageFull("no space left")
        return await getattr(self._deliveries, self._method)(*args, **options)


@pytest.mark.parametrize("method", ["register", "claim"])
async def test_a_failing_storage_is_waited_out_and_said(
    trail: Trail, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    monkeypatch.setattr(claims, "PAUSE_AFTER_FAILURE", 0.0)
    calls, faulty = Calls(), Faulty(trail.deliveries, method, 3)
    handler = handler_of(calls, start="beginning")
    monkeypatch.setattr(trail, "deliveries", faulty)
    running = asyncio.create_task((worker := Worker(trail, [handler], by=ANN, worker_id="w1")).run())

    await trail.records.create(note(), by=ANN)
    await calls.next()
    worker.stop()
    await running

    assert faulty.failures == 0
    assert caplog.text.count("reader: no space left") == 3


async def test_a_worker_that_waits_for_its_storage_can_be_stopped(
    trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail, "deliveries", Faulty(trail.deliveries, "register", 1_000_000))
    worker = Worker(trail, [handler_of(Calls())], by=ANN, worker_id="w1")
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0)
    worker.stop()
    async with asyncio.timeout(PATIENCE):
        await running


def test_a_reason_is_one_short_printable_line() -> None:
    assert describe(ValueError("a\nb\x00c")) == "ValueError: a b c"
    assert describe(KeyError()) == "KeyError"
    assert describe(InvalidInput("title", "is empty")) == "title: is empty"
    assert len(describe(ValueError("x" * 10_000_000))) == 300
    assert printable("\u202etxt\u2028 €", 10) == "txt €"
    assert printable("abcdef", 3) == "ab…"
