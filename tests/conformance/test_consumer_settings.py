"""`Consumer`: its start, the order of a session's events, and the events of a dead worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import timedelta

import pytest

from clew.access import Principal
from clew.clock import ManualClock, SystemClock
from clew.errors import InvalidInput, LeaseLost
from clew.trail.model.event import Claim, Consumer, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import claim, draft, make, session, titles

PATIENCE = 30.0


@pytest.mark.req("RCR-39")
async def test_a_consumer_can_begin_after_an_event_of_the_past(trail: Trail, me: Principal) -> None:
    await make(trail, me, "before")
    begin = await trail.log.head()
    await make(trail, me, "after")
    await trail.deliveries.register(Consumer(name="c", after=begin), by=me)
    assert titles(await claim(trail, me, limit=10)) == ["after"]


async def test_a_consumer_that_is_registered_again_keeps_its_place(trail: Trail, me: Principal) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=me)
    await make(trail, me, "a")
    (held,) = await claim(trail, me, limit=10)
    await trail.deliveries.finish(held, [], by=me)
    await trail.deliveries.register(Consumer(name="c", after=0), by=me)
    assert await claim(trail, me, limit=10) == []


async def test_a_consumer_cannot_begin_before_the_log(trail: Trail, me: Principal) -> None:
    with pytest.raises(InvalidInput, match="after"):
        await trail.deliveries.register(Consumer(name="c", after=-1), by=me)


@pytest.mark.req("RCR-47")
async def test_events_of_a_session_are_claimed_concurrently_without_an_order(trail: Trail, me: Principal) -> None:
    await trail.deliveries.register(Consumer(name="c", ordered=False), by=me)
    await session(trail, me, "s", "a", "b", "c")
    assert titles(await claim(trail, me, limit=10)) == ["a", "b", "c"]


async def test_events_of_a_consumer_with_a_delay_are_claimed_when_it_has_passed(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    await trail.deliveries.register(Consumer(name="c", delay=5.0), by=me)
    await session(trail, me, "s", "a", "b")
    assert await claim(trail, me, limit=10) == []
    clock.advance(seconds=4)
    await session(trail, me, "s", "c")
    assert await claim(trail, me, limit=10) == []
    clock.advance(seconds=2)
    for expected in ("a", "b"):
        (held,) = await claim(trail, me, limit=10)
        assert titles([held]) == [expected]
        await trail.deliveries.finish(held, [], by=me)
    assert await claim(trail, me, limit=10) == []
    clock.advance(seconds=4)
    assert titles(await claim(trail, me, limit=10)) == ["c"]


async def test_a_worker_that_waits_gets_a_delayed_event_in_time(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    await trail.deliveries.register(Consumer(name="c", delay=0.1), by=me)
    waiting = asyncio.ensure_future(trail.deliveries.claim("c", by=me, worker="w", wait=PATIENCE))
    await make(trail, me, "a")
    assert not await claim(trail, me, limit=10)
    clock.advance(seconds=1)
    await make(trail, me, "b")  # an event wakes workers; a changed clock does not
    async with asyncio.timeout(PATIENCE):
        assert titles(await waiting) == ["a"]


async def _claim_beside_a_worker_that_stops(trail: Trail, me: Principal, work: Awaitable[object]) -> list[Claim]:
    """The claims of a worker that waits during `work`. A worker that has waited longer is cancelled after it."""
    stopped, waiting = (
        asyncio.ensure_future(trail.deliveries.claim("c", by=me, worker=name, wait=PATIENCE)) for name in ("w1", "w2")
    )
    await asyncio.sleep(0.1)  # until the registration no longer wakes them
    await work
    stopped.cancel()
    return await waiting


async def test_every_waiting_worker_learns_when_a_delayed_event_is_due(open_again: OpenAgain, me: Principal) -> None:
    trail = await open_again(clock=SystemClock())
    await trail.deliveries.register(Consumer(name="c", delay=0.3), by=me)
    assert titles(await _claim_beside_a_worker_that_stops(trail, me, make(trail, me, "a"))) == ["a"]


async def test_every_waiting_worker_learns_when_a_released_event_is_due(open_again: OpenAgain, me: Principal) -> None:
    trail = await open_again(clock=SystemClock())
    await trail.deliveries.register(Consumer(name="c"), by=me)
    await make(trail, me, "a")
    (held,) = await claim(trail, me, lease=timedelta(hours=1))
    release = trail.deliveries.release(held, by=me, delay=0.3)
    assert titles(await _claim_beside_a_worker_that_stops(trail, me, release)) == ["a"]


async def test_a_retry_is_due_also_if_a_new_event_was_written_with_the_failure(
    open_again: OpenAgain, me: Principal
) -> None:
    trail = await open_again(clock=SystemClock())
    retry = RetryPolicy(attempts=9, backoff=0.2, backoff_limit=0.2)
    await trail.deliveries.register(Consumer(name="c", selector=Selector(any_tags=("c",)), retry=retry), by=me)
    for _ in range(4):
        await make(trail, me, "failed", tags=["c"])
        (held,) = await claim(trail, me, lease=timedelta(hours=1))
        waiting = asyncio.ensure_future(trail.deliveries.claim("c", by=me, worker="w", limit=8, wait=PATIENCE))
        await asyncio.sleep(0.1)
        # While the first write is committed, the others wait for the same transaction.
        failure = trail.deliveries.fail(held, "no", by=me)
        await asyncio.gather(make(trail, me, "other"), failure, make(trail, me, "new", tags=["c"]))
        found = await waiting
        if len(found) == 1:
            found += await trail.deliveries.claim("c", by=me, worker="w", limit=8, wait=PATIENCE)
        assert sorted(titles(found)) == ["failed", "new"]
        for each in found:
            await trail.deliveries.finish(each, [], by=me)


@pytest.mark.parametrize("delay", [-1.0, 90_000.0])
async def test_a_delay_has_limits(trail: Trail, me: Principal, delay: float) -> None:
    with pytest.raises(InvalidInput, match="delay"):
        await trail.deliveries.register(Consumer(name="c", delay=delay), by=me)


@pytest.mark.req("BEY-07")
async def test_claims_of_a_dead_worker_can_be_taken_at_once(trail: Trail, me: Principal) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=me)
    await make(trail, me, "a")
    (lost,) = await trail.deliveries.claim("c", by=me, worker="dead")
    assert await trail.deliveries.workers(by=me) == ["dead"]
    assert await trail.deliveries.abandon("dead", by=me) == 1
    (again,) = await trail.deliveries.claim("c", by=me, worker="living")
    assert (again.event.seq, again.attempt, again.event.attempt) == (lost.event.seq, 1, 1)
    with pytest.raises(LeaseLost):
        await trail.deliveries.finish(lost, [draft("late")], by=me)
    assert await trail.deliveries.workers(by=me) == ["living"]


async def test_claims_of_other_owners_are_neither_reported_nor_abandoned(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=me)
    await make(trail, me, "a")
    await trail.deliveries.claim("c", by=me, worker="dead")
    assert await trail.deliveries.workers(by=stranger) == []
    assert await trail.deliveries.abandon("dead", by=stranger) == 0
    assert await claim(trail, me, limit=10) == []


@pytest.mark.req("RCR-47")
async def test_events_of_a_run_without_a_session_are_ordered(trail: Trail, me: Principal) -> None:
    await trail.deliveries.register(Consumer(name="c"), by=me)
    for title in ("a", "b"):
        await make(trail, me, title, tags=["run:r"])
    await make(trail, me, "other", tags=["run:s"])
    assert titles(await claim(trail, me, limit=10)) == ["a", "other"]


@pytest.mark.parametrize("later", [0, 1, 2**62])
async def test_the_start_of_a_consumer_stays_when_it_is_registered_again(
    trail: Trail, me: Principal, later: int
) -> None:
    await make(trail, me, "before")
    begin = await trail.log.head()
    await trail.deliveries.register(Consumer(name="c", after=2**62), by=me)
    await make(trail, me, "after")
    again = await trail.deliveries.register(Consumer(name="c", after=later), by=me)
    assert again.consumer.after == begin
    assert titles(await claim(trail, me, limit=10)) == ["after"]


@pytest.mark.parametrize("later", [0, 1, 2**62])
async def test_a_consumer_that_named_no_start_has_none_when_it_is_registered_again(
    trail: Trail, me: Principal, later: int
) -> None:
    await make(trail, me, "before")
    await trail.deliveries.register(Consumer(name="c"), by=me)
    await make(trail, me, "after")
    again = await trail.deliveries.register(Consumer(name="c", after=later), by=me)
    assert again.consumer.after is None
    assert titles(await claim(trail, me, limit=10)) == ["after"]


async def test_the_start_of_a_consumer_stays_when_it_is_registered_again_without_one(
    trail: Trail, me: Principal
) -> None:
    await make(trail, me, "before")
    await trail.deliveries.register(Consumer(name="c", after=1), by=me)
    again = await trail.deliveries.register(Consumer(name="c"), by=me)
    assert again.consumer.after == 1
