"""The four kinds of TTL: an expired record does not exist, even before hygiene has removed it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import NotFound
from clew.trail.model.breadcrumb import NEVER, Change, Ttl
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import found_titles, is_there, lasting, list_titles, look_for, make, read_log, succeeds

pytestmark = [pytest.mark.req("RCR-10"), pytest.mark.req("O11")]


async def test_never_is_the_default(trail: Trail, me: Principal, clock: ManualClock) -> None:
    made = await make(trail, me)
    clock.advance(days=365_000)
    assert made.ttl == NEVER
    assert await is_there(trail, me, made.id)


async def test_a_time_ends_a_breadcrumb_to_the_microsecond(trail: Trail, me: Principal, clock: ManualClock) -> None:
    made = await make(trail, me, ttl=lasting(clock, seconds=1))
    clock.advance(microseconds=999_999)
    assert await is_there(trail, me, made.id)
    clock.advance(microseconds=1)
    assert not await is_there(trail, me, made.id)


async def test_two_uses_end_a_breadcrumb_after_two_consumer_reads(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, "Once more", ttl=Ttl(kind="usage", max_reads=2))
    assert (await trail.records.read(made.id, by=me)).title == "Once more"
    assert (await trail.records.get(made.id, by=me)).ttl.read_count == 1
    assert (await trail.records.read(made.id, by=me)).title == "Once more"
    with pytest.raises(NotFound):
        await trail.records.read(made.id, by=me)
    assert not await is_there(trail, me, made.id)


async def test_only_consumer_reads_count(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, "Counted", ttl=Ttl(kind="usage", max_reads=1))
    for _ in range(3):
        await trail.records.get(made.id, by=me)
        await trail.records.history(made.id, by=me)
        assert await list_titles(trail, me) == ["Counted"]
        assert await found_titles(trail, me, "counted") == ["Counted"]
        await read_log(trail, me)
    assert await succeeds(trail.records.read(made.id, by=me), NotFound)


@pytest.mark.parametrize("reads", [1, 3])
async def test_readers_at_once_get_exactly_as_many_reads_as_allowed(
    trail: Trail, open_again: OpenAgain, me: Principal, reads: int
) -> None:
    made, other = await make(trail, me, ttl=Ttl(kind="usage", max_reads=reads)), await open_again()
    attempts = [succeeds(each.records.read(made.id, by=me), NotFound) for each in [trail, other] * 5]
    assert sum(await asyncio.gather(*attempts)) == reads


async def test_hybrid_ends_at_the_earlier_bound(trail: Trail, me: Principal, clock: ManualClock) -> None:
    ttl = Ttl(kind="hybrid", expires_at=clock.now() + timedelta(minutes=5), max_reads=1)
    by_use, by_time = await make(trail, me, ttl=ttl), await make(trail, me, ttl=ttl)
    await trail.records.read(by_use.id, by=me)
    assert not await is_there(trail, me, by_use.id)
    assert await is_there(trail, me, by_time.id)
    clock.advance(minutes=5)
    assert not await is_there(trail, me, by_time.id)


async def test_an_expired_record_is_gone_for_every_call(trail: Trail, me: Principal, clock: ManualClock) -> None:
    made = await make(trail, me, "Short", tags=["t"], ttl=lasting(clock, seconds=1))
    clock.advance(seconds=1)
    calls = (
        trail.records.get(made.id, by=me),
        trail.records.get(made.id, by=me, version=1),
        trail.records.read(made.id, by=me),
        trail.records.history(made.id, by=me),
        trail.records.update(made.id, Change(ttl=NEVER), expect=1, by=me),
        trail.records.delete(made.id, by=me),
        trail.edges.of(made.id, by=me),
        trail.edges.walk([made.id], by=me),
        trail.edges.paths([made.id], by=me),
    )
    for call in calls:
        with pytest.raises(NotFound):
            await call
    assert await list_titles(trail, me) == []
    assert await list_titles(trail, me, all_tags=["t"]) == []
    assert (await look_for(trail, me, "short")).hits == ()
    assert (await trail.upkeep.stats(by=me)).breadcrumbs == 0


async def test_expiry_follows_the_time_of_day_when_the_clock_is_set_back(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    """A clock that was ahead must not end records early; removed records stay removed."""
    short, long = await make(trail, me, ttl=lasting(clock, hours=1)), await make(trail, me, ttl=lasting(clock, hours=9))
    clock.advance(hours=2)
    assert not await is_there(trail, me, short.id)
    assert (await trail.upkeep.purge()).breadcrumbs == 1
    clock.advance(days=-30)
    assert not await is_there(trail, me, short.id)
    assert await is_there(trail, me, long.id)
    assert (await trail.upkeep.purge()).breadcrumbs == 0
    later = await make(trail, me)
    assert later.created_at >= long.created_at
    clock.advance(days=30, hours=6, minutes=59)
    assert await is_there(trail, me, long.id)
    clock.advance(minutes=1)
    assert not await is_there(trail, me, long.id)


async def test_times_of_a_reopened_trail_do_not_run_backwards(
    trail: Trail, open_again: OpenAgain, me: Principal, clock: ManualClock
) -> None:
    clock.advance(days=10)
    first = await make(trail, me)
    await trail.close()
    clock.advance(days=-20)
    second = await make(await open_again(), me)
    assert second.created_at >= first.created_at


async def test_a_new_ttl_counts_anew_and_an_update_of_something_else_does_not(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    made = await make(trail, me, ttl=Ttl(kind="usage", max_reads=2))
    await trail.records.read(made.id, by=me)
    kept = await trail.records.update(made.id, Change(title="Renamed"), expect=1, by=me)
    assert kept.ttl.read_count == 1
    renewed = await trail.records.update(made.id, Change(ttl=Ttl(kind="usage", max_reads=2)), expect=2, by=me)
    assert renewed.ttl.read_count == 0
    ended = await trail.records.update(made.id, Change(ttl=lasting(clock, minutes=1)), expect=3, by=me)
    assert (ended.ttl.kind, ended.ttl.max_reads) == ("datetime", None)
    clock.advance(minutes=1)
    assert not await is_there(trail, me, made.id)


async def test_reads_during_an_update_are_not_forgotten(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, ttl=Ttl(kind="usage", max_reads=1_000))
    for version in range(1, 11):
        await asyncio.gather(
            trail.records.read(made.id, by=me),
            trail.records.update(made.id, Change(title=f"Title {version}"), expect=version, by=me),
            trail.records.read(made.id, by=me),
        )
    assert (await trail.records.get(made.id, by=me)).ttl.read_count == 20


async def test_a_draft_cannot_bring_its_own_count_of_reads(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, ttl=Ttl(kind="usage", max_reads=5, read_count=4))
    assert made.ttl.read_count == 0


async def test_a_record_that_expires_before_its_write_is_never_seen(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    made = await make(trail, me, "Late", ttl=lasting(clock, seconds=-1))
    assert not await is_there(trail, me, made.id)
    assert await found_titles(trail, me, "late") == []
