"""Many worker processes on one file share the events, and take over from those that die."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from clew.clock import SystemClock
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import MAX_DEATHS
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.faults.crew import (
    ME,
    NAME,
    claim_and_wait,
    crew_handler,
    die_in_handler,
    do_job,
    stick_in_handler,
    work_until_told,
)
from tests.faults.processes import KILLED, PATIENCE, Child, drain, eventually, is_settled, open_at

WORKERS, EVENTS = 10, 1_000
LONG = timedelta(seconds=30)
LEASE = timedelta(seconds=4)
SHORT = timedelta(seconds=0.2)
SLACK = timedelta(seconds=20)
"""The time on a busy machine between the end of a lease and the output of another worker."""


@pytest.fixture
async def trail(folder: Path) -> AsyncIterator[Trail]:
    """The trail that the workers share, with the clock they use and their consumer."""
    opened = await open_at(folder)
    await opened.deliveries.register(crew_handler(do_job).consumer, by=ME)
    yield opened
    await opened.close()


def job(session: str | None = None) -> Draft:
    return Draft(title="Job", schema_name="job.v1", tags=(f"session:{session}",) if session else (), context={})


async def all_done(trail: Trail) -> None:
    await eventually(lambda: is_settled(trail, NAME, ME), "all jobs are done", 2 * PATIENCE)


async def outputs(trail: Trail) -> list[Breadcrumb]:
    found, cursor = list[Breadcrumb](), None
    while True:
        page = await trail.records.list(
            Selector(schema_name="done.v1"), by=ME, limit=1_000, cursor=cursor, oldest_first=True
        )
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


def job_of(output: Breadcrumb) -> int:
    return int(output.tags[0].removeprefix("event:"))


@pytest.mark.slow
@pytest.mark.req("RCR-28")
async def test_ten_processes_execute_a_thousand_events_a_thousand_times(trail: Trail, folder: Path) -> None:
    with ExitStack() as stack:
        crew = [stack.enter_context(Child(work_until_told, folder, LONG)) for _ in range(WORKERS)]
        assert [worker.hear() for worker in crew] == ["ready"] * WORKERS
        before = await trail.log.head()
        for _ in range(EVENTS // 100):
            await trail.records.create_many([job() for _ in range(100)], by=ME)
        await all_done(trail)
        for worker in crew:
            worker.tell("stop")
        assert [worker.wait() for worker in crew] == [0] * WORKERS

    executions = [line.split() for line in (folder / "notebook").read_text().splitlines()]
    jobs = [
        event.seq for event in (await trail.log.read(before, by=ME, limit=10_000))[0] if event.schema_name == "job.v1"
    ]
    assert len(jobs) == EVENTS
    assert Counter(int(seq) for seq, _ in executions) == Counter(jobs)
    assert Counter(job_of(output) for output in await outputs(trail)) == Counter(jobs)
    assert len({pid for _, pid in executions}) > 1, "the work was not shared"
    assert await trail.dead_letters.list(by=ME) == []


@pytest.mark.req("RCR-28")
@pytest.mark.req("RCR-22")
async def test_a_worker_killed_in_its_handler_costs_at_most_its_lease(trail: Trail, folder: Path) -> None:
    with Child(stick_in_handler, folder, LEASE) as stuck:
        seq = await start_job(trail, stuck)
        with Child(work_until_told, folder, LEASE) as other:
            assert other.hear() == "ready"
            stuck.kill()
            killed_at = SystemClock().now()
            left = await trail.deliveries.due_in(NAME, by=ME)
            await trail.records.create_many([job(f"s{number}") for number in range(5)], by=ME)
            await all_done(trail)

    assert left is not None
    assert 0 < left <= LEASE.total_seconds()
    *others, last = await outputs(trail)
    assert len(others) == 5
    assert job_of(last) == seq, "the other sessions waited for the dead worker"
    assert last.created_at >= killed_at + timedelta(seconds=left - 0.1), "the claim did not hold while it was leased"
    assert last.created_at <= killed_at + timedelta(seconds=left) + SLACK


async def start_job(trail: Trail, worker: Child) -> int:
    """Give a job to the only worker, and return the event that it has started."""
    assert worker.hear() == "ready"
    await trail.records.create(job("slow"), by=ME)
    said, seq = worker.hear()
    assert said == "started"
    return int(seq)


@pytest.mark.req("RCR-28")
async def test_a_worker_that_wakes_up_after_its_lease_writes_nothing(trail: Trail, folder: Path) -> None:
    with Child(stick_in_handler, folder, SHORT) as frozen:
        seq = await start_job(trail, frozen)
        frozen.pause()
        with Child(work_until_told, folder, SHORT):
            await all_done(trail)
        frozen.tell("finish")
        frozen.resume()
        await trail.records.create(job(), by=ME)
        said, following = frozen.hear()

    assert (said, following > seq) == ("started", True), "it has done with the first job"
    assert [job_of(output) for output in await outputs(trail)] == [seq]


@pytest.mark.req("RCR-22")
async def test_an_event_claimed_by_a_killed_process_comes_again_under_the_same_key(trail: Trail, folder: Path) -> None:
    await trail.records.create(job(), by=ME)
    with Child(claim_and_wait, folder, SHORT) as holder:
        seq, attempt, key = holder.hear()
        holder.kill()

    [claim] = await eventually(lambda: trail.deliveries.claim(NAME, by=ME, worker="next"), "the event comes again")
    assert (claim.event.seq, claim.key) == (seq, key)
    assert (attempt, claim.attempt) == (1, 1), "a death is no failed attempt"
    await trail.deliveries.finish(claim, [], by=ME)
    assert await is_settled(trail, NAME, ME)


@pytest.mark.req("SYL-113")
async def test_a_job_that_kills_every_worker_becomes_a_dead_letter_and_others_go_on(trail: Trail, folder: Path) -> None:
    bad = await trail.records.create(job("poisoned"), by=ME)
    for _ in range(MAX_DEATHS):
        with Child(die_in_handler, folder, SHORT) as victim:
            assert victim.hear() == "ready"
            assert victim.hear()[0] == "started"
            assert victim.wait() == KILLED
    good = await trail.records.create(job("healthy"), by=ME)
    await drain(trail, [crew_handler(do_job)], ME)

    [letter] = await trail.dead_letters.list(by=ME)
    assert letter.event.breadcrumb_id == bad.id
    assert letter.reason == f"{MAX_DEATHS} workers died with it"
    assert [await job_id(trail, output) for output in await outputs(trail)] == [good.id]

    await trail.dead_letters.replay(letter.id, by=ME)
    await drain(trail, [crew_handler(do_job)], ME)
    assert [await job_id(trail, output) for output in await outputs(trail)] == [good.id, bad.id]
    assert await trail.dead_letters.list(by=ME) == []


async def job_id(trail: Trail, output: Breadcrumb) -> str:
    [event], _ = await trail.log.read(job_of(output) - 1, by=ME, limit=1)
    return event.breadcrumb_id
