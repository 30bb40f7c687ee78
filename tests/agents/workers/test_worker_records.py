"""Records and signs of life of workers: the list of live workers, and the records of an idle process."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.access import Principal
from clew.agents.workers.worker_records import KEPT, LIFETIME, RENEWAL, WorkerRecords, list_workers
from clew.clock import ManualClock
from clew.trail.store import Trail
from tests.agents.runtimes import running
from tests.faults.processes import open_at

HOUR = 3_600


@pytest.fixture
def records(trail: Trail, clock: ManualClock, me: Principal) -> WorkerRecords:
    return WorkerRecords(trail, clock, by=me, roles=["tools"])


async def test_a_worker_is_listed_until_it_ends_or_is_silent_for_too_long(
    trail: Trail, clock: ManualClock, me: Principal, records: WorkerRecords
) -> None:
    await records.announce(["place:shop"])
    (before,) = await list_workers(trail, clock, by=me)
    assert (before.roles, before.tags, before.state, before.held) == (("tools",), ("place:shop",), "working", ())
    await records.write("draining")
    (after,) = await list_workers(trail, clock, by=me)
    assert (after.name, after.state) == (before.name, "draining")
    clock.advance(seconds=LIFETIME.total_seconds() + 1)
    assert await list_workers(trail, clock, by=me) == []
    await records.write()
    (again,) = await list_workers(trail, clock, by=me)
    assert again.seen_at == clock.now()
    await records.withdraw()
    assert await list_workers(trail, clock, by=me) == []
    assert [each.consumer.name for each in await trail.deliveries.consumers(by=me)] == []


async def test_an_idle_hour_of_a_process_leaves_no_event_and_no_larger_file(tmp_path: Path, me: Principal) -> None:
    clock = ManualClock()
    trail = await open_at(tmp_path, clock=clock)
    records = WorkerRecords(trail, clock, by=me, roles=["tools"])
    async with running(trail, clock, me, []) as run:
        await records.write()
        head, size = await trail.log.head(), await size_of(trail, tmp_path)
        for _ in range(int(HOUR / RENEWAL)):
            clock.advance(seconds=RENEWAL)
            await records.write()
            await run.runtime.parts.hosts.announce()
        assert await trail.log.head() == head
        assert await size_of(trail, tmp_path) <= size
        (still,) = await list_workers(trail, clock, by=me)
        assert still.seen_at == clock.now()
    await trail.close()


async def size_of(trail: Trail, folder: Path) -> int:
    """Pages of the file that are in use, in bytes."""
    engine = trail._engine  # type: ignore[attr-defined]  # no public interface offers this
    pages, free, size = (engine.read(lambda sql, of=of: sql.execute(f"PRAGMA {of}").get) for of in PRAGMAS)
    return int((pages - free) * size)


PRAGMAS = ("page_count", "freelist_count", "page_size")


async def test_the_record_of_a_process_that_runs_for_days_does_not_expire(
    trail: Trail, clock: ManualClock, me: Principal, records: WorkerRecords
) -> None:
    for _ in range(10):
        await records.write()
        assert len(await list_workers(trail, clock, by=me)) == 1
        clock.advance(seconds=KEPT.total_seconds() / 4)
