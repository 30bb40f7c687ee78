"""Claims that are renewed, lost, or given back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import LeaseLost
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Claim, Event, RetryPolicy
from clew.trail.store import Trail
from clew.trail.work.claims import ClaimLoop, NotNow
from clew.trail.work.handlers import Worker
from tests.handlers import ANN, LONG, PATIENCE, Calls, handler_of, note, run_worker, settled, text_of, texts


@pytest.mark.req("RCR-22")
@pytest.mark.req("RCR-28")
async def test_a_consumer_killed_before_it_acknowledged_gets_the_event_again(
    tmp_path: Path, clock: ManualClock
) -> None:
    handler = handler_of(calls := Calls(lambda event: [Draft(title="D", schema_name="d.v1", context={"text": "d"})]))
    trail = await open_trail(f"sqlite://{tmp_path}/killed.db", clock)
    await Worker(trail, [handler], by=ANN, worker_id="w0").register()
    await trail.records.create(note("accepted"), by=ANN)
    [claim] = await trail.deliveries.claim("reader", by=ANN, worker="killed", lease=LONG)
    await trail.close()

    trail = await open_trail(f"sqlite://{tmp_path}/killed.db", clock)
    try:
        async with run_worker(trail, handler):
            await trail.records.create(note("next"), by=ANN)
            assert text_of(await calls.next()) == "next"
            clock.advance(seconds=31)
            await trail.records.create(Draft(title="Tick", schema_name="tick.v1", context={}), by=ANN)
            again = await calls.next()
            await settled(trail)

        assert again.seq == claim.event.seq
        assert await texts(trail, "d.v1") == ["d", "d"]
    finally:
        await trail.close()


@pytest.mark.req("RCR-28")
async def test_a_claim_is_renewed_while_its_handler_runs(trail: Trail, clock: ManualClock) -> None:
    gate = asyncio.Event()

    async def act(event: Event) -> None:
        await gate.wait()

    calls = Calls(act)

    async def left() -> float:
        await trail.deliveries.consumers(by=ANN)  # reads in another thread: the heartbeat gets its turn
        due = await trail.deliveries.due_in("reader", by=ANN)
        assert due is not None
        return due

    async with run_worker(trail, handler_of(calls), lease=timedelta(seconds=0.06)):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        for _ in range(4):
            clock.advance(seconds=0.05)
            async with asyncio.timeout(PATIENCE):
                while await left() < 0.05:
                    pass
        assert await trail.deliveries.claim("reader", by=ANN, worker="other", lease=LONG) == []
        gate.set()
        await settled(trail)

    assert len(calls.events) == 1


@pytest.mark.req("RCR-28")
async def test_the_result_of_a_lost_claim_is_dropped(trail: Trail, clock: ManualClock) -> None:
    gate = asyncio.Event()

    async def act(event: Event) -> list[Draft]:
        await gate.wait()
        return [Draft(title="Out", schema_name="out.v1", context={"text": "too late"})]

    calls = Calls(act)
    async with run_worker(trail, handler_of(calls), concurrency=1, lease=LONG):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        clock.advance(seconds=31)
        [claim] = await trail.deliveries.claim("reader", by=ANN, worker="other", lease=LONG)
        gate.set()
        await trail.deliveries.finish(
            claim, [Draft(title="Out", schema_name="out.v1", context={"text": "in time"})], by=ANN
        )
        state = await settled(trail)

    assert await texts(trail, "out.v1") == ["in time"]
    assert (state.dead, len(calls.events)) == (0, 1)


@pytest.mark.req("RCR-28")
async def test_work_on_a_lost_claim_is_stopped_by_the_heartbeat(trail: Trail, clock: ManualClock) -> None:
    stopped = asyncio.Event()

    async def act(event: Event) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    calls = Calls(act)
    async with run_worker(trail, handler_of(calls), concurrency=1, lease=timedelta(seconds=0.06)):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        async with asyncio.timeout(PATIENCE):
            taken: list[Claim] = []
            while not taken:
                clock.advance(seconds=1)
                taken = await trail.deliveries.claim("reader", by=ANN, worker="other", lease=LONG)
            await stopped.wait()
        await trail.deliveries.finish(taken[0], (), by=ANN)
        await settled(trail)

    assert len(calls.events) == 1


class SlowAnswer:
    """Deliveries whose `finish` has committed but not answered when the heartbeat comes by."""

    def __init__(self, deliveries: Any) -> None:
        self._deliveries = deliveries
        self.refused = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._deliveries, name)

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        made: list[Breadcrumb] = await self._deliveries.finish(claim, outputs, by=by)
        await self.refused.wait()
        return made

    async def extend(self, claim: Claim, **options: Any) -> Any:
        try:
            return await self._deliveries.extend(claim, **options)
        except LeaseLost:
            self.refused.set()
            raise


async def test_a_heartbeat_that_comes_after_the_end_says_nothing(
    trail: Trail, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls, slow = Calls(), SlowAnswer(trail.deliveries)
    monkeypatch.setattr(trail, "deliveries", slow)

    async with run_worker(trail, handler_of(calls), lease=timedelta(seconds=0.06)):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        async with asyncio.timeout(PATIENCE):
            await slow.refused.wait()
        await settled(trail)

    assert caplog.text == ""


@pytest.mark.req("RCR-22")
async def test_a_stopped_worker_gives_its_events_back_at_once(trail: Trail) -> None:
    first = Calls(lambda event: asyncio.Event().wait())
    second = Calls()

    async with run_worker(trail, handler_of(first)):
        await trail.records.create(note(), by=ANN)
        event = await first.next()
    async with run_worker(trail, handler_of(second), worker_id="w2"):
        again = await second.next()
        state = await settled(trail)

    assert again.seq == event.seq
    assert state.dead == 0


async def test_a_cancelled_worker_gives_its_events_back_too(trail: Trail) -> None:
    calls = Calls(lambda event: asyncio.Event().wait())
    worker = Worker(trail, [handler_of(calls)], by=ANN, worker_id="w1")
    await worker.register()
    running = asyncio.create_task(worker.run())
    await trail.records.create(note(), by=ANN)
    event = await calls.next()

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    [claim] = await trail.deliveries.claim("reader", by=ANN, worker="w2", lease=LONG)

    assert running.cancelled()
    assert claim.event.seq == event.seq


async def test_a_worker_without_handlers_runs_until_it_is_stopped(trail: Trail) -> None:
    async with run_worker(trail):
        await trail.records.create(note(), by=ANN)


async def test_an_event_wakes_the_worker_without_any_clock_moving(trail: Trail) -> None:
    calls = Calls()

    async with run_worker(trail, handler_of(calls)):
        for number in range(20):
            written: Breadcrumb = await trail.records.create(note(str(number)), by=ANN)
            assert (await calls.next()).breadcrumb_id == written.id


class WatchedDeliveries:
    """The deliveries of a trail, with a signal after a claim and before its result is delivered."""

    def __init__(self, deliveries: Any) -> None:
        self._deliveries = deliveries
        self.is_made = asyncio.Event()

    async def claim(self, *arguments: Any, **options: Any) -> list[Claim]:
        claims: list[Claim] = await self._deliveries.claim(*arguments, **options)
        self.is_made.set()
        return claims

    def __getattr__(self, name: str) -> Any:
        return getattr(self._deliveries, name)


class WatchedTrail:
    """A trail with other deliveries."""

    def __init__(self, trail: Trail, deliveries: Any) -> None:
        self.deliveries = deliveries
        self._trail = trail

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trail, name)


@pytest.mark.req("RCR-28")
async def test_a_claim_that_comes_while_its_worker_stops_goes_back_at_once(trail: Trail) -> None:
    watched = WatchedDeliveries(trail.deliveries)
    handler = handler_of(calls := Calls(lambda event: []))
    await trail.deliveries.register(handler.consumer, by=ANN)

    async def work(claim: Claim) -> list[Draft]:
        await asyncio.Event().wait()  # a claim that was taken goes back as well
        return []

    whole = cast("Trail", WatchedTrail(trail, watched))
    running = asyncio.create_task(ClaimLoop(whole, handler.name, work, by=ANN, worker_id="w", lease=LONG).run())
    await trail.records.create(note("late"), by=ANN)
    async with asyncio.timeout(PATIENCE):
        await watched.is_made.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert await trail.deliveries.workers(by=ANN) == []
    async with run_worker(trail, handler):
        assert text_of(await calls.next()) == "late"


class SlowDeliveries:
    """Deliveries whose next call of one kind writes nothing before `is_free` is set, as one in a queue of writes."""

    def __init__(self, deliveries: Any, slow: str) -> None:
        self._deliveries = deliveries
        self._slow = slow
        self.is_called, self.is_free = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        whole = getattr(self._deliveries, name)
        if name != self._slow or self.is_called.is_set():
            return whole

        async def wait(*arguments: Any, **options: Any) -> Any:
            self.is_called.set()
            await self.is_free.wait()
            return await whole(*arguments, **options)

        return wait


@pytest.mark.req("RCR-28")
@pytest.mark.parametrize(
    ("slow", "error", "attempts"),
    [("release", NotNow(0.0), 3), ("fail", RuntimeError("no"), 3), ("finish", RuntimeError("no"), 1)],
    ids=["released", "failed", "given up"],
)
async def test_a_worker_that_stops_while_a_claim_is_ended_leaves_no_claim_to_its_lease(
    trail: Trail, slow: str, error: Exception, attempts: int
) -> None:
    async def act(event: Event) -> None:
        raise error

    async def give_up(event: Event, reason: str) -> list[Draft]:
        return []

    handler = handler_of(calls := Calls(act), retry=RetryPolicy(attempts=attempts))
    handler = replace(handler, given_up=give_up if attempts == 1 else None)
    deliveries = SlowDeliveries(trail.deliveries, slow)
    async with run_worker(cast("Trail", WatchedTrail(trail, deliveries)), handler):
        written = await trail.records.create(note(), by=ANN)
        async with asyncio.timeout(PATIENCE):
            await deliveries.is_called.wait()

    assert len(calls.events) == 1
    [claim] = await trail.deliveries.claim("reader", by=ANN, worker="w2", lease=LONG)
    assert claim.event.breadcrumb_id == written.id


@pytest.mark.req("RCR-28")
async def test_a_worker_that_is_cancelled_twice_releases_its_claims(trail: Trail) -> None:
    deliveries = SlowDeliveries(trail.deliveries, "release")
    handler = handler_of(calls := Calls(lambda event: asyncio.Event().wait()))
    worker = Worker(cast("Trail", WatchedTrail(trail, deliveries)), [handler], by=ANN, worker_id="w1")
    await worker.register()
    running = asyncio.create_task(worker.run())
    await trail.records.create(note(), by=ANN)
    event = await calls.next()
    worker.stop()
    async with asyncio.timeout(PATIENCE):
        await deliveries.is_called.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        deliveries.is_free.set()

        [claim] = await trail.deliveries.claim("reader", by=ANN, worker="w2", lease=LONG, wait=PATIENCE / 2)

    assert claim.event.seq == event.seq
