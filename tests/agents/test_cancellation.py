"""Work that is called off by a breadcrumb."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from clew.access import Principal
from clew.agents.runs.cancellation import RunCancellation, RunCancelled
from clew.errors import StorageError
from clew.trail.bootstrap import bootstrap, read_pieces
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow, shipped_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

FLOW: Flow = shipped_flow(read_pieces())


@asynccontextmanager
async def following(trail: Trail, me: Principal) -> AsyncIterator[RunCancellation]:
    await bootstrap(trail, me)
    cancelling = RunCancellation(trail, FLOW, by=me)
    task = asyncio.create_task(cancelling.follow(await trail.log.head()))
    try:
        yield cancelling
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def call_off(trail: Trail, me: Principal, run: str) -> None:
    draft = Draft(title="Cancel", schema_name=FLOW.cancel, tags=(f"run:{run}",), context={"reason": "the user"})
    await trail.records.create(draft, by=me)


async def test_running_work_is_cancelled_and_other_runs_continue(trail: Trail, me: Principal) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def forever() -> None:
        began.set()
        await asyncio.Event().wait()

    async def other() -> str:
        await go_on.wait()
        return "done"

    async with asyncio.timeout(60), following(trail, me) as cancelling:
        first = asyncio.create_task(cancelling.work("r1", forever))
        second = asyncio.create_task(cancelling.work("r2", other))
        await began.wait()
        await call_off(trail, me, "r1")
        with pytest.raises(RunCancelled):
            await first
        go_on.set()
        assert await second == "done"


async def test_a_run_that_was_cancelled_before_does_no_work(trail: Trail, me: Principal) -> None:
    begun: list[str] = []

    async def begin() -> None:
        begun.append("an effect")
        await asyncio.Event().wait()

    async with asyncio.timeout(60), following(trail, me) as cancelling:
        await call_off(trail, me, "r")
        with pytest.raises(RunCancelled):
            await cancelling.work("r", begin)
    assert begun == []


async def test_the_end_of_a_process_is_no_cancellation(trail: Trail, me: Principal) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def forever() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with asyncio.timeout(60), following(trail, me) as cancelling:
        task = asyncio.create_task(cancelling.work("r", forever))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()


async def test_a_storage_that_fails_for_a_moment_does_not_end_the_watch(
    trail: Trail, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.trail.work.claims.PAUSE_AFTER_FAILURE", 0.0)
    follow, failures = trail.log.follow, iter([StorageError("the disk is away")] * 2)

    async def failing(after: int, *, by: Principal, selector: Selector) -> AsyncIterator[Event]:
        if (error := next(failures, None)) is not None:
            raise error
        async for event in follow(after, by=by, selector=selector):
            yield event

    monkeypatch.setattr(trail.log, "follow", failing)
    began = asyncio.Event()

    async def forever() -> None:
        began.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(60), following(trail, me) as cancelling:
        task = asyncio.create_task(cancelling.work("r", forever))
        await began.wait()
        await call_off(trail, me, "r")
        with pytest.raises(RunCancelled):
            await task
