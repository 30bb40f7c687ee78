"""Kill the process at every event boundary of a chain of handlers: the end is that of the uninterrupted run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clew.trail.store import Trail
from tests.faults.chain import EVENTS, ME, NOWHERE, POINTS, Doom, Outside, consumers, record, run_chain
from tests.faults.processes import KILLED, Child, eventually, open_at

BOUNDARIES = [Doom(step, name, point) for step, name in EVENTS for point in POINTS]


@asynccontextmanager
async def accepted_job(folder: Path) -> AsyncIterator[Trail]:
    """A trail with the consumers of the chain and one acknowledged request."""
    trail = await open_at(folder)
    try:
        for consumer in consumers():
            await trail.deliveries.register(consumer, by=ME)
        await trail.records.create(record("request.v1", "job"), by=ME)
        yield trail
    finally:
        await trail.close()


async def run_to_the_end(trail: Trail, folder: Path) -> None:
    with Child(run_chain, folder, NOWHERE) as child:
        assert child.hear() == "ready"
        await eventually(lambda: is_at_rest(trail), "the chain has come to rest")


async def is_at_rest(trail: Trail) -> bool:
    """Whether no consumer has work left, and nothing was written during the check."""
    head = await trail.log.head()
    states = await trail.deliveries.consumers(by=ME)
    idle = all(state.cursor >= head and state.pending + state.claimed == 0 for state in states)
    return idle and await trail.log.head() == head


async def final_state(trail: Trail, folder: Path) -> dict[str, Any]:
    """The comparable result of a run, without ids, times and the order across steps."""
    records = (await trail.records.list(by=ME, limit=1_000)).items
    events, _ = await trail.log.read(0, by=ME)
    return {
        "records": sorted((one.schema_name, one.title, one.tags, one.version, str(one.context)) for one in records),
        "events": sorted((event.type, event.schema_name, event.version) for event in events),
        "effects": Outside(folder).effects(),
        "dead letters": await trail.dead_letters.list(by=ME),
        "damage": await trail.upkeep.check(),
    }


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The final state of an undisturbed run."""

    async def run(folder: Path) -> dict[str, Any]:
        async with accepted_job(folder) as trail:
            await run_to_the_end(trail, folder)
            return await final_state(trail, folder)

    return asyncio.run(run(tmp_path_factory.mktemp("uninterrupted")))


def test_the_uninterrupted_run_does_each_step_once(uninterrupted: dict[str, Any]) -> None:
    assert [record[1] for record in uninterrupted["records"]] == [
        "draft.v1 job-1",
        "draft.v1 job-2",
        "final.v1 job-1",
        "final.v1 job-2",
        "request.v1 job",
        "result.v1 job-1",
        "result.v1 job-2",
    ]
    assert uninterrupted["effects"] == ["job-1", "job-2"]


@pytest.mark.req("BEY-07")
@pytest.mark.parametrize("doom", BOUNDARIES, ids=lambda doom: f"{doom.step}-{doom.name}-{doom.point}")
async def test_a_kill_at_this_boundary_changes_nothing_in_the_end(
    doom: Doom, folder: Path, uninterrupted: dict[str, Any]
) -> None:
    async with accepted_job(folder) as trail:
        with Child(run_chain, folder, doom) as doomed:
            assert doomed.hear() == "ready"
            assert doomed.wait() == KILLED
        await run_to_the_end(trail, folder)

        assert await final_state(trail, folder) == uninterrupted
