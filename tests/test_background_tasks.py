"""Two things at the same time."""

from __future__ import annotations

import asyncio

import pytest

from clew.background_tasks import beside


async def test_work_goes_on_while_the_body_does_something_else_and_is_waited_for() -> None:
    may_go = asyncio.Event()

    async def work() -> str:
        await may_go.wait()
        return "done"

    async with beside(work()) as task:
        await asyncio.sleep(0)
        assert not task.done()
        may_go.set()
    assert task.result() == "done"


async def test_an_error_of_the_work_is_raised_when_the_body_is_done() -> None:
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


async def test_a_body_that_fails_ends_the_work_and_its_own_error_is_told() -> None:
    begun: list[asyncio.Task[bool]] = []

    async def both() -> None:
        async with beside(asyncio.Event().wait()) as task:
            begun.append(task)
            await asyncio.sleep(0)
            raise KeyError

    with pytest.raises(KeyError):
        await asyncio.wait_for(both(), 30)
    assert begun[0].cancelled()
