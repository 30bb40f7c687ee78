"""Clocks that jump: events stay in order, and due times follow the real elapsed time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import LeaseLost, NotFound
from clew.trail.model.breadcrumb import Change, Draft, Ttl
from clew.trail.model.event import Consumer, RetryPolicy
from clew.trail.store import Trail
from clew.trail.work.hygiene import Hygiene
from tests.faults.processes import open_at

ME = Principal(owner_id="acme", agent_id="ann")
HOUR = timedelta(hours=1)
LEASE = timedelta(seconds=30)
JUMPS = (-3_600, 1, 86_400, -90_000, 0, 5, -1, 31_536_000, -31_536_000, 60)
"""Seconds by which the clock moves between two writes."""


@pytest.fixture
async def trail(folder: Path, clock: ManualClock) -> AsyncIterator[Trail]:
    opened = await open_at(folder, clock=clock)
    yield opened
    await opened.close()


SET_BACK = [timedelta(0), -HOUR, -24 * HOUR]


def note(*, ttl: Ttl | None = None) -> Draft:
    return Draft(title="Note", schema_name="note.v1", context={}, ttl=ttl)


def until(moment: datetime) -> Ttl:
    return Ttl(kind="datetime", expires_at=moment)


async def is_there(trail: Trail, id: str) -> bool:
    try:
        await trail.records.get(id, by=ME)
    except NotFound:
        return False
    return True


# -- order ----------------------------------------------------------------------------------------------------


async def test_events_stay_in_order_with_any_clock(trail: Trail, clock: ManualClock) -> None:
    kept = await trail.records.create(note(), by=ME)
    for seconds in JUMPS:
        clock.advance(seconds=seconds)
        made = await trail.records.create(note(), by=ME)
        kept = await trail.records.update(kept.id, Change(title=made.id), expect=kept.version, by=ME)

    events, _ = await trail.log.read(0, by=ME)
    assert len(events) == 1 + 2 * len(JUMPS)
    assert [event.seq for event in events] == sorted(event.seq for event in events)
    assert [event.at for event in events] == sorted(event.at for event in events)
    history = await trail.records.history(kept.id, by=ME)
    assert [line.version for line in history] == list(range(1, len(JUMPS) + 2))
    assert [line.updated_at for line in history] == sorted(line.updated_at for line in history)


async def test_order_survives_a_restart_with_the_clock_set_back(folder: Path, clock: ManualClock) -> None:
    for _ in range(3):
        trail = await open_at(folder, clock=clock)
        await trail.records.create(note(), by=ME)
        await trail.close()
        clock.advance(hours=-24)

    trail = await open_at(folder, clock=clock)
    events, _ = await trail.log.read(0, by=ME)
    items = (await trail.records.list(by=ME, oldest_first=True)).items
    await trail.close()
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert [event.breadcrumb_id for event in events] == [item.id for item in items]


# -- expiry ---------------------------------------------------------------------------------------------------


async def test_a_record_that_has_expired_by_the_clock_is_gone_for_good(trail: Trail, clock: ManualClock) -> None:
    short = await trail.records.create(note(ttl=until(clock.now() + HOUR)), by=ME)
    long = await trail.records.create(note(ttl=until(clock.now() + 48 * HOUR)), by=ME)
    assert await is_there(trail, short.id)
    clock.advance(hours=2)
    assert not await is_there(trail, short.id)
    assert (await trail.upkeep.purge()).breadcrumbs == 1
    clock.advance(hours=-3)

    assert not await is_there(trail, short.id)
    assert await is_there(trail, long.id)
    assert (await trail.upkeep.purge()).breadcrumbs == 0


async def test_a_clock_set_back_ends_nothing_early_and_nothing_late(trail: Trail, clock: ManualClock) -> None:
    await trail.records.create(note(), by=ME)
    clock.advance(hours=-10)
    made = await trail.records.create(note(ttl=until(clock.now() + HOUR)), by=ME)

    assert await is_there(trail, made.id), "it has an hour by the clock of everyone here"
    clock.advance(minutes=59)
    assert await is_there(trail, made.id)
    clock.advance(minutes=2)
    assert not await is_there(trail, made.id)


async def test_a_clock_that_was_wrong_for_a_moment_ends_nothing(trail: Trail, clock: ManualClock) -> None:
    kept = await trail.records.create(note(ttl=until(clock.now() + 24 * HOUR)), by=ME)
    clock.advance(days=3_650)
    await trail.records.create(note(), by=ME)
    clock.advance(days=-3_650)

    made = await trail.records.create(note(ttl=until(clock.now() + HOUR)), by=ME)
    assert await is_there(trail, made.id)
    assert await is_there(trail, kept.id)


async def test_hygiene_removes_only_what_has_expired_by_the_clock(trail: Trail, clock: ManualClock) -> None:
    hygiene = Hygiene(trail, by=ME, clock=clock)
    kept = await trail.records.create(note(), by=ME)
    due = await trail.records.create(note(ttl=until(clock.now() + HOUR)), by=ME)
    clock.advance(hours=-5)
    assert (await hygiene.run()).breadcrumbs == 0
    clock.advance(hours=7)
    assert (await hygiene.run()).breadcrumbs == 1
    clock.advance(days=3_650)
    await hygiene.run()

    assert await is_there(trail, kept.id)
    assert not await is_there(trail, due.id)
    assert hygiene.stats().runs_completed == 3


# -- claims ---------------------------------------------------------------------------------------------------


async def claimed(trail: Trail, worker: str) -> list[int]:
    claims = await trail.deliveries.claim("all", by=ME, worker=worker, lease=LEASE)
    return [claim.event.seq for claim in claims]


async def register(trail: Trail) -> None:
    retry = RetryPolicy(attempts=10, backoff=10.0, backoff_limit=10.0)
    await trail.deliveries.register(Consumer(name="all", retry=retry), by=ME)


@pytest.mark.parametrize("jump", SET_BACK)
async def test_a_lease_ends_after_its_time_although_the_clock_was_set_back(
    trail: Trail, clock: ManualClock, jump: timedelta
) -> None:
    await register(trail)
    await trail.records.create(note(), by=ME)
    [seq] = await claimed(trail, "dead")
    clock.time += jump
    assert await claimed(trail, "heir") == []
    clock.advance(seconds=LEASE.total_seconds() + 1)

    assert await claimed(trail, "heir") == [seq]


@pytest.mark.req("SYL-112")
@pytest.mark.parametrize("jump", SET_BACK)
async def test_a_retry_comes_after_its_backoff_although_the_clock_was_set_back(
    trail: Trail, clock: ManualClock, jump: timedelta
) -> None:
    await register(trail)
    await trail.records.create(note(), by=ME)
    [claim] = await trail.deliveries.claim("all", by=ME, worker="w", lease=LEASE)
    await trail.deliveries.fail(claim, "not now", by=ME)
    clock.time += jump
    assert await claimed(trail, "w") == []
    clock.advance(seconds=15)

    assert await claimed(trail, "w") == [claim.event.seq]


async def test_a_restart_with_the_clock_set_back_holds_up_no_event(folder: Path, clock: ManualClock) -> None:
    trail = await open_at(folder, clock=clock)
    await register(trail)
    await trail.records.create(note(), by=ME)
    [seq] = await claimed(trail, "dead")
    await trail.close()
    clock.advance(hours=-12)
    trail = await open_at(folder, clock=clock)
    try:
        await claimed(trail, "heir")
        clock.advance(seconds=LEASE.total_seconds() + 1)
        assert await claimed(trail, "heir") == [seq]
        clock.advance(seconds=LEASE.total_seconds() + 1)
        assert await claimed(trail, "next") == [seq], "and so does the lease that was taken after the jump"
    finally:
        await trail.close()


async def test_a_clock_that_leaps_ahead_ends_leases_and_never_gives_an_event_to_two(
    trail: Trail, clock: ManualClock
) -> None:
    await register(trail)
    await trail.records.create(note(), by=ME)
    [early] = await trail.deliveries.claim("all", by=ME, worker="early", lease=LEASE)
    clock.advance(days=400)
    [late] = await trail.deliveries.claim("all", by=ME, worker="late", lease=LEASE)
    clock.advance(days=-400)

    with pytest.raises(LeaseLost):
        await trail.deliveries.finish(early, [note()], by=ME)
    await trail.deliveries.finish(late, [note()], by=ME)
    assert len((await trail.records.list(by=ME)).items) == 2


async def test_new_events_are_claimed_at_once_with_any_clock(trail: Trail, clock: ManualClock) -> None:
    await register(trail)
    for seconds in JUMPS:
        clock.advance(seconds=seconds)
        made = await trail.records.create(note(), by=ME)
        [claim] = await trail.deliveries.claim("all", by=ME, worker="w", lease=LEASE)
        assert claim.event.breadcrumb_id == made.id
        await trail.deliveries.finish(claim, [], by=ME)
