"""The lease on the ledger of a source, with changed clocks and dead holders."""

from __future__ import annotations

import asyncio

import pytest

from clew.access import Principal
from clew.catalog.indexing import source_ledger
from clew.catalog.indexing.document_nodes import SourcePlace
from clew.catalog.indexing.source_ledger import SourceEntry, SourceLedger, now_ms
from clew.clock import ManualClock
from clew.errors import SourceError
from clew.trail.store import Trail

PATIENCE = 60.0
LEASE_MS = 50


@pytest.fixture
def place(me: Principal) -> SourcePlace:
    return SourcePlace(owner_id=me.owner_id, domain="docs", source_id="memory:one")


def held_by(holder: str, until: int) -> SourceEntry:
    return SourceEntry(domain="docs", source_id="memory:one", holder=holder, held_until=until)


@pytest.mark.parametrize("days", [0, 1, 400])
async def test_the_ledger_of_a_killed_process_is_taken_over_even_after_the_clock_was_set_back(
    trail: Trail, place: SourcePlace, me: Principal, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    monkeypatch.setattr(source_ledger, "LEASE_MS", LEASE_MS)
    await SourceLedger(trail, place, by=me, clock=clock).write(held_by("killed", now_ms(clock) + LEASE_MS))
    clock.advance(days=-days, milliseconds=0 if days else LEASE_MS)
    heir = SourceLedger(trail, place, by=me, clock=clock, lease_ms=LEASE_MS)
    async with heir.hold(int(1_000 * PATIENCE)) as before:
        assert before.holder == "killed"
        heir.check_held()
    found = await heir.find()
    assert found is not None
    assert found.holder == ""


async def test_a_clock_that_was_set_back_does_not_steal_a_ledger(
    trail: Trail, place: SourcePlace, me: Principal, clock: ManualClock
) -> None:
    await SourceLedger(trail, place, by=me, clock=clock).write(held_by("alive", now_ms(clock) + LEASE_MS))
    clock.advance(days=-1)
    with pytest.raises(SourceError, match="is being refreshed by another process"):
        async with SourceLedger(trail, place, by=me, clock=clock).hold(0):
            pass


async def test_the_loser_of_a_ledger_gets_an_error(
    trail: Trail, place: SourcePlace, me: Principal, clock: ManualClock
) -> None:
    robbed, ahead = SourceLedger(trail, place, by=me, clock=clock, lease_ms=LEASE_MS), ManualClock(clock.now())
    ahead.advance(days=1)
    async with robbed.hold(0):
        robbed.check_held()
        async with SourceLedger(trail, place, by=me, clock=ahead).hold(0):
            with pytest.raises(SourceError, match="made no progress for too long"):
                await until_it_is_told(robbed)


async def until_it_is_told(book: SourceLedger) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            book.check_held()
            await asyncio.sleep(LEASE_MS / 1_000)
