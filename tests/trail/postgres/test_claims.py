"""Claims on PostgreSQL with other workers: the time of the next read, and events that are left to others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest

from clew.access import Principal
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Claim, Consumer
from clew.trail.postgres.consumers import deliveries as module
from clew.trail.postgres.consumers.claims import Claimed, ClaimRequest
from clew.trail.postgres.consumers.deliveries import PostgresDeliveries
from clew.trail.store import Trail

pytestmark = [pytest.mark.req("BEY-07"), pytest.mark.req("RCR-22")]

PATIENCE = 60.0
LONG = timedelta(hours=1)


@pytest.fixture
async def trail(address: str, me: Principal) -> AsyncIterator[Trail]:
    """A trail with a consumer and one event for it."""
    trail = await open_trail(address)
    await trail.deliveries.register(Consumer(name="c"), by=me)
    await trail.records.create(Draft(title="Work", context={}), by=me)
    yield trail
    await trail.close()


async def claim_one(trail: Trail, me: Principal, *, wait: float = 0.0) -> list[Claim]:
    return await trail.deliveries.claim("c", by=me, worker="w", lease=LONG, wait=wait)


async def test_an_event_released_during_a_claim_is_claimed_without_a_poll(
    trail: Trail, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    [held] = await claim_one(trail, me)
    monkeypatch.setattr(module, "POLL", 1_000.0)
    claim_now = PostgresDeliveries._claim_now
    freed = []

    async def claim_and_free(deliveries: PostgresDeliveries, request: ClaimRequest) -> Claimed:
        found = await claim_now(deliveries, request)
        if not freed:
            freed.append(held)
            await trail.deliveries.release(held, by=me)
        return found

    monkeypatch.setattr(PostgresDeliveries, "_claim_now", claim_and_free)
    async with asyncio.timeout(PATIENCE):
        [again] = await claim_one(trail, me, wait=PATIENCE)
    assert again.event == held.event


async def test_an_event_that_another_worker_is_claiming_is_not_asked_for_again_and_again(
    trail: Trail, address: str, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    [held] = await claim_one(trail, me)
    await trail.deliveries.release(held, by=me)
    monkeypatch.setattr(module, "POLL", 1_000.0)
    monkeypatch.setattr(module, "SHORTEST_WAIT", 1_000.0)
    claim_now = PostgresDeliveries._claim_now
    looks = []

    async def count(deliveries: PostgresDeliveries, request: ClaimRequest) -> Claimed:
        looks.append(request)
        return await claim_now(deliveries, request)

    monkeypatch.setattr(PostgresDeliveries, "_claim_now", count)
    with psycopg.connect(address) as other:
        other.execute("SELECT set_config('clew.system', 'on', true)")
        assert other.execute("SELECT seq FROM deliveries FOR UPDATE").fetchall() == [(held.event.seq,)]
        assert await claim_one(trail, me, wait=0.5) == []
    assert len(looks) == 1
    [again] = await claim_one(trail, me)
    assert again.event == held.event


async def test_a_worker_whose_cursor_another_is_moving_puts_no_event_in_twice(
    trail: Trail, address: str, me: Principal
) -> None:
    await trail.records.create(Draft(title="More work", context={}), by=me)
    head = await trail.log.head()
    with psycopg.connect(address) as other, psycopg.connect(address, autocommit=True) as watcher:
        other.execute("SELECT set_config('clew.system', 'on', true)")
        other.execute("UPDATE consumers SET cursor = %s WHERE name = 'c'", (head - 1,))
        claiming = asyncio.create_task(claim_one(trail, me))
        async with asyncio.timeout(PATIENCE):
            while watcher.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is None:
                await asyncio.sleep(0.005)
        other.commit()
    found = [*await claiming, *await claim_one(trail, me), *await claim_one(trail, me)]
    assert [claim.event.seq for claim in found] == [head]
