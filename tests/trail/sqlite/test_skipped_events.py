"""Events that a waiting consumer does not want need no transaction, and no other event is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from clew.access import Principal
from clew.clock import SystemClock
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Claim, Consumer
from clew.trail.model.selector import Selector
from clew.trail.sqlite.consumers.claims import FAR
from clew.trail.sqlite.trail import SqliteTrail

ME = Principal(owner_id="me", agent_id="test")
PATIENCE = 60.0


@pytest.fixture
async def trail(tmp_path: Path) -> AsyncIterator[SqliteTrail]:
    opened = SqliteTrail(tmp_path / "trail.db", SystemClock())
    yield opened
    await opened.close()


async def register(trail: SqliteTrail, tag: str) -> None:
    await trail.deliveries.register(Consumer(name="c", selector=Selector(all_tags=(tag,))), by=ME)


async def write(trail: SqliteTrail, tag: str, count: int = 1) -> None:
    for _ in range(count):
        await trail.records.create(Draft(title=tag, context={}, tags=(tag,)), by=ME)


def wait_for_one(trail: SqliteTrail) -> asyncio.Future[list[Claim]]:
    return asyncio.ensure_future(trail.deliveries.claim("c", by=ME, worker="w", wait=PATIENCE))


async def cursor_of(trail: SqliteTrail) -> int:
    [state] = await trail.deliveries.consumers(by=ME)
    return state.cursor


async def test_a_wanted_event_after_many_others_is_claimed(trail: SqliteTrail) -> None:
    await register(trail, "wanted")
    waiting = wait_for_one(trail)
    await write(trail, "other", FAR + 20)
    await write(trail, "wanted")
    async with asyncio.timeout(PATIENCE):
        [claim] = await waiting
    assert claim.event.tags == ("wanted",)
    await trail.deliveries.finish(claim, [], by=ME)
    assert await cursor_of(trail) == await trail.log.head()


async def test_the_cursor_moves_past_skipped_events(trail: SqliteTrail) -> None:
    await register(trail, "wanted")
    waiting = asyncio.ensure_future(trail.deliveries.claim("c", by=ME, worker="w", wait=10 * PATIENCE))
    for _ in range(3):
        await write(trail, "other", 5)
        async with asyncio.timeout(PATIENCE):
            while await cursor_of(trail) < await trail.log.head():
                await asyncio.sleep(0.01)  # nothing tells that a cursor has moved
    assert not waiting.done()
    waiting.cancel()


async def test_a_stored_cursor_is_never_far_behind(trail: SqliteTrail) -> None:
    await register(trail, "wanted")
    waiting = wait_for_one(trail)
    await write(trail, "other", FAR + 1)
    assert await trail.log.head() - await cursor_of(trail) <= FAR
    await write(trail, "wanted")
    async with asyncio.timeout(PATIENCE):
        [claim] = await waiting
    assert claim.event.tags == ("wanted",)


async def test_a_selector_changed_while_its_cursor_is_far_behind_misses_nothing(
    trail: SqliteTrail, tmp_path: Path
) -> None:
    other = SqliteTrail(tmp_path / "trail.db", SystemClock())
    try:
        await register(trail, "wanted")
        waiting = wait_for_one(trail)
        await write(trail, "other", FAR - 1)
        await register(other, "changed")
        await write(trail, "changed", 3)
        async with asyncio.timeout(PATIENCE):
            [claim] = await waiting
        assert claim.event.seq == await trail.log.head() - 2
    finally:
        await other.close()


async def test_a_selector_changed_by_another_process_applies_at_once(trail: SqliteTrail, tmp_path: Path) -> None:
    other = SqliteTrail(tmp_path / "trail.db", SystemClock())
    try:
        await register(trail, "wanted")
        waiting = wait_for_one(trail)
        await write(trail, "other", 3)
        await register(other, "changed")
        await write(trail, "changed")
        async with asyncio.timeout(PATIENCE):
            [claim] = await waiting
        assert claim.event.tags == ("changed",)
    finally:
        await other.close()


async def test_a_second_claim_of_a_worker_gets_the_first_again_when_its_lease_ends(trail: SqliteTrail) -> None:
    await register(trail, "wanted")
    lease = timedelta(milliseconds=50)
    waiting = asyncio.ensure_future(trail.deliveries.claim("c", by=ME, worker="w", limit=5, lease=lease, wait=PATIENCE))
    await write(trail, "wanted")
    async with asyncio.timeout(PATIENCE):
        [first] = await waiting
        [second] = await trail.deliveries.claim("c", by=ME, worker="w", limit=5, wait=PATIENCE)
    assert (second.event.seq, second.attempt) == (first.event.seq, 1)


async def test_a_claim_that_another_process_lets_go_of_beside_a_commit_is_taken(
    trail: SqliteTrail, tmp_path: Path
) -> None:
    """A released claim brings no event, but a process that has just written must notice it."""
    other = SqliteTrail(tmp_path / "trail.db", SystemClock())
    try:
        await register(trail, "wanted")
        await write(trail, "wanted")
        [held] = await other.deliveries.claim("c", by=ME, worker="other", lease=timedelta(hours=1))
        waiting = asyncio.ensure_future(
            trail.deliveries.claim("c", by=ME, worker="w", lease=timedelta(hours=1), wait=10 * PATIENCE)
        )
        await write(trail, "other")
        await other.deliveries.release(held, by=ME)
        async with asyncio.timeout(PATIENCE):
            [claim] = await waiting
        assert claim.event.seq == held.event.seq
    finally:
        await other.close()


async def test_to_register_as_before_writes_nothing(trail: SqliteTrail, tmp_path: Path) -> None:
    await register(trail, "wanted")
    file = apsw.Connection(str(tmp_path / "trail.db"))
    before = file.execute("PRAGMA data_version").get
    await register(trail, "wanted")
    assert file.execute("PRAGMA data_version").get == before
    await register(trail, "changed")
    assert file.execute("PRAGMA data_version").get != before
    file.close()
