"""`DeadLetters`: events that a consumer gave up on are kept with the reason, and can be replayed."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import NotFound
from clew.trail.model.event import Claim, Consumer, RetryPolicy
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import claim_one, draft, list_titles, make, make_all, short, succeeds

pytestmark = [pytest.mark.req("SYL-113"), pytest.mark.req("O16")]


async def bury(trail: Trail, by: Principal, *titles: str, consumer: str = "c", tags: tuple[str, ...] = ()) -> None:
    """Write breadcrumbs and let the consumer give up on each."""
    await trail.deliveries.register(Consumer(name=consumer, retry=RetryPolicy(attempts=1)), by=by)
    await make_all(trail, by, *titles, tags=tags)
    for title in titles:
        held = await claim_one(trail, by, consumer)
        assert await trail.deliveries.fail(held, f"{title} broke", by=by)


async def claim(trail: Trail, by: Principal) -> list[Claim]:
    return await trail.deliveries.claim("c", by=by, worker="w", limit=100)


async def test_letters_are_listed_oldest_first_with_event_reason_and_time(
    trail: Trail, open_again: OpenAgain, me: Principal, clock: ManualClock
) -> None:
    clock.advance(seconds=3)
    await bury(trail, me, "a", "b", "c")
    await trail.close()
    letters = await (await open_again()).dead_letters.list(by=me)
    assert [letter.reason for letter in letters] == ["a broke", "b broke", "c broke"]
    assert [letter.event.seq for letter in letters] == [1, 2, 3]
    assert {(letter.consumer, letter.attempts, letter.failed_at) for letter in letters} == {("c", 1, clock.now())}
    assert [letter.event.breadcrumb.title for letter in letters if letter.event.breadcrumb] == ["a", "b", "c"]
    assert len({letter.id for letter in letters}) == 3


async def test_letters_can_be_listed_by_consumer_and_up_to_a_limit(trail: Trail, me: Principal) -> None:
    await bury(trail, me, "a", "b", consumer="x")
    await bury(trail, me, "c", consumer="y")
    assert [letter.reason for letter in await trail.dead_letters.list(by=me, consumer="y")] == ["c broke"]
    assert [letter.reason for letter in await trail.dead_letters.list(by=me, limit=2)] == ["a broke", "b broke"]
    assert list(await trail.dead_letters.list(by=me, consumer="z")) == []


async def test_a_replay_after_the_fix_delivers_once_with_all_attempts(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await bury(trail, me, "a")
    (letter,) = await trail.dead_letters.list(by=me)
    await trail.dead_letters.replay(letter.id, by=me)
    assert list(await trail.dead_letters.list(by=me)) == []
    (held,) = await claim(trail, me)
    assert (held.event.seq, held.event.breadcrumb, held.attempt) == (1, letter.event.breadcrumb, 1)
    await trail.deliveries.finish(held, [draft("done")], by=me)
    clock.advance(days=1)
    assert [each.event.breadcrumb_id for each in await claim(trail, me)] != [letter.event.breadcrumb_id]
    assert await list_titles(trail, me) == ["a", "done"]
    with pytest.raises(NotFound):
        await trail.dead_letters.replay(letter.id, by=me)


async def test_one_of_many_concurrent_replays_succeeds(trail: Trail, me: Principal) -> None:
    await bury(trail, me, "a")
    (letter,) = await trail.dead_letters.list(by=me)
    attempts = [succeeds(trail.dead_letters.replay(letter.id, by=me), NotFound) for _ in range(10)]
    assert sum(await asyncio.gather(*attempts)) == 1
    assert len(await claim(trail, me)) == 1


async def test_a_replayed_letter_that_fails_again_is_listed_again(trail: Trail, me: Principal) -> None:
    await bury(trail, me, "a")
    (letter,) = await trail.dead_letters.list(by=me)
    await trail.dead_letters.replay(letter.id, by=me)
    await trail.deliveries.fail(await claim_one(trail, me, "c"), "still broken", by=me)
    (again,) = await trail.dead_letters.list(by=me)
    assert (again.id, again.reason, again.attempts) == (letter.id, "still broken", 1)


@pytest.mark.req("SYL-112")
async def test_a_replay_starts_the_deadline_anew(trail: Trail, me: Principal, clock: ManualClock) -> None:
    retry = RetryPolicy(attempts=3, backoff=1.0, deadline=60.0)
    await trail.deliveries.register(Consumer(name="c", retry=retry), by=me)
    await make(trail, me, "a")
    assert await trail.deliveries.fail(await claim_one(trail, me, "c"), "no", by=me, retry=False)
    clock.advance(hours=5)
    (letter,) = await trail.dead_letters.list(by=me)
    await trail.dead_letters.replay(letter.id, by=me)
    assert not await trail.deliveries.fail(await claim_one(trail, me, "c"), "again", by=me)


@pytest.mark.req("SYL-116")
async def test_a_replayed_letter_waits_while_its_session_is_busy(trail: Trail, me: Principal) -> None:
    await bury(trail, me, "a", tags=("session:s",))
    await make(trail, me, "b", tags=["session:s"])
    busy = await claim_one(trail, me, "c")
    (letter,) = await trail.dead_letters.list(by=me)
    await trail.dead_letters.replay(letter.id, by=me)
    assert await claim(trail, me) == []
    await trail.deliveries.finish(busy, [], by=me)
    assert [each.event.seq for each in await claim(trail, me)] == [letter.event.seq]


@pytest.mark.req("SYL-116")
async def test_replayed_letters_come_before_the_events_of_their_session_that_wait(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await bury(trail, me, "a", "b", tags=("session:s",))
    await trail.deliveries.register(Consumer(name="c", retry=RetryPolicy(attempts=2, backoff=60.0)), by=me)
    await make_all(trail, me, "d", "e", tags=["session:s"])
    assert not await trail.deliveries.fail(await claim_one(trail, me, "c"), "not yet", by=me)
    for letter in reversed(await trail.dead_letters.list(by=me)):
        await trail.dead_letters.replay(letter.id, by=me)
    handled = []
    while held := await claim(trail, me):
        handled += [each.event.seq for each in held]
        await trail.deliveries.finish(held[0], [], by=me)
    assert handled == [1, 2]
    clock.advance(minutes=2)
    assert [(each.event.seq, each.attempt) for each in await claim(trail, me)] == [(3, 2)]


async def test_a_dropped_letter_is_gone(trail: Trail, me: Principal) -> None:
    await bury(trail, me, "a", "b")
    first, second = await trail.dead_letters.list(by=me)
    await trail.dead_letters.drop(first.id, by=me)
    assert [letter.id for letter in await trail.dead_letters.list(by=me)] == [second.id]
    for call in (trail.dead_letters.drop(first.id, by=me), trail.dead_letters.replay(first.id, by=me)):
        with pytest.raises(NotFound):
            await call
    assert await claim(trail, me) == []


async def test_a_letter_outlives_its_breadcrumb_but_not_its_consumer(trail: Trail, me: Principal) -> None:
    await bury(trail, me, "a")
    (letter,) = await trail.dead_letters.list(by=me)
    await trail.records.delete(letter.event.breadcrumb_id, by=me)
    (left,) = await trail.dead_letters.list(by=me)
    assert left == msgspec.structs.replace(letter, event=msgspec.structs.replace(letter.event, breadcrumb=None))
    await trail.deliveries.unregister("c", by=me)
    assert list(await trail.dead_letters.list(by=me)) == []


@pytest.mark.parametrize(
    "id", ["", "x", "1", "1-", "-1", "1-1-1", "0-0", "9" * 40 + "-1", "1-²", "1 - 1", "🧵"], ids=short
)
async def test_an_id_that_no_letter_has_is_not_found(trail: Trail, me: Principal, id: str) -> None:
    await bury(trail, me, "a")
    for call in (trail.dead_letters.replay(id, by=me), trail.dead_letters.drop(id, by=me)):
        with pytest.raises(NotFound):
            await call


async def test_an_event_that_is_pending_or_claimed_is_no_letter(trail: Trail, me: Principal) -> None:
    await bury(trail, me, "a")
    (letter,) = await trail.dead_letters.list(by=me)
    await trail.dead_letters.replay(letter.id, by=me)
    for _ in range(2):
        with pytest.raises(NotFound):
            await trail.dead_letters.drop(letter.id, by=me)
        await trail.deliveries.claim("c", by=me, worker="w")
