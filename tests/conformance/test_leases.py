"""`Deliveries`: claims that run out, are given back, finished with outputs, or fail."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AlreadyExists, InvalidInput, LeaseLost
from clew.trail.model.event import MAX_DEATHS, ClaimLimits, RetryPolicy
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import (
    LEASE,
    claim,
    claim_one,
    draft,
    list_titles,
    make,
    make_all,
    read_log,
    register,
    session,
    short,
    succeeds,
    titles,
)

# -- leases -----------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-22")
@pytest.mark.req("BEY-07")
async def test_an_event_whose_worker_died_is_claimed_again_after_its_lease(
    trail: Trail, open_again: OpenAgain, me: Principal, clock: ManualClock
) -> None:
    await register(trail, me)
    await make(trail, me, "a")
    lost = await claim_one(trail, me, "c")
    await trail.close()
    survivor = await open_again()
    clock.advance(seconds=29)
    assert await claim(survivor, me) == []
    assert await survivor.deliveries.due_in("c", by=me) == pytest.approx(1.0)
    clock.advance(seconds=1)
    (again,) = await claim(survivor, me)
    assert (again.event, again.attempt, again.key) == (lost.event, 1, lost.key)
    assert again.token != lost.token


@pytest.mark.req("BEY-07")
async def test_a_worker_that_lost_its_lease_can_write_nothing(trail: Trail, me: Principal, clock: ManualClock) -> None:
    await register(trail, me)
    await make(trail, me, "a")
    lost = await claim_one(trail, me, "c")
    clock.advance(seconds=30)
    (held,) = await claim(trail, me)
    for call in (
        trail.deliveries.finish(lost, [draft("twice")], by=me),
        trail.deliveries.finish(lost, [], by=me),
        trail.deliveries.fail(lost, "late", by=me),
        trail.deliveries.release(lost, by=me),
        trail.deliveries.extend(lost, by=me, lease=LEASE),
    ):
        with pytest.raises(LeaseLost):
            await call
    await trail.deliveries.finish(held, [draft("once")], by=me)
    assert await list_titles(trail, me) == ["a", "once"]


async def test_an_extended_lease_holds_for_longer(trail: Trail, me: Principal, clock: ManualClock) -> None:
    await register(trail, me)
    await make(trail, me, "a")
    held = await claim_one(trail, me, "c", lease=timedelta(seconds=10))
    clock.advance(seconds=9)
    longer = await trail.deliveries.extend(held, by=me, lease=timedelta(seconds=10))
    assert longer == msgspec.structs.replace(held, lease_until=clock.now() + timedelta(seconds=10))
    clock.advance(seconds=9)
    assert await claim(trail, me) == []
    await trail.deliveries.finish(longer, [], by=me)


async def test_a_clock_that_jumps_backwards_does_not_lengthen_a_lease_for_ever(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await register(trail, me)
    await make(trail, me, "a")
    await claim_one(trail, me, "c")
    clock.advance(seconds=60)
    assert len(await claim(trail, me, lease=timedelta(seconds=5))) == 1
    clock.advance(days=-1)
    assert await claim(trail, me) == []
    clock.advance(days=1, seconds=5)
    assert [each.attempt for each in await claim(trail, me)] == [1]


async def test_a_released_claim_can_be_claimed_at_once_and_does_not_count(trail: Trail, me: Principal) -> None:
    await register(trail, me, retry=RetryPolicy(attempts=1))
    await make(trail, me, "a")
    for _ in range(5):
        held = await claim_one(trail, me, "c")
        assert held.attempt == 1
        await trail.deliveries.release(held, by=me)
    with pytest.raises(LeaseLost):
        await trail.deliveries.release(held, by=me)


async def test_exactly_one_of_two_workers_that_finish_one_event_writes(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await register(trail, me)
    await make(trail, me, "a")
    lost = await claim_one(trail, me, "c")
    clock.advance(seconds=30)
    held = await claim_one(trail, me, "c")
    attempts = [trail.deliveries.finish(each, [draft("out")], by=me) for each in (lost, held, held, lost)]
    assert sum(await asyncio.gather(*(succeeds(attempt, LeaseLost) for attempt in attempts))) == 1
    assert await list_titles(trail, me) == ["a", "out"]


# -- finishing --------------------------------------------------------------------------------------------


@pytest.mark.req("BEY-07")
async def test_outputs_and_acknowledgement_are_written_together(trail: Trail, me: Principal) -> None:
    await register(trail, me)
    await make(trail, me, "a")
    held = await claim_one(trail, me, "c")
    written = await trail.deliveries.finish(held, [draft("x", tags=["t"]), draft("y")], by=me)
    assert [each.title for each in written] == ["x", "y"]
    assert [event.breadcrumb_id for event in await read_log(trail, me, after=1)] == [each.id for each in written]
    assert titles(await claim(trail, me)) == ["x", "y"]
    with pytest.raises(LeaseLost):
        await trail.deliveries.finish(held, [draft("z")], by=me)
    assert await list_titles(trail, me) == ["a", "x", "y"]


@pytest.mark.req("BEY-07")
@pytest.mark.parametrize("bad", ["invalid", "id taken"])
async def test_a_bad_output_writes_nothing_and_keeps_the_claim(trail: Trail, me: Principal, bad: str) -> None:
    await register(trail, me)
    taken = await make(trail, me, "a")
    held = await claim_one(trail, me, "c")
    output = draft("b", tags=[" no"]) if bad == "invalid" else draft("b", id=taken.id)
    with pytest.raises((InvalidInput, AlreadyExists)):
        await trail.deliveries.finish(held, [draft("fine"), output], by=me)
    assert await list_titles(trail, me) == ["a"]
    assert await trail.log.head() == 1
    await trail.deliveries.finish(held, [draft("fine")], by=me)
    assert await list_titles(trail, me) == ["a", "fine"]


@pytest.mark.req("BEY-07")
async def test_an_output_with_the_key_of_its_claim_is_written_once_by_any_worker(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    """A worker died after its effect and before the acknowledgement: the next worker recognises the effect."""
    await register(trail, me)
    await make(trail, me, "a")
    first = await claim_one(trail, me, "c")
    effect = await make(trail, me, "effect", idempotency_key=first.key)
    clock.advance(seconds=31)
    (second,) = [each for each in await claim(trail, me) if each.event.seq == first.event.seq]
    (output,) = await trail.deliveries.finish(second, [draft("effect", idempotency_key=second.key)], by=me)
    assert output.id == effect.id
    assert await list_titles(trail, me) == ["a", "effect"]


# -- failing ----------------------------------------------------------------------------------------------


@pytest.mark.req("SYL-112")
@pytest.mark.req("O16")
async def test_a_transient_failure_succeeds_on_retry_and_attempts_are_counted(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await register(trail, me, retry=RetryPolicy(attempts=3, backoff=2.0))
    await make(trail, me, "a")
    for attempt in (1, 2):
        held = await claim_one(trail, me, "c")
        assert held.attempt == attempt
        assert not await trail.deliveries.fail(held, "flaky", by=me)
        assert await claim(trail, me) == []
        clock.advance(seconds=10)
    held = await claim_one(trail, me, "c")
    assert held.attempt == 3
    await trail.deliveries.finish(held, [], by=me)
    clock.advance(days=1)
    assert await claim(trail, me) == []


@pytest.mark.req("SYL-112")
async def test_waiting_doubles_up_to_its_limit(trail: Trail, me: Principal, clock: ManualClock) -> None:
    await register(trail, me, retry=RetryPolicy(attempts=10, backoff=4.0, backoff_limit=10.0))
    await make(trail, me, "a")
    for expected in (4.0, 8.0, 10.0, 10.0):
        await trail.deliveries.fail(await claim_one(trail, me, "c"), "again", by=me)
        wait = await trail.deliveries.due_in("c", by=me)
        assert wait is not None
        assert 0.75 * expected <= wait <= 1.25 * expected
        clock.advance(seconds=wait - 0.001)
        assert await claim(trail, me) == []
        clock.advance(seconds=0.002)


@pytest.mark.req("SYL-112")
async def test_attempts_run_out(trail: Trail, me: Principal, clock: ManualClock) -> None:
    await register(trail, me, retry=RetryPolicy(attempts=2, backoff=0.0))
    await make(trail, me, "a")
    assert not await trail.deliveries.fail(await claim_one(trail, me, "c"), "one", by=me)
    assert await trail.deliveries.fail(await claim_one(trail, me, "c"), "two", by=me)
    assert await claim(trail, me) == []
    assert await trail.deliveries.due_in("c", by=me) is None


@pytest.mark.req("SYL-112")
async def test_nothing_is_tried_after_its_deadline(trail: Trail, me: Principal, clock: ManualClock) -> None:
    await register(trail, me, retry=RetryPolicy(attempts=100, backoff=1.0, deadline=60.0))
    await make_all(trail, me, "in time", "too late")
    first, second = await claim(trail, me, lease=timedelta(seconds=100))
    assert not await trail.deliveries.fail(first, "again", by=me)
    clock.advance(seconds=61)
    assert await trail.deliveries.fail(second, "again", by=me)
    assert await claim(trail, me) == []
    assert {each.event.seq for each in await trail.dead_letters.list(by=me)} == {first.event.seq, second.event.seq}


@pytest.mark.req("SYL-112")
@pytest.mark.parametrize("is_told", [True, False], ids=["known to be dead", "silent"])
async def test_deaths_of_workers_are_no_failed_attempts(
    trail: Trail, me: Principal, clock: ManualClock, is_told: bool
) -> None:
    await register(trail, me, retry=RetryPolicy(attempts=2, backoff=0.0))
    await make(trail, me, "a")

    async def die() -> None:
        assert (await claim_one(trail, me, "c")).attempt == 1
        if is_told:
            assert await trail.deliveries.abandon("w", by=me) == 1
        clock.advance(seconds=0 if is_told else 31)

    for _ in range(5):
        await die()
    assert not await trail.deliveries.fail(await claim_one(trail, me, "c"), "one", by=me)
    held = await claim_one(trail, me, "c")
    assert held.attempt == 2
    await trail.deliveries.finish(held, [], by=me)


@pytest.mark.req("SYL-112")
@pytest.mark.req("SYL-116")
async def test_an_event_that_kills_its_workers_becomes_a_dead_letter_in_the_end(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await register(trail, me, retry=RetryPolicy(attempts=2))
    await make(trail, me, "poison")
    for _ in range(MAX_DEATHS):
        await claim_one(trail, me, "c")
        clock.advance(seconds=31)
    await make(trail, me, "next")
    assert titles(await claim(trail, me, limit=1)) == ["next"]
    (letter,) = await trail.dead_letters.list(by=me)
    assert (letter.event.seq, letter.reason) == (1, f"{MAX_DEATHS} workers died with it")


@pytest.mark.req("SYL-113")
@pytest.mark.parametrize("limits", [None, ClaimLimits(workers=2)], ids=["free", "limited"])
async def test_an_event_that_killed_too_many_workers_can_be_claimed_to_be_ended(
    trail: Trail, me: Principal, clock: ManualClock, limits: ClaimLimits | None
) -> None:
    await register(trail, me, limits=limits)
    await make(trail, me, "poison")
    for _ in range(MAX_DEATHS):
        assert (await claim_one(trail, me, "c", with_refused=True)).refusal == ""
        clock.advance(seconds=31)
    for deaths in (MAX_DEATHS, MAX_DEATHS + 1):  # the first worker that should end it dies too
        held = await claim_one(trail, me, "c", with_refused=True)
        assert (titles([held]), held.refusal) == (["poison"], f"{deaths} workers died with it")
        assert await trail.deliveries.claim("c", by=me, worker="other", with_refused=True) == []
        clock.advance(seconds=31 if deaths == MAX_DEATHS else 0)
    await trail.deliveries.finish(held, [draft("instead")], by=me)
    assert titles(await claim(trail, me)) == ["instead"]
    assert not await trail.dead_letters.list(by=me)


async def test_an_event_past_its_deadline_can_be_claimed_to_be_ended(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await register(trail, me, retry=RetryPolicy(deadline=60.0))
    await make(trail, me, "late")
    await claim_one(trail, me, "c")
    clock.advance(seconds=61)
    held = await claim_one(trail, me, "c", with_refused=True)
    assert held.refusal == "past its deadline"
    assert await trail.deliveries.fail(held, held.refusal, by=me, retry=False)
    (letter,) = await trail.dead_letters.list(by=me)
    assert letter.reason == "past its deadline"


@pytest.mark.parametrize("reason", ["", "x" * 100_000, "nul \x00", "🧵", "שלום"], ids=short)
async def test_any_reason_is_kept_as_far_as_it_fits(trail: Trail, me: Principal, reason: str) -> None:
    await register(trail, me)
    await make(trail, me, "a")
    assert await trail.deliveries.fail(await claim_one(trail, me, "c"), reason, by=me, retry=False)
    (letter,) = await trail.dead_letters.list(by=me)
    assert letter.reason == reason[: len(letter.reason)]
    assert len(letter.reason) >= min(len(reason), 1_000)


async def test_a_reason_that_is_no_unicode_does_not_keep_the_event_from_failing(trail: Trail, me: Principal) -> None:
    """Error messages quote file names and bytes of other programs."""
    await register(trail, me)
    await make(trail, me, "a")
    assert await trail.deliveries.fail(await claim_one(trail, me, "c"), "no file \udcff", by=me, retry=False)


async def test_due_in_tells_when_the_next_claim_is_worth_while(trail: Trail, me: Principal, clock: ManualClock) -> None:
    await register(trail, me)
    assert await trail.deliveries.due_in("c", by=me) is None
    await session(trail, me, "A", "A1", "A2")
    await claim_one(trail, me, "c", lease=timedelta(seconds=20))
    assert await trail.deliveries.due_in("c", by=me) == pytest.approx(20.0)
    clock.advance(seconds=50)
    assert await trail.deliveries.due_in("c", by=me) == 0.0
