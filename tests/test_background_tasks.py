"""Two things at the same time."""

from __future__ import annotations

import asyncio

import pytest

from clew.background_tasks import beside


async def test_the_task_runs_beside_the_body_and_is_awaited() -> None:
    may_go = asyncio.Event()

    async def work() -> str:
        await may_go.wait()
        return "done"

    async with beside(work()) as task:
        await asyncio.sleep(0)
        assert not task.done()
        may_go.set()
    assert task.result() == "done"


async def test_an_error_of_the_task_is_raised_after_the_body() -> None:
    steps = []

    async def work() -> None:
        raise ValueError("no")

    async def both() -> None:
        async with beside(work()):
            await asyncio.sleep(0)
            steps.append("body")

    with pytest.raises(ValueError, match="no"):
        await both()
    assert steps == ["body"]


async def test_a_failing_body_cancels_the_task_and_raises_its_own_error() -> None:
    begun: list[asyncio.Task[bool]] = []

    async def both() -> None:
        async with beside(asyncio.Event().wait()) as task:
            begun.append(task)
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await asyncio.wait_for(both(), 30)
    assert begun[0].cancelled()
