"""`Deliveries` with limits: they apply over all workers, and the groups of a consumer take turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.trail.model.breadcrumb import session_of
from clew.trail.model.event import Claim, ClaimLimits, Consumer
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import draft

pytestmark = pytest.mark.req("SYL-67")


async def line_up(trail: Trail, me: Principal, limits: ClaimLimits, sessions: Sequence[str], each: int) -> None:
    """Register a consumer with limits, and give it events: all of the first session, then of the next."""
    await trail.deliveries.register(Consumer(name="c", limits=limits, ordered=False), by=me)
    drafts = [draft(f"{name} {at}", tags=(f"session:{name}",)) for name in sessions for at in range(each)]
    await trail.records.create_many(drafts, by=me)


async def claim_from(trail: Trail, me: Principal, worker: str, limit: int = 100) -> list[Claim]:
    return await trail.deliveries.claim("c", by=me, worker=worker, limit=limit)


def sessions_of(claims: Sequence[Claim]) -> Counter[str | None]:
    return Counter(session_of(claim.event.tags) for claim in claims)


async def test_the_limits_hold_over_all_who_claim_at_once(trail: Trail, open_again: OpenAgain, me: Principal) -> None:
    await line_up(trail, me, ClaimLimits(workers=6, each=2), ["one", "two", "three", "four"], each=5)
    others = [trail, *[await open_again() for _ in range(3)]]
    found = await asyncio.gather(*(claim_from(other, me, f"w{at}") for at, other in enumerate(others)))
    claims = [claim for some in found for claim in some]

    assert len(claims) == 6
    assert max(sessions_of(claims).values()) == 2
    assert len({claim.event.seq for claim in claims}) == 6
    load = await trail.deliveries.load("c", by=me)
    assert load is not None
    assert (load.running, load.waiting) == (6, 14)


async def test_the_first_of_each_session_comes_before_the_second_of_any(trail: Trail, me: Principal) -> None:
    await line_up(trail, me, ClaimLimits(workers=4, each=4), ["loud", "quiet", "late"], each=10)
    assert sessions_of(await claim_from(trail, me, "w", limit=3)) == {"loud": 1, "quiet": 1, "late": 1}


async def test_a_claim_that_ends_makes_room_for_another(trail: Trail, me: Principal) -> None:
    await line_up(trail, me, ClaimLimits(workers=2, each=1), ["one", "two", "three"], each=2)
    first, second = await claim_from(trail, me, "w")
    assert await claim_from(trail, me, "w") == []
    await trail.deliveries.finish(first, [], by=me)
    [third] = await claim_from(trail, me, "w")
    assert sessions_of([first, second, third]) == {"one": 1, "two": 1, "three": 1}


async def test_a_worker_that_waits_for_a_seat_gets_the_one_that_is_freed(trail: Trail, me: Principal) -> None:
    await line_up(trail, me, ClaimLimits(workers=1, each=1), ["one", "two"], each=1)
    [held] = await claim_from(trail, me, "w")
    waiting = asyncio.ensure_future(trail.deliveries.claim("c", by=me, worker="next", wait=60.0))
    await trail.deliveries.release(held, by=me)
    async with asyncio.timeout(60.0):
        assert len(await waiting) == 1


async def test_the_seats_of_a_dead_worker_are_free_when_its_leases_end(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await line_up(trail, me, ClaimLimits(workers=2, each=2), ["one"], each=4)
    lost = await claim_from(trail, me, "dead")
    clock.advance(seconds=31)
    found = await claim_from(trail, me, "alive")
    assert {claim.event.seq for claim in found} == {claim.event.seq for claim in lost}
