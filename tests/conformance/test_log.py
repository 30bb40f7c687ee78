"""`Log`: one ordered event for every change, read by cursor, woken by the write itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AlreadyExists, InvalidInput, NotFound
from clew.trail.model.breadcrumb import Change
from clew.trail.model.event import Event
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import PATIENCE, draft, lasting, list_all, make, make_all, read_log


async def take(events: AsyncIterator[Event], count: int) -> list[Event]:
    """The next events; the test fails if they do not come."""
    async with asyncio.timeout(PATIENCE):
        return [await anext(events) for _ in range(count)]


async def test_an_empty_log_begins_at_0(trail: Trail, me: Principal) -> None:
    assert await trail.log.head() == 0
    assert await trail.log.read(0, by=me) == ([], 0)


@pytest.mark.req("RCR-02")
async def test_every_change_is_one_event_that_says_what_it_made(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    made = await make(trail, me, "One", schema_name="note.v1", tags=["a"])
    clock.advance(seconds=5)
    changed = await trail.records.update(made.id, Change(title="Two", tags=["b"]), expect=1, by=me)
    created, updated = await read_log(trail, me)
    assert (created.seq, created.type, created.version) == (1, "breadcrumb.created", 1)
    assert (created.breadcrumb_id, created.owner_id, created.schema_name) == (made.id, "acme", "note.v1")
    assert (created.tags, created.at, created.breadcrumb) == (("a",), made.created_at, made)
    assert (updated.seq, updated.type, updated.version) == (2, "breadcrumb.updated", 2)
    assert (updated.tags, updated.at, updated.breadcrumb) == (("b",), clock.now(), changed)
    await trail.records.delete(made.id, by=me)
    events = await read_log(trail, me)
    assert [event.type for event in events] == ["breadcrumb.created", "breadcrumb.updated", "breadcrumb.deleted"]
    assert [event.breadcrumb for event in events] == [None, None, None]
    assert (events[2].tags, events[2].schema_name, events[2].version) == (("b",), "note.v1", 2)


async def test_an_old_event_shows_the_version_of_its_time(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, "v1")
    for version in (1, 2, 3):
        await trail.records.update(made.id, Change(title=f"v{version + 1}"), expect=version, by=me)
    shown = [event.breadcrumb.title for event in await read_log(trail, me) if event.breadcrumb]
    assert shown == ["v1", "v2", "v3", "v4"]


async def test_a_refused_write_leaves_no_event(trail: Trail, me: Principal) -> None:
    taken = await make(trail, me)
    with pytest.raises(AlreadyExists):
        await trail.records.create_many([draft("A"), draft("B", id=taken.id)], by=me)
    assert await trail.log.head() == 1
    assert (await make(trail, me)).version == 1
    assert [event.type for event in await read_log(trail, me)] == ["breadcrumb.created"] * 2


async def test_the_log_knows_the_event_that_created_a_breadcrumb(trail: Trail, me: Principal) -> None:
    first, second = await make_all(trail, me, "a", "b")
    await trail.records.update(first, Change(title="c"), expect=1, by=me)
    assert await trail.log.creation_of(first, by=me) == 1
    events, _ = await trail.log.read(await trail.log.creation_of(second, by=me) - 1, by=me, limit=1)
    assert [event.breadcrumb_id for event in events] == [second]
    for unknown, caller in ((first, Principal(owner_id="another")), ("no-such-id", me)):
        with pytest.raises(NotFound):
            await trail.log.creation_of(unknown, by=caller)


async def test_reading_goes_on_after_a_cursor_in_steps_of_any_size(trail: Trail, me: Principal) -> None:
    ids = await make_all(trail, me, *(f"Note {number}" for number in range(25)))
    seen, after = [], 0
    while True:
        events, after = await trail.log.read(after, by=me, limit=7)
        if not events:
            break
        assert after == events[-1].seq or after == await trail.log.head()
        seen += [event.breadcrumb_id for event in events]
    assert seen == ids
    assert after == await trail.log.head()
    assert await trail.log.read(10**12, by=me) == ([], await trail.log.head())


async def test_hidden_events_are_skipped_once(trail: Trail, me: Principal, stranger: Principal) -> None:
    await make_all(trail, me, *"abc", tags=["x"])
    await make_all(trail, stranger, *"def", tags=["wanted"])
    wanted = Selector(all_tags=["wanted"])
    assert await trail.log.read(0, by=me, selector=wanted) == ([], 6)
    (late,) = await make_all(trail, me, "late", tags=["wanted"])
    events, looked_at = await trail.log.read(6, by=me, selector=wanted)
    assert ([event.breadcrumb_id for event in events], looked_at) == ([late], 7)


@pytest.mark.req("RCR-23")
async def test_a_selector_decides_by_the_version_of_the_event(trail: Trail, me: Principal) -> None:
    made = await make(trail, me, "A", tags=["x"], context={"n": 1})
    await trail.records.update(made.id, Change(tags=["y"], context={"n": 2}), expect=1, by=me)

    async def versions(selector: Selector) -> list[int]:
        return [event.version for event in (await trail.log.read(0, by=me, selector=selector))[0]]

    assert await versions(Selector(all_tags=["x"])) == [1]
    assert await versions(Selector(all_tags=["y"])) == [2]
    assert await versions(Selector(context_match=[ContextMatch(path="n", value=2)])) == [2]
    assert await versions(Selector(context_match=[ContextMatch(path="n", op="lte", value=2)])) == [1, 2]
    await trail.records.delete(made.id, by=me)
    assert len(await versions(Selector(all_tags=["y"], context_match=[ContextMatch(path="n", value=7)]))) == 2


@pytest.mark.parametrize("limit", [0, -1, 10_001])
async def test_an_absurd_limit_is_refused(trail: Trail, me: Principal, limit: int) -> None:
    with pytest.raises(InvalidInput):
        await trail.log.read(0, by=me, limit=limit)


async def test_numbers_never_repeat_also_after_deleting_all_and_reopening(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    for id in await make_all(trail, me, "a", "b"):
        await trail.records.delete(id, by=me)
    await trail.close()
    again = await open_again()
    assert await again.log.head() == 4
    await make(again, me)
    assert [event.seq for event in await read_log(again, me)] == [1, 2, 3, 4, 5]


async def test_events_keep_their_order_and_times_while_the_clock_jumps(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    for jump in (5, -500, 3, -1, 0, 400):
        clock.advance(seconds=jump)
        await make(trail, me)
    events = await read_log(trail, me)
    assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6]
    assert [event.at for event in events] == sorted(event.at for event in events)


async def test_the_log_of_writers_at_once_has_the_order_of_creation(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    other = await open_again()
    await asyncio.gather(*(make(each, me, f"Note {number}") for number, each in enumerate([trail, other] * 30)))
    events = await read_log(other, me)
    assert [event.seq for event in events] == list(range(1, 61))
    assert [event.breadcrumb_id for event in events] == [each.id for each in await list_all(trail, me)]


async def test_expiry_is_logged_when_hygiene_removes(trail: Trail, me: Principal, clock: ManualClock) -> None:
    made = await make(trail, me, tags=["t"], ttl=lasting(clock, seconds=1))
    clock.advance(seconds=2)
    await trail.upkeep.purge()
    last = (await read_log(trail, me))[-1]
    assert (last.type, last.breadcrumb_id, last.tags, last.at) == ("breadcrumb.deleted", made.id, ("t",), clock.now())


# -- waiting ----------------------------------------------------------------------------------------------


async def test_waiting_ends_at_once_when_there_is_something_and_in_time_when_not(trail: Trail, me: Principal) -> None:
    assert not await trail.log.wait(0, 0.0)
    assert not await trail.log.wait(0, 0.05)
    await make(trail, me)
    assert await trail.log.wait(0, 0.0)
    assert not await trail.log.wait(1, 0.01)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same trail", "another open trail"])
async def test_a_write_wakes_waiting_callers(
    trail: Trail, open_again: OpenAgain, me: Principal, elsewhere: bool
) -> None:
    writer = await open_again() if elsewhere else trail
    waiting = [asyncio.ensure_future(trail.log.wait(0, PATIENCE)) for _ in range(5)]
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting)
    started = asyncio.get_running_loop().time()
    await make(writer, me)
    assert await asyncio.gather(*waiting) == [True] * 5
    assert asyncio.get_running_loop().time() - started < PATIENCE / 2


async def test_a_follower_gets_what_was_and_what_comes_in_order(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    old = await make_all(trail, me, *"abc")
    following = trail.log.follow(1, by=me)
    assert [event.breadcrumb_id for event in await take(following, 2)] == old[1:]
    live = asyncio.ensure_future(take(following, 3))
    new = [await make(writer, me) for writer in (trail, await open_again(), trail)]
    assert [event.breadcrumb_id for event in await live] == [each.id for each in new]


async def test_followers_see_only_what_they_asked_for_and_may_see(
    trail: Trail, me: Principal, stranger: Principal
) -> None:
    tagged = trail.log.follow(0, by=me, selector=Selector(all_tags=["x"]))
    waiting = asyncio.ensure_future(take(tagged, 2))
    await make_all(trail, stranger, "theirs", tags=["x"])
    await make_all(trail, me, "not tagged")
    wanted = await make_all(trail, me, "one", "two", tags=["x"])
    assert [event.breadcrumb_id for event in await waiting] == wanted


async def test_a_follower_that_is_given_up_leaves_the_others_alone(trail: Trail, me: Principal) -> None:
    kept, dropped = trail.log.follow(0, by=me), trail.log.follow(0, by=me)
    waiting = asyncio.ensure_future(take(kept, 1))
    given_up = asyncio.ensure_future(take(dropped, 1))
    await asyncio.sleep(0.01)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    made = await make(trail, me)
    assert (await waiting)[0].breadcrumb_id == made.id


async def test_event_times_are_aware_utc(trail: Trail, me: Principal) -> None:
    await make(trail, me)
    assert (await read_log(trail, me))[0].at.utcoffset() == timedelta(0)
