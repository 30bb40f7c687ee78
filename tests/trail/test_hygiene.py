from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import Busy, NotFound
from clew.trail.model.breadcrumb import NEVER, Draft, Ttl
from clew.trail.model.event import Consumer
from clew.trail.model.selector import Selector
from clew.trail.store import HygieneStats, Purged, Trail
from clew.trail.work.hygiene import Hygiene
from tests.handlers import PATIENCE

ANN = Principal(owner_id="ann")
BOB = Principal(owner_id="bob")
REPORTS = Selector(schema_name="system.hygiene.v1")


async def written(trail: Trail, ttl: Ttl, by: Principal = ANN) -> str:
    return (await trail.records.create(Draft(title="Any", context={}, ttl=ttl), by=by)).id


def ends(clock: ManualClock, **after: float) -> Ttl:
    return Ttl(kind="datetime", expires_at=clock.now() + timedelta(**after))


async def is_there(trail: Trail, id: str, by: Principal = ANN) -> bool:
    try:
        await trail.records.get(id, by=by)
    except NotFound:
        return False
    return True


@pytest.mark.req("RCR-12")
@pytest.mark.req("O11")
async def test_a_run_purges_exactly_what_has_expired_and_updates_all_four_statistics(
    trail: Trail, clock: ManualClock
) -> None:
    hygiene = Hygiene(trail, by=ANN, clock=clock)
    soon, bobs = (
        await written(trail, ends(clock, minutes=4)),
        await written(trail, ends(clock, minutes=5), BOB),
    )
    later, kept = await written(trail, ends(clock, minutes=6)), await written(trail, NEVER)
    used = await written(trail, Ttl(kind="usage", max_reads=1))
    unused = await written(trail, Ttl(kind="usage", max_reads=2))
    await trail.records.read(used, by=ANN)
    await trail.records.read(unused, by=ANN)
    assert hygiene.stats() == HygieneStats(
        runs_completed=0, total_breadcrumbs_purged=0, last_run_duration_ms=0.0, hygiene_enabled=True
    )

    clock.advance(minutes=5)
    first = await hygiene.run()
    assert first == Purged(breadcrumbs=3, agents=0, subscriptions=0)
    assert not any([await is_there(trail, id) for id in (soon, used)] + [await is_there(trail, bobs, BOB)])
    assert all([await is_there(trail, id) for id in (later, kept, unused)])

    clock.advance(minutes=5)
    await hygiene.run()
    stats = hygiene.stats()
    assert (stats.runs_completed, stats.total_breadcrumbs_purged, stats.hygiene_enabled) == (2, 4, True)


@pytest.mark.req("RCR-12")
@pytest.mark.req("RCR-02")
async def test_each_run_writes_its_numbers_as_a_breadcrumb_that_ends_after_a_week(
    trail: Trail, clock: ManualClock
) -> None:
    hygiene = Hygiene(trail, by=ANN, clock=clock, every=60.0, idle_after=timedelta(days=1))
    await written(trail, ends(clock, minutes=1))
    clock.advance(minutes=2)
    await hygiene.run()

    [report] = (await trail.records.list(REPORTS, by=ANN)).items
    assert report.context == {
        "runs_completed": 1,
        "total_breadcrumbs_purged": 1,
        "last_run_duration_ms": 0.0,
        "hygiene_enabled": True,
        "purged": {"breadcrumbs": 1, "agents": 0, "subscriptions": 0},
        "config": {"every_seconds": 60.0, "idle_seconds": 86400.0},
    }
    assert "system:stats" in report.tags

    clock.advance(days=7)
    await hygiene.run()
    [newest] = (await trail.records.list(REPORTS, by=ANN)).items
    assert newest.context["purged"]["breadcrumbs"] == 1


@pytest.mark.req("RCR-12")
async def test_idle_agents_go_with_their_subscriptions(trail: Trail, clock: ManualClock) -> None:
    hygiene = Hygiene(trail, by=ANN, clock=clock, idle_after=timedelta(days=2))
    await trail.deliveries.register(Consumer(name="agents", agent_id="sleeper"), by=ANN)
    await trail.deliveries.register(Consumer(name="nobodys"), by=ANN)

    clock.advance(days=1)
    assert await hygiene.run() == Purged(breadcrumbs=0, agents=0, subscriptions=0)
    clock.advance(days=2)
    assert await hygiene.run() == Purged(breadcrumbs=0, agents=1, subscriptions=1)

    assert [state.consumer.name for state in await trail.deliveries.consumers(by=ANN)] == ["nobodys"]


class Ticking(ManualClock):
    """A clock that moves by 250 ms whenever it is asked."""

    def now(self) -> Any:
        self.advance(milliseconds=250)
        return super().now()


@pytest.mark.req("RCR-12")
async def test_the_duration_of_the_last_run_is_in_milliseconds(trail: Trail) -> None:
    hygiene = Hygiene(trail, by=ANN, clock=Ticking())

    await hygiene.run()

    assert hygiene.stats().last_run_duration_ms == 250.0


@pytest.mark.req("RCR-12")
async def test_it_runs_at_intervals_until_cancelled(trail: Trail, clock: ManualClock) -> None:
    hygiene = Hygiene(trail, by=ANN, clock=clock, every=0.001)
    running = asyncio.create_task(hygiene.run_forever())
    async with asyncio.timeout(PATIENCE):
        while hygiene.stats().runs_completed < 3:
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert running.cancelled()
    assert hygiene.stats().runs_completed >= 3
    assert not (await trail.records.list(REPORTS, by=ANN)).items, "nothing was removed, so nothing is reported"


@pytest.mark.req("RCR-12")
async def test_disabled_hygiene_runs_only_by_hand(trail: Trail, clock: ManualClock) -> None:
    hygiene = Hygiene(trail, by=ANN, clock=clock, enabled=False)

    async with asyncio.timeout(PATIENCE):
        await hygiene.run_forever()
    assert hygiene.stats().runs_completed == 0

    await hygiene.run()
    assert hygiene.stats().runs_completed == 1
    assert hygiene.stats().hygiene_enabled is False


async def test_a_failed_run_is_not_counted_and_the_next_one_comes(
    trail: Trail, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 2
    purge = trail.upkeep.purge

    async def failing(**options: Any) -> Purged:
        nonlocal failures
        if failures:
            failures -= 1
            raise Busy("the queue is full")
        return await purge(**options)

    monkeypatch.setattr(trail.upkeep, "purge", failing)
    ttl = Ttl(kind="datetime", expires_at=clock.now() + timedelta(seconds=1))
    await trail.records.create(Draft(title="Soon gone", context={}, ttl=ttl), by=ANN)
    clock.advance(seconds=2)
    hygiene = Hygiene(trail, by=ANN, clock=clock, every=0.001)
    running = asyncio.create_task(hygiene.run_forever())
    async with asyncio.timeout(PATIENCE):
        while not (await trail.records.list(REPORTS, by=ANN)).items:
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert failures == 0
    first = (await trail.records.list(REPORTS, by=ANN, oldest_first=True)).items[0]
    assert first.context["runs_completed"] == 1


async def test_runs_that_are_asked_for_at_once_come_one_after_the_other(trail: Trail, clock: ManualClock) -> None:
    hygiene = Hygiene(trail, by=ANN, clock=clock)
    for _ in range(10):
        await written(trail, ends(clock, seconds=1))
    clock.advance(seconds=2)

    purged = await asyncio.gather(*(hygiene.run() for _ in range(5)))

    assert sum(each.breadcrumbs for each in purged) == 10
    assert hygiene.stats().runs_completed == 5
    assert hygiene.stats().total_breadcrumbs_purged == 10
