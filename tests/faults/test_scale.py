"""Many worker processes on PostgreSQL and NATS: each event is executed once, and draining workers lose nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from tests.faults.crew import ME, crew_handler, do_job, work_until_told
from tests.faults.engines import Engines, running_engines
from tests.faults.processes import Child, eventually, is_settled, open_at
from tests.faults.test_workers import NAME, job, job_of, outputs

LEASE = timedelta(seconds=30)
BATCH = 500


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    with running_engines() as found:
        yield found


@pytest.mark.slow
@pytest.mark.req("RCR-28")
@pytest.mark.req("RCR-22")
@pytest.mark.parametrize(("workers", "events"), [(4, 500), pytest.param(20, 10_000, marks=pytest.mark.full)])
async def test_each_event_is_executed_once_by_one_of_many_processes_while_some_of_them_drain(
    engines: Engines, tmp_path: Path, workers: int, events: int
) -> None:
    folder = engines.make_folder(tmp_path)
    trail = await open_at(folder)
    await trail.deliveries.register(crew_handler(do_job).consumer, by=ME)
    with ExitStack() as stack:
        crew = [stack.enter_context(Child(work_until_told, folder, LEASE)) for _ in range(workers)]
        assert [each.hear() for each in crew] == ["ready"] * workers
        made = list[str]()
        for first in range(0, events, BATCH):
            drafts = [job(f"s{number % 97}") for number in range(first, min(first + BATCH, events))]
            made += [each.id for each in await trail.records.create_many(drafts, by=ME)]
            if first == events // 2 // BATCH * BATCH:
                for each in crew[: workers // 4]:
                    each.tell("stop")
        await eventually(lambda: is_settled(trail, NAME, ME), "all jobs are done", 500.0)
        for each in crew[workers // 4 :]:
            each.tell("stop")
        assert [each.wait() for each in crew] == [0] * workers
    executions = Counter(int(line.split()[0]) for line in (folder / "notebook").read_text().splitlines())
    written = [job_of(each) for each in await outputs(trail)]
    await trail.close()
    assert len(made) == events
    assert (len(executions), set(executions.values())) == (events, {1})
    assert Counter(written) == executions
